"""The inner problem of one fold, its moments, and the definitions of f and h in plain numpy."""
