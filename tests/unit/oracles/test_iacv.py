"""Steps of the full and the held-out fits against their definitions, the problem of a data set, one-step methods."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    EarlyStop,
    Erm,
    Expansion,
    KSupport,
    Logistic,
    Penalty,
    Poisson,
    Regularizer,
    SmoothLoss,
    Solver,
    Squared,
    default_step,
    exact_step,
    fold_fits,
    full_step,
    gd,
    iacv_step,
    infinitesimal_jackknife,
    make_erm,
    make_solver,
    newton_step,
    proxgd,
    run,
    sgd,
    start,
)

# value, gradient, Hessian of one row, written from the definitions and not from the package
ROW: dict[str, tuple[Callable, Callable, Callable]] = {
    "logistic": (
        lambda x, y, t: np.log1p(np.exp(-y * (x @ t))),
        lambda x, y, t: -y * x / (1.0 + np.exp(y * (x @ t))),
        lambda x, y, t: np.outer(x, x) * np.exp(x @ t) / (1.0 + np.exp(x @ t)) ** 2,
    ),
    "squared": (
        lambda x, y, t: (y - x @ t) ** 2,
        lambda x, y, t: -2.0 * (y - x @ t) * x,
        lambda x, y, t: 2.0 * np.outer(x, x),
    ),
    "poisson": (
        lambda x, y, t: np.exp(x @ t) - y * (x @ t),
        lambda x, y, t: (np.exp(x @ t) - y) * x,
        lambda x, y, t: np.exp(x @ t) * np.outer(x, x),
    ),
    "cosh": (
        lambda x, y, t: np.log(np.cosh(y - x @ t)),
        lambda x, y, t: -np.tanh(y - x @ t) * x,
        lambda x, y, t: np.outer(x, x) / np.cosh(y - x @ t) ** 2,
    ),
}


class LogCosh(SmoothLoss):
    """A user's loss: only the three methods of the protocol."""

    def value(self, t, y):
        return np.log(np.cosh(y - t))

    def derivative(self, t, y):
        return -np.tanh(y - t)

    def curvature(self, t, y):
        return 1.0 / np.cosh(y - t) ** 2


LOSS = {"logistic": Logistic(), "squared": Squared(2.0), "poisson": Poisson(), "cosh": LogCosh()}
PENALTY = {"ridge": Regularizer(2.0), "l1": Regularizer(0.0, 1.0)}


def data(loss, rng, n, p):
    X = rng.standard_normal((n, p)) * rng.uniform(0.3, 1.5, p)
    eta = X @ rng.standard_normal(p) * 0.5
    if loss == "logistic":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(eta, -2, 2))).astype(float)
    return X, eta + 0.3 * rng.standard_normal(n)


def plain_penalty(name, lam, weights, theta):
    """Gradient and Hessian of lam * pi."""
    assert name == "ridge"
    return 2.0 * lam * weights * theta, np.diag(2.0 * lam * weights)


def plain_prox(name, v, s, weights):
    if name == "ridge":
        return v / (1.0 + 2.0 * s * weights)
    return np.sign(v) * np.maximum(np.abs(v) - s * weights, 0.0)


def plain_run(X, y, loss, penalty, lam, weights, left_out, steps, batches, proximal):
    """(5), (9) and (11) as printed; `left_out[i]` are the rows fit i does without."""
    _, gradient, hessian = ROW[loss]
    p = X.shape[1]
    theta, exact, approx = np.zeros(p), [np.zeros(p) for _ in left_out], [np.zeros(p) for _ in left_out]

    def slope(rows, at):
        g = sum((gradient(X[j], y[j], at) for j in rows), start=np.zeros(p))
        return g if proximal else g + plain_penalty(penalty, lam, weights, at)[0]

    def bend(rows, at):
        H = sum((hessian(X[j], y[j], at) for j in rows), start=np.zeros((p, p)))
        return H if proximal else H + plain_penalty(penalty, lam, weights, at)[1]

    def finish(v, alpha):
        return plain_prox(penalty, v, alpha * lam, weights) if proximal else v

    for alpha, rows in zip(steps, batches, strict=True):
        without = [[j for j in rows if j not in out] for out in left_out]
        approx = [
            finish(a - alpha * (slope(r, theta) + bend(r, theta) @ (a - theta)), alpha)
            for a, r in zip(approx, without, strict=True)
        ]
        exact = [finish(e - alpha * slope(r, e), alpha) for e, r in zip(exact, without, strict=True)]
        theta = finish(theta - alpha * slope(rows, theta), alpha)
    return theta, np.array(approx), np.array(exact)


CASES = [
    (loss, penalty, proximal, batch, labelled)
    for loss, (penalty, proximal), batch, labelled in itertools.product(
        LOSS, [("ridge", False), ("ridge", True), ("l1", True)], [None, 5], [False, True]
    )
]


@pytest.mark.parametrize(("loss", "penalty", "proximal", "batch", "labelled"), CASES)
def test_steps_equal_the_plain_scheme(loss, penalty, proximal, batch, labelled):
    rng = np.random.default_rng(CASES.index((loss, penalty, proximal, batch, labelled)))
    n, p = 14, 4
    X, y = data(loss, rng, n, p)
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    labels = np.array([0, 1, 2, -1, 0, 1, 2, 2, -1, 0, 0, 1, 2, 1]) if labelled else None
    left_out = [{i} for i in range(n)] if labels is None else [set(np.flatnonzero(labels == j)) for j in range(3)]
    erm = Erm(X, y, LOSS[loss], replace(PENALTY[penalty], intercept=True), 0.3, labels)
    alpha = 0.02 if loss in ("poisson", "cosh") else default_step(erm, proximal=True) * 0.5
    solver = Solver(alpha, proximal=proximal, batch=batch, seed=3, doubling=4)
    horizon = 15
    steps = [solver.step(t) for t in range(1, horizon + 1)]
    batches = [range(n) if batch is None else solver.rows(t, n).tolist() for t in range(1, horizon + 1)]
    theta, approx, exact = plain_run(X, y, loss, penalty, 0.3, weights, left_out, steps, batches, proximal)

    state, Theta, alone = start(erm), np.zeros((erm.k, p)), np.zeros(p)
    for t in range(horizon):
        state = iacv_step(erm, solver, state)
        Theta = exact_step(erm, solver, t, Theta)
        alone = full_step(erm, solver, t, alone)
    assert np.abs(state.theta - theta).max() < 1e-10
    assert np.abs(state.approx - approx).max() < 1e-10
    assert np.abs(Theta - exact).max() < 1e-10
    assert np.abs(alone - theta).max() < 1e-10
    if loss == "squared":
        assert np.abs(approx - exact).max() < 1e-12


def test_wide_data_never_forms_the_hessian_and_agrees():
    rng = np.random.default_rng(0)
    X, y = data("logistic", rng, 6, 40)
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 0.1)
    solver = Solver(default_step(erm))
    state, plain = start(erm), np.zeros((6, 40))
    for t in range(10):
        taylor = Expansion(erm.loss, X, y, state.theta)
        assert np.allclose(taylor.apply(state.offset), state.offset @ taylor.hessian(), atol=1e-13)
        state = iacv_step(erm, solver, state)
        plain = exact_step(erm, solver, t, plain)
    assert np.abs(state.approx - plain).max() < np.abs(state.theta - plain).max()


def test_scaled_penalty_keeps_the_minimiser():
    rng = np.random.default_rng(4)
    X, y = data("squared", rng, 30, 3)
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 30.0)
    best = np.linalg.solve(X.T @ X + 30.0 * np.eye(3), X.T @ y)
    grad = {}
    for scaled in (False, True):
        solver = Solver(1.0, batch=6, scale_penalty=scaled)
        moves = [best - full_step(erm, solver, t, best) for t in range(4000)]
        grad[scaled] = np.linalg.norm(np.mean(moves, axis=0)) / np.linalg.norm(2.0 * X.T @ y)
    assert grad[True] < 0.01 < 0.05 < grad[False]


def sample() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) + 2.0
    return Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5] + 3.0 + 0.1 * rng.normal(size=30))


def test_a_free_intercept_is_a_column_without_a_penalty() -> None:
    data = sample()
    erm = make_erm(data, "squared", "ridge", 0.7, intercept="fold")
    solver, theta = make_solver(erm, "gd", iterations=1), np.zeros(4)
    for t in range(4000):
        theta = full_step(erm, solver, t, theta)
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    assert theta[:3] == pytest.approx(np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ y), abs=1e-8)
    assert theta[3] == pytest.approx(data.y.mean(), abs=1e-8)


def test_defaults_and_options_of_a_method() -> None:
    erm = make_erm(sample(), "squared", "ridge", 0.7, scale="length", intercept="global")
    assert erm.y.mean() == pytest.approx(0.0, abs=1e-12) and erm.X.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    plain = make_solver(erm, "gd", iterations=10)
    assert plain.alpha == default_step(erm) and plain.batch is None and not plain.proximal
    batches = make_solver(erm, "sgd", iterations=10, doubling=4, step=0.5, seed=2)
    assert batches.batch == 30 and (batches.alpha, batches.doubling) == (0.5, 4) and batches.seed == 2
    assert make_solver(make_erm(sample(), "squared", "l1", 1.0), "proxgd", iterations=1).proximal


def test_the_default_step_is_short_enough_for_every_batch():
    rng = np.random.default_rng(3)
    X, y = data("logistic", rng, 40, 3)
    alpha = default_step(Erm(X, y, Logistic(), Regularizer(2.0), 0.0), batch=7)
    for _ in range(200):
        rows = rng.choice(40, 7, replace=False)
        assert np.linalg.eigvalsh(X[rows].T @ X[rows])[-1] / 4.0 <= 1.0 / alpha + 1e-12


def make(n=60, p=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 0] / noise)), 1.0, -1.0)


def test_errors_follow_their_definitions():
    X, y = make()
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 0.1)
    solver = sgd(default_step(erm, batch=20), 20, seed=4)
    report = run(erm, solver, 25, record=[1, 7, 25], methods=("iacv", "ns", "ij", "baseline", "exact"))
    assert report.iterations.tolist() == [1, 7, 25]
    Theta = np.zeros((60, 4))
    for t in range(25):
        Theta = exact_step(erm, solver, t, Theta)
    cv = np.mean([np.log1p(np.exp(-y[i] * (X[i] @ Theta[i]))) for i in range(60)])
    trace = report.traces["iacv"]
    mine = np.mean([np.log1p(np.exp(-y[i] * (X[i] @ report.approx[i]))) for i in range(60)])
    assert report.cv_exact[-1] == pytest.approx(cv, rel=1e-12)
    assert trace.cv[-1] == pytest.approx(mine, rel=1e-12)
    assert trace.err_approx[-1] == pytest.approx(np.linalg.norm(report.approx - Theta, axis=1).mean(), rel=1e-10)
    assert trace.err_cv[-1] == pytest.approx(abs(mine - cv), rel=1e-8)
    assert trace.rel_err_cv[-1] == pytest.approx(abs(mine - cv) / cv, rel=1e-8)
    ns = newton_step(erm, report.theta)
    assert report.traces["ns"].err_approx[-1] == pytest.approx(np.linalg.norm(ns - Theta, axis=1).mean(), rel=1e-10)
    base = np.linalg.norm(report.theta - Theta, axis=1).mean()
    assert report.traces["baseline"].err_approx[-1] == pytest.approx(base, rel=1e-10)


def test_early_stop_holds_the_best_iterate():
    X, y = make(n=40, p=15, seed=2, noise=0.5)  # few rows to many columns: the loss falls, then rises
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 1e-3)
    step = 0.2 * default_step(erm)
    long = run(erm, gd(step), 300, record=range(1, 301))
    report = run(erm, gd(step), 300, early_stop=EarlyStop(patience=15))
    best = int(np.argmin(long.traces["iacv"].cv)) + 1
    assert 1 < best < 200
    assert report.stopped_early
    assert report.best == best
    assert report.iterations[-1] == best + 15
    assert report.summary()["cv"] == pytest.approx(long.traces["iacv"].cv.min(), rel=1e-14)
    assert report.summary()["iteration"] == best
    assert erm.held_out_loss(report.approx) == pytest.approx(report.summary()["cv"], rel=1e-12)


def test_divergence_and_bad_options():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 0.0)
    with pytest.raises(BadInput, match="smaller --step"):
        run(erm, gd(10.0), 500)
    for kwargs, word in [
        ({"iterations": 0}, "--iterations"),
        ({"iterations": 3, "methods": ("jackknife",)}, "unknown method"),
        ({"iterations": 3, "early_stop": EarlyStop(0)}, "--early-stop"),
    ]:
        with pytest.raises(BadInput, match=word):
            run(erm, gd(0.01), **kwargs)


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


def make_of_folds(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) + 5.0
    return X, y, rng.integers(-1, 4, n)


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_equals_closed_form(loo, intercept):
    X, y, labels = make_of_folds()
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
    X, y, labels = make_of_folds(seed=1)
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

    X, y, labels = make_of_folds()
    with pytest.raises(BadInput, match="proximal map"):
        fold_fits(Erm(X, y, Squared(2.0), Rough(), 1.0, labels))
    with pytest.raises(BadInput, match="squared-error loss"):
        fold_fits(Erm(X, np.sign(y), Logistic(), Regularizer(2.0), 1.0, labels))
