"""One Newton step towards each leave-one-out fit: its definition, and intervals that hold the exact prediction."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import Logistic, NewtonOracle, Regularizer, Squared, make_problem, train

from .problems import LOSSES, random_problem

EVERY = np.arange(40)


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
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
        NewtonOracle(train(make_problem([[1.0]], [1.0], Squared(), Regularizer(1.0))))
