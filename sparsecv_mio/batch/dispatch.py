"""Tasks are handed to an engine, longest first, and what came of each is stored at once, by this process alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

import numpy as np

from sparsecv_mio.batch.engines import Engine, WorkerDied, engine_of
from sparsecv_mio.batch.folder import BatchFolder, Outcome
from sparsecv_mio.batch.order import Attempt, Order
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.run import failure
from sparsecv_mio.errors import BackendFailed, BadInput

FEWER = 4  # after a worker died, the tasks it may have died of run so many times fewer at once, until one is alone


def run_batch(
    tasks: Sequence[Task],
    folder: BatchFolder,
    *,
    workers: int = 1,
    scheduler: str | None = None,
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
    scheduler : str, optional
        Address of the scheduler of a dask cluster, whose workers run the tasks instead.
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
    BackendUnavailable
        The cluster cannot be used.
    BackendFailed
        Its scheduler was lost; what was done until then is stored.
    """
    order, left = Order(), []
    for task in tasks:
        before = folder.read(task.address)
        if before is not None:
            order.learn(before)
        if before is None or (retry and before.state != "done"):
            order.add(Attempt(task, 1 if before is None else before.attempt + 1))
            left.append(task)
    if not left:
        return 0
    with engine_of(min(workers, len(left)), scheduler, left) as engine:
        for outcome in _outcomes(engine, order):
            folder.store(outcome)
            order.learn(outcome)
            if progress is not None:
                progress(outcome)
    return len(left)


def _outcomes(engine: Engine, order: Order) -> Iterator[Outcome]:
    """Keep an engine busy and yield what comes of the tasks, each once."""
    running: dict[Future[Outcome], Attempt] = {}
    while order or running:
        while order and len(running) < _room(engine, order.lost) and _alike(running.values(), order.lost):
            attempt = order.next()
            running[engine.submit(attempt)] = attempt
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            attempt = running.pop(future)
            try:
                yield engine.outcome(future)
            except WorkerDied as died:
                alone = attempt.lost > 0 and _room(engine, attempt.lost) == 1
                if died.by_task or alone:
                    words = "its worker died, and would again (out of memory?)"
                    yield failure(attempt.task, attempt.number, BackendFailed(words))
                else:
                    order.add(replace(attempt, lost=attempt.lost + 1))
            except BackendFailed:
                raise
            except Exception as error:  # of the way there and back, as of what cannot be unpickled
                yield failure(attempt.task, attempt.number, error)


def _room(engine: Engine, lost: int) -> int:
    """Return how many tasks that lost so many workers run at once."""
    return max(1, int(engine.width // FEWER**lost))


def _alike(running: Iterable[Attempt], lost: int) -> bool:
    """Whether no task runs beside others that are more, or less, likely to be the end of a worker."""
    return all(attempt.lost == lost for attempt in running)


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
