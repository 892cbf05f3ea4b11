"""Bounds and Newton steps of every row against trainings."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from slow import slow

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    Huber,
    Logistic,
    NewtonOracle,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    make_problem,
    train,
)
from sparsecv_mio.oracles.glru.loocv import leave_one_out_bounds, loocv

from .problems import random_problem

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
    assert NewtonOracle(fit).brackets(EVERY[:0]).lower.size == 0


def test_a_single_row_cannot_be_left_out() -> None:
    with pytest.raises(BadInput, match="two rows"):
        NewtonOracle(train(make_problem([[1.0]], [1.0], Squared(1.0), Regularizer(1.0))))


LOSSES = (Squared(1.0), Huber(0.8), SquaredHinge(), SmoothedHinge(0.7), Logistic())
REGULARIZERS = (
    Regularizer(0.05),
    Regularizer(1.0),
    Regularizer(0.1, 0.05),
    Regularizer(0.1, intercept=True),
    Regularizer(0.3, 0.02, intercept=True),
    Regularizer(0.0, 0.05, intercept=True),
    Regularizer(0.0, 0.05),
)


def classes(rng: np.random.Generator, n: int, d: int, gap: float) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + y[:, None] * gap / np.sqrt(d) + 0.3, y


def naive(X: np.ndarray, y: np.ndarray, loss: ConjugateLoss, regularizer: Regularizer) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of each left-out row and how far each may be from the optimum's."""
    values, away = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        fit = train(make_problem(np.delete(X, i, 0), np.delete(y, i), loss, regularizer), tol=1e-13)
        values[i] = (np.append(X[i], 1.0) if regularizer.intercept else X[i]) @ fit.w
        size = 1.0 + np.sqrt(np.square(X).sum(axis=1).max())
        ridge = regularizer.ridge
        away[i] = 1e-7 * size + (3.0 * size * np.sqrt(2.0 * fit.gap / ridge) if ridge > 0.0 else 1e-6 * size)
    return values, away


PAIRS = [  # each loss and each regularizer twice or more; the slow suite takes every pair
    pytest.param(loss, regularizer, marks=() if (i - j) % 5 in (0, 2) else pytest.mark.slow, id=f"{loss.name}-{j}")
    for i, loss in enumerate(LOSSES)
    for j, regularizer in enumerate(REGULARIZERS)
]


@pytest.mark.parametrize(("loss", "regularizer"), PAIRS)
def test_errors_and_bounds_equal_naive(loss: ConjugateLoss, regularizer: Regularizer) -> None:
    rng = np.random.default_rng(LOSSES.index(loss) + 10 * REGULARIZERS.index(regularizer))
    X, y = classes(rng, 18, 7, 1.5)
    values, away = naive(X, y, loss, regularizer)
    assert np.all(np.abs(values) > away), "a prediction is too near zero for its sign to be tested"
    full = train(make_problem(X, y, loss, regularizer), tol=1e-9)
    bounds = leave_one_out_bounds(full)
    assert np.all(bounds.lower <= values + away) and np.all(values - away <= bounds.upper)
    ways = ((X, {}), (sp.csr_array(X), {}), (X, {"steps": False}), (sp.csr_array(X), {"bounds": False}))
    for data, options in ways:
        result = loocv(make_problem(data, y, loss, regularizer), tol=1e-8, **options)
        assert np.array_equal(result.signs, np.sign(values))
        assert result.errors == int(np.sum(np.sign(values) != y))
        assert result.bracket[0] <= result.errors <= result.bracket[1]
        assert np.all(result.signs[result.certain] == np.sign(values)[result.certain])
    if regularizer.ridge > 0.0:
        assert loocv(make_problem(X, y, loss, regularizer)).certain.all()


@pytest.mark.parametrize(
    ("n", "d", "lam"), [(600, 15, 0.01), (150, 500, 0.001), *slow([(600, 15, 1.0), (150, 500, 0.1)])]
)
def test_errors_equal_naive_on_larger_data(n: int, d: int, lam: float) -> None:
    X, y = classes(np.random.default_rng(n + d), n, d, 2.05)
    X -= X.mean(axis=0)
    problem = make_problem(X, y, Logistic(), Regularizer(lam))
    plain, fast = loocv(problem, tol=1e-12, bounds=False), loocv(problem)
    assert np.array_equal(fast.signs, plain.signs) and fast.errors == plain.errors
    assert fast.certain.all() and plain.trainings == n and fast.trainings < n // 10
    printed = loocv(problem, steps=False)
    assert np.array_equal(printed.signs, plain.signs) and printed.trainings == int(printed.open.sum())


@pytest.mark.slow
def test_errors_equal_naive_for_600_rows_and_10000_columns() -> None:
    X, y = classes(np.random.default_rng(9), 600, 10_000, 2.05)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for lam in (1.0, 2.0**-10):
        problem = make_problem(X, y, Logistic(), Regularizer(lam))
        plain, fast = loocv(problem, tol=1e-10, bounds=False), loocv(problem)
        assert np.array_equal(fast.signs, plain.signs) and fast.certain.all() and fast.trainings < 30


def test_the_newton_step_is_exact_for_the_squared_loss_and_near_for_the_logistic() -> None:
    X, y = classes(np.random.default_rng(4), 60, 5, 1.0)
    for regularizer in (Regularizer(0.1), Regularizer(0.1, intercept=True)):
        exact = loocv(make_problem(X, y, Squared(1.0), regularizer), bounds=False, tol=1e-12)
        step = loocv(make_problem(X, y, Squared(1.0), regularizer), bounds=False, approximate=True, tol=1e-12)
        assert np.array_equal(exact.signs, step.signs) and step.trainings == 60 and not step.certain.any()
    near = loocv(make_problem(X, y, Logistic(), Regularizer(0.1)), approximate=True)
    assert abs(near.errors - loocv(make_problem(X, y, Logistic(), Regularizer(0.1))).errors) <= 1


def test_a_prediction_of_zero_is_an_error() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [-2.0, 0.0], [0.0, 0.0]])
    result = loocv(make_problem(X, [1, 1, -1, -1, 1], Logistic(), Regularizer(0.1)))
    assert result.errors == 1 and result.signs[-1] == 0.0 and result.certain[-1]
