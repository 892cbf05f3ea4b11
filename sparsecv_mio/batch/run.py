"""One task: its rows, its estimator, and what came of it, whatever that is."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.designs import coefficients_of, covariance_of, signal_of
from sparsecv_mio.batch.estimators import run_estimator, versions_of_all
from sparsecv_mio.batch.fitted import Fitted, Model, Scored
from sparsecv_mio.batch.folder import Outcome
from sparsecv_mio.batch.oracles import ORACLES, score
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.settings import COMMON, check_share
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.errors import BadInput, SparseCVError

LONGER = 4.0  # times the time limit of the attempt before, in a retry


@dataclass(frozen=True)
class Rows:
    """The rows of a task: those the estimator sees, and those it is tested on."""

    train: Dataset
    test: Dataset | None


def rows_of(task: Task, data: Dataset | None = None) -> Rows:
    """Read the data of a task and hold out its test rows.

    Parameters
    ----------
    task : Task
    data : Dataset, optional
        Its data, where they were read already.

    Raises
    ------
    BadInput
        The data cannot be read, or the share of test rows leaves too few.
    """
    data = task.source.load(task.columns_of_folds) if data is None else data
    share = task.settings.get("test")
    if share is None:
        return Rows(data, None)
    check_share(share)
    order = np.random.default_rng(int(task.settings.get("split", 0))).permutation(data.n)
    held = max(1, round(share * data.n))
    if data.n - held < 4:
        raise BadInput(f"test {share!r} leaves {data.n - held} rows to train on: give a smaller share")
    return Rows(data.take(np.sort(order[held:])), data.take(np.sort(order[:held])))


def folds_of(task: Task, rows: Dataset) -> FoldPlan:
    """Deal the training rows of a task to its folds.

    Parameters
    ----------
    task : Task
    rows : Dataset
        Those of :func:`rows_of` that the estimator sees.
    """
    return make_folds(str(task.settings["folds"]), rows, int(task.settings.get("seed", 0)))


def run_task(task: Task, attempt: int = 1, data: Dataset | None = None) -> Outcome:
    """Run one task; what goes wrong is in the outcome.

    Parameters
    ----------
    task : Task
    attempt : int
        From the second on, a time limit is 4 times as long as in the attempt before.
    data : Dataset, optional
        As of :func:`rows_of`.
    """
    try:
        rows = rows_of(task, data)
        plan = folds_of(task, rows.train)
        settings = {key: value for key, value in task.settings.items() if key not in (*COMMON, "estimator")}
        for limit in {"time_limit", "cpu_limit"} & settings.keys() if attempt > 1 else ():
            settings[limit] = float(settings[limit]) * LONGER ** (attempt - 1)
        fitted: Fitted | Scored
        if task.estimator in ORACLES:
            fitted = score(rows.train, plan, task.settings)
        else:
            fitted = run_estimator(task.estimator, rows.train, plan, settings, str(task.settings.get("refit", "all")))
    except Exception as error:  # of a peer, or a bug of our own: a row of the table, not the end of the batch
        return failure(task, attempt, error)
    numbers = numbers_of(task, rows, fitted)
    state = "done" if fitted.record is None or fitted.record.status == "proved" else "limit"
    record = None if fitted.record is None else fitted.record.to_json()
    origin = {"fingerprint": rows.train.fingerprint, "folds_digest": plan.digest, **versions_of_all()}
    return Outcome(task.address, task.to_dict(), state, "", fitted.seconds, numbers, record, attempt, origin)


def failure(task: Task, attempt: int, error: Exception) -> Outcome:
    """Return the outcome of a task that failed; with the traceback, where nobody foresaw that.

    Parameters
    ----------
    task : Task
    attempt : int
    error : Exception
    """
    if isinstance(error, SparseCVError | MemoryError):
        words = "out of memory" if isinstance(error, MemoryError) else str(error)
        return Outcome(task.address, task.to_dict(), "failed", words, attempt=attempt)
    words = "".join(traceback.format_exception_only(error)).splitlines()[0]
    trace = "".join(traceback.format_exception(error))
    return Outcome(task.address, task.to_dict(), "failed", words, attempt=attempt, traceback=trace)


def numbers_of(task: Task, rows: Rows, fitted: Fitted | Scored) -> dict[str, Any]:
    """Return the numbers of a task: sizes of its data, what the estimator says, errors on rows it has not seen.

    Parameters
    ----------
    task : Task
    rows : Rows
        Of the task.
    fitted : Fitted or Scored
        Only a model has errors on other rows.
    """
    sizes = {"n": rows.train.n, "p": rows.train.p, "n_test": 0 if rows.test is None else rows.test.n}
    errors = _all_errors(task, rows, fitted) if isinstance(fitted, Fitted) else {}
    return {**sizes, **fitted.numbers, **errors}


def _all_errors(task: Task, rows: Rows, fitted: Fitted) -> dict[str, Any]:
    """Return errors and size of the model, and those of models by other rules under their names."""
    found = _errors(task, rows, Model(fitted.coefficients, fitted.intercept))
    for name, model in fitted.others.items():
        found |= {f"{name}_{key}": value for key, value in _errors(task, rows, model).items()}
    return found


def _errors(task: Task, rows: Rows, fitted: Model) -> dict[str, Any]:
    beta = fitted.coefficients
    found: dict[str, Any] = {"features": int(np.count_nonzero(beta))}
    if rows.test is not None:
        left = rows.test.y - rows.test.X @ beta - fitted.intercept
        found["test_error"] = float(np.mean(left**2))
        found["test_r_squared"] = 1.0 - found["test_error"] / float(np.mean((rows.test.y - rows.train.y.mean()) ** 2))
    spec = dict(task.source.spec)
    return found | (_against_truth(spec, beta, fitted.intercept) if spec.get("design") == "toeplitz" else {})


def _against_truth(spec: dict[str, Any], beta: FloatArray, intercept: float) -> dict[str, float]:
    """Relative risk, relative test error, proportion of variance explained and F1 (Hastie and others, 2020)."""
    truth, signal = coefficients_of(spec), signal_of(spec)
    off, sigma = beta - truth, covariance_of(len(truth), float(spec["rho"]))
    risk, noise = float(off @ sigma @ off) + intercept**2, signal / float(spec["snr"])
    chosen, true = beta != 0.0, truth != 0.0
    found = float(np.sum(chosen & true))
    return {
        "relative_risk": risk / signal, "relative_test_error": (risk + noise) / noise,
        "variance_explained": 1.0 - (risk + noise) / (signal + noise),
        "f1": 2.0 * found / float(np.sum(chosen) + np.sum(true)),
    }  # fmt: skip
