"""One interface for every estimator of a batch: the search of this package, and estimators of other packages (peers).

A task gives all estimators the same rows and folds. A peer chooses its hyperparameters by the mean loss over the
held-out rows of these folds and is then refitted on all rows. With `refit=False` the task has one fold, and the fit on
the training rows of this fold is the result. Columns are centred and scaled.

The reported seconds are the time of `fit` alone. Before the timing, a fit of a few rows loads and compiles a peer, and
:mod:`sparsecv_mio.batch.dispatch` compiles the kernels of this package. If a package is not installed, the task fails
with a message that names the package.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.batch_plan import OURS, REFITS, TRAINING, make_search_options, other_rules
from sparsecv_mio.batch.peers import BY_LABELS, PEER_PACKAGES, Fitted, RawModel, find_peer
from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.certificate.predicting import expand_coefficients
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.counts import prepare_for_loss
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.targets import DEFAULT_LOSS, Loss

if TYPE_CHECKING:
    from sparsecv_mio.search.options import SearchOptions

LOOKS = 0.02  # seconds between two readings of the processor time


def run_search(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool = False) -> Fitted:
    """Return the fit of the pair (tau, gamma) chosen by the search of this package.

    Parameters
    ----------
    settings : mapping
        Options of the search by their command-line names, and options of plans: `cpu_limit`, a limit in processor
        seconds, which does not depend on the load of the machine; and the additional model of the one-standard-error
        rule.
    training_only : bool
        True if the model is fitted to the training rows of the single fold instead of all rows.
    """
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.search.options import Hooks

    options = make_search_options(settings)
    if training_only and options.model == "average":
        raise BadInput(
            "model average: not supported with refit training, because the averaged model is fitted to all rows; "
            "remove refit"
        )
    begin, spent = time.perf_counter(), time.process_time()
    with processor_limit(settings.get("cpu_limit")) as stop:
        record = cross_validate(
            data, plan, gammas=settings.get("gamma"), taus=settings.get("tau"), options=options, hooks=Hooks(stop=stop)
        )
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    fitted = summarise_record(record, data, seconds, plan if training_only else None)
    others = {rule: _simplest(record, data, options, settings.get("cpu_limit")) for rule in other_rules(settings)}
    return replace(fitted, numbers={**fitted.numbers, "cpu_seconds": cpu}, others=others)


def summarise_record(record: Record, data: Dataset, seconds: float, held_out: FoldPlan | None = None) -> Fitted:
    """Return the model and the numbers of a record of the search.

    Parameters
    ----------
    data : Dataset
        Rows of the record.
    seconds : float
        Duration of the fit.
    held_out : FoldPlan, optional
        Single fold to whose training rows the model is fitted.
    """
    numbers = {
        "status": record.status, "cv_error": record.cv_error, "lower": record.lower, "upper": record.upper,
        "gap": record.gap, "tau": record.tau, "gamma": record.gamma, "mios": record.work.mios,
        "nodes": record.work.nodes,
    }  # fmt: skip
    if (classes := record.classes) is not None:
        numbers |= {"null_error": classes.null_error, "accuracy": classes.accuracy, "auc": classes.auc,
                    "brier": classes.brier}  # fmt: skip
    if record.counts is not None:
        numbers |= {"null_error": record.counts.null_error}
    model = _make_raw_model(record.predictor, data) if held_out is None else _on_training_rows(record, data, held_out)
    return Fitted(model, seconds, numbers, record)


@contextmanager
def processor_limit(seconds: float | None) -> Iterator[threading.Event | None]:
    """Yield an event that is set after a number of processor seconds of this process; None without a limit."""
    if seconds is None:
        yield None
        return
    stop, over, end = threading.Event(), threading.Event(), time.process_time() + float(seconds)

    def watch() -> None:
        while not over.wait(LOOKS):
            if time.process_time() > end:
                stop.set()
                return

    watcher = threading.Thread(target=watch, name="processor limit", daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        watcher.join()


def _make_raw_model(record: Record | PathRow, data: Dataset) -> RawModel:
    """Return coefficients by name as an array."""
    return RawModel(expand_coefficients(record.coefficients, data.names), float(record.intercept))


def _on_training_rows(record: Record, data: Dataset, plan: FoldPlan) -> RawModel:
    """Return the model of the reported pair fitted to the training rows of the single fold."""
    from sparsecv_mio.problem.objective import fit, ridge_weights

    (support,), adjusted = record.chosen_folds.supports, adjustment_columns(record)
    columns = sorted(data.names.index(name) for name in (*support, *adjusted))
    free = [data.names.index(name) for name in adjusted]
    coefficients: FloatArray = np.zeros(data.p)
    if not columns:
        return RawModel(coefficients, float(data.y[plan.train_rows(0)].mean()))
    ridge = fit(
        data.X, data.y, columns, ridge_weights(columns, free, record.gamma), scale=record.data.scale,
        intercept=record.data.intercept, rows=plan.train_rows(0),
    )  # fmt: skip
    coefficients[columns] = ridge.beta
    return RawModel(coefficients, ridge.intercept)


def simplest_pair(record: Record) -> tuple[float, int]:
    """Return the pair of the one-standard-error rule by the CV errors of the table, proved or estimated.

    It is the smallest tau, then the largest gamma, whose CV error is at most one standard error above that of the
    reported pair. For a record cut short by a limit, `solve --one-se` requires certified bounds instead.
    """
    best = next(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    most = record.cv_error + (best.standard_error or 0.0)
    within = [(row.tau, -row.gamma) for row in record.table if row.cv_error <= most]
    tau, gamma = min(within, default=(record.tau, -record.gamma))
    return -gamma, tau


def _simplest(record: Record, data: Dataset, options: SearchOptions, cpu_limit: float | None) -> RawModel:
    """Return the full-data model of the one-standard-error rule."""
    from sparsecv_mio.fits.best_subsets import best_subsets

    gamma, tau = simplest_pair(record)
    with processor_limit(cpu_limit) as stop:
        path_record = best_subsets(
            data, gammas=[gamma], taus=[tau], stop=stop, scale=options.scale, intercept=options.intercept, threads=1,
            restrictions=options.restrictions, loss=options.loss, positive=options.positive,
            class_weight=options.class_weight, exposure=options.exposure,
        )  # fmt: skip
    return _make_raw_model(path_record.path[0], data)


def check_plan(name: str, plan: FoldPlan, refit: str = "all") -> None:
    """Raise an error for folds that an estimator does not support.

    Parameters
    ----------
    name : str
        Key of `ESTIMATORS`.
    refit : {"all", "training"}
        Rows of the fit, as for :func:`run_estimator`.

    Raises
    ------
    BadInput
        If the folds are not supported; the message names supported ones.
    """
    if match_keyword(refit, REFITS, "refit") == TRAINING and plan.k != 1:
        raise BadInput(
            f"refit training: requires a single fold, but the plan has {plan.k}; remove refit, or use one held-out set"
        )
    if name in BY_LABELS and (plan.k < 2 or not plan.is_partition or plan.scored < plan.n):
        raise BadInput(
            f"estimator {name}: needs folds that hold out every row exactly once; set folds to a number of at least 2"
        )


def run_estimator(name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], refit: str = "all") -> Fitted:
    """Return the fit of one estimator.

    Parameters
    ----------
    name : str
        Key of `ESTIMATORS`.
    plan : FoldPlan
        Folds by which hyperparameters are chosen.
    settings : mapping
        Options of the search, see :func:`~sparsecv_mio.batch.estimators.run_search`; peers only have a loss.
    refit : {"all", "training"}
        Rows of the fit: all rows, or the training rows of a single fold.

    Raises
    ------
    BackendUnavailable
        If a peer is not installed.
    BadInput
        If `refit` is unknown, or is `training` with several folds.
    """
    check_plan(name, plan, refit)
    loss = Loss(match_keyword(settings.get("loss", DEFAULT_LOSS), tuple(Loss), "loss"))
    if not loss.is_quadratic and refit == TRAINING:
        raise BadInput(
            f"loss {loss}: not supported with refit training, because its models are fitted to all rows; remove refit"
        )
    if name != OURS:
        _warm(name, loss)
    return _fit_estimator(name, data, plan, settings, refit == TRAINING)


def _fit_estimator(
    name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool
) -> Fitted:
    if name == OURS:
        return run_search(data, plan, settings, training_only)
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    peer = find_peer(name, settings.get("loss", DEFAULT_LOSS))
    from sklearn.preprocessing import StandardScaler  # loading takes seconds, which a search does not need

    scaler, estimator = StandardScaler(), peer.make(splits, not training_only)
    begin, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence warnings: peers are compared by their errors
        X = scaler.fit_transform(data.X)
        if data.row_exposure is None:
            model = estimator.fit(X, data.y)
        else:
            model = estimator.fit(X, data.y / data.row_exposure, data.row_exposure)
        if training_only and peer.alone is not None:
            rows = splits[0][0]
            model = peer.alone(estimator).fit(X[rows], data.y[rows])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    return Fitted(_raw_model(scaler, model), seconds, {"cpu_seconds": cpu, **peer.extract_numbers(estimator)})


@cache
def versions_of_all() -> dict[str, str]:
    """Return the versions of Python, this package, the numerical libraries and the packages of peers."""
    peers = {}
    for package in PEER_PACKAGES:
        try:
            peers[package] = version(package)
        except PackageNotFoundError:
            peers[package] = "not installed"
    return {f"version_{name}": version for name, version in {**versions(), **peers}.items()}


@cache
def _warm(name: str, loss: Loss) -> None:
    """Compile or load the code of a fit, once in a process, so that neither its time nor its limit includes this."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=30)
    data = prepare_for_loss(Dataset.from_arrays(X, y if loss.is_quadratic else (y > 0.0).astype(float)), loss)
    _fit_estimator(name, data, make_folds("3", data), {"loss": loss}, False)


def _raw_model(scaler: Any, model: Any) -> RawModel:
    """Return coefficients and intercept in units of the file."""
    coefficients = np.asarray(model.coef_, dtype=float).reshape(-1) / scaler.scale_
    return RawModel(coefficients, float(np.ravel(model.intercept_)[0] - scaler.mean_ @ coefficients))
