"""Steps of the full and the left-out fits against their definitions."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    EarlyStop,
    Erm,
    Expansion,
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
    newton_step,
    proxgd,
    run,
    sgd,
    start,
)

from .iacv_rows import LOSS, PENALTY, ROW, data


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


def test_summary_is_json_with_the_promised_keys():
    X, y = make()
    erm = Erm(X, y, Logistic(), Regularizer(0.0, 1.0), 0.5)
    solver = proxgd(default_step(erm, proximal=True))
    bare = run(erm, solver, 10).summary()
    assert bare["err_approx"] is None
    full = json.loads(json.dumps(run(erm, solver, 10, methods=("ns", "baseline", "exact")).summary()))
    assert {"cv", "err_approx", "rel_err_cv", "seconds"} <= full.keys()
    assert full["cv"] == bare["cv"]
    assert full["rel_err_cv"] == pytest.approx(abs(full["cv"] - full["cv_exact"]) / full["cv_exact"])
    assert set(full["ns"]) == {"cv", "err_approx", "rel_err_cv"}


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
