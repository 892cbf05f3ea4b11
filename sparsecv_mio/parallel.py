"""Functions that run work on threads of this process, or as work units on the workers of a dask cluster.

A work unit is a module-level function with its arguments, for example a best-subset problem, support sizes and a limit
on the number of nodes. The result depends only on the arguments. The result consists of bounds, and the caller stores a
bound only if the bound is tighter than the stored one. A work unit can therefore run in any process, and can run twice
without harm. If a worker dies, its work unit starts again on another worker.

Arguments are pickled. Large arrays that are needed repeatedly, such as rows or a Gram matrix, are stored on the cluster
under a digest of their content. Each stored array is sent to each worker once. `Kept` caches results within each
process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import signal
import sys
import threading
import time
import uuid
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput, SparseCVError
from sparsecv_mio.thresholds import LARGEST_BYTES
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture
    from threadpoolctl import ThreadpoolController


Given = TypeVar("Given")
Result = TypeVar("Result")


_blas_lock = threading.Lock()
_blas_limits: list[Any] = []  # the limit of BLAS, once for each open context


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread; of contexts that overlap in several threads, the last one restores the limit."""
    with _blas_lock:
        _blas_limits.append(_blas_limits[0] if _blas_limits else _blas_libraries(len(sys.modules)).limit(limits=1))
    try:
        yield
    finally:
        with _blas_lock:
            limit = _blas_limits.pop()
            if not _blas_limits:
                limit.restore_original_limits()


@lru_cache(maxsize=1)
def _blas_libraries(_modules: int) -> ThreadpoolController:
    """Return the loaded BLAS libraries; the result is cached until another module is imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def on_threads(work: Callable[[Given], Result], items: Sequence[Given], threads: int) -> list[Result]:
    """Return the results of a function for a few items, computed on threads if there are several of both.

    Returns
    -------
    list
        Results in the order of the items.
    """
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(work, items))


@contextmanager
def call_periodically(call: Callable[[], None], first_seconds: float, seconds: float) -> Iterator[None]:
    """Call a function in a second thread, again and again while the context lasts.

    Parameters
    ----------
    call : callable
        Function without arguments.
    first_seconds : float
        Seconds until the first call.
    seconds : float
        Seconds between two calls.
    """
    over = threading.Event()

    def work() -> None:
        pause = first_seconds
        while not over.wait(pause):
            call()
            pause = seconds

    thread = threading.Thread(target=work, name="sparsecv periodic calls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def call_in_thread(work: Callable[[], Result]) -> Result:
    """Run work in a separate thread and wait: Ctrl-C then reaches the main thread while a solver runs in C."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def store_outcome() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the thread of the caller below
            errors.append(error)

    thread = threading.Thread(target=store_outcome, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]


def run_folds(
    source: Iterable[tuple[int, Given]], work: Callable[[int, Given], Result], threads: int
) -> Iterator[Result]:
    """Yield the results of a function for every fold, computed on threads at most two folds ahead of each thread.

    BLAS is limited to one thread, since the folds already run in parallel.

    Parameters
    ----------
    source : iterable of (int, Given)
        Folds and their inputs, generated when a thread needs them.
    work : callable
        Function `(fold, given) -> Result`.
    threads : int
        Number of threads.

    Yields
    ------
    Result
        Results in the order in which the folds finish.
    """
    with blas_on_one_thread():
        if threads <= 1:
            for fold, argument in source:
                yield work(fold, argument)
            return
        with ThreadPoolExecutor(threads) as pool:
            flying: set[Future[Result]] = set()
            try:
                for fold, argument in source:
                    flying.add(pool.submit(work, fold, argument))
                    if len(flying) >= 2 * threads:
                        done, flying = wait(flying, return_when=FIRST_COMPLETED)
                        for future in done:
                            yield future.result()
                for future in flying:
                    yield future.result()
            finally:
                for future in flying:
                    future.cancel()


ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB", "NUMEXPR")
}  # fmt: skip
WATCH = 1.0  # seconds between two checks of a process that its parent is alive


class Processes:
    """Single-threaded processes of this machine, which keep loaded modules between calls and never receive Ctrl-C.

    Parameters
    ----------
    workers : int
        Number of processes.
    shared : object, optional
        Object that each process receives once; calls get it by :func:`shared_object`.

    Raises
    ------
    BackendUnavailable
        If loky is not installed.
    """

    def __init__(self, workers: int, shared: Any = None) -> None:
        try:
            from loky import ProcessPoolExecutor
        except ImportError:
            raise BackendUnavailable("several processes need loky: pip install loky") from None
        # loky replaces a worker between two tasks if kernels of further kinds of problems add 300 MB; no task is lost
        warnings.filterwarnings("ignore", "A worker (stopped|was restarted) while some jobs")
        with block_interrupts(), _ignore_tracker_warnings():
            self._pool: Executor = ProcessPoolExecutor(
                workers, env=ONE_THREAD, initializer=_begin_process, initargs=(os.getpid(), shared)
            )

    def submit(self, work: Callable[..., Result], *given: Any) -> Future[Result]:
        """Submit a call; the processes are started at the first one."""
        with block_interrupts(), _ignore_tracker_warnings():  # the tracker and the processes are started here
            return self._pool.submit(work, *given)

    def end(self) -> None:
        """Terminate the processes, also those that work."""
        self._pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the end of the block.

    Processes that are started in it never receive Ctrl-C from the terminal.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # starting it later would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ignore_tracker_warnings() -> Iterator[None]:
    """Start processes that print no warning of the resource tracker.

    The tracker of loky removes the semaphores of workers that were terminated, and warns that they had "leaked".
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        yield
    finally:
        os.environ.pop("PYTHONWARNINGS")
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


_SHARED: list[Any] = []  # the object that this process received when it began


def shared_object() -> Any:
    """Return the object that all processes of a :class:`Processes` received."""
    return _SHARED[-1]


def _begin_process(parent: int, shared: Any) -> None:
    """Store the shared object, and make this process end soon after its parent."""
    _SHARED.append(shared)
    _exit_after_parent(parent)


def _exit_after_parent(parent: int) -> None:
    """Make this process end soon after its parent, and not by Ctrl-C, which a terminal sends to both.

    A killed parent cannot notify its children. On Windows, where a process keeps the id of a dead parent, a busy
    process ends after its task, when the pipe of its parent is closed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # blocked while the parent started it
    logging.getLogger("sparsecv_mio").setLevel(logging.ERROR)  # otherwise every process would report compilation
    warnings.filterwarnings("ignore", "no time limit: ")
    threading.Thread(target=watch, daemon=True).start()


ANSWERS = 10.0  # seconds to wait for an answer of the scheduler
APPEARS = 60.0  # seconds to wait for the first worker


@contextmanager
def open_client(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler of a cluster, which is closed at the end of the context.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as `tcp://host:8786`.

    Yields
    ------
    distributed.Client
        Client of the cluster.

    Raises
    ------
    BackendUnavailable
        If dask is not installed, no scheduler answers, there is no worker, or a worker has another version of this
        package.
    """
    try:
        from distributed import Client
    except ImportError:
        raise BackendUnavailable("--scheduler: dask is not installed; run pip install distributed") from None
    if not isinstance(address, str):
        raise BadInput(f"--scheduler: {address!r} is not an address; give tcp://HOST:PORT")
    for logger in ("distributed", "tornado.application"):  # this module reports errors itself, as a one-line message
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=ANSWERS, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendUnavailable(
            f"--scheduler: no dask scheduler answers at {address!r} ({why}); start one with `dask scheduler`, or "
            "correct the address"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=APPEARS)
        except TimeoutError:
            raise BackendUnavailable(
                f"--scheduler: {address} has no worker; start workers with `dask worker {address} --nthreads 1`"
            ) from None
        _check_versions(client)
        yield client


def _check_versions(client: Client) -> None:
    try:
        versions = client.run(_version)
    except ImportError as error:
        raise BackendUnavailable(
            f"--scheduler: the workers cannot import this package; install it on their machines ({error})"
        ) from None
    for worker, version in versions.items():
        if version != __version__:
            raise BackendUnavailable(
                f"--scheduler: worker {worker} has version {version}, not {__version__}; install the same version"
            )


def _version() -> str:
    return __version__


def slots(client: Client) -> int:
    """Return the number of tasks that the cluster runs at once, at least 1."""
    return max(1, sum(client.ncores().values()))


class Clock(Protocol):
    """The time limit of a work unit."""

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the limit."""

    def has_expired(self) -> bool:
        """Return True if the unit must stop and return its present result."""


@dataclass(frozen=True)
class Moment:
    """A clock that states only whether the limit has passed."""

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
            Time limit, whose `has_expired` is passed as the keyword argument `is_expired`; without it the unit runs to
            its end.
        """
        return work(*given, **named) if until is None else work(*given, **named, is_expired=until.has_expired)


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
        self.at_once = ceil(HANDED_AHEAD * slots(client))
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
        raise RuntimeError("all workers tried so far have stopped; look at their logs, and start the run again")

    def _submit_work(self, worker: str, work: Callable[..., Result], *given: Any) -> Future[Result]:
        """Submit a unit to a worker, or to another worker if that one is gone."""
        import numpy as np

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
    import numpy as np

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
    result = work() if left is None else work(is_expired=_ClockThere(left).has_expired)
    return result, time.thread_time() - begun
