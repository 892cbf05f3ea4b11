"""Slopes from the products with a few columns: those of the whole matrix."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.kernels.wide_node import slope_from_products


def test_the_slope_in_all_columns_is_that_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(0)
    X, y, few = rng.normal(size=(7, 30)), rng.normal(size=7), np.array([4, 9, 2])
    b, g, c = np.array([1.5, 0.0, -2.0]), np.empty(30), X.T @ y
    slope_from_products(np.ascontiguousarray((X.T @ X)[few]), c, b, 3, g)
    np.testing.assert_allclose(g, X.T @ (y - X[:, few] @ b), atol=1e-12)
    slope_from_products((X.T @ X)[few], c, b, 0, g)
    assert np.array_equal(g, c)
