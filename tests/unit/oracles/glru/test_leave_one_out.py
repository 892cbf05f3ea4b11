"""Bounds and Newton steps of every row against trainings."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import Logistic, NewtonOracle, Regularizer, Squared, make_problem, train
from sparsecv_mio.oracles.glru.leave_one_out import GlruOracle, leave_one_out_bounds

from .problems import LOSSES, RIDGES, fitted, random_problem


@pytest.mark.parametrize("regularizer", [*RIDGES, Regularizer(0.3, intercept=True)], ids=str)
def test_all_leave_one_out_bounds_are_the_single_ones(regularizer: Regularizer) -> None:
    for loss in LOSSES:
        fit = fitted(loss, regularizer)
        together, oracle = leave_one_out_bounds(fit), GlruOracle(fit, "sharp" if not regularizer.intercept else "best")
        for i in range(14):
            alone = oracle.leave_out(np.array([i]))
            assert together.lower[i] == pytest.approx(alone.lower[0], abs=1e-7)
            assert together.upper[i] == pytest.approx(alone.upper[0], abs=1e-7)


EVERY = np.arange(40)


@pytest.mark.parametrize("loss", [Logistic(), Squared(1.0)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_step_is_newtons(loss, intercept) -> None:  # type: ignore[no-untyped-def]
    problem = random_problem(loss, Regularizer(0.2, intercept=intercept))
    fit = train(problem, tol=1e-10)
    found, points = NewtonOracle(fit).leave_out(EVERY).value, NewtonOracle(fit).points(EVERY)
    X, y, d = problem.design.X, problem.y, problem.design.d
    ridge = 0.2 * np.diag([1.0] * 12 + [0.0] * (d - 12))
    for i in (0, 17, 39):
        keep = i != EVERY
        slope = loss.derivative(fit.t[keep], y[keep])
        g = X[keep].T @ slope / 39 + ridge @ fit.w
        H = (X[keep].T * loss.curvature(fit.t[keep], y[keep])) @ X[keep] / 39 + ridge
        assert points[i] == pytest.approx(fit.w - np.linalg.solve(H, g), rel=1e-8, abs=1e-10)
        assert found[i] == pytest.approx(X[i] @ points[i], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_intervals_hold_the_exact_prediction(loss) -> None:  # type: ignore[no-untyped-def]
    problem = random_problem(loss, Regularizer(0.2))
    bracket = NewtonOracle(train(problem, tol=1e-6)).brackets(EVERY)
    for i in range(0, 40, 5):
        exact = train(problem.without_rows([i]), tol=1e-13).t[i]
        assert bracket.lower[i] - 1e-7 <= exact <= bracket.upper[i] + 1e-7
    assert NewtonOracle(train(problem, tol=1e-6)).brackets(EVERY[:0]).lower.size == 0


def test_a_single_row_cannot_be_left_out() -> None:
    with pytest.raises(BadInput, match="two rows"):
        NewtonOracle(train(make_problem([[1.0]], [1.0], Squared(1.0), Regularizer(1.0))))
