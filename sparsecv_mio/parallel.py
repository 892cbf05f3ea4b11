"""Execution on threads, and the connection to a dask cluster."""

from __future__ import annotations

import logging
import sys
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
    """Hold BLAS to one thread, as the context that is returned lasts."""
    return _blas_libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _blas_libraries(_modules: int) -> ThreadpoolController:
    """Find the loaded libraries of BLAS: milliseconds, and in vain unless a module was imported since."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def on_threads(work: Callable[[Given], Result], items: Sequence[Given], threads: int) -> list[Result]:
    """Do some work on each of a few items, on threads where there are several of both.

    Returns
    -------
    list
        What the work returned, in the order of the items.
    """
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(work, items))


def run_folds(
    source: Iterable[tuple[int, Given]], work: Callable[[int, Given], Result], threads: int
) -> Iterator[Result]:
    """Run `work` over folds on threads, at most two folds ahead of each thread; yields what it returns.

    BLAS is held to one thread: the folds are the parallelism.

    Parameters
    ----------
    source : iterable of (int, Given)
        Folds and what the work on each is given; made as the threads get to them.
    work : callable
        `(fold, given) -> Result`.

    Yields
    ------
    Result
        In the order in which the folds are done.
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


ANSWERS = 10.0  # seconds within which a scheduler answers
APPEARS = 60.0  # seconds within which the first worker is there


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the scheduler of a cluster, for as long as the context lasts.

    Parameters
    ----------
    address : str
        As `tcp://host:8786`.

    Yields
    ------
    distributed.Client

    Raises
    ------
    BackendUnavailable
        dask is not installed, no scheduler answers, it has no worker, or a worker has another version of this package.
    """
    try:
        from distributed import Client
    except ImportError:
        raise BackendUnavailable("--scheduler needs dask: pip install distributed") from None
    if not isinstance(address, str):
        raise BadInput(f"--scheduler: {address!r} is no address, give tcp://HOST:PORT")
    for logger in ("distributed", "tornado.application"):  # what is wrong is said in one line here
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
                f"--scheduler: {address} has no worker: start some by `dask worker {address} --nthreads 1`"
            ) from None
        _check_versions(client)
        yield client


def _check_versions(client: Client) -> None:
    try:
        versions = client.run(_version)
    except ImportError as error:
        raise BackendUnavailable(f"--scheduler: install this package where the workers are ({error})") from None
    for worker, version in versions.items():
        if version != __version__:
            raise BackendUnavailable(f"--scheduler: worker {worker} has version {version}, not {__version__}")


def _version() -> str:
    return __version__


def slots(client: Client) -> int:
    """Return how many tasks the cluster runs at once, at least 1."""
    return max(1, sum(client.ncores().values()))
