"""Training reaches the optimum for every loss and penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from conjugates import dual_value

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import (
    HessianFactor,
    Huber,
    Logistic,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    make_problem,
    train,
    training,
)
from sparsecv_mio.oracles.glru.training import assess_with_intercept, proximal_target

from .problems import LOSSES, random_problem


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", [Regularizer(0.01), Regularizer(0.1, 0.05), Regularizer(0.0, 0.05)], ids=str)
def test_the_gap_is_that_of_the_definitions(loss: Any, regularizer: Regularizer) -> None:
    problem = random_problem(loss, regularizer)
    for tol in (1e-2, 1e-6, 1e-11):
        fit = train(problem, tol=tol)
        assert fit.relative_gap <= tol
        assert fit.primal - dual_value(problem, fit.alpha) == pytest.approx(fit.gap, rel=1e-3, abs=1e-14)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_an_intercept_is_optimal_and_its_dual_point_feasible(loss: Any) -> None:
    problem = random_problem(loss, Regularizer(0.1, 0.02, intercept=True))
    fit = train(problem, tol=1e-11)
    assert fit.relative_gap <= 1e-11 and abs(fit.alpha.sum()) < 1e-12
    for shift in (-1e-3, 1e-3):
        assert problem.primal(fit.w, fit.t + shift) >= fit.primal - 1e-13


def test_a_start_near_the_optimum_saves_steps_and_a_stop_is_asked() -> None:
    problem = random_problem(Logistic(), Regularizer(1e-4), n=200)
    cold = train(problem, tol=1e-8)
    warm = train(problem.without_rows([3]), tol=1e-8, start=cold.w)
    assert warm.iterations < cold.iterations
    asked: list[float] = []
    early = train(problem, tol=1e-8, stop=lambda fit: not asked.append(fit.gap) and len(asked) == 2)
    assert len(asked) == 2 and early.iterations == 2 < cold.iterations


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_conjugate_gradients_find_the_same_fit(monkeypatch: pytest.MonkeyPatch, intercept: bool, sparse: bool) -> None:
    direct = random_problem(Logistic(), Regularizer(0.01, intercept=intercept), n=80, d=20)
    columns = direct.design.X[:, :20]
    problem = make_problem(sp.csr_array(columns) if sparse else columns, direct.y, Logistic(), direct.regularizer)
    exact = train(direct, tol=1e-13)
    monkeypatch.setattr(training, "DIRECT_WORK", 0.0)
    plain = train(problem, tol=1e-13)
    assert np.allclose(plain.w, exact.w, atol=1e-6)
    factor, calls = HessianFactor.at(exact), []

    def counted(g: np.ndarray) -> np.ndarray:
        calls.append(1)
        return factor(g)

    changed = problem.without_rows([5])
    again, other = train(changed, tol=1e-13, start=exact.w, precondition=counted), train(changed, tol=1e-13)
    assert np.allclose(again.w, other.w, atol=1e-6)
    assert again.relative_gap <= 1e-13 and len(calls) <= 30


def test_a_separable_problem_with_kinks_converges() -> None:
    # small lam, every row flat at the start of the path: plain Newton steps would crawl along the kinks
    for seed in range(4):
        for loss in (SmoothedHinge(0.4), SquaredHinge(), Huber(0.2)):
            for regularizer in (
                Regularizer(2e-3, intercept=True),
                Regularizer(2e-3, 1e-3),
                Regularizer(0.0, 2e-3, True),
            ):
                problem = random_problem(loss, regularizer, n=20, d=25, seed=seed)
                fit = train(problem, tol=1e-9)
                assert fit.relative_gap <= 1e-9 and fit.iterations <= 60


def test_one_class_with_an_intercept_is_refused() -> None:
    with pytest.raises(BadInput, match="both classes"):
        train(make_problem(np.eye(3), np.ones(3), Logistic(), Regularizer(1.0, intercept=True)))
    with pytest.raises(BadInput, match="tolerance"):
        train(make_problem(np.eye(3), np.ones(3), Logistic(), Regularizer(1.0)), tol=0.0)


@pytest.mark.parametrize("loss", [Logistic(), Squared(1.0)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "regularizer", [Regularizer(0.1, 0.05), Regularizer(0.1, 0.05, True), Regularizer(0.0, 0.02)], ids=str
)
def test_no_other_point_is_lower_in_the_model(loss, regularizer: Regularizer) -> None:  # type: ignore[no-untyped-def]
    problem = random_problem(loss, regularizer)
    rng = np.random.default_rng(0)
    fit = assess_with_intercept(problem, 0.1 * rng.standard_normal(problem.design.d))
    h = loss.curvature(fit.t, problem.y) / problem.n
    slope = loss.derivative(fit.t, problem.y) / problem.n

    def model(u: np.ndarray) -> float:
        v = problem.design.forward(u - fit.w)
        return float(slope @ v + 0.5 * h @ v**2 + regularizer.value(u))

    best = proximal_target(fit, h)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(100):
            other = best + size * rng.standard_normal(best.size) * (rng.random(best.size) < 0.4)
            assert model(best) <= model(other) + 1e-9 * abs(model(best))
    assert model(best) < model(fit.w)
