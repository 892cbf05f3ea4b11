"""All folds at once: what one fit, one list of supports or one branch-and-bound on all rows proves of every fold."""
