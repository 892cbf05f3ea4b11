"""Bootstrap, stability selection, tests by splits of the rows, and comparisons with baselines."""
