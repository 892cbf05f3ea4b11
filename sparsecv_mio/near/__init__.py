"""Near-optimal models, listed completely, and the best subset that all folds share, by its cross-validation error."""
