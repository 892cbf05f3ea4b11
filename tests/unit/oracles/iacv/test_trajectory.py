"""The approximate and exact steps against a plain implementation of (9) and (11), fit by fit and row by row."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    L1,
    EpochDoubling,
    Erm,
    FixedStep,
    LinearLoss,
    Logistic,
    Poisson,
    Ridge,
    SmoothLoss,
    Solver,
    Squared,
    default_step,
    exact_step,
    full_step,
    iacv_step,
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
    "tangent": (
        lambda x, y, t: (y - np.tanh(x @ t) - 0.1 * (t @ t)) ** 2,
        lambda x, y, t: -2.0 * (y - np.tanh(x @ t) - 0.1 * (t @ t)) * (x / np.cosh(x @ t) ** 2 + 0.2 * t),
        lambda x, y, t: (
            2.0 * np.outer(x / np.cosh(x @ t) ** 2 + 0.2 * t, x / np.cosh(x @ t) ** 2 + 0.2 * t)
            - 2.0
            * (y - np.tanh(x @ t) - 0.1 * (t @ t))
            * (-2.0 * np.tanh(x @ t) / np.cosh(x @ t) ** 2 * np.outer(x, x) + 0.2 * np.eye(t.size))
        ),
    ),
}


class Tangent(SmoothLoss):
    """A user's loss that is no function of a linear predictor: only the four methods of the protocol."""

    name = "tangent"

    def values(self, X, y, theta):
        thetas = np.broadcast_to(theta, X.shape)
        return np.array([ROW["tangent"][0](x, v, t) for x, v, t in zip(X, y, thetas, strict=True)])

    def gradients(self, X, y, theta):
        return np.array([ROW["tangent"][1](x, v, theta) for x, v in zip(X, y, strict=True)]).reshape(X.shape)

    def hessian(self, X, y, theta):
        start = np.zeros((theta.size, theta.size))
        return sum((ROW["tangent"][2](x, v, theta) for x, v in zip(X, y, strict=True)), start=start)

    def hessian_times(self, X, y, theta, D):
        return np.array([ROW["tangent"][2](x, v, theta) @ d for x, v, d in zip(X, y, D, strict=True)])


LOSS: dict[str, SmoothLoss] = {
    "logistic": Logistic(),
    "squared": Squared(),
    "poisson": Poisson(),
    "tangent": Tangent(),
}
PENALTY = {"ridge": Ridge, "l1": L1}


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


def data(loss, rng, n, p):
    X = rng.standard_normal((n, p)) * rng.uniform(0.3, 1.5, p)
    eta = X @ rng.standard_normal(p) * 0.5
    if loss == "logistic":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(eta, -2, 2))).astype(float)
    return X, eta + 0.3 * rng.standard_normal(n)


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
    weights = np.array([1.0, 0.0, 0.5, 2.0])
    labels = np.array([0, 1, 2, -1, 0, 1, 2, 2, -1, 0, 0, 1, 2, 1]) if labelled else None
    left_out = [{i} for i in range(n)] if labels is None else [set(np.flatnonzero(labels == j)) for j in range(3)]
    erm = Erm(X, y, LOSS[loss], PENALTY[penalty](weights), 0.3, labels)
    alpha = 0.02 if loss in ("poisson", "tangent") else default_step(erm, proximal=True) * 0.5
    solver = Solver(EpochDoubling(alpha, first=4), proximal=proximal, batch=batch, seed=3)
    horizon = 15
    steps = [solver.schedule(t) for t in range(1, horizon + 1)]
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
    erm = Erm(X, y, Logistic(), Ridge(), 0.1)
    solver = Solver(FixedStep(default_step(erm)))
    state, plain = start(erm), np.zeros((6, 40))
    for t in range(10):
        taylor = erm.loss.expand(X, y, state.theta)
        assert np.allclose(taylor.apply(state.offset), state.offset @ taylor.hessian(), atol=1e-13)
        state = iacv_step(erm, solver, state)
        plain = exact_step(erm, solver, t, plain)
    assert np.abs(state.approx - plain).max() < np.abs(state.theta - plain).max()


def test_blocks_of_exact_fits_agree(monkeypatch):
    from sparsecv_mio.oracles.iacv import trajectory

    rng = np.random.default_rng(1)
    X, y = data("logistic", rng, 30, 3)
    erm = Erm(X, y, Logistic(), Ridge(), 0.1)
    solver = Solver(FixedStep(default_step(erm)))
    whole = exact_step(erm, solver, 0, rng.standard_normal((30, 3)))
    rng = np.random.default_rng(1)
    data("logistic", rng, 30, 3)
    monkeypatch.setattr(trajectory, "BLOCK_ELEMENTS", 100)
    monkeypatch.setattr(trajectory, "BLOCK_FITS", 4)
    assert np.allclose(exact_step(erm, solver, 0, rng.standard_normal((30, 3))), whole, atol=1e-14)


@pytest.mark.parametrize("name", ["logistic", "squared", "poisson"])
def test_derivatives_by_differences(name):
    loss = LOSS[name]
    assert isinstance(loss, LinearLoss)
    eta = np.linspace(-3, 3, 41)
    y = np.where(np.arange(41) % 2, 1.0, -1.0) if name == "logistic" else np.arange(41) % 4 + 0.0
    h = 1e-5
    assert np.allclose(loss.slope(eta, y), (loss.value(eta + h, y) - loss.value(eta - h, y)) / (2 * h), atol=1e-7)
    assert np.allclose(loss.curvature(eta, y), (loss.slope(eta + h, y) - loss.slope(eta - h, y)) / (2 * h), atol=1e-7)
    top = loss.max_curvature()
    assert top is None or np.all(loss.curvature(eta, y) <= top + 1e-15)


def test_logistic_is_stable_far_out():
    eta = np.array([-800.0, 800.0])
    assert np.isfinite(Logistic().value(eta, np.ones(2))).all()
    assert np.isfinite(Logistic().slope(eta, -np.ones(2))).all()


def test_default_steps_descend():
    rng = np.random.default_rng(2)
    for loss in ("logistic", "squared", "poisson"):
        X, y = data(loss, rng, 60, 5)
        erm = Erm(X, y, LOSS[loss], Ridge(), 0.2)
        solver = Solver(FixedStep(default_step(erm, iterations=50)))
        theta, value = np.zeros(5), erm.objective(np.zeros(5))
        for t in range(50):
            theta = full_step(erm, solver, t, theta)
            assert erm.objective(theta) <= value * (1 + 1e-12)
            value = erm.objective(theta)


def test_batch_bound_holds():
    rng = np.random.default_rng(3)
    X, y = data("logistic", rng, 40, 3)
    top = Logistic().bound(X, y, 7)
    for _ in range(200):
        rows = rng.choice(40, 7, replace=False)
        assert np.linalg.eigvalsh(X[rows].T @ X[rows])[-1] / 4.0 <= top + 1e-12


def test_scaled_penalty_keeps_the_minimiser():
    rng = np.random.default_rng(4)
    X, y = data("squared", rng, 30, 3)
    erm = Erm(X, y, Squared(), Ridge(), 30.0)
    best = np.linalg.solve(X.T @ X + 30.0 * np.eye(3), X.T @ y)
    grad = {}
    for scaled in (False, True):
        solver = Solver(FixedStep(1.0), batch=6, scale_penalty=scaled)
        moves = [best - full_step(erm, solver, t, best) for t in range(4000)]
        grad[scaled] = np.linalg.norm(np.mean(moves, axis=0)) / np.linalg.norm(2.0 * X.T @ y)
    assert grad[True] < 0.01 < 0.05 < grad[False]


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
        Erm(good["X"], good["y"], Logistic(), Ridge(), good["lam"], good["labels"])


def test_bad_methods():
    erm = Erm(np.ones((3, 1)), np.array([1.0, -1.0, 1.0]), Logistic(), L1(), 1.0)
    with pytest.raises(BadInput, match="proxgd"):
        Solver(FixedStep(0.1)).check(erm)
    with pytest.raises(BadInput, match="--batch"):
        Solver(FixedStep(0.1), proximal=True, batch=9).check(erm)
