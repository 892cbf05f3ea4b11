"""The ridge learner against the normal equations."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    RidgeLearner,
)

from .samples import data


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge(intercept):
    X, y, _ = data()
    learner = RidgeLearner(0.7, intercept=intercept)
    for rows in (slice(0, 9), slice(9, 10), slice(10, 50)):
        learner.update(X[rows], y[rows] + 5.0)
    A = np.column_stack([X, np.ones(50)]) if intercept else X
    penalty = np.diag([0.7] * 4 + [0.0] * intercept)
    b = np.linalg.solve(A.T @ A + penalty, A.T @ (y + 5.0))
    got, b0 = learner.fit()
    assert got == pytest.approx(b[:4], rel=1e-11)
    assert b0 == pytest.approx(b[4] if intercept else 0.0, rel=1e-11)


def test_ridge_far_from_the_origin_keeps_its_digits():
    X, y, _ = data()
    near, far = (RidgeLearner(0.1, intercept=True) for _ in range(2))
    near.update(X, y)
    for rows in np.array_split(np.arange(50), 10):
        far.update(X[rows] + 1e6, y[rows])
    assert far.fit()[0] == pytest.approx(near.fit()[0], rel=1e-8)


def test_singular_ridge_is_named():
    learner = RidgeLearner(0.0)
    learner.update(np.ones((3, 2)) * np.array([1.0, 0.0]), np.ones(3))
    with pytest.raises(BadInput, match="not unique"):
        learner.fit()
