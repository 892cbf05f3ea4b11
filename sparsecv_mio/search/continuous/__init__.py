"""The optimum over every gamma of an interval, certified (docs/theory/continuous_gamma.md)."""
