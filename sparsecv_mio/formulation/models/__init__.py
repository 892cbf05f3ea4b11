"""The models that are handed to solvers, written in Pyomo."""
