"""Best-subset problems as mixed-integer models, and the common interface of the solvers (backends)."""
