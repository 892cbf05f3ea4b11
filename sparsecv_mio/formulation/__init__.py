"""The inner problem as a model, and the solvers that take it under one contract."""
