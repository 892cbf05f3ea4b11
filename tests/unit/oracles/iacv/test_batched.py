"""All folds' squared-loss fits at once, against one fit per fold."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    L1,
    Erm,
    KSupport,
    Logistic,
    Penalty,
    Ridge,
    Squared,
    exact_step,
    fold_fits,
    proxgd,
)


def make(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) + 5.0
    return X, y, rng.integers(-1, 4, n)


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_equals_closed_form(loo, intercept):
    X, y, labels = make()
    erm = Erm(X, y, Squared(), Ridge(), 0.7, None if loo else labels)
    labels = np.arange(40) if loo else labels
    fits = fold_fits(erm, intercept=intercept, steps=20_000, tolerance=1e-14)
    for j in range(labels.max() + 1):
        A, b = X[labels != j], y[labels != j]
        xm, ym = (A.mean(axis=0), b.mean()) if intercept else (np.zeros(6), 0.0)
        theta = np.linalg.solve((A - xm).T @ (A - xm) + 0.7 * np.eye(6), (A - xm).T @ (b - ym))
        assert fits.theta[j] == pytest.approx(theta, abs=1e-8)
        assert fits.intercept[j] == pytest.approx(ym - xm @ theta if intercept else 0.0, abs=1e-7)


@pytest.mark.parametrize("penalty", [L1(), KSupport(2), KSupport(3, np.array([1.0, 2.0, 1.0, 1.0, 0.5, 1.0]))])
def test_each_fold_is_optimal(penalty):
    X, y, labels = make(seed=1)
    X, y = X - 2.0, y - 5.0
    lam = 1.5
    fits = fold_fits(Erm(X, y, Squared(), penalty, lam, labels), steps=20_000, tolerance=1e-14)
    rng = np.random.default_rng(0)
    for j in range(4):
        A, b = X[labels != j], y[labels != j]

        def objective(t, A=A, b=b):
            return np.sum((b - A @ t) ** 2) + lam * float(penalty.value(t))

        best = objective(fits.theta[j])
        for size in (1e-4, 1e-2, 1.0):
            for _ in range(50):
                assert best <= objective(fits.theta[j] + size * rng.standard_normal(6)) + 1e-10


def test_plain_iterates_are_the_left_out_iterates():
    X, y, labels = make(seed=2)
    X, y = X - 2.0, y - 5.0
    erm = Erm(X, y, Squared(), L1(), 2.0, labels)
    step = 0.5 / np.linalg.eigvalsh(X.T @ X)[-1]
    Theta = theta = np.zeros((4, 6))
    for t in range(30):
        Theta = exact_step(erm, proxgd(step), t, Theta)
        theta = fold_fits(erm, steps=1, begin=theta).theta  # the first step of a run has no momentum
    assert np.abs(theta - Theta).max() < 1e-12


def test_warm_start_needs_fewer_steps():
    X, y, labels = make(seed=3)
    cold = fold_fits(Erm(X, y, Squared(), KSupport(2), 1.0, labels), intercept=True)
    warm = fold_fits(Erm(X, y, Squared(), KSupport(2), 1.0, labels), intercept=True, begin=cold.theta)
    assert warm.steps < cold.steps
    assert np.abs(warm.theta - cold.theta).max() < 1e-6


def test_refusals():
    class Rough(Penalty):
        def value(self, theta):
            return np.zeros(theta.shape[:-1])

    X, y, labels = make()
    with pytest.raises(BadInput, match="proximal map"):
        fold_fits(Erm(X, y, Squared(), Rough(), 1.0, labels))
    with pytest.raises(BadInput, match="squared loss"):
        fold_fits(Erm(X, np.sign(y), Logistic(), Ridge(), 1.0, labels))
