"""Problems on some rows and columns, and the problem in n coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conjugates import conjugate, penalty_conjugate

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
from sparsecv_mio.oracles.glru.risk import RESIDUAL, fewer_columns

from .problems import LOSSES, RIDGES, fitted


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", [*RIDGES, Regularizer(0.3, intercept=True)], ids=str)
def test_a_masked_problem_is_the_smaller_problem(loss: ConjugateLoss, regularizer: Regularizer) -> None:
    whole = fitted(loss, regularizer).problem
    rows, columns = np.delete(np.arange(14), [1, 5]), np.delete(np.arange(6), [2])
    part = whole.design.part(np.delete(np.arange(whole.design.d), 2))
    masked = train(replace(whole.without_rows([1, 5]), design=part), tol=1e-12)
    X = whole.design.X[np.ix_(rows, columns)]
    small = train(make_problem(X, whole.y[rows], loss, regularizer), tol=1e-12)
    assert np.allclose(masked.w, small.w, atol=1e-5)
    position, x = 3, np.ones((1, 5))
    one = change_rows(assess(masked.problem, masked.w), [rows[position]])
    two = change_rows(assess(small.problem, masked.w), [position])
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
        small = fewer_columns(wide)
        assert small.design.X.shape[1] == 15 + intercept and small.n == 14
        a, b = train(wide, tol=1e-13), train(small, tol=1e-13)
        assert np.allclose(a.t, b.t, atol=1e-6) and a.primal == pytest.approx(b.primal, rel=1e-10)
    for regularizer in (Regularizer(0.1, 0.1), Regularizer(0.0, 0.1)):
        problem = make_problem(X, y, Logistic(), regularizer)
        assert fewer_columns(problem) is problem
    tall = make_problem(X[:, :20], y, Logistic(), Regularizer(0.1))
    assert fewer_columns(tall) is tall


EVERY = [Regularizer(0.3), Regularizer(0.3, 0.1), Regularizer(0.0, 0.05), Regularizer(0.3, intercept=True)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", EVERY, ids=str)
def test_the_gap_is_primal_less_dual(loss: ConjugateLoss, regularizer: Regularizer) -> None:
    problem = fitted(loss, regularizer).problem
    rng = np.random.default_rng(0)
    for size in (0.0, 0.1, 1.0):
        fit = assess(problem, size * rng.standard_normal(problem.design.d))
        dual = -conjugate(loss, -fit.alpha, problem.y).sum() / problem.n - penalty_conjugate(regularizer, fit.score)
        assert fit.gap == pytest.approx(fit.primal - dual, rel=1e-9, abs=1e-12)
        rows = problem.keep_rows(loss.residual(fit.t, fit.alpha, problem.y))
        assert fit.gap >= 0.0 and fit.table_sum[RESIDUAL] == pytest.approx(rows.sum())
        if regularizer.intercept:
            assert abs(fit.alpha.sum()) <= 1e-12 * np.abs(fit.alpha).sum() + 1e-15
