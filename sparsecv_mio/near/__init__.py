"""Models near the best one, all of them; and the best subset that all folds share, by its cross-validation error."""
