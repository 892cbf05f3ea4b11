"""Branch-and-bound trees over supports: for all sizes at once, for one size, over clusters, and with restrictions."""
