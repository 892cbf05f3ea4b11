"""Problems on some rows and columns, and the problem in n coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    IntervalMethod,
    Logistic,
    Regularizer,
    assess,
    change_columns,
    change_rows,
    make_problem,
    prediction_intervals,
    train,
)
from sparsecv_mio.oracles.glru.problem import reduce

from .problems import LOSSES, RIDGES, fitted


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", [*RIDGES, Regularizer(0.3, intercept=True)], ids=str)
def test_a_masked_problem_is_the_smaller_problem(loss: ConjugateLoss, regularizer: Regularizer) -> None:
    whole = fitted(loss, regularizer).problem
    rows, columns = np.delete(np.arange(14), [1, 5]), np.delete(np.arange(6), [2])
    masked = train(replace(whole.without_rows([1, 5]), column_mask=np.arange(whole.design.d) != 2), tol=1e-12)
    X = whole.design.X[np.ix_(rows, columns)]
    small = train(make_problem(X, whole.y[rows], loss, regularizer), tol=1e-12)
    tail = [6] if regularizer.intercept else []
    assert np.allclose(masked.w[[*columns, *tail]], small.w, atol=1e-5) and masked.w[2] == 0.0
    position, x = 3, np.ones((1, 5))
    one = change_rows(assess(masked.problem, masked.w), [rows[position]])
    two = change_rows(assess(small.problem, masked.w[[*columns, *tail]]), [position])
    assert one.gap == pytest.approx(two.gap, rel=1e-6)
    for method in IntervalMethod:
        a, b = prediction_intervals(one, x, method), prediction_intervals(two, x, method)
        assert np.allclose(a.lower, b.lower, rtol=1e-5) and np.allclose(a.upper, b.upper, rtol=1e-5)
    a, b = (prediction_intervals(change_columns(f, [c]), x[:, 1:]) for f, c in ((masked, 0), (small, 0)))
    assert np.allclose(a.lower, b.lower, atol=1e-4) and np.allclose(a.upper, b.upper, atol=1e-4)


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
