"""Search over all gammas of an interval, and coordinate descent over gamma and tau; both call the grid search."""
