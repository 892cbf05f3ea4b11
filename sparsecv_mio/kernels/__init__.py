"""Kernels compiled with numba: functions of plain arrays that import nothing else of the package."""
