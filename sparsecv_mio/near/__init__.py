"""Complete lists of near-optimal models, and the subset with the minimum CV error if all folds use the same subset."""
