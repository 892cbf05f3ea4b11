"""Compiled arithmetic (numba): plain arrays in and out; imports nothing else of the package."""
