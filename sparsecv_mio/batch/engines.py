"""Where tasks run: in this process, in processes of this machine (loky), or on a dask cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from sparsecv_mio.batch.folder import Outcome
from sparsecv_mio.batch.order import Attempt
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.run import run_task
from sparsecv_mio.batch.sources import Source
from sparsecv_mio.cluster import connected, slots
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BackendFailed, SparseCVError
from sparsecv_mio.parallel import blas_on_one_thread

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB", "NUMEXPR")
}  # fmt: skip
AHEAD = 2  # tasks that are handed over for each that runs, so that no worker waits for the next one
WATCH = 1.0  # seconds between two looks of a process at whether its parent is there
LOOK = 2.0  # seconds after which the size of a cluster is looked at again


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


class Engine(Protocol):
    """Runs tasks."""

    @property
    def width(self) -> int:
        """How many tasks may be handed over at once."""

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Hand over a task."""

    def outcome(self, future: Future[Outcome]) -> Outcome:
        """Return what came of a task that has ended, or raise `WorkerDied`."""


def engine_of(workers: int, scheduler: str | None, tasks: Iterable[Task]) -> AbstractContextManager[Engine]:
    """Return an engine, as a context that ends its processes or its connection.

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
    if scheduler is not None:
        return _on_cluster(scheduler, tasks)
    return _on_machine(workers) if workers > 1 else _here()


class Here:
    """Runs every task at once, in this process."""

    width = 1

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Run a task."""
        found: Future[Outcome] = Future()
        found.set_result(run_task(attempt.task, attempt.number))
        return found

    def outcome(self, future: Future[Outcome]) -> Outcome:
        """Return what came of a task."""
        return future.result()


@contextmanager
def _here() -> Iterator[Engine]:
    yield Here()


class Machine:
    """Processes of this machine, one thread each; each keeps its kernels compiled and its data sets read.

    Parameters
    ----------
    workers : int
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.width = AHEAD * workers
        self._pool: Executor | None = None

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Hand over a task, to new processes where those before have died."""
        from joblib.externals.loky import ProcessPoolExecutor

        if self._pool is None:
            warnings.filterwarnings("ignore", "A worker stopped while some jobs")  # it grew, and is replaced
            self._pool = ProcessPoolExecutor(
                self.workers, env=ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),)
            )
        try:
            with _interrupts_held():  # the processes start here
                return self._pool.submit(run_task, attempt.task, attempt.number)
        except BrokenProcessPool as error:  # one died while nothing was waited for
            found: Future[Outcome] = Future()
            found.set_exception(error)
            return found

    def outcome(self, future: Future[Outcome]) -> Outcome:
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
    """See to it that this process ends soon after its parent: one that was killed cannot say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    warnings.filterwarnings("ignore", "compiling kernels")  # of as many processes as there are
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _on_machine(workers: int) -> Iterator[Engine]:
    engine = Machine(workers)
    try:
        yield engine
    finally:
        engine.end()


class Cluster:
    """A dask cluster. Every data set is one result there, on which its tasks depend: it goes to a worker once.

    A task whose worker dies is begun again on another one by the scheduler, and so are data sets that only that one
    had; a task of which several workers died is given up.

    Parameters
    ----------
    client : distributed.Client
    tasks : iterable of Task
        Those that are left; with the last one of a data set, the cluster may forget the data.
    """

    def __init__(self, client: Client, tasks: Iterable[Task]) -> None:
        self._client, self._pool = client, client.get_executor(pure=False)
        self._left = Counter(_data_of(task) for task in tasks)
        self._data: dict[tuple[Source, tuple[str, ...]], DaskFuture] = {}
        self._width, self._looked = 0, -LOOK

    @property
    def width(self) -> int:
        """How many tasks may be handed over at once: workers come and go."""
        if time.monotonic() - self._looked >= LOOK:
            self._width, self._looked = AHEAD * slots(self._client), time.monotonic()
        return self._width

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Hand over a task, and its data if it is their first one."""
        key = _data_of(attempt.task)
        self._left[key] -= 1
        try:
            data = self._data[key] if key in self._data else self._sent(*key)
        except SparseCVError as error:
            found: Future[Outcome] = Future()
            found.set_exception(error)
            return found
        if self._left[key] > 0:
            self._data[key] = data
        else:
            self._data.pop(key, None)  # the scheduler keeps what a task still waits for
        return self._pool.submit(_run_there, attempt.task, attempt.number, data, key=f"task-{uuid.uuid4().hex}")

    def _sent(self, source: Source, aux: tuple[str, ...]) -> DaskFuture:
        """Send the rows of a file, which a worker may not see; others are made there."""
        import dask

        rows = source.load(aux) if "file" in dict(source.spec) else None
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # data in a task come back
            return self._client.submit(_dataset, source, aux, rows, key=f"data-{uuid.uuid4().hex}")

    def end(self) -> None:
        """Give up what was not done."""
        self._pool.shutdown(wait=False)

    def outcome(self, future: Future[Outcome]) -> Outcome:
        """Return what came of a task."""
        from distributed import KilledWorker

        if future.cancelled():
            raise BackendFailed("the dask scheduler is gone; what is done is stored, run the same command again")
        try:
            return future.result()
        except KilledWorker:
            raise WorkerDied(by_task=True) from None


@contextmanager
def _on_cluster(address: str, tasks: Iterable[Task]) -> Iterator[Engine]:
    with connected(address) as client:
        engine = Cluster(client, tasks)
        try:
            yield engine
        finally:
            engine.end()


def _data_of(task: Task) -> tuple[Source, tuple[str, ...]]:
    return task.source, task.columns_of_folds


def _dataset(source: Source, aux: tuple[str, ...], rows: Dataset | None) -> Dataset:
    return source.load(aux) if rows is None else rows


def _run_there(task: Task, number: int, data: Dataset) -> Outcome:
    with blas_on_one_thread():
        return run_task(task, number, data)
