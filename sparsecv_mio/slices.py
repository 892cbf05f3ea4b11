"""Classes that execute work units in this process or on the workers of a dask cluster.

A work unit is a function of a module with its arguments: a problem, sizes, an effort limit, thresholds. It depends only
on its arguments and returns bounds; the caller stores a bound if it tightens an interval. A work unit can therefore run
in any process, and can run twice without harm. If a worker dies, its unit starts again on another worker.

Arguments are pickled. A large array that is sent repeatedly, such as rows or a Gram matrix, is stored on the cluster
under a digest of its content and sent to each worker once. `Kept` caches results within each process.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from sparsecv_mio.errors import BackendFailed, SparseCVError
from sparsecv_mio.parallel import APPEARS, blas_on_one_thread, open_client, slots
from sparsecv_mio.thresholds import LARGEST_BYTES

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

Result = TypeVar("Result")


class Clock(Protocol):
    """The time limit of a work unit."""

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the limit."""

    def has_expired(self) -> bool:
        """Return True if the unit must stop and return its present result."""


@dataclass(frozen=True)
class Moment:
    """A clock that knows only whether the limit has passed."""

    has_expired: Callable[[], bool] = lambda: False
    remaining_seconds: float = inf


class Kept(dict[Any, Any]):
    """A cache of results in each process; pickling sends only its name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = name or uuid.uuid4().hex

    def __reduce__(self) -> tuple[Callable[[str], Kept], tuple[str]]:
        """Pickle the name; unpickling returns the cache of that name in the receiving process."""
        return _kept_here, (self.name,)


KEPT_NAMES = 256  # maximum number of caches in a worker
_KEPT: OrderedDict[str, Kept] = OrderedDict()


def _kept_here(name: str) -> Kept:
    results = _KEPT.setdefault(name, Kept(name))
    _KEPT.move_to_end(name)
    while len(_KEPT) > KEPT_NAMES:
        _KEPT.popitem(last=False)
    return results


class Hands:
    """Executor of work units in the calling thread.

    Attributes
    ----------
    at_once : int
        Number of units that run at once, if as many threads submit units.
    cpu_seconds : float
        Processor seconds spent on other machines.
    """

    at_once = 1
    cpu_seconds = 0.0

    def do(self, work: Callable[..., Result], *given: Any, until: Clock | None = None, **named: Any) -> Result:
        """Run a work unit and return its result.

        Parameters
        ----------
        work : callable
            A module-level function. It must return all of its results: changes to its arguments are lost on a cluster.
        *given, **named
            Arguments of the function.
        until : Clock, optional
            Time limit, whose `expired` is passed as the keyword argument `expired`; without it the unit runs to its
            end.
        """
        return work(*given, **named) if until is None else work(*given, **named, expired=until.has_expired)


HANDED_AHEAD = 1.25  # submitted units for each running unit, so that no worker waits for its next one
CLUSTER_SECONDS = 2.0  # seconds between two looks at the size of the cluster
OFFERED = 8  # attempts to run a unit whose worker dies
WAITS = 0.1  # seconds between two looks at the clock, and tolerance for a late answer
SENT_ONCE = 1 << 14  # bytes; larger arrays that are sent repeatedly are stored on the cluster


class _WorkerGone(Exception):
    """The worker of a unit died."""


class Workers(Hands):
    """Executor of work units on a cluster; if the cluster is lost, units run in this process.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    lost : callable
        Function that is called once with the error if the cluster is lost.
    """

    def __init__(self, client: Client, lost: Callable[[SparseCVError], None] = lambda _: None) -> None:
        self.at_once = int(np.ceil(HANDED_AHEAD * slots(client)))
        self._client, self._pool, self._told = client, client.get_executor(pure=False), lost
        self._arrays: OrderedDict[str, tuple[int, DaskFuture]] = OrderedDict()
        self._seen: set[str] = set()
        self._threads: dict[str, int] = {}
        self._busy = Counter[str]()
        self._looked = -inf
        self._lock = threading.Lock()
        self._alone = False

    def do(self, work: Callable[..., Result], *given: Any, until: Clock | None = None, **named: Any) -> Result:
        """Run a work unit on a worker and return its result.

        Parameters
        ----------
        work, *given, until, **named
            Arguments as for `Hands.do`.
        """
        if not self._alone and not (until is not None and until.has_expired()):
            try:
                return self._done_there(partial(work, *given, **named), until)
            except SparseCVError:
                raise
            except Exception as error:  # for any failure of the cluster, the unit is run in this process
                if not (until is not None and until.has_expired()):
                    self._lose(error)
        return super().do(work, *given, until=until, **named)

    def _done_there(self, work: Callable[..., Result], until: Clock | None) -> Result:
        for _ in range(OFFERED):
            worker = self._freest(until)
            try:
                future = self._submit_work(
                    worker, _slice_in_worker, work, None if until is None else until.remaining_seconds
                )
                result, seconds = self._wait_for_result(future, worker, until)
            except _WorkerGone:
                continue
            finally:
                self._note(worker, -1)
            with self._lock:
                self.cpu_seconds += seconds
            return result
        raise RuntimeError("its workers stop one after the other")

    def _submit_work(self, worker: str, work: Callable[..., Result], *given: Any) -> Future[Result]:
        """Submit a unit to a worker, or to another worker if that one is gone."""
        arrays: list[DaskFuture] = []

        def is_in_band(buffer: pickle.PickleBuffer) -> bool:
            array = self._send_array(np.frombuffer(buffer.raw(), dtype=np.uint8))
            if array is not None:
                arrays.append(array)
            return array is None

        packed = pickle.dumps((work, given), protocol=5, buffer_callback=is_in_band)
        future = self._pool.submit(_run_packed_work, packed, *arrays, workers=[worker], allow_other_workers=True)
        return cast("Future[Result]", future)

    def _wait_for_result(self, future: Future[Result], worker: str, until: Clock | None) -> Result:
        """Return the result of a unit; stop waiting if its worker is gone or the limit has passed."""
        from distributed import KilledWorker

        late = False
        while True:
            try:
                return future.result(timeout=WAITS)
            except KilledWorker:
                raise _WorkerGone from None
            except TimeoutError:
                if future.done():
                    raise
                if late or worker not in self._workers():
                    future.cancel()
                    raise (CancelledError if late else _WorkerGone) from None
                late = until is not None and until.has_expired()

    def _send_array(self, array: Any) -> DaskFuture | None:
        """Return an array stored on the cluster, or None if the array is small or is sent for the first time.

        Arrays that change between units are therefore sent with each unit.
        """
        import dask

        if array.nbytes < SENT_ONCE:
            return None
        digest = hashlib.sha256(array).hexdigest()
        with self._lock:
            if digest not in self._seen:
                self._seen.add(digest)
                return None
            if digest not in self._arrays:
                # the array is part of the task, so it survives the loss of its worker
                with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                    self._arrays[digest] = array.nbytes, self._client.submit(_identity, array.copy(), pure=False)
            self._arrays.move_to_end(digest)
            while len(self._arrays) > self.at_once and sum(size for size, _ in self._arrays.values()) > LARGEST_BYTES:
                self._arrays.popitem(last=False)
            return self._arrays[digest][1]

    def _freest(self, until: Clock | None) -> str:
        """Return the worker with the fewest units for each thread, and count one more; wait for a first worker."""
        if not self._workers():
            self._client.wait_for_workers(
                1, timeout=APPEARS if until is None else min(APPEARS, until.remaining_seconds)
            )
            self._looked = -inf
        threads = self._workers()
        with self._lock:
            worker = min(threads, key=lambda address: self._busy[address] / threads[address])
            self._busy[worker] += 1
            return worker

    def _workers(self) -> dict[str, int]:
        """Return the number of threads of each worker; workers may come and go."""
        with self._lock:
            if time.monotonic() - self._looked >= CLUSTER_SECONDS:
                self._threads, self._looked = dict(self._client.ncores()), time.monotonic()
            return self._threads

    def _note(self, worker: str, more: int) -> None:
        with self._lock:
            self._busy[worker] += more

    def end(self) -> None:
        """Run all further units, of threads that outlive the time limit, in this process."""
        self._alone = True

    def _lose(self, error: Exception) -> None:
        with self._lock:
            first, self._alone = not self._alone, True
        if first:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._told(
                BackendFailed(f"the dask cluster stopped ({words}), so the remaining work was done on this machine")
            )


@contextmanager
def open_workers(address: str, lost: Callable[[SparseCVError], None]) -> Iterator[Workers]:
    """Yield an executor that runs work units on the workers of a cluster.

    Parameters
    ----------
    address : str
        Address of the scheduler.
    lost : callable
        Function that is called once with the error if the cluster is lost.

    Raises
    ------
    BackendUnavailable
        If the cluster cannot be used.
    """
    with open_client(address) as client:
        workers = Workers(client, lost)
        try:
            yield workers
        finally:
            workers.end()


def _identity(array: Any) -> Any:
    return array


def _run_packed_work(packed: bytes, *arrays: Any) -> Any:
    """Run a function in a worker."""
    work, inputs = pickle.loads(packed, buffers=[np.array(array) for array in arrays])  # arrays of dask are read-only
    with blas_on_one_thread():
        return work(*inputs)


class _ClockThere:
    """The time limit of a unit in a worker; it has also passed if the unit was cancelled."""

    def __init__(self, left: float) -> None:
        from distributed import get_worker

        worker = get_worker()
        self.at, self._task = time.monotonic() + left, worker.state.tasks[worker.get_current_task()]

    def has_expired(self) -> bool:
        return time.monotonic() > self.at or self._task.state == "cancelled"


def _slice_in_worker(work: Callable[..., Result], left: float | None) -> tuple[Result, float]:
    """Run a unit in a worker; return its result and its processor seconds."""
    begun = time.thread_time()
    result = work() if left is None else work(expired=_ClockThere(left).has_expired)
    return result, time.thread_time() - begun
