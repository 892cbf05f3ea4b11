"""Certified cross-validation for best-subset ridge regression."""

__version__ = "0.1.0"
