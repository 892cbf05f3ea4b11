"""Tasks are run, in processes of their own, and what came of each is stored at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.estimators import Fitted, run_estimator, versions_of_all
from sparsecv_mio.batch.folder import BatchFolder, Outcome
from sparsecv_mio.batch.plan import COMMON, Task
from sparsecv_mio.batch.sources import coefficients_of, signal_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, SparseCVError

LONGER = 4.0  # times the time limit of the attempt before, in a retry
LOST_WORKERS = 5  # after so many workers that died on the way a batch gives up


@dataclass(frozen=True)
class Rows:
    """The rows of a task: those the estimator sees, and those it is tested on."""

    train: Dataset
    test: Dataset | None


def rows_of(task: Task) -> Rows:
    """Read the data of a task and hold out its test rows.

    Parameters
    ----------
    task : Task

    Raises
    ------
    BadInput
        The data cannot be read, or the share of test rows leaves too few.
    """
    data = task.source.load(str(task.settings.get("folds", "")))
    share = task.settings.get("test")
    if share is None:
        return Rows(data, None)
    if not (isinstance(share, int | float) and 0.0 < share < 1.0):
        raise BadInput(f"test {share!r} is no share: give a number above 0 and below 1")
    order = np.random.default_rng(int(task.settings.get("split", 0))).permutation(data.n)
    held = max(1, round(share * data.n))
    if data.n - held < 4:
        raise BadInput(f"test {share!r} leaves {data.n - held} rows to train on: give a smaller share")
    return Rows(data.take(np.sort(order[held:])), data.take(np.sort(order[:held])))


def run_task(task: Task, attempt: int = 1) -> Outcome:
    """Run one task; what goes wrong is in the outcome.

    Parameters
    ----------
    task : Task
    attempt : int
        From the second on, a time limit is 4 times as long as in the attempt before.
    """
    try:
        rows = rows_of(task)
        plan = make_folds(str(task.settings["folds"]), rows.train, int(task.settings.get("seed", 0)))
        settings = {key: value for key, value in task.settings.items() if key not in (*COMMON, "estimator")}
        if attempt > 1 and "time_limit" in settings:
            settings["time_limit"] = float(settings["time_limit"]) * LONGER ** (attempt - 1)
        fitted = run_estimator(task.estimator, rows.train, plan, settings)
    except SparseCVError as error:
        return Outcome(task.address, task.to_dict(), "failed", str(error), attempt=attempt)
    except MemoryError:
        return Outcome(task.address, task.to_dict(), "failed", "out of memory", attempt=attempt)
    except Exception as error:  # a peer's own failure is a row of the table, not the end of the batch
        words = f"{type(error).__name__}: {error}".splitlines()[0]
        return Outcome(task.address, task.to_dict(), "failed", words, attempt=attempt)
    numbers = numbers_of(task, rows, fitted)
    state = "done" if fitted.record is None or fitted.record.status == "proved" else "limit"
    record = None if fitted.record is None else fitted.record.to_json()
    origin = {"fingerprint": rows.train.fingerprint, "folds_digest": plan.digest, **versions_of_all()}
    return Outcome(task.address, task.to_dict(), state, "", fitted.seconds, numbers, record, attempt, origin)


def numbers_of(task: Task, rows: Rows, fitted: Fitted) -> dict[str, Any]:
    """Return the numbers of a task: sizes of its data, what the estimator says, errors on rows it has not seen.

    Parameters
    ----------
    task : Task
    rows : Rows
        Of the task.
    fitted : Fitted
    """
    sizes = {"n": rows.train.n, "p": rows.train.p, "n_test": 0 if rows.test is None else rows.test.n}
    return {**sizes, **fitted.numbers, **_errors(task, rows, fitted)}


def _errors(task: Task, rows: Rows, fitted: Fitted) -> dict[str, Any]:
    beta = fitted.coefficients
    found: dict[str, Any] = {"features": int(np.count_nonzero(beta))}
    if rows.test is not None:
        left = rows.test.y - rows.test.X @ beta - fitted.intercept
        found["test_error"] = float(np.mean(left**2))
        found["test_r_squared"] = 1.0 - found["test_error"] / float(np.mean((rows.test.y - rows.train.y.mean()) ** 2))
    spec = dict(task.source.spec)
    return found | (_against_truth(spec, beta, fitted.intercept) if "design" in spec else {})


def _against_truth(spec: dict[str, Any], beta: FloatArray, intercept: float) -> dict[str, float]:
    """Relative risk, relative test error, proportion of variance explained and F1 (Hastie and others, 2020)."""
    truth, signal = coefficients_of(spec), signal_of(spec)
    steps, off = np.arange(len(truth)), beta - truth
    sigma = np.power(float(spec["rho"]), np.abs(steps[:, None] - steps))
    risk, noise = float(off @ sigma @ off) + intercept**2, signal / float(spec["snr"])
    chosen, true = beta != 0.0, truth != 0.0
    found = float(np.sum(chosen & true))
    return {
        "relative_risk": risk / signal, "relative_test_error": (risk + noise) / noise,
        "variance_explained": 1.0 - (risk + noise) / (signal + noise),
        "f1": 2.0 * found / float(np.sum(chosen) + np.sum(true)),
    }  # fmt: skip


def run_batch(
    tasks: Sequence[Task],
    folder: BatchFolder,
    *,
    workers: int = 1,
    retry: bool = False,
    progress: Callable[[Outcome], None] | None = None,
) -> int:
    """Run the tasks that are not done yet, and store what came of each.

    Parameters
    ----------
    tasks : sequence of Task
    folder : BatchFolder
    workers : int
        Processes; each keeps its kernels compiled and its data sets read.
    retry : bool
        Whether tasks that failed or met a limit are run again, under a longer one.
    progress : callable, optional
        Told of every outcome, after it is stored.

    Returns
    -------
    int
        How many tasks were run.

    Raises
    ------
    BadInput
        Workers died again and again; what was done until then is stored.
    """
    left = folder.left(tasks, retry)
    done, lost = 0, 0
    if workers <= 1:
        for task, attempt in left:
            done += _store(run_task(task, attempt), folder, progress)
        return done
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    while left:
        try:
            with parallel_config(backend="loky", inner_max_num_threads=1):
                outcomes = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="all")(
                    delayed(_run_and_store)(task, attempt, str(folder.path)) for task, attempt in left
                )
                for outcome in outcomes:
                    done += 1
                    if progress is not None:
                        progress(outcome)
            return done
        except TerminatedWorkerError:
            lost += 1
            if lost > LOST_WORKERS:
                raise BadInput(
                    f"{lost} workers died: give them fewer processes, or more memory; what is done is stored"
                ) from None
            left = [(task, attempt) for task, attempt in left if not _reached(folder, task, attempt)]
    return done


def _reached(folder: BatchFolder, task: Task, attempt: int) -> bool:
    found = folder.read(task.address)
    return found is not None and found.attempt >= attempt


def _store(outcome: Outcome, folder: BatchFolder, progress: Callable[[Outcome], None] | None) -> int:
    folder.store(outcome)
    if progress is not None:
        progress(outcome)
    return 1


def _run_and_store(task: Task, attempt: int, path: str) -> Outcome:
    """Run a task in a worker; the record stays in the file, so that little goes back."""
    outcome = run_task(task, attempt)
    BatchFolder(path).store(outcome)
    return replace(outcome, record=None)


def part(tasks: Sequence[Task], index: int, of: int) -> list[Task]:
    """Return every `of`-th task, from `index` on: the share of one job of an array.

    Parameters
    ----------
    tasks : sequence of Task
    index : int
        From 0 on.
    of : int
        Number of jobs.

    Raises
    ------
    BadInput
        The index is not below the number.

    Examples
    --------
    >>> part([1, 2, 3, 4, 5], 1, 2)
    [2, 4]
    """
    if not 0 <= index < of:
        raise BadInput(f"--index {index} of {of}: give a number from 0 to {max(of, 1) - 1}")
    return list(tasks[index::of])


def seconds_left(outcomes: Sequence[Outcome], total: int, workers: int) -> float:
    """Return an estimate of the seconds that the rest of a batch takes, from the mean of what was done.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of tasks that were done.
    total : int
        Number of tasks.
    workers : int
    """
    if not outcomes:
        return math.inf
    return float(np.mean([one.seconds for one in outcomes])) * max(0, total - len(outcomes)) / max(1, workers)
