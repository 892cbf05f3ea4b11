"""The native engine: branch-and-bound over supports, for every size at once, one size, clusters, restrictions."""
