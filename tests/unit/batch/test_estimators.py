"""Our search as a task: fitted on training rows alone, by both rules, within a limit on processor time."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV

from sparsecv_mio.batch.batch_plan import Task, make_tasks
from sparsecv_mio.batch.collected import collect
from sparsecv_mio.batch.dispatch import run_batch
from sparsecv_mio.batch.one_task import processor_limit, run_estimator, task_rows
from sparsecv_mio.batch.peers import (
    ESTIMATORS,
    PEERS,
    ConcavePenaltyCV,
    ForwardSelectionCV,
    PenalisedCV,
)
from sparsecv_mio.batch.task_folder import BatchFolder
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import TargetColumns, prepare_for_loss
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.problem.row_losses import PoissonLoss, encode_dataset_targets, row_loss
from sparsecv_mio.targets import Loss

DESIGN = {"design": "toeplitz", "n": 30, "p": 5, "support": 2, "snr": 3.0, "beta": "first"}
SMALL = {"gamma": "0.05,0.5", "tau": "1:3"}


def task(**settings: object) -> Task:
    (found,) = make_tasks({"data": [{**DESIGN, "validation": 20}], "vary": {"folds": "column:validation", **settings}})
    return found


@pytest.mark.parametrize("name", ["sparsecv", "lasso", "elastic-net", "ridge", "omp", "relaxed-lasso", "forward"])
def test_tuned_on_validation_rows_and_fitted_on_the_others(name: str) -> None:
    data = task_rows(task()).train
    plan = make_folds("column:validation", data)
    assert plan.k == 1 and plan.train_rows(0).tolist() == list(range(30))
    fitted = run_estimator(name, data, plan, SMALL if name == "sparsecv" else {}, "training")
    held = plan.scored_rows(0)
    error = np.mean((data.y[held] - data.X[held] @ fitted.model.coefficients - fitted.model.intercept) ** 2)
    if name != "omp":  # it does not say
        rel = 2e-3 if name in ("lasso", "elastic-net") else 1e-6  # coordinate descent from another start
        assert error == pytest.approx(fitted.numbers["cv_error"], rel=rel)
    with pytest.raises(BadInput, match="refit training: requires a single fold, but the plan has 3"):
        run_estimator(name, data, make_folds("3", data), {}, "training")


def test_rows_of_validation_leave_the_others_as_they_are() -> None:
    plain = make_tasks({"data": [DESIGN]})[0].source.load()
    assert np.array_equal(task_rows(task()).train.X[:30], plain.X)
    assert np.array_equal(task_rows(task()).train.y[:30], plain.y)


def test_records_of_such_tasks_are_verified(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "b")
    run_batch([task(refit="training", **SMALL)], folder)
    row = collect(folder).iloc[0]
    assert row["verified"] and row["state"] == "done", row["reason"]


def test_a_level_without_rows_is_refused_with_the_level_that_has_rows(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "b")
    with pytest.raises(BadInput, match="has no pairs; run the batch first"):
        collect(folder, "pairs")
    run_batch([task(estimator="ridge")], folder)  # without a record
    with pytest.raises(BadInput, match="has no pairs; collect the results with --level tasks"):
        collect(folder, "pairs")


def test_a_limit_on_processor_time() -> None:
    with processor_limit(None) as stop:
        assert stop is None
    with processor_limit(0.05) as stop:
        assert stop is not None and not stop.is_set()
        time.sleep(0.1)  # takes no processor time
        assert not stop.is_set()
        until = time.process_time() + 0.2
        while time.process_time() < until and not stop.is_set():
            sum(range(1000))
        assert stop.wait(5.0)


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


COMPILED = [pytest.param(name, marks=pytest.mark.slow) for name in ("mcp", "scad")]  # by skglm, for seconds


@pytest.mark.parametrize("name", [*(name for name in ESTIMATORS if name not in ("mcp", "scad")), *COMPILED])
def test_every_peer_predicts_in_units_of_the_file(name: str) -> None:
    try:
        fitted = run_estimator(name, DATA, PLAN, {})
    except BackendUnavailable as error:
        pytest.skip(str(error))
    predicted = X @ fitted.model.coefficients + fitted.model.intercept
    assert np.mean((Y - predicted) ** 2) < 0.1 * np.var(Y) and fitted.seconds > 0.0


OF_CLASSES = Dataset.from_arrays(X, (Y + RNG.normal(size=40) > np.median(Y)).astype(float))
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0] - 0.1 * X[:, 1]))
DAYS = RNG.uniform(0.5, 20.0, 40)
LOSSES = [
    pytest.param(loss, name, marks=pytest.mark.slow if name in ("mcp", "scad") else ())
    for loss in (Loss.LOGISTIC, Loss.POISSON) for name in PEERS[loss]
]  # fmt: skip


@pytest.mark.parametrize(("loss", "name"), LOSSES)
def test_every_peer_of_classes_and_counts_predicts_in_units_of_the_file(loss: Loss, name: str) -> None:
    of_counts = Dataset.from_arrays(X, RNG.poisson(DAYS * np.exp(0.4 * X[:, 0])), aux={"days": DAYS})
    data = (
        prepare_for_loss(OF_CLASSES, loss)
        if loss is Loss.LOGISTIC
        else prepare_for_loss(of_counts, loss, columns=TargetColumns(exposure="days"))
    )
    try:
        fitted = run_estimator(name, data, PLAN, {"loss": loss})
    except BackendUnavailable as error:
        pytest.skip(str(error))
    y, v = encode_dataset_targets(row_loss(loss), data, slice(None))
    signs, origin = row_loss(loss).signs(y), row_loss(loss).origin(y, v)
    predictors = X @ fitted.model.coefficients + fitted.model.intercept
    own, null = (v @ row_loss(loss).losses(signs * m, y) for m in (predictors, np.full(40, origin)))
    assert 0.0 < own < 0.7 * null and fitted.seconds > 0.0


@pytest.mark.slow
def test_mcp_of_two_classes_is_where_no_coefficient_moves() -> None:
    try:
        model = ConcavePenaltyCV(SPLITS, of_classes=True).fit((X - X.mean(axis=0)) / X.std(axis=0), OF_CLASSES.y)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    Z, b = (X - X.mean(axis=0)) / X.std(axis=0), model.coef_
    off = 1.0 / (1.0 + np.exp(-Z @ b - model.intercept_)) - OF_CLASSES.y
    size = np.abs(b)
    slopes = Z.T @ off / 40.0 + np.sign(b) * np.maximum(model.alpha_ - size / 12.0, 0.0)
    assert np.count_nonzero(b) > 0 and abs(off.mean()) < 1e-4 and np.abs(slopes[b != 0.0]).max() < 1e-4
    assert np.all(np.abs(slopes) <= model.alpha_ + 1e-4)


def test_the_ridge_of_counts_is_the_one_that_a_grid_search_chooses() -> None:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = PenalisedCV(SPLITS, method="ridge", loss=PoissonLoss()).fit(Z, COUNTS)
    search = GridSearchCV(
        PoissonRegressor(max_iter=1000, tol=1e-8), {"alpha": model.grid["alpha"]}, cv=SPLITS,
        scoring="neg_mean_poisson_deviance",
    ).fit(Z, COUNTS)  # fmt: skip
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.cv_error_ == pytest.approx(-0.5 * search.best_score_, rel=1e-6)
    weighed = PenalisedCV(SPLITS, method="ridge", loss=PoissonLoss()).fit(Z, COUNTS / DAYS, DAYS)
    alone = PoissonRegressor(alpha=weighed.alpha_, max_iter=1000, tol=1e-8).fit(Z, COUNTS / DAYS, DAYS)
    assert weighed.coef_ == pytest.approx(alone.coef_, rel=1e-5, abs=1e-7)


def test_one_feature_is_too_few_for_omp_alone() -> None:
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.normal(size=(20, 1)), rng.normal(size=20))
    for name in ESTIMATORS:
        if name == "omp":
            with pytest.raises(BadInput, match="at least two features"):
                run_estimator(name, data, make_folds("4", data), {}, "all")
        elif name not in ("mcp", "scad", "abess"):
            assert run_estimator(name, data, make_folds("4", data), {}, "all").model is not None
