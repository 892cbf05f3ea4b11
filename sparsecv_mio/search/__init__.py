"""Certified cross-validation over a grid of pairs (tau, gamma); docs/architecture.md describes the modules."""
