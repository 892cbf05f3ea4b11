"""glmnet through R: absent it is a failed task that says so, installed it finds the lasso's own optimum."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from sparsecv_mio.batch.plan import tasks_of
from sparsecv_mio.batch.run import run_task
from sparsecv_mio.batch.through_r import GlmnetCV
from sparsecv_mio.errors import BackendFailed, BackendUnavailable

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 5))
Y = X[:, 0] - 0.5 * X[:, 1] + 0.5 * RNG.normal(size=60)
LABELS = np.arange(60) % 4


def test_the_optimum_of_the_lasso_at_its_lambda() -> None:
    try:
        found = GlmnetCV(LABELS).fit(X, Y)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    same = Lasso(found.alpha_, tol=1e-10).fit(X, Y)
    assert np.allclose(found.coef_, same.coef_, atol=1e-3)
    assert found.intercept_ == pytest.approx(same.intercept_, abs=1e-3)
    errors = []
    for fold in range(4):
        held = fold == LABELS
        model = Lasso(found.alpha_, tol=1e-10).fit(X[~held], Y[~held])
        errors.append(np.mean((Y[held] - model.predict(X[held])) ** 2))
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
        GlmnetCV(LABELS).fit(X, Y)
