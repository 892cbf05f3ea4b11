"""Search over all gammas of an interval, and coordinate descent over gamma and tau. Both call the grid search."""
