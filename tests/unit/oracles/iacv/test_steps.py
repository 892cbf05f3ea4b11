"""Steps of the full and the left-out fits against their definitions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Estimate
from sparsecv_mio.oracles.iacv import (
    EpochDoubling,
    Erm,
    FixedStep,
    IacvOracle,
    Logistic,
    Regularizer,
    Solver,
    Squared,
    default_step,
    exact_step,
    full_step,
    gd,
    iacv_step,
    make_erm,
    make_solver,
    start,
)
from sparsecv_mio.oracles.iacv.erm import Expansion

from ..samples import data as sample_rows
from .rows import LOSS, PENALTY, ROW, data


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
    weights = np.array([1.0, 0.0, 0.5, 2.0])
    labels = np.array([0, 1, 2, -1, 0, 1, 2, 2, -1, 0, 0, 1, 2, 1]) if labelled else None
    left_out = [{i} for i in range(n)] if labels is None else [set(np.flatnonzero(labels == j)) for j in range(3)]
    erm = Erm(X, y, LOSS[loss], replace(PENALTY[penalty], weights=weights), 0.3, labels)
    alpha = 0.02 if loss in ("poisson", "cosh") else default_step(erm, proximal=True) * 0.5
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
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 0.1)
    solver = Solver(FixedStep(default_step(erm)))
    state, plain = start(erm), np.zeros((6, 40))
    for t in range(10):
        taylor = Expansion(erm.loss, X, y, state.theta)
        assert np.allclose(taylor.apply(state.offset), state.offset @ taylor.hessian(), atol=1e-13)
        state = iacv_step(erm, solver, state)
        plain = exact_step(erm, solver, t, plain)
    assert np.abs(state.approx - plain).max() < np.abs(state.theta - plain).max()


def test_blocks_of_exact_fits_agree(monkeypatch):
    from sparsecv_mio.oracles.iacv import steps

    rng = np.random.default_rng(1)
    X, y = data("logistic", rng, 30, 3)
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 0.1)
    solver = Solver(FixedStep(default_step(erm)))
    whole = exact_step(erm, solver, 0, rng.standard_normal((30, 3)))
    rng = np.random.default_rng(1)
    data("logistic", rng, 30, 3)
    monkeypatch.setattr(steps, "BLOCK_ELEMENTS", 100)
    monkeypatch.setattr(steps, "BLOCK_FITS", 4)
    assert np.allclose(exact_step(erm, solver, 0, rng.standard_normal((30, 3))), whole, atol=1e-14)


def test_default_steps_descend():
    rng = np.random.default_rng(2)
    for loss in ("logistic", "squared", "poisson"):
        X, y = data(loss, rng, 60, 5)
        erm = Erm(X, y, LOSS[loss], Regularizer(2.0), 0.2)
        solver = Solver(FixedStep(default_step(erm, iterations=50)))
        theta, value = np.zeros(5), erm.objective(np.zeros(5))
        for t in range(50):
            theta = full_step(erm, solver, t, theta)
            assert erm.objective(theta) <= value * (1 + 1e-12)
            value = erm.objective(theta)


def test_scaled_penalty_keeps_the_minimiser():
    rng = np.random.default_rng(4)
    X, y = data("squared", rng, 30, 3)
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 30.0)
    best = np.linalg.solve(X.T @ X + 30.0 * np.eye(3), X.T @ y)
    grad = {}
    for scaled in (False, True):
        solver = Solver(FixedStep(1.0), batch=6, scale_penalty=scaled)
        moves = [best - full_step(erm, solver, t, best) for t in range(4000)]
        grad[scaled] = np.linalg.norm(np.mean(moves, axis=0)) / np.linalg.norm(2.0 * X.T @ y)
    assert grad[True] < 0.01 < 0.05 < grad[False]


def test_a_method_must_suit_the_penalty_and_the_rows():
    erm = Erm(np.ones((3, 1)), np.array([1.0, -1.0, 1.0]), Logistic(), Regularizer(0.0, 1.0), 1.0)
    with pytest.raises(BadInput, match="proxgd"):
        Solver(FixedStep(0.1)).check(erm)
    with pytest.raises(BadInput, match="--batch"):
        Solver(FixedStep(0.1), proximal=True, batch=9).check(erm)


def test_iacv_single_rows_and_groups():
    X, y = sample_rows()
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 0.5)
    oracle = IacvOracle(erm, gd(default_step(erm)), 600)
    for rows in (np.array([4]), np.array([7]), np.array([1, 9, 30])):
        keep = np.setdiff1d(np.arange(40), rows)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        found = oracle.leave_out(rows)
        assert isinstance(found, Estimate)
        assert found.value == pytest.approx(X[rows] @ b, abs=1e-9)
    with pytest.raises(BadInput, match="labels"):
        IacvOracle(Erm(X, y, Squared(2.0), Regularizer(2.0), 0.5, np.arange(40) % 4), gd(0.01), 5)


def test_iacv_logistic_is_near_the_exact_fit():
    X, y = sample_rows()
    erm = Erm(X, np.sign(y), Logistic(), Regularizer(2.0), 0.5)
    method = gd(default_step(erm))
    oracle, Theta = IacvOracle(erm, method, 100), np.zeros((40, 3))
    for t in range(100):
        Theta = exact_step(erm, method, t, Theta)
    for i in range(40):
        assert oracle.leave_out(np.array([i])).value[0] == pytest.approx(X[i] @ Theta[i], abs=0.1)


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
    assert plain.schedule(1) == default_step(erm) and plain.batch is None and not plain.proximal
    batches = make_solver(erm, "sgd", iterations=10, doubling=4, step=0.5, seed=2)
    assert batches.batch == 30 and batches.schedule == EpochDoubling(0.5, 4) and batches.seed == 2
    assert make_solver(make_erm(sample(), "squared", "l1", 1.0), "proxgd", iterations=1).proximal


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "newton"}, "--solver"),
        ({"batch": 4}, "--batch"),
        ({"step": 0.0}, "--step"),
        ({"doubling": 0}, "--doubling"),
        ({"seed": -1}, "--seed"),
        ({"kind": "sgd", "batch": 31}, "--batch"),
    ],
)
def test_bad_methods(change: dict[str, object], word: str) -> None:
    erm = make_erm(sample(), "squared", "ridge", 0.7)
    with pytest.raises(BadInput, match=word):
        make_solver(erm, **({"kind": "gd", "iterations": 1} | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(("words", "word"), [(("hinge", "ridge"), "--loss"), (("squared", "l0"), "--penalty")])
def test_bad_words(words: tuple[str, str], word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_erm(sample(), *words, 1.0)


def test_the_default_step_is_short_enough_for_every_batch():
    rng = np.random.default_rng(3)
    X, y = data("logistic", rng, 40, 3)
    alpha = default_step(Erm(X, y, Logistic(), Regularizer(2.0), 0.0), batch=7)
    for _ in range(200):
        rows = rng.choice(40, 7, replace=False)
        assert np.linalg.eigvalsh(X[rows].T @ X[rows])[-1] / 4.0 <= 1.0 / alpha + 1e-12
