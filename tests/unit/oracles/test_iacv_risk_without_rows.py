"""The penalised risk, and the problem of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    Erm,
    Expansion,
    KSupport,
    Logistic,
    Penalty,
    Poisson,
    Regularizer,
    Squared,
    default_step,
    exact_step,
    fold_fits,
    gd,
    iacv_step,
    infinitesimal_jackknife,
    newton_step,
    proxgd,
    start,
)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"lam": -1.0}, "lam"),
        ({"y": np.array([1.0, 2.0, 1.0])}, "labels -1 and"),
        ({"X": np.array([[1.0], [np.nan], [0.0]])}, "finite"),
        ({"y": np.ones(2)}, r"\(n,\)"),
        ({"labels": np.array([0, 2, -1])}, "labels"),
    ],
)
def test_bad_problems(change, word):
    good = {"X": np.ones((3, 1)), "y": np.array([1.0, -1.0, 1.0]), "lam": 0.0, "labels": None} | change
    with pytest.raises(BadInput, match=word):
        Erm(good["X"], good["y"], Logistic(), Regularizer(2.0), good["lam"], good["labels"])


def logistic_data(n, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    theta = np.zeros(p)
    theta[:2] = [1.0, -0.7]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ theta)), 1.0, -1.0)


def follow(erm, solver, steps):
    state = start(erm)
    for _ in range(steps):
        state = iacv_step(erm, solver, state)
    return state


def lasso_quadratic(H, x, lam, weights):
    """`argmin 1/2 (x - z)' H (x - z) + lam sum w |z|` by coordinate descent."""
    z = x.copy()
    for _ in range(20_000):
        before = z.copy()
        for j in range(z.size):
            r = H[j] @ (x - z) + H[j, j] * z[j]
            z[j] = np.sign(r) * max(abs(r) - lam * weights[j], 0.0) / H[j, j]
        if np.abs(z - before).max() < 1e-15:
            break
    return z


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("loss", [Logistic(), Poisson()])
def test_smooth_definitions(labelled, loss):
    rng = np.random.default_rng(5)
    X, y = logistic_data(12, 3, 5)
    y = y if loss.name == "logistic" else np.maximum(y, 0.0)
    labels = np.array([0, 1, 0, 1, 2, 2, -1, 0, 1, 2, 2, 0]) if labelled else None
    erm = Erm(X, y, loss, Regularizer(2.0), 0.4, labels)
    theta = 0.3 * rng.standard_normal(3)
    ns, ij = newton_step(erm, theta), infinitesimal_jackknife(erm, theta)
    H = Expansion(loss, X, y, theta).hessian() + 0.8 * np.eye(3)
    for i in range(erm.k):
        keep = np.arange(12) != i if labels is None else labels != i
        left = Expansion(loss, X[keep], y[keep], theta)
        g = left.total() + 0.8 * theta
        H_i = left.hessian() + 0.8 * np.eye(3)
        assert ns[i] == pytest.approx(theta - np.linalg.solve(H_i, g), abs=1e-12)
        assert ij[i] == pytest.approx(theta - np.linalg.solve(H, g), abs=1e-12)


@pytest.mark.parametrize("labelled", [False, True])
def test_proximal_definitions(labelled):
    rng = np.random.default_rng(6)
    X, y = logistic_data(20, 4, 6)
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    labels = rng.integers(-1, 3, 20) if labelled else None
    erm = Erm(X, y, Logistic(), Regularizer(0.0, 1.0, intercept=True), 0.5, labels)
    theta = 0.2 * rng.standard_normal(4)
    ns, ij = newton_step(erm, theta, proximal=True), infinitesimal_jackknife(erm, theta, proximal=True)
    H = Expansion(erm.loss, X, y, theta).hessian()
    for i in range(erm.k):
        keep = np.arange(20) != i if labels is None else labels != i
        left = Expansion(erm.loss, X[keep], y[keep], theta)
        g, H_i = left.total(), left.hessian()
        assert ns[i] == pytest.approx(lasso_quadratic(H_i, theta - np.linalg.solve(H_i, g), 0.5, weights), abs=1e-9)
        assert ij[i] == pytest.approx(lasso_quadratic(H_i, theta - np.linalg.solve(H, g), 0.5, weights), abs=1e-9)


def test_gradient_descent_converges_to_the_newton_step():
    """Theorem 5.1."""
    X, y = logistic_data(80, 4, 0)
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 0.05)
    state = follow(erm, gd(default_step(erm)), 1500)
    gap = np.abs(state.approx - newton_step(erm, state.theta)).max()
    assert gap < 1e-12
    assert np.abs(state.approx - infinitesimal_jackknife(erm, state.theta)).max() > 1e-4


@pytest.mark.parametrize("lam", [1e-3, 4.0])
def test_proximal_gradient_converges_to_the_proximal_newton_step(lam):
    """Theorem A.3; the larger lam leaves zeros in the fits."""
    X, y = logistic_data(80, 4, 1)
    erm = Erm(X, y, Logistic(), Regularizer(0.0, 1.0), lam)
    state = follow(erm, proxgd(default_step(erm, proximal=True)), 1500)
    assert np.abs(state.approx - newton_step(erm, state.theta, proximal=True)).max() < 1e-11
    assert lam < 1.0 or np.any(state.approx == 0.0)


def test_singular_hessian_is_named():
    X, y = logistic_data(10, 2, 2)
    erm = Erm(np.hstack([X, np.zeros((10, 1))]), y, Logistic(), Regularizer(2.0), 0.0)
    with pytest.raises(BadInput, match="singular"):
        newton_step(erm, np.zeros(3))


def converged_error(n, seed):
    X, y = logistic_data(n, 5, seed)
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 1e-6 * n)
    solver = gd(default_step(erm))
    state, Theta = start(erm), np.zeros((n, 5))
    for t in range(150):
        state = iacv_step(erm, solver, state)
        Theta = exact_step(erm, solver, t, Theta)
    return np.linalg.norm(state.approx - Theta, axis=1).mean()


def test_error_falls_with_the_square_of_n():
    """Theorem 4.4, on small sizes."""
    small, large = (np.median([converged_error(n, seed) for seed in range(5)]) for n in (100, 400))
    assert 1.7 < np.log(small / large) / np.log(4.0) < 2.4


def make(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) + 5.0
    return X, y, rng.integers(-1, 4, n)


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_equals_closed_form(loo, intercept):
    X, y, labels = make()
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 0.7, None if loo else labels)
    labels = np.arange(40) if loo else labels
    fits = fold_fits(erm, intercept=intercept, steps=20_000, tolerance=1e-14)
    for j in range(labels.max() + 1):
        A, b = X[labels != j], y[labels != j]
        xm, ym = (A.mean(axis=0), b.mean()) if intercept else (np.zeros(6), 0.0)
        theta = np.linalg.solve((A - xm).T @ (A - xm) + 0.7 * np.eye(6), (A - xm).T @ (b - ym))
        assert fits.theta[j] == pytest.approx(theta, abs=1e-8)
        assert fits.intercept[j] == pytest.approx(ym - xm @ theta if intercept else 0.0, abs=1e-7)


@pytest.mark.parametrize("penalty", [Regularizer(0.0, 1.0), KSupport(2), KSupport(3)])
def test_each_fold_is_optimal(penalty):
    X, y, labels = make(seed=1)
    X, y = X - 2.0, y - 5.0
    lam = 1.5
    fits = fold_fits(Erm(X, y, Squared(2.0), penalty, lam, labels), steps=20_000, tolerance=1e-14)
    rng = np.random.default_rng(0)
    for j in range(4):
        A, b = X[labels != j], y[labels != j]

        def objective(t, A=A, b=b):
            return np.sum((b - A @ t) ** 2) + lam * float(penalty.value(t))

        best = objective(fits.theta[j])
        for size in (1e-4, 1e-2, 1.0):
            for _ in range(50):
                assert best <= objective(fits.theta[j] + size * rng.standard_normal(6)) + 1e-10


def test_refusals():
    class Rough(Penalty):
        def value(self, theta):
            return np.zeros(theta.shape[:-1])

    X, y, labels = make()
    with pytest.raises(BadInput, match="proximal map"):
        fold_fits(Erm(X, y, Squared(2.0), Rough(), 1.0, labels))
    with pytest.raises(BadInput, match="squared-error loss"):
        fold_fits(Erm(X, np.sign(y), Logistic(), Regularizer(2.0), 1.0, labels))
