"""Certified cross-validation over a grid: a state, parts that act on it, one loop (docs/architecture.md)."""
