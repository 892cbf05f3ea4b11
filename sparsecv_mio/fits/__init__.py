"""Best subsets on all rows: one mixed-integer problem, or every size of a path."""
