"""Functions that execute work on threads, and that connect to a dask cluster."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from distributed import Client
    from threadpoolctl import ThreadpoolController


Given = TypeVar("Given")
Result = TypeVar("Result")


def blas_on_one_thread() -> AbstractContextManager[Any]:
    """Return a context that limits BLAS to one thread."""
    return _blas_libraries(len(sys.modules)).limit(limits=1)


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
        raise BackendUnavailable("--scheduler needs dask: pip install distributed") from None
    if not isinstance(address, str):
        raise BadInput(f"--scheduler: {address!r} is not an address; give tcp://HOST:PORT")
    for logger in ("distributed", "tornado.application"):  # this module reports errors itself, as a one-line message
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=ANSWERS, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendUnavailable(f"--scheduler: no dask scheduler answers at {address!r} ({why})") from None
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
            raise BackendUnavailable(f"--scheduler: worker {worker} has version {version}, not {__version__}")


def _version() -> str:
    return __version__


def slots(client: Client) -> int:
    """Return the number of tasks that the cluster runs at once, at least 1."""
    return max(1, sum(client.ncores().values()))
