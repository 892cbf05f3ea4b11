"""A run: errors, early stop, the report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import (
    EarlyStop,
    Erm,
    Logistic,
    Regularizer,
    Squared,
    default_step,
    exact_step,
    gd,
    log_spaced,
    newton_step,
    proxgd,
    run,
    sgd,
)


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


def test_squared_loss_has_no_error():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    erm = Erm(X, y, Squared(2.0), Regularizer(2.0), 1.0, rng.integers(-1, 5, 40))
    report = run(erm, gd(default_step(erm)), 60, methods=("exact",))
    assert report.traces["iacv"].err_approx.max() < 1e-13


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


def test_early_stop_that_never_triggers_reports_the_last():
    X, y = make(n=200)
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 1.0)
    report = run(erm, gd(0.1 * default_step(erm)), 20, early_stop=EarlyStop(patience=50))
    assert not report.stopped_early
    assert report.summary()["iteration"] == 20


def test_progress_and_record():
    seen = []
    X, y = make()
    erm = Erm(X, y, Logistic(), Regularizer(2.0), 1.0)
    run(erm, gd(default_step(erm)), 5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(t, 5) for t in range(1, 6)]
    grid = log_spaced(1000)
    assert grid[0] == 1
    assert grid[-1] == 1000
    assert grid == sorted(set(grid))


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
