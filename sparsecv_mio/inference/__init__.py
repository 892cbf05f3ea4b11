"""Results for a statistician on top of the certified search: each repeats or compares the whole procedure."""
