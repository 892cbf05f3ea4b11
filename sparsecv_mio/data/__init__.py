"""Data sets, standard coordinates and folds, from files and tables."""
