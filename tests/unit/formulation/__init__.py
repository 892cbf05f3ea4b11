"""Tests of the models handed to solvers."""
