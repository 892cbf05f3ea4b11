"""Work on threads: one item after the other, or folds as their data come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
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

    Parameters
    ----------
    work : callable
    items : sequence
    threads : int

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
    threads : int

    Yields
    ------
    Result
        In the order in which the folds are done.
    """
    with blas_on_one_thread():
        if threads <= 1:
            for fold, given in source:
                yield work(fold, given)
            return
        with ThreadPoolExecutor(threads) as pool:
            flying: set[Future[Result]] = set()
            try:
                for fold, given in source:
                    flying.add(pool.submit(work, fold, given))
                    if len(flying) >= 2 * threads:
                        done, flying = wait(flying, return_when=FIRST_COMPLETED)
                        for future in done:
                            yield future.result()
                for future in flying:
                    yield future.result()
            finally:
                for future in flying:
                    future.cancel()
