"""Training reaches the optimum for every loss and penalty."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import (
    HessianFactor,
    Huber,
    Logistic,
    Regularizer,
    SmoothedHinge,
    SquaredHinge,
    make_problem,
    train,
    training,
)

from .problems import random_problem


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
