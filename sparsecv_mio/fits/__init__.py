"""Best subsets of the full data: one mixed-integer problem, or all sizes of a path."""
