"""One task of a batch: checks its settings against its data, runs it, and stores its outcome in a folder."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.batch_plan import COMMON, OURS, SEEDS, Task, check_share, make_search_options, with_keys
from sparsecv_mio.batch.estimators import check_plan, run_estimator, versions_of_all
from sparsecv_mio.batch.oracle_tasks import ORACLES, check_rows, score_setting
from sparsecv_mio.batch.peers import Fitted, RawModel
from sparsecv_mio.batch.sources import design_covariance, make_coefficients, signal_variance
from sparsecv_mio.certificate.accuracy import class_quality
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.certificate.read_back import RECORD_BYTES
from sparsecv_mio.data.counts import prepare_for_loss
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.declared_options import LASTING
from sparsecv_mio.errors import BadInput, CorruptStore, SparseCVError
from sparsecv_mio.files import check_readable, remove_stale_folders, write_text
from sparsecv_mio.problem.row_losses import row_loss
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Encode

SCHEMA = "sparsecv-task/1"
PLAN_SCHEMA = "sparsecv-plan/1"
PLAN = "plan.json"
T = TypeVar("T")
STATES = ("done", "limit", "failed")


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task.

    Attributes
    ----------
    address : str
        Address of the task.
    task : dict
        Data and settings, from `Task.to_dict`.
    state : {"done", "limit", "failed"}
        State; `limit` means that a limit left the answer without a proof.
    reason : str
        Reason of a failure, in one line.
    seconds : float
        Duration of the fit.
    numbers : dict
        Errors, sizes, chosen hyperparameters.
    record : str, optional
        JSON text of the record of a search.
    attempt : int
        Number of the attempt from 1; larger after `--retry`.
    provenance : dict
        Digests of the rows and of the folds, versions of the packages.
    traceback : str
        Traceback of an unexpected failure: a bug in a peer or in this package.
    """

    address: str
    task: Mapping[str, Any]
    state: str
    reason: str = ""
    seconds: float = 0.0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    record: str | None = None
    attempt: int = 1
    provenance: Mapping[str, str] = field(default_factory=dict)
    traceback: str = ""


def result_path(folder: str | Path, address: str) -> Path:
    """Return the path of the result of a task in a folder, which may not exist."""
    return Path(folder) / "tasks" / f"{address}.json"


class BatchFolder:
    """The results of a batch.

    Parameters
    ----------
    path : str or Path
        Path of the folder, which is created if necessary.

    Raises
    ------
    BadInput
        If the path is not a folder, or cannot be created.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            (self.path / "tasks").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--out: folder {str(self.path)!r} cannot be made: {error.strerror}") from None

    def place(self, address: str) -> Path:
        """Return the file of a task."""
        return result_path(self.path, address)

    def store(self, outcome: TaskOutcome) -> None:
        """Write the outcome of a task; an existing file is replaced when the new one is complete."""
        text = json.dumps({"schema": SCHEMA, **asdict(outcome)}, allow_nan=True, ensure_ascii=False)
        write_text(self.place(outcome.address), [text, "\n"], "task")

    def read(self, address: str) -> TaskOutcome | None:
        """Return the outcome of a task; None if there is none yet.

        Raises
        ------
        CorruptStore
            If the file is not an outcome of this task.
        """

        def outcome(found: dict[str, Any]) -> TaskOutcome:
            outcome = TaskOutcome(**found)
            if outcome.address != address or outcome.state not in STATES:
                raise ValueError("another schema")
            return outcome

        return _read_json_file(self.place(address), "task file", SCHEMA, outcome, "remove it")

    def sweep(self) -> None:
        """Remove temporary files of batches that were killed while writing."""
        for folder in (self.path, self.path / "tasks"):
            remove_stale_folders(folder)

    def read_outcomes(self, tasks: Iterable[Task]) -> list[TaskOutcome]:
        """Return the outcomes of tasks, without tasks that have none yet."""
        return [outcome for task in tasks if (outcome := self.read(task.address)) is not None]

    def store_plan(self, addresses: Iterable[str]) -> None:
        """Store the tasks of the present plan; results of other plans or versions are ignored."""
        text = json.dumps({"schema": PLAN_SCHEMA, "tasks": sorted(addresses)})
        write_text(self.path / PLAN, [text, "\n"], "plan of the folder")

    def read_planned_tasks(self) -> frozenset[str] | None:
        """Return the tasks of the present plan; None if no plan is stored, as in folders of a study.

        Raises
        ------
        CorruptStore
            If the stored plan is damaged.
        """

        def addresses(found: dict[str, Any]) -> frozenset[str]:
            if not all(isinstance(name, str) for name in found["tasks"]):
                raise ValueError("another schema")
            return frozenset(found["tasks"])

        return _read_json_file(self.path / PLAN, "file", PLAN_SCHEMA, addresses, "run the batch again")

    def outcomes(self, every: bool = False) -> Iterator[TaskOutcome]:
        """Yield the outcomes of tasks, in the order of their names.

        Parameters
        ----------
        every : bool
            True to include tasks of earlier plans.
        """
        wanted = None if every else self.read_planned_tasks()
        for address in self._addresses():
            outcome = self.read(address) if wanted is None or address in wanted else None
            if outcome is not None:
                yield outcome

    def stale(self) -> list[Path]:
        """Return the files of tasks that the present plan does not request."""
        wanted = self.read_planned_tasks()
        return [] if wanted is None else [self.place(name) for name in self._addresses() if name not in wanted]

    def _addresses(self) -> list[str]:
        return sorted(place.stem for place in (self.path / "tasks").glob("*.json"))


def _read_json_file(place: Path, what: str, schema: str, make: Callable[[dict[str, Any]], T], cure: str) -> T | None:
    """Return the content of a file with a schema, None without a file; `CorruptStore` names the remedy."""
    if not place.exists():
        return None
    try:
        check_readable(place, what, CorruptStore, RECORD_BYTES)
        fields_stored = json.loads(place.read_text(encoding="utf-8"))
        if fields_stored.pop("schema") != schema:
            raise ValueError("another schema")
        return make(fields_stored)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptStore(f"{what} {str(place)!r} is damaged ({error}): {cure}") from None


LONGER = 4.0  # factor on the time limit in a retry


@dataclass(frozen=True)
class TaskRows:
    """The rows of a task: those for the estimator, and test rows."""

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
            f'target {data.target!r} has text values ({named}): give loss = "logistic", or encode = "onehot"'
        )
    return prepare_for_loss(data, task.loss, task.settings.get("positive"), exposure=task.settings.get("exposure"))


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


def run_task(
    task: Task, attempt: int = 1, data: Dataset | None = None, before_search: Callable[[], None] = lambda: None
) -> TaskOutcome:
    """Run one task and return its outcome, which includes any failure.

    Parameters
    ----------
    attempt : int
        Number of the attempt; each further attempt has 4 times the time limit of the previous one.
    data : Dataset, optional
        Data of the task, as for :func:`task_rows`.
    before_search : callable
        Function that is called before a search, outside the measured time.
    """
    try:
        rows = task_rows(task, data)
        plan = task_folds(task, rows.train)
        settings = {key: value for key, value in task.settings.items() if key not in (*COMMON, "estimator")}
        for limit in {*LASTING, "cpu_limit"} & settings.keys() if attempt > 1 else ():
            settings[limit] = float(settings[limit]) * LONGER ** (attempt - 1)
        if task.estimator in ORACLES:
            fitted = score_setting(rows.train, plan, task.settings)
        else:
            if task.estimator == OURS:
                before_search()
            fitted = run_estimator(task.estimator, rows.train, plan, settings, str(task.settings.get("refit", "all")))
    except Exception as error:  # a failure of a peer or a bug becomes a row of the table, not the end of the batch
        return failure(task, attempt, error)
    numbers = collect_numbers(task, rows, fitted)
    state = "done" if fitted.record is None or fitted.record.status == "proved" else "limit"
    record = None if fitted.record is None else fitted.record.to_json()
    origin = {"fingerprint": rows.train.fingerprint, "folds_digest": plan.digest, **versions_of_all()}
    return TaskOutcome(task.address, task.to_dict(), state, "", fitted.seconds, numbers, record, attempt, origin)


def failure(task: Task, attempt: int, error: Exception) -> TaskOutcome:
    """Return the outcome of a failed task, with the traceback if the failure was unexpected."""
    if isinstance(error, SparseCVError | MemoryError):
        words = "out of memory" if isinstance(error, MemoryError) else str(error)
        return TaskOutcome(task.address, task.to_dict(), "failed", words, attempt=attempt)
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
    numbers = {
        "n": rows.train.n,
        "p": rows.train.p,
        "n_test": 0 if rows.test is None else rows.test.n,
        **fitted.numbers,
    }
    if fitted.model is not None:
        numbers |= _test_errors(task, rows, fitted.model)
    for name, model in fitted.others.items():
        numbers |= {f"{name}_{key}": value for key, value in _test_errors(task, rows, model).items()}
    return numbers


def _test_errors(task: Task, rows: TaskRows, fitted: RawModel) -> dict[str, Any]:
    beta = fitted.coefficients
    errors: dict[str, Any] = {"features": int(np.count_nonzero(beta))}
    if rows.test is not None:
        predictors = rows.test.X @ beta + fitted.intercept
        errors |= _errors_of_rows(task.loss, rows.train, rows.test, predictors)
        errors |= _class_measures(rows.test, predictors) if task.loss.target.has_classes else {}
    spec = dict(task.source.spec)
    return errors | (_against_truth(spec, beta, fitted.intercept) if spec.get("design") == "toeplitz" else {})


def _errors_of_rows(loss: Loss, train: Dataset, test: Dataset, predictors: FloatArray) -> dict[str, float]:
    """Return the mean loss of test rows, and the share of the loss of the null model of the training rows explained."""
    by_row = row_loss(loss)
    y, v = by_row.encode_targets(test.y, exposure=test.row_exposure)
    null = by_row.origin(*by_row.encode_targets(train.y, exposure=train.row_exposure))
    signs = by_row.signs(y)
    return _error_measures(
        *(float(np.mean(v * by_row.losses(signs * m, y))) for m in (predictors, np.full(test.n, null)))
    )


def _class_measures(test: Dataset, predictors: FloatArray) -> dict[str, float]:
    """Return accuracy, AUC and Brier score of test rows with two classes."""
    quality = class_quality(test.y, probabilities(predictors))
    return {"test_accuracy": quality.accuracy, "test_auc": quality.auc, "test_brier": quality.brier}


def _error_measures(error: float, null: float) -> dict[str, float]:
    return {"test_error": error, "test_r_squared": 1.0 - error / null if null > 0.0 else float("nan")}


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
    alike_tasks: dict[tuple[str, tuple[str, ...]], dict[str, Task]] = {}
    for task in tasks:
        alike = alike_tasks.setdefault((task.source.shape_digest, task.auxiliary_columns), {})
        alike.setdefault(task.format_other_settings(SEEDS), task)
    for some in alike_tasks.values():
        _check_on_one(list(some.values()))


def _check_on_one(tasks: list[Task]) -> None:
    """Check tasks on one data set."""
    plans: dict[tuple[Any, ...], tuple[Dataset, FoldPlan]] = {}
    for task in tasks:
        try:
            key = (task.settings.get("test"), str(task.settings["folds"]), task.loss, task.settings.get("positive"))
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
