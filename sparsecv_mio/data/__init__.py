"""From a file to numbers with names, standard coordinates and folds."""
