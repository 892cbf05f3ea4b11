"""Kernels, which are functions of plain arrays compiled with numba; they import nothing else of the package."""
