"""Best subsets of the full data: one mixed-integer problem, or the best subset of every size."""
