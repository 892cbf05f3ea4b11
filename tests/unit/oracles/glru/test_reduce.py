"""Fewer columns by an orthogonal basis: the same predictions, the same objective."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    Logistic,
    Regularizer,
    make_problem,
    train,
)
from sparsecv_mio.oracles.glru.reduce import reduce


def test_reduction_keeps_predictions_and_objective() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(15, 60))
    X[4] = X[3]  # a singular product takes the other factorisation
    y = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    for intercept in (False, True):
        wide = make_problem(X, y, Logistic(), Regularizer(0.1, intercept=intercept)).without_rows([7])
        small = reduce(wide)
        assert small.design.X.shape[1] == 15 + intercept and small.n == 14
        a, b = train(wide, tol=1e-13), train(small, tol=1e-13)
        assert np.allclose(a.t, b.t, atol=1e-6) and a.primal == pytest.approx(b.primal, rel=1e-10)
    for regularizer in (Regularizer(0.1, 0.1), Regularizer(0.0, 0.1)):
        problem = make_problem(X, y, Logistic(), regularizer)
        assert reduce(problem) is problem
    tall = make_problem(X[:, :20], y, Logistic(), Regularizer(0.1))
    assert reduce(tall) is tall
