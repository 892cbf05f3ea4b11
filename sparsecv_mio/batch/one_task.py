"""Functions that run one task of a batch: they fit an estimator to the rows and folds of the task.

The estimators are the search of this package, estimators of other packages (peers) and the oracles. Every estimator
gets the same rows and folds. A peer chooses its hyperparameters by the mean loss over the held-out rows of the folds
and is then refitted on all rows. With `refit = "training"` the task has one fold, and the final model is fitted to the
training rows of this fold instead of all rows. For a peer, columns are centred and divided by their standard deviation.

The reported seconds are the time of the method `fit` alone. Code is loaded and compiled before the timing starts: a
peer is fitted to a few rows, and the kernels of a search are called on tiny data. If a package is not installed, the
task fails with a message that names the package.
"""

from __future__ import annotations

import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.batch_plan import (
    BOTH,
    COMMON,
    OURS,
    REFITS,
    SEEDS,
    TRAINING,
    Task,
    check_share,
    make_search_options,
    with_keys,
)
from sparsecv_mio.batch.oracle_tasks import ORACLES, check_rows, score_setting
from sparsecv_mio.batch.peers import BY_LABELS, PEER_PACKAGES, Fitted, RawModel, find_peer
from sparsecv_mio.batch.sources import design_covariance, make_coefficients, signal_variance
from sparsecv_mio.batch.task_folder import TaskOutcome
from sparsecv_mio.certificate.accuracy import class_quality
from sparsecv_mio.certificate.concordance import assess_times
from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.certificate.predicting import expand_coefficients, probabilities
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import prepare_for_loss
from sparsecv_mio.declared_options import LASTING
from sparsecv_mio.errors import BadInput, SparseCVError, match_keyword, parse_keyword
from sparsecv_mio.parallel import call_periodically
from sparsecv_mio.problem.row_losses import row_loss
from sparsecv_mio.targets import DEFAULT_LOSS, Loss, TargetColumns, Ties
from sparsecv_mio.words import Encode

if TYPE_CHECKING:
    from sparsecv_mio.search.options import SearchOptions

LOOKS = 0.02  # seconds between two readings of the processor time
LONGER = 4.0  # factor on the time limit in a retry


class TaskRows(NamedTuple):
    """The rows of a task: the rows for the estimator, and the test rows."""

    train: Dataset
    test: Dataset | None


def task_rows(task: Task, data: Dataset | None = None) -> TaskRows:
    """Return the rows of a task, with its test rows separated.

    Parameters
    ----------
    data : Dataset, optional
        Data of the task, if they were read already.

    Raises
    ------
    BadInput
        If the data cannot be read, or too few training rows remain.
    """
    data = _adapt_to_loss(task, task.source.load(task.auxiliary_columns) if data is None else data)
    share = task.settings.get("test")
    if share is None:
        return TaskRows(data, None)
    check_share(share)
    if data.trials is not None:
        raise BadInput(
            "test: not supported with trials, because the trials of a row could be in both the training and the test "
            "rows; give folds instead of test rows"
        )
    order = np.random.default_rng(int(task.settings.get("split", 0))).permutation(data.n)
    test_rows = max(1, round(share * data.n))
    if data.n - test_rows < 4:
        raise BadInput(
            f"test: a share of {share!r} leaves only {data.n - test_rows} training rows, and a task needs 4; give a "
            "smaller share"
        )
    return TaskRows(data.take(np.sort(order[test_rows:])), data.take(np.sort(order[:test_rows])))


def _adapt_to_loss(task: Task, data: Dataset) -> Dataset:
    """Return the data of a task in the form of its loss; a target of two text values needs logistic loss."""
    encoded = data.reading is not None and data.reading.how.encode is not Encode.ERROR
    if data.target_words and not encoded and task.loss.is_quadratic:
        named = " and ".join(data.target_words)
        raise BadInput(
            f'target {data.target!r} has text values ({named}); give loss = "logistic", or encode = "onehot"'
        )
    ties = parse_keyword(Ties, task.settings.get("ties", Ties.EFRON), "ties")
    return prepare_for_loss(data, task.loss, task.settings.get("positive"), columns=task.target_columns, ties=ties)


def task_folds(task: Task, rows: Dataset) -> FoldPlan:
    """Return the folds of the training rows of a task.

    Parameters
    ----------
    task : Task
        The task.
    rows : Dataset
        Training rows from :func:`task_rows`.
    """
    return make_folds(str(task.settings["folds"]), rows, int(task.settings.get("seed", 0)))


def run_search(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool = False) -> Fitted:
    """Return the fit of the pair (tau, gamma) chosen by the search of this package.

    Parameters
    ----------
    settings : mapping
        Options of the search by their command-line names, and two options of plans. `cpu_limit` is a limit in processor
        seconds, which does not depend on the load of the machine. `one_se` may request the model of the
        one-standard-error rule in addition.
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
    fitted.numbers["cpu_seconds"] = cpu
    if settings.get("one_se") == BOTH:
        fitted.one_se = _fit_simplest(record, data, options, settings.get("cpu_limit"))
    return fitted


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
    parts = [
        (record, ("status", "cv_error", "lower", "upper", "gap", "tau", "gamma")), (record.work, ("mios", "nodes")),
        (None if record.null_error is None else record, ("null_error",)),
        (record.classes, ("accuracy", "auc", "brier")),
    ]  # fmt: skip
    numbers = {name: getattr(part, name) for part, names in parts if part is not None for name in names}
    if record.null_error is not None and not record.wording.is_sum_over_rows:
        numbers["gain"] = record.null_error - record.cv_error
    model = _make_raw_model(record.predictor, data) if held_out is None else _on_training_rows(record, data, held_out)
    return Fitted(model, seconds, numbers, record)


@contextmanager
def processor_limit(seconds: float | None) -> Iterator[threading.Event | None]:
    """Yield an event that is set after a number of processor seconds of this process; None without a limit."""
    if seconds is None:
        yield None
        return
    stop, end = threading.Event(), time.process_time() + float(seconds)

    def look() -> None:
        if time.process_time() > end:
            stop.set()

    with call_periodically(look, LOOKS, LOOKS):
        yield stop


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

    Among the pairs whose CV error is at most one standard error above that of the reported pair, it has the smallest
    tau, then the largest gamma. For a record cut short by a limit, `solve --one-se` requires certified bounds instead.
    """
    best = next(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    most = record.cv_error + (best.standard_error or 0.0)
    within = [(row.tau, -row.gamma) for row in record.table if row.cv_error <= most]
    tau, gamma = min(within, default=(record.tau, -record.gamma))
    return -gamma, tau


def _fit_simplest(record: Record, data: Dataset, options: SearchOptions, cpu_limit: float | None) -> RawModel:
    """Return the full-data model of the one-standard-error rule."""
    from sparsecv_mio.fits.best_subsets import best_subsets

    gamma, tau = simplest_pair(record)
    shared = ("scale", "intercept", "restrictions", "loss", "positive", "class_weight", "ties", *TargetColumns._fields)
    how = {name: getattr(options, name) for name in shared}
    with processor_limit(cpu_limit) as stop:
        path_record = best_subsets(data, gammas=[gamma], taus=[tau], stop=stop, threads=1, **how)
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
            f"refit training: requires a single fold, but the plan has {plan.k}; remove refit, or give folds such as "
            "holdout:0.2"
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
        Options of the search, see :func:`run_search`; peers only have a loss.
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
            f"loss {loss}: not supported with refit training, because such models are fitted to all rows; remove refit"
        )
    if name == OURS:
        return run_search(data, plan, settings, refit == TRAINING)
    if loss.target.has_classes and (data.row_exposure is not None or data.trials is not None):
        option = "offset" if data.trials is None else "trials"
        raise BadInput(f"{option}: requires estimator {OURS}, not {name}; leave one of the two out")
    _warm_peer(name, loss)
    return _fit_peer(name, data, plan, loss, refit == TRAINING)


def _fit_peer(name: str, data: Dataset, plan: FoldPlan, loss: Loss, training_only: bool) -> Fitted:
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    peer = find_peer(name, loss)
    from sklearn.preprocessing import StandardScaler  # loading takes seconds, which a search does not need

    scaler, estimator = StandardScaler(), peer.make(splits, not training_only)
    begin, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence warnings: peers are compared by their errors
        X = scaler.fit_transform(data.X)
        exposure = data.row_exposure
        model = estimator.fit(X, *((data.y,) if exposure is None else (data.y / exposure, exposure)))
        if training_only and peer.alone is not None:
            rows = splits[0][0]
            model = peer.alone(estimator).fit(X[rows], data.y[rows])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    coefficients = np.asarray(model.coef_, dtype=float).reshape(-1) / scaler.scale_  # in units of the file
    fitted = RawModel(coefficients, float(np.ravel(model.intercept_)[0] - scaler.mean_ @ coefficients))
    return Fitted(fitted, seconds, {"cpu_seconds": cpu, **peer.extract_numbers(estimator)})


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
def _warm_peer(name: str, loss: Loss) -> None:
    """Compile or load the code of a fit, once in a process, so that neither its time nor its limit includes this."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=30)
    data = prepare_for_loss(Dataset.from_arrays(X, y if loss.is_quadratic else (y > 0.0).astype(float)), loss)
    _fit_peer(name, data, make_folds("3", data), loss, False)


_loaded: set[str] = set()  # kinds of searches whose kernels this process has loaded


def _load_kernels(options: SearchOptions, data: Dataset) -> None:
    """Compile or load the kernels of a search, once in a process, so that neither its time nor its limit includes this.

    Kernels of other kinds of searches are not loaded, because every process of a batch would wait for them.
    """
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.search.first_use import make_first_use

    run = partial(cross_validate, method=options.method, threads=1)
    needs = make_first_use(f"batch_{options.method}", options, data, run)
    if needs.purpose not in _loaded:
        needs.run(None)
        _loaded.add(needs.purpose)


def run_task(task: Task, attempt: int = 1, data: Dataset | None = None) -> TaskOutcome:
    """Run one task and return its outcome, which includes any failure.

    Parameters
    ----------
    attempt : int
        Number of the attempt; each further attempt has 4 times the time limit of the previous one.
    data : Dataset, optional
        Data of the task, as for :func:`task_rows`.
    """
    try:
        rows = task_rows(task, data)
        plan = task_folds(task, rows.train)
        settings = {key: value for key, value in task.settings.items() if key not in (*COMMON, "estimator")}
        for limit in {*LASTING, "cpu_limit"} & settings.keys() if attempt > 1 else ():
            settings[limit] = float(settings[limit]) * LONGER ** (attempt - 1)
        if task.estimator == OURS:
            _load_kernels(make_search_options(settings), rows.train)
        if task.estimator in ORACLES:
            fitted = score_setting(rows.train, plan, task.settings)
        else:
            fitted = run_estimator(task.estimator, rows.train, plan, settings, str(task.settings.get("refit", "all")))
    except Exception as error:  # a failure of a peer or a bug becomes a row of the table, not the end of the batch
        return failure(task, attempt, error)
    numbers, record = collect_numbers(task, rows, fitted), fitted.record
    origin = {"fingerprint": rows.train.fingerprint, "folds_digest": plan.digest, **versions_of_all()}
    return TaskOutcome(
        task.address, task.to_dict(), "done" if record is None or record.status == "proved" else "limit", "",
        fitted.seconds, numbers, None if record is None else record.to_json(), attempt, origin,
    )  # fmt: skip


def failure(task: Task, attempt: int, error: Exception) -> TaskOutcome:
    """Return the outcome of a failed task, with the traceback if the failure was unexpected."""
    words, trace = "out of memory" if isinstance(error, MemoryError) else str(error), ""
    if not isinstance(error, SparseCVError | MemoryError):
        words = "".join(traceback.format_exception_only(error)).splitlines()[0]
        trace = "".join(traceback.format_exception(error))
    return TaskOutcome(task.address, task.to_dict(), "failed", words, attempt=attempt, traceback=trace)


def collect_numbers(task: Task, rows: TaskRows, fitted: Fitted) -> dict[str, Any]:
    """Return the numbers of a task: sizes of its data, results of the estimator, errors on test rows.

    Parameters
    ----------
    rows : TaskRows
        Rows of the task.
    fitted : Fitted
        Result of the estimator; only a model has errors on test rows.
    """
    n_test = 0 if rows.test is None else rows.test.n
    numbers = {"n": rows.train.n, "p": rows.train.p, "n_test": n_test, **fitted.numbers}
    for prefix, model in (("", fitted.model), ("one_se_", fitted.one_se)):
        if model is not None:
            numbers |= {f"{prefix}{name}": value for name, value in _test_errors(task, rows, model).items()}
    return numbers


def _test_errors(task: Task, rows: TaskRows, fitted: RawModel) -> dict[str, Any]:
    beta = fitted.coefficients
    errors: dict[str, Any] = {"features": int(np.count_nonzero(beta))}
    if rows.test is not None:
        predictors = rows.test.X @ beta + fitted.intercept
        if task.loss.target.has_times:
            return errors | _errors_of_times(rows.train, rows.test, beta)
        errors |= _errors_of_rows(task.loss, rows.train, rows.test, predictors)
        if task.loss.target.has_classes:
            quality = class_quality(
                rows.test.y, probabilities(predictors + rows.test.row_offsets(slice(0, rows.test.n)))
            )
            errors |= {"test_accuracy": quality.accuracy, "test_auc": quality.auc, "test_brier": quality.brier}
    spec = dict(task.source.spec)
    return errors | (_against_truth(spec, beta, fitted.intercept) if spec.get("design") == "toeplitz" else {})


def _errors_of_rows(loss: Loss, train: Dataset, test: Dataset, predictors: FloatArray) -> dict[str, float]:
    """Return the mean loss of test rows, and the share of the loss of the null model of the training rows explained."""
    by_row = row_loss(loss)
    y, v = by_row.encode_targets(test.y, exposure=test.row_exposure)
    null = by_row.origin(*by_row.encode_targets(train.y, exposure=train.row_exposure))
    signs = by_row.signs(y)
    fits = (predictors, np.full(test.n, null))
    error, null_error = (float(np.mean(v * by_row.losses(signs * fit, y))) for fit in fits)
    return {"test_error": error, "test_r_squared": 1.0 - error / null_error if null_error > 0.0 else float("nan")}


def _errors_of_times(train: Dataset, test: Dataset, beta: FloatArray) -> dict[str, float]:
    """Return the held-out partial likelihood per event of test rows, its gain and share explained, and the concordance.

    The partial likelihood of test rows is that of all rows minus that of the training rows, as in cross-validation. It
    depends on the numbers of rows, but its gain over the model without features can be compared with that of folds.
    """
    from sparsecv_mio.problem.cox import partial_loss  # other losses do not need this import

    both, n_events = train.join_rows(test), test.weight_of(slice(0, test.n))
    if n_events == 0.0:
        return {}
    error, null_error = (
        (partial_loss(both, both.X @ slopes) - partial_loss(train, train.X @ slopes)) / n_events
        for slopes in (beta, np.zeros(len(beta)))
    )
    explained = 1.0 - error / null_error if null_error > 0.0 else float("nan")
    concordance = assess_times(test, test.X @ beta).concordance
    gain = null_error - error
    return {"test_error": error, "test_gain": gain, "test_r_squared": explained, "test_concordance": concordance}


def _against_truth(spec: dict[str, Any], beta: FloatArray, intercept: float) -> dict[str, float]:
    """Return relative risk, relative test error, share of variance explained and F1 (Hastie and others, 2020)."""
    truth, signal = make_coefficients(spec), signal_variance(spec)
    off, sigma = beta - truth, design_covariance(len(truth), float(spec["rho"]))
    risk, noise = float(off @ sigma @ off) + intercept**2, signal / float(spec["snr"])
    chosen, true = beta != 0.0, truth != 0.0
    hits = float(np.sum(chosen & true))
    return {
        "relative_risk": risk / signal, "relative_test_error": (risk + noise) / noise,
        "variance_explained": 1.0 - (risk + noise) / (signal + noise),
        "f1": 2.0 * hits / float(np.sum(chosen) + np.sum(true)),
    }  # fmt: skip


def check_with_data(tasks: Iterable[Task]) -> None:
    """Raise an error for tasks that their data do not allow; every data set is read once.

    Parameters
    ----------
    tasks : iterable of Task
        Tasks; of tasks that differ only in seeds, the first one is checked.

    Raises
    ------
    BadInput
        If a task is invalid; the message names the data set, and the setting or the column.
    """
    checked, latest = set[tuple[Any, ...]](), None
    plans: dict[tuple[Any, ...], tuple[Dataset, FoldPlan]] = {}
    for task in tasks:
        data, settings = (task.source.shape_digest, task.auxiliary_columns), task.settings
        if (kind := (data, task.format_other_settings(SEEDS))) in checked:
            continue
        checked.add(kind)
        if data != latest:
            latest, plans = data, {}
        try:
            means = (settings.get("positive"), task.target_columns, settings.get("ties"))
            key = (settings.get("test"), str(settings["folds"]), task.loss, *means)
            if key not in plans:
                rows = task_rows(task).train
                plans[key] = rows, task_folds(task, rows)
            _check_task(task, *plans[key])
        except BadInput as error:
            raise BadInput(f"data {task.source.name!r}: {with_keys(str(error))}") from None


def _check_task(task: Task, rows: Dataset, plan: FoldPlan) -> None:
    from sparsecv_mio.search.question import Question  # imported here since it loads much of the search

    if task.estimator in ORACLES:
        check_rows(task.settings, rows, plan)
    check_plan(task.estimator, plan, str(task.settings.get("refit", "all")))
    if task.estimator == OURS:
        options = make_search_options(task.settings)
        options.check_data(rows, plan)
        Question(rows, plan, task.settings.get("gamma"), task.settings.get("tau"), options).grid()
