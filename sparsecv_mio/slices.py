"""Execution of work units in this process or on the workers of a dask cluster.

A work unit is a module-level function with its arguments: a problem, sizes, an effort limit, thresholds. It depends on
nothing else and returns bounds; the caller stores a bound where it tightens an interval. A unit can therefore run
anywhere, and run twice without harm: if a worker dies, its unit is started again on another worker.

Arguments are pickled. A large array that is sent repeatedly (rows or a Gram matrix, in any object) is stored on the
cluster under a digest of its content and reaches each worker once. `Kept` caches results within each process.
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
from sparsecv_mio.parallel import APPEARS, blas_on_one_thread, connected, slots
from sparsecv_mio.thresholds import LARGEST_BYTES

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

Result = TypeVar("Result")


class Clock(Protocol):
    """When a slice is to end with what it has."""

    @property
    def left(self) -> float:
        """Seconds until then."""

    def expired(self) -> bool:
        """Whether it is to end now."""


@dataclass(frozen=True)
class Moment:
    """A clock for who knows only whether it is time to end."""

    expired: Callable[[], bool] = lambda: False
    left: float = inf


class Kept(dict[Any, Any]):
    """What is computed once of the same numbers in each process that works on them; it is not sent, its name is."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = name or uuid.uuid4().hex

    def __reduce__(self) -> tuple[Callable[[str], Kept], tuple[str]]:
        """Arrive as what is kept there under the same name."""
        return _kept_here, (self.name,)


KEPT_NAMES = 256  # that a worker keeps something for
_KEPT: OrderedDict[str, Kept] = OrderedDict()


def _kept_here(name: str) -> Kept:
    results = _KEPT.setdefault(name, Kept(name))
    _KEPT.move_to_end(name)
    while len(_KEPT) > KEPT_NAMES:
        _KEPT.popitem(last=False)
    return results


class Hands:
    """Do slices of work: here, each in the thread that asks for it.

    Attributes
    ----------
    at_once : int
        Slices that are done at once, if they are asked for from as many threads.
    cpu_seconds : float
        Of the processors of other machines.
    """

    at_once = 1
    cpu_seconds = 0.0

    def do(self, work: Callable[..., Result], *given: Any, until: Clock | None = None, **named: Any) -> Result:
        """Do a slice.

        Parameters
        ----------
        work : callable
            A function of a module. What it changes of what it is given is changed only where it is done here: it
            returns all that matters.
        *given, **named
            What it is given.
        until : Clock, optional
            Its `expired` is handed over by that name; without one the slice is done to its end.
        """
        return work(*given, **named) if until is None else work(*given, **named, expired=until.expired)


HANDED_AHEAD = 1.25  # slices that are handed over for each that runs, so that no worker waits for the next one
CLUSTER_SECONDS = 2.0  # seconds after which the size of a cluster is looked at again
OFFERED = 8  # times that a slice is handed over, as its worker is gone each time
WAITS = 0.1  # seconds between two looks at the clock, and those that an answer may come late
SENT_ONCE = 1 << 14  # bytes of an array from which on it goes to a worker once, where it is sent again


class _WorkerGone(Exception):
    """The worker of a slice is gone."""


class Workers(Hands):
    """Hands slices to the workers of a cluster; should that be lost, they are done here.

    Parameters
    ----------
    client : distributed.Client
    lost : callable
        Told once that the cluster was lost.
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
        """Do a slice on a worker.

        Parameters
        ----------
        work, *given, until, **named
            As of `Hands.do`.
        """
        if not self._alone and not (until is not None and until.expired()):
            try:
                return self._done_there(partial(work, *given, **named), until)
            except SparseCVError:
                raise
            except Exception as error:  # whatever befell the cluster, the search has its answer from here
                if not (until is not None and until.expired()):
                    self._lose(error)
        return super().do(work, *given, until=until, **named)

    def _done_there(self, work: Callable[..., Result], until: Clock | None) -> Result:
        for _ in range(OFFERED):
            worker = self._freest(until)
            try:
                future = self._handed_over(worker, _slice_in_worker, work, None if until is None else until.left)
                result, seconds = self._awaited(future, worker, until)
            except _WorkerGone:
                continue
            finally:
                self._note(worker, -1)
            with self._lock:
                self.cpu_seconds += seconds
            return result
        raise RuntimeError("its workers go one after the other")

    def _handed_over(self, worker: str, work: Callable[..., Result], *given: Any) -> Future[Result]:
        """Hand over some work to a worker, or to another one should that be gone."""
        arrays: list[DaskFuture] = []

        def stays(buffer: pickle.PickleBuffer) -> bool:
            array = self._sent(np.frombuffer(buffer.raw(), dtype=np.uint8))
            if array is not None:
                arrays.append(array)
            return array is None

        packed = pickle.dumps((work, given), protocol=5, buffer_callback=stays)
        future = self._pool.submit(_run_in_worker, packed, *arrays, workers=[worker], allow_other_workers=True)
        return cast("Future[Result]", future)

    def _awaited(self, future: Future[Result], worker: str, until: Clock | None) -> Result:
        """Wait for a slice, for as long as its worker is there and the limit has not come."""
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
                late = until is not None and until.expired()

    def _sent(self, array: Any) -> DaskFuture | None:
        """Return an array as a result on the cluster, where it is sent not for the first time; None where it is small.

        What changes all the time is so sent with its slice.
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
                # in the task itself: so it outlives the worker that has it
                with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                    self._arrays[digest] = array.nbytes, self._client.submit(_same, array.copy(), pure=False)
            self._arrays.move_to_end(digest)
            while len(self._arrays) > self.at_once and sum(size for size, _ in self._arrays.values()) > LARGEST_BYTES:
                self._arrays.popitem(last=False)
            return self._arrays[digest][1]

    def _freest(self, until: Clock | None) -> str:
        """Return the worker with least to do for each of its threads, and note it; wait where there is none."""
        if not self._workers():
            self._client.wait_for_workers(1, timeout=APPEARS if until is None else min(APPEARS, until.left))
            self._looked = -inf
        threads = self._workers()
        with self._lock:
            worker = min(threads, key=lambda address: self._busy[address] / threads[address])
            self._busy[worker] += 1
            return worker

    def _workers(self) -> dict[str, int]:
        """Return the threads of each worker: workers come and go."""
        with self._lock:
            if time.monotonic() - self._looked >= CLUSTER_SECONDS:
                self._threads, self._looked = dict(self._client.ncores()), time.monotonic()
            return self._threads

    def _note(self, worker: str, more: int) -> None:
        with self._lock:
            self._busy[worker] += more

    def end(self) -> None:
        """Let what is still asked for, by threads that a limit left behind, be done here."""
        self._alone = True

    def _lose(self, error: Exception) -> None:
        with self._lock:
            first, self._alone = not self._alone, True
        if first:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._told(BackendFailed(f"the dask cluster was lost ({words}): what was left was computed here"))


@contextmanager
def workers_of(address: str, lost: Callable[[SparseCVError], None]) -> Iterator[Workers]:
    """Connect to a cluster whose workers do slices.

    Parameters
    ----------
    address : str
        Of its scheduler.
    lost : callable
        As of `Workers`.

    Raises
    ------
    BackendUnavailable
        The cluster cannot be used.
    """
    with connected(address) as client:
        workers = Workers(client, lost)
        try:
            yield workers
        finally:
            workers.end()


def _same(array: Any) -> Any:
    return array


def _run_in_worker(packed: bytes, *arrays: Any) -> Any:
    """Do some work in a worker."""
    work, inputs = pickle.loads(packed, buffers=[np.array(array) for array in arrays])  # a worker's own are read-only
    with blas_on_one_thread():
        return work(*inputs)


class _ClockThere:
    """The limit of a slice in a worker, which has come as well where nobody waits for it any more."""

    def __init__(self, left: float) -> None:
        from distributed import get_worker

        worker = get_worker()
        self.at, self._task = time.monotonic() + left, worker.state.tasks[worker.get_current_task()]

    def expired(self) -> bool:
        return time.monotonic() > self.at or self._task.state == "cancelled"


def _slice_in_worker(work: Callable[..., Result], left: float | None) -> tuple[Result, float]:
    """Do a slice in a worker; with it come the seconds of its processor."""
    begun = time.thread_time()
    result = work() if left is None else work(expired=_ClockThere(left).expired)
    return result, time.thread_time() - begun
