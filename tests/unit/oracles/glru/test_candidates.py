"""Bounds on validation errors of every fit that is one column away: all at once, and one at a time."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import Design, Logistic, Regularizer, make_problem, train
from sparsecv_mio.oracles.glru.candidates import View, candidate_errors, count_errors, fit_errors


def test_errors_of_intervals_are_those_of_the_worst_and_the_best_sign() -> None:
    lower, upper = np.array([0.5, -1.0, -2.0, 0.0, -1.0]), np.array([1.0, 1.0, -0.5, 0.0, 0.0])
    assert count_errors(lower, upper, np.ones(5)) == (3, 4)
    assert count_errors(lower, upper, -np.ones(5)) == (2, 4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("adding", [False, True])
def test_the_retrained_errors_are_inside(adding: bool, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 6)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    y = np.where(X[:, 0] > 0.0, 1.0, y)
    whole = make_problem(X[:30], y[:30], Logistic(), Regularizer(0.1, intercept=intercept))
    validation, present = Design(X[30:], intercept), np.array([0, 2, 4, 5])
    view = View.of(whole, present)
    fit = train(view.problem, tol=1e-8)
    candidates = np.array([1, 3]) if adding else present
    found = candidate_errors(whole, view, fit, validation, y[30:], candidates, adding)
    for k, j in enumerate(candidates.tolist()):
        other = View.of(whole, np.union1d(present, [j]) if adding else present[present != j])
        exact = train(other.problem, tol=1e-13)
        wrong = int(np.sum(np.sign(validation.forward(other.widen(exact.w, whole.design.d))) != y[30:]))
        assert found.lower[k] <= wrong <= found.upper[k]
        low, high = fit_errors(other, exact, validation, y[30:])
        assert low <= wrong <= high
    assert np.array_equal(view.narrow(view.widen(fit.w, whole.design.d)), fit.w)
