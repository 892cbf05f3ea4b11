"""Certified cross-validation over a grid: a state, modules that act on it, one loop (docs/architecture.md)."""
