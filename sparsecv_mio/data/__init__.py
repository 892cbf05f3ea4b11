"""Data sets, standard coordinates (columns centred and scaled) and folds, from files and tables."""
