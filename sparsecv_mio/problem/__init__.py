"""The best-subset problem of one fold, its moments, and the definitions of objective and CV error in plain numpy."""
