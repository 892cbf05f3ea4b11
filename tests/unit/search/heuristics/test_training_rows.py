"""Products with the training rows of several folds, against those rows one fold at a time."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.heuristics.training_rows import TrainingRows

from .drawn import FOLDS, random_data


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_squares_and_products_are_those_of_the_training_rows(intercept: str) -> None:
    data = random_data(0, p=7, intercept=intercept)
    rows, (V, r) = TrainingRows(data, FOLDS), data.rows(slice(0, data.n))
    np.testing.assert_allclose(rows.response(), r, rtol=1e-13)
    inside = rows.inside([2, 0])
    centred = rows.centre(np.vstack([r, r]), inside)
    squares, products = rows.squares([2, 0]), rows.products(centred)
    for line, fold in enumerate([2, 0]):
        train = FOLDS.train_rows(fold)
        assert np.flatnonzero(inside[line]).tolist() == train.tolist()
        A, b = V[train], r[train]
        if intercept == "fold":
            A, b = A - A.mean(axis=0), b - b.mean()
        np.testing.assert_allclose(squares[line], (A**2).sum(axis=0), rtol=1e-10)
        np.testing.assert_allclose(products[line], b @ A, rtol=1e-9, atol=1e-12)
        assert np.all(centred[line, FOLDS.test_rows(fold)] == 0.0)
