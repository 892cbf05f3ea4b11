"""Stepwise selection against training every candidate."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    DesignMatrix,
    Huber,
    Logistic,
    Regularizer,
    SmoothedHinge,
    SquaredHinge,
    make_problem,
    train,
)
from sparsecv_mio.oracles.glru.risk import Problem
from sparsecv_mio.oracles.glru.stepwise import (
    ColumnSearch,
    ColumnView,
    Direction,
    StepwiseOptions,
    count_errors,
    stepwise,
)

LOSSES = (Logistic(), SquaredHinge(), SmoothedHinge(0.8), Huber(0.5))
REGULARIZERS = (Regularizer(0.3), Regularizer(0.1, 0.03), Regularizer(0.2, intercept=True))


def data(seed: int, n: int = 60, d: int = 9, m: int = 40) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d) * (rng.random(d) < 0.5)
    X = rng.normal(size=(n + m, d)) + 0.2
    y = np.where(X @ direction + 1.5 * rng.normal(size=n + m) > 0.1, 1.0, -1.0)
    return X[:n], y[:n], X[n:], y[n:]


def true_errors(problem: Problem, columns: np.ndarray, V: np.ndarray, v: np.ndarray) -> int:
    X = problem.design.X[:, columns]
    fit = train(make_problem(X, problem.y, problem.loss, problem.regularizer), tol=1e-12)
    t = V[:, columns] @ fit.w[: columns.size] + (fit.w[-1] if problem.regularizer.intercept else 0.0)
    return int(np.sum(np.sign(t) != v))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("adding", [False, True], ids=["remove", "add"])
def test_true_errors_lie_within_the_bounds(loss: ConjugateLoss, regularizer: Regularizer, adding: bool) -> None:
    X, y, V, v = data(3)
    plain = make_problem(X, y, loss, regularizer)
    d, selected = X.shape[1], np.array([0, 2, 3, 7]) if adding else np.arange(1, 9)
    view = ColumnView.from_problem(plain, selected)
    fit = train(view.problem, tol=1e-8)
    candidates = np.setdiff1d(np.arange(d), selected) if adding else selected
    design = DesignMatrix(V, regularizer.intercept)
    options = StepwiseOptions(direction="forward" if adding else "backward")
    search = ColumnSearch(plain, design, v, options)
    lower, upper = search.candidate_errors(view, fit, candidates)
    decided = 0
    for j, low, high in zip(candidates, lower, upper, strict=True):
        columns = np.union1d(selected, [j]) if adding else np.setdiff1d(selected, [j])
        wrong = true_errors(plain, columns, V, v)
        assert low <= wrong <= high
        decided += v.size - (high - low)
    other = ColumnView.from_problem(plain, columns)
    least, most = search.fit_errors(other, train(other.problem, tol=1e-13))
    assert least <= wrong <= most
    assert np.array_equal(view.narrow(view.widen(fit.w, plain.design.d)), fit.w)
    assert decided > 0 or adding, "the bounds decide no sign at all"


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_stepwise_equals_naive(loss: ConjugateLoss, regularizer: Regularizer, direction: Direction, seed: int) -> None:
    X, y, V, v = data(seed)
    problem = make_problem(X, y, loss, regularizer)
    fast = stepwise(problem, V, v, StepwiseOptions(direction, 1e-12, ties="first"))
    slow = stepwise(problem, V, v, StepwiseOptions(direction, 1e-12, bounds=False))
    assert fast.selected.tolist() == slow.selected.tolist()
    assert fast.errors == slow.errors == true_errors(problem, fast.selected, V, v) or fast.selected.size == 0
    assert [s.errors for s in fast.steps] == [s.errors for s in slow.steps]
    assert fast.trainings <= slow.trainings == slow.candidates
    loose = stepwise(problem, V, v, StepwiseOptions(direction, 1e-12))
    assert loose.steps[0].errors == fast.steps[0].errors and loose.trainings <= loose.candidates


def test_errors_of_intervals_are_those_of_the_worst_and_the_best_sign() -> None:
    lower, upper = np.array([0.5, -1.0, -2.0, 0.0, -1.0]), np.array([1.0, 1.0, -0.5, 0.0, 0.0])
    assert count_errors(lower, upper, np.ones(5)) == (3, 4)
    assert count_errors(lower, upper, -np.ones(5)) == (2, 4)
