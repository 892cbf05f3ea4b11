"""Mixed-integer models of the inner problem, and the common interface of the solvers that take them."""
