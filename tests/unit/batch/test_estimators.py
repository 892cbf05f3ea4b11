"""Peers against plain definitions: forward selection, the relaxed lasso, coefficients in units of the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LassoCV, LinearRegression

from sparsecv_mio.batch.estimators import (
    ESTIMATORS,
    ForwardSelectionCV,
    GlmnetCV,
    RelaxedLassoCV,
    check_estimator_name,
    run_estimator,
)
from sparsecv_mio.batch.one_task import run_task
from sparsecv_mio.batch.plan import tasks_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput

RNG = np.random.default_rng(8)
X = RNG.normal(size=(40, 6)) * np.array([1, 10, 0.1, 5, 1, 1]) + 3.0
Y = X[:, 0] - 0.2 * X[:, 1] + 0.3 * RNG.normal(size=40)
DATA = Dataset.from_arrays(X, Y)
PLAN = make_folds("4", DATA)
SPLITS = [(PLAN.train_rows(j), PLAN.scored_rows(j)) for j in range(PLAN.k)]


def test_forward_selection_is_greedy() -> None:
    model = ForwardSelectionCV(SPLITS).fit(X, Y)
    support: list[int] = []
    for _ in range(model.tau_):
        gains = {
            j: LinearRegression().fit(X[:, [*support, j]], Y).score(X[:, [*support, j]], Y)
            for j in range(6) if j not in support
        }  # fmt: skip
        support.append(max(gains, key=lambda j: gains[j]))
    assert sorted(support) == np.flatnonzero(model.coef_).tolist()
    exact = LinearRegression().fit(X[:, support], Y)
    assert np.allclose(model.coef_[support], exact.coef_) and np.isclose(model.intercept_, exact.intercept_)


def test_relaxed_lasso_is_no_worse_than_the_lasso_in_cross_validation() -> None:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    relaxed = RelaxedLassoCV(SPLITS).fit(Z, Y)
    lasso = LassoCV(cv=SPLITS, alphas=relaxed.alphas_).fit(Z, Y)
    rows = np.array([len(test) for _, test in SPLITS])
    errors = (lasso.mse_path_ * rows).sum(axis=1) / rows.sum()
    assert relaxed.cv_error_ <= errors.min() * (1.0 + 1e-6)


COMPILED = [pytest.param(name, marks=pytest.mark.slow) for name in ("mcp", "scad")]  # by skglm, for seconds


@pytest.mark.parametrize("name", [*(name for name in ESTIMATORS if name not in ("sparsecv", "mcp", "scad")), *COMPILED])
def test_every_peer_predicts_in_units_of_the_file(name: str) -> None:
    try:
        fitted = run_estimator(name, DATA, PLAN, {})
    except BackendUnavailable as error:
        pytest.skip(str(error))
    predicted = X @ fitted.coefficients + fitted.intercept
    assert np.mean((Y - predicted) ** 2) < 0.1 * np.var(Y) and fitted.seconds > 0.0


def test_unknown_estimators() -> None:
    with pytest.raises(BadInput, match="estimator 'ridg' is unknown .did you mean 'ridge'"):
        check_estimator_name("ridg")


RNG_THROUGH_R = np.random.default_rng(3)
X_THROUGH_R = RNG_THROUGH_R.normal(size=(60, 5))
Y_THROUGH_R = X_THROUGH_R[:, 0] - 0.5 * X_THROUGH_R[:, 1] + 0.5 * RNG_THROUGH_R.normal(size=60)
LABELS = np.arange(60) % 4


def test_the_optimum_of_the_lasso_at_its_lambda() -> None:
    try:
        found = GlmnetCV(LABELS).fit(X_THROUGH_R, Y_THROUGH_R)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    same = Lasso(found.alpha_, tol=1e-10).fit(X_THROUGH_R, Y_THROUGH_R)
    assert np.allclose(found.coef_, same.coef_, atol=1e-3)
    assert found.intercept_ == pytest.approx(same.intercept_, abs=1e-3)
    errors = []
    for fold in range(4):
        held = fold == LABELS
        model = Lasso(found.alpha_, tol=1e-10).fit(X_THROUGH_R[~held], Y_THROUGH_R[~held])
        errors.append(np.mean((Y_THROUGH_R[held] - model.predict(X_THROUGH_R[held])) ** 2))
    assert found.cv_error_ == pytest.approx(np.mean(errors), rel=1e-2) and found.seconds_ >= 0.0


def test_without_r(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    plan = {"data": [{"design": "toeplitz", "n": 20, "p": 3, "support": 1}], "vary": {"estimator": "glmnet"}}
    outcome = run_task(tasks_of(plan)[0])
    assert outcome.state == "failed" and outcome.reason.startswith("glmnet needs R with the package glmnet")


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [("exit 3", BackendUnavailable, "not installed in R"), ("echo a >&2; echo bad >&2; exit 1", BackendFailed, "bad")],
)
def test_what_goes_wrong_in_r(
    script: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "Rscript"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(error, match=words):
        GlmnetCV(LABELS).fit(X_THROUGH_R, Y_THROUGH_R)
