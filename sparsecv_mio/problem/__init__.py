"""One fold's inner problem, the moments it is made of, and the definition of f and h in plain numpy."""
