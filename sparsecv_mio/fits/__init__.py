"""Best subsets of the full data, of one size or of every size."""
