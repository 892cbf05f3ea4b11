"""Functions that distribute the tasks of a batch to processes or to a dask cluster, the longest tasks first."""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sparsecv_mio.batch.batch_plan import Task, kind_of_task
from sparsecv_mio.batch.one_task import failure, run_task
from sparsecv_mio.batch.sources import DataSource
from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BackendFailed, BadInput, SparseCVError
from sparsecv_mio.parallel import CLUSTER_SECONDS, Processes, blas_on_one_thread, open_client, slots

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


@dataclass(frozen=True)
class Attempt:
    """A task to run.

    Attributes
    ----------
    task : Task
        The task.
    number : int
        Number of the attempt from 1; larger after `--retry`.
    lost : int
        Number of workers that died during the task.
    """

    task: Task
    number: int = 1
    lost: int = 0


class TaskOrder:
    """Remaining tasks by kind; tasks of one kind differ only in seeds, so their running times are similar.

    First comes one task of every kind with unknown running time, then the kind with the longest time. Tasks whose
    worker died come before all others.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, deque[Attempt]] = {}
        self._seconds: dict[str, float] = {}  # by kind with a started task; 0 until one has ended
        self._suspects: deque[Attempt] = deque()

    def __bool__(self) -> bool:
        return bool(self._kinds or self._suspects)

    @property
    def n_lost_workers(self) -> int:
        """Number of workers that died during the next task."""
        return self._suspects[0].lost if self._suspects else 0

    def add(self, attempt: Attempt) -> None:
        """Add a task."""
        if attempt.lost:
            self._suspects.append(attempt)
            return
        kind = kind_of_task(attempt.task.to_dict())
        self._kinds.setdefault(kind, deque()).append(attempt)

    def learn(self, outcome: TaskOutcome) -> None:
        """Record the running time of a task."""
        self._seconds[kind_of_task(outcome.task)] = outcome.seconds

    def pop_task(self) -> Attempt:
        """Remove and return the next task."""
        if self._suspects:
            return self._suspects.popleft()
        kind = max(self._kinds, key=lambda kind: self._seconds.get(kind, math.inf))
        task = self._kinds[kind].popleft()
        if not self._kinds[kind]:
            del self._kinds[kind]
        self._seconds.setdefault(kind, 0.0)
        return task


AHEAD = 2  # submitted tasks for each running task, so that no worker waits


class WorkerDied(Exception):
    """The worker of a task died.

    Parameters
    ----------
    by_task : bool
        True if it probably died because of this task; otherwise another task may be the reason.
    """

    def __init__(self, by_task: bool) -> None:
        super().__init__("worker died")
        self.by_task = by_task


def _make_failed_future(error: Exception) -> Future[TaskOutcome]:
    future: Future[TaskOutcome] = Future()
    future.set_exception(error)
    return future


class Workforce:
    """Executor of tasks: this class runs every task immediately, in this process."""

    width = 1  # tasks that may be submitted at once

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Submit a task."""
        future: Future[TaskOutcome] = Future()
        future.set_result(run_task(attempt.task, attempt.number))
        return future

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return the outcome of a finished task, or raise `WorkerDied`."""
        return future.result()

    def end(self) -> None:
        """Cancel the unfinished tasks."""


@contextmanager
def open_workforce(workers: int, scheduler: str | None, tasks: Iterable[Task]) -> Iterator[Workforce]:
    """Yield an executor of tasks for the duration of the context.

    Parameters
    ----------
    workers : int
        Number of processes on this machine.
    scheduler : str, optional
        Address of the scheduler of a dask cluster, which runs the tasks instead.
    tasks : iterable of Task
        Remaining tasks.

    Raises
    ------
    BackendUnavailable
        If the cluster cannot be used.
    """
    with nullcontext() if scheduler is None else open_client(scheduler) as client:
        engine = Cluster(client, tasks) if client is not None else Machine(workers) if workers > 1 else Workforce()
        try:
            yield engine
        finally:
            engine.end()


class Machine(Workforce):
    """Single-threaded processes of this machine, each of which keeps compiled kernels and data sets."""

    def __init__(self, workers: int) -> None:
        self.workers, self.width = workers, AHEAD * workers
        self._pool: Processes | None = None

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Submit a task, to new processes if the earlier ones died."""
        try:
            if self._pool is None:
                self._pool = Processes(self.workers)
            return self._pool.submit(run_task, attempt.task, attempt.number)
        except BrokenProcessPool as error:  # a process died while none was waited for
            return _make_failed_future(error)

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return the outcome of a task; if a process died, all processes are replaced."""
        try:
            return future.result()
        except BrokenProcessPool:
            self.end()
            raise WorkerDied(by_task=False) from None

    def end(self) -> None:
        """Terminate the processes."""
        if self._pool is not None:
            self._pool.end()
            self._pool = None


class Cluster(Workforce):
    """A dask cluster; every data set is stored there once and sent to each worker once.

    If a worker dies, the scheduler starts its task again on another worker, and loads again the data sets that only the
    dead worker had. A task during which several workers died is not started again.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    tasks : iterable of Task
        Remaining tasks; after the last task of a data set, the cluster may delete the data.
    """

    def __init__(self, client: Client, tasks: Iterable[Task]) -> None:
        self._client, self._pool = client, client.get_executor(pure=False)
        self._left = Counter(_data_key(task) for task in tasks)
        self._data: dict[tuple[DataSource, tuple[str, ...]], DaskFuture] = {}
        self._width, self._looked = 0, -CLUSTER_SECONDS

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of tasks that may be submitted at once; workers may come and go."""
        if time.monotonic() - self._looked >= CLUSTER_SECONDS:
            self._width, self._looked = AHEAD * slots(self._client), time.monotonic()
        return self._width

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        """Submit a task, and its data with their first task."""
        key = _data_key(attempt.task)
        try:
            data = self._data[key] = self._data.get(key) or self._send_data(*key)
        except SparseCVError as error:
            return _make_failed_future(error)
        self._left[key] -= 1
        if not self._left[key]:
            del self._data[key]  # the scheduler keeps data that a task still needs
        return self._pool.submit(_run_there, attempt.task, attempt.number, data, key=f"task-{uuid.uuid4().hex}")

    def _send_data(self, source: DataSource, aux: tuple[str, ...]) -> DaskFuture:
        """Return file rows stored on the cluster, since workers may not see the file; other data are built there."""
        import dask

        rows = source.load(aux) if "file" in dict(source.spec) else None
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # survives a lost worker
            return self._client.submit(_load_there, source, aux, rows, key=f"data-{uuid.uuid4().hex}")

    def end(self) -> None:
        """Cancel the unfinished tasks."""
        self._pool.shutdown(wait=False)

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return the outcome of a task."""
        from distributed import KilledWorker

        if future.cancelled():
            raise BackendFailed(
                "the dask scheduler stopped; finished tasks are stored; rerun the same command for the remaining tasks"
            )
        try:
            return future.result()
        except KilledWorker:
            raise WorkerDied(by_task=True) from None


def _data_key(task: Task) -> tuple[DataSource, tuple[str, ...]]:
    return task.source, task.auxiliary_columns


def _load_there(source: DataSource, aux: tuple[str, ...], rows: Dataset | None) -> Dataset:
    return source.load(aux) if rows is None else rows


@blas_on_one_thread()
def _run_there(task: Task, number: int, data: Dataset) -> TaskOutcome:
    return run_task(task, number, data)


FEWER = 4  # factor by which fewer suspect tasks run at once after each death of a worker


def run_batch(
    tasks: Sequence[Task],
    folder: BatchFolder,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    retry: bool = False,
    progress: Callable[[TaskOutcome], None] | None = None,
) -> int:
    """Run the unfinished tasks, store their outcomes, and return the number of tasks run.

    Parameters
    ----------
    workers : int
        Number of processes; each keeps compiled kernels and data sets.
    scheduler : str, optional
        Address of the scheduler of a dask cluster, whose workers run the tasks instead.
    retry : bool
        True to run tasks again that failed or met a limit, with a longer limit.
    progress : callable, optional
        Function that is called with every outcome after it is stored.

    Returns
    -------
    int
        Number of tasks run.

    Raises
    ------
    BackendUnavailable
        If the cluster cannot be used.
    BackendFailed
        If its scheduler was lost; finished tasks are stored.
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
    with open_workforce(min(workers, len(open_tasks)), scheduler, open_tasks) as engine:
        for outcome in _outcomes(engine, order):
            folder.store(outcome)
            order.learn(outcome)
            if progress is not None:
                progress(outcome)
    return len(open_tasks)


def _outcomes(engine: Workforce, order: TaskOrder) -> Iterator[TaskOutcome]:
    """Keep an executor busy and yield the outcome of each task once."""
    running: dict[Future[TaskOutcome], Attempt] = {}

    def room(lost: int) -> int:
        return max(1, int(engine.width // FEWER**lost))

    def suspects() -> set[int]:
        return {attempt.lost for attempt in running.values()}

    while order or running:
        # tasks run at once only if they are equally suspect of causing the death of a worker
        while order and len(running) < room(order.n_lost_workers) and suspects() <= {order.n_lost_workers}:
            attempt = order.pop_task()
            running[engine.submit(attempt)] = attempt
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            attempt = running.pop(future)
            try:
                yield engine.outcome(future)
            except WorkerDied as died:
                if died.by_task or (attempt.lost > 0 and room(attempt.lost) == 1):
                    words = (
                        "the worker process of this task died twice, perhaps for lack of memory; use fewer workers or "
                        "smaller data"
                    )
                    yield failure(attempt.task, attempt.number, BackendFailed(words))
                else:
                    order.add(replace(attempt, lost=attempt.lost + 1))
            except BackendFailed:
                raise
            except Exception as error:  # an error of the transfer, such as an object that cannot be unpickled
                yield failure(attempt.task, attempt.number, error)


def share_of_tasks(tasks: Sequence[Task], index: int, of: int) -> list[Task]:
    """Return every `of`-th task from `index` on: the tasks of one job of an array.

    Parameters
    ----------
    index : int
        Index of the job, from 0.
    of : int
        Number of jobs.

    Raises
    ------
    BadInput
        If the index is not below the number of jobs.

    Examples
    --------
    >>> share_of_tasks([1, 2, 3, 4, 5], 1, 2)
    [2, 4]
    """
    if not 0 <= index < of:
        raise BadInput(f"--index: {index} is out of range for --of {of}; give an index from 0 to {max(of, 1) - 1}")
    return list(tasks[index::of])
