"""Dispatch of tasks, longest first, to processes or to a dask cluster."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.batch.one_task import BatchFolder, TaskOutcome, failure, run_task
from sparsecv_mio.batch.plan import Task, kind_of_task
from sparsecv_mio.batch.sources import DataSource
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BackendFailed, BadInput, SparseCVError
from sparsecv_mio.parallel import blas_on_one_thread, connected, slots
from sparsecv_mio.slices import CLUSTER_SECONDS

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


@dataclass(frozen=True)
class Attempt:
    """A task that is to be run.

    Attributes
    ----------
    task : Task
    number : int
        From 1 on; larger after `--retry`.
    lost : int
        How often its worker died on the way.
    """

    task: Task
    number: int = 1
    lost: int = 0


class TaskOrder:
    """Tasks that are left, by kind: tasks of a kind differ by their seeds alone, so that one tells of the others.

    First comes a task of every kind of which nothing is known, then the kind that took longest. Tasks whose worker
    died come before all others.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, deque[Attempt]] = {}
        self._seconds: dict[str, float] = {}  # of the kinds of which a task was begun; 0 until one has ended
        self._suspects: deque[Attempt] = deque()

    def __bool__(self) -> bool:
        return bool(self._kinds or self._suspects)

    @property
    def lost(self) -> int:
        """How often the worker of the next task died."""
        return self._suspects[0].lost if self._suspects else 0

    def add(self, attempt: Attempt) -> None:
        """Take in a task."""
        if attempt.lost:
            self._suspects.append(attempt)
            return
        kind = kind_of_task(attempt.task.to_dict())
        self._kinds.setdefault(kind, deque()).append(attempt)

    def learn(self, outcome: TaskOutcome) -> None:
        """Take note of how long a task took."""
        self._seconds[kind_of_task(outcome.task)] = outcome.seconds

    def next(self) -> Attempt:
        """Return the next task, which is no longer left."""
        if self._suspects:
            return self._suspects.popleft()
        kind = max(self._kinds, key=lambda kind: self._seconds.get(kind, math.inf))
        task = self._kinds[kind].popleft()
        if not self._kinds[kind]:
            del self._kinds[kind]
        self._seconds.setdefault(kind, 0.0)
        return task


ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB", "NUMEXPR")
}  # fmt: skip
AHEAD = 2  # tasks that are handed over for each that runs, so that no worker waits for the next one
WATCH = 1.0  # seconds between two looks of a process at whether its parent is there


class WorkerDied(Exception):
    """The worker of a task died on the way.

    Parameters
    ----------
    by_task : bool
        Whether it died of that task, as far as can be known; else it may have been another one.
    """

    def __init__(self, by_task: bool) -> None:
        super().__init__("worker died")
        self.by_task = by_task


def _ended(result: TaskOutcome | None = None, error: Exception | None = None) -> Future[TaskOutcome]:
    outcome: Future[TaskOutcome] = Future()
    if error is not None:
        outcome.set_exception(error)
    elif result is not None:
        outcome.set_result(result)
    return outcome


@cache
def _compile_once() -> None:
    """Compile or load what a search may use, once in a process."""
    from sparsecv_mio.warmup import warm_up

    warm_up()


def run_warm(task: Task, number: int, data: Dataset | None = None) -> TaskOutcome:
    """Run a task, a search with all kernels at hand: compiling is no part of the times, and no limit counts it."""
    return run_task(task, number, data, _compile_once)


class Workforce:
    """Runs tasks: here every one at once, in this process."""

    @property
    def width(self) -> int:
        """How many tasks may be handed over at once."""
        return 1

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Hand over a task."""
        return _ended(run_warm(attempt.task, attempt.number))

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return what came of a task that has ended, or raise `WorkerDied`."""
        return future.result()

    def end(self) -> None:
        """Give up what is not done."""


@contextmanager
def engine_of(workers: int, scheduler: str | None, tasks: Iterable[Task]) -> Iterator[Workforce]:
    """Run tasks for as long as the context lasts.

    Parameters
    ----------
    workers : int
        Processes of this machine.
    scheduler : str, optional
        Address of the scheduler of a dask cluster, which runs the tasks instead.
    tasks : iterable of Task
        Those that are left.

    Raises
    ------
    BackendUnavailable
        The cluster cannot be used.
    """
    with nullcontext() if scheduler is None else connected(scheduler) as client:
        engine = Cluster(client, tasks) if client is not None else Machine(workers) if workers > 1 else Workforce()
        try:
            yield engine
        finally:
            engine.end()


class Machine(Workforce):
    """Processes of this machine, one thread each; each keeps its kernels compiled and its data sets read."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: Executor | None = None

    @property
    def width(self) -> int:
        """Some more tasks than there are processes."""
        return AHEAD * self.workers

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Hand over a task, to new processes where those before have died."""
        from loky import ProcessPoolExecutor

        if self._pool is None:
            warnings.filterwarnings("ignore", "A worker stopped while some jobs")  # it grew, and is replaced
            self._pool = ProcessPoolExecutor(
                self.workers, env=ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),)
            )
        try:
            with _interrupts_held():  # the processes start here
                return self._pool.submit(run_warm, attempt.task, attempt.number)
        except BrokenProcessPool as error:  # one died while nothing was waited for
            return _ended(error=error)

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return what came of a task; where a process died, all of them are replaced."""
        try:
            return future.result()
        except BrokenProcessPool:
            self.end()
            raise WorkerDied(by_task=False) from None

    def end(self) -> None:
        """End the processes, whatever they do."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
            self._pool = None


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes that start in it never see one: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # its start, of which each process makes use, would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """See to it that this process ends soon after its parent, and not by Ctrl-C, which a terminal sends to both.

    A parent that was killed cannot say so. On Windows, where a process keeps the number of a parent that is gone, one
    that works ends with its task, as its parent's pipe is closed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", "compiling kernels")  # of as many processes as there are
    threading.Thread(target=watch, daemon=True).start()


class Cluster(Workforce):
    """A dask cluster. Every data set is one result there, on which its tasks depend: it goes to a worker once.

    A task whose worker dies is begun again on another one by the scheduler, and so are data sets that only that one
    had; a task of which several workers died is given up.

    Parameters
    ----------
    tasks : iterable of Task
        Those that are left; with the last one of a data set, the cluster may forget the data.
    """

    def __init__(self, client: Client, tasks: Iterable[Task]) -> None:
        self._client, self._pool = client, client.get_executor(pure=False)
        self._left = Counter(_data_of(task) for task in tasks)
        self._data: dict[tuple[DataSource, tuple[str, ...]], DaskFuture] = {}
        self._width, self._looked = 0, -CLUSTER_SECONDS

    @property
    def width(self) -> int:
        """How many tasks may be handed over at once: workers come and go."""
        if time.monotonic() - self._looked >= CLUSTER_SECONDS:
            self._width, self._looked = AHEAD * slots(self._client), time.monotonic()
        return self._width

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Hand over a task, and its data if it is their first one."""
        key = _data_of(attempt.task)
        self._left[key] -= 1
        try:
            data = self._data[key] if key in self._data else self._sent(*key)
        except SparseCVError as error:
            return _ended(error=error)
        if self._left[key] > 0:
            self._data[key] = data
        else:
            self._data.pop(key, None)  # the scheduler keeps what a task still waits for
        return self._pool.submit(_run_there, attempt.task, attempt.number, data, key=f"task-{uuid.uuid4().hex}")

    def _sent(self, source: DataSource, aux: tuple[str, ...]) -> DaskFuture:
        """Send the rows of a file, which a worker may not see; others are made there."""
        import dask

        rows = source.load(aux) if "file" in dict(source.spec) else None
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # data in a task come back
            return self._client.submit(_task_dataset, source, aux, rows, key=f"data-{uuid.uuid4().hex}")

    def end(self) -> None:
        """Give up what was not done."""
        self._pool.shutdown(wait=False)

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return what came of a task."""
        from distributed import KilledWorker

        if future.cancelled():
            raise BackendFailed("the dask scheduler is gone; what is done is stored, run the same command again")
        try:
            return future.result()
        except KilledWorker:
            raise WorkerDied(by_task=True) from None


def _data_of(task: Task) -> tuple[DataSource, tuple[str, ...]]:
    return task.source, task.columns_beside


def _task_dataset(source: DataSource, aux: tuple[str, ...], rows: Dataset | None) -> Dataset:
    return source.load(aux) if rows is None else rows


def _run_there(task: Task, number: int, data: Dataset) -> TaskOutcome:
    with blas_on_one_thread():
        return run_warm(task, number, data)


FEWER = 4  # after a worker died, the tasks it may have died of run so many times fewer at once, until one is alone


def run_batch(
    tasks: Sequence[Task],
    folder: BatchFolder,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    retry: bool = False,
    progress: Callable[[TaskOutcome], None] | None = None,
) -> int:
    """Run the tasks that are not done yet, and store what came of each.

    Parameters
    ----------
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
    order, open_tasks = TaskOrder(), []
    for task in tasks:
        before = folder.read(task.address)
        if before is not None:
            order.learn(before)
        if before is None or (retry and before.state != "done"):
            order.add(Attempt(task, 1 if before is None else before.attempt + 1))
            open_tasks.append(task)
    if not open_tasks:
        return 0
    with engine_of(min(workers, len(open_tasks)), scheduler, open_tasks) as engine:
        for outcome in _outcomes(engine, order):
            folder.store(outcome)
            order.learn(outcome)
            if progress is not None:
                progress(outcome)
    return len(open_tasks)


def _outcomes(engine: Workforce, order: TaskOrder) -> Iterator[TaskOutcome]:
    """Keep an engine busy and yield what comes of the tasks, each once."""
    running: dict[Future[TaskOutcome], Attempt] = {}
    while order or running:
        while order and len(running) < _room(engine, order.lost) and _tasks_alike(running.values(), order.lost):
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


def _room(engine: Workforce, lost: int) -> int:
    """Return how many tasks that lost so many workers run at once."""
    return max(1, int(engine.width // FEWER**lost))


def _tasks_alike(running: Iterable[Attempt], lost: int) -> bool:
    """Whether no task runs beside others that are more, or less, likely to be the end of a worker."""
    return all(attempt.lost == lost for attempt in running)


def share_of_tasks(tasks: Sequence[Task], index: int, of: int) -> list[Task]:
    """Return every `of`-th task, from `index` on: the share of one job of an array.

    Parameters
    ----------
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
    >>> share_of_tasks([1, 2, 3, 4, 5], 1, 2)
    [2, 4]
    """
    if not 0 <= index < of:
        raise BadInput(f"--index {index} of {of}: give a number from 0 to {max(of, 1) - 1}")
    return list(tasks[index::of])


def seconds_left(outcomes: Sequence[TaskOutcome], total: int, workers: int) -> float:
    """Return an estimate of the seconds that the rest of a batch takes, from the mean of what was done.

    Parameters
    ----------
    outcomes : sequence of TaskOutcome
        Of tasks that were done.
    total : int
        Number of tasks.
    """
    if not outcomes:
        return math.inf
    return float(np.mean([outcome.seconds for outcome in outcomes])) * max(0, total - len(outcomes)) / max(1, workers)
