"""Trees of single folds, grown on a dask cluster.

A tree needs the Gram matrix of its fold and little more. The matrix is a result of its own there, which goes to a
worker once, for every gamma and tau; a task whose worker dies is begun again on another one. What comes back is what
`solve_path` returns, to the last bit, so the search goes on as if the tree had been grown here.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.cluster import connected, slots
from sparsecv_mio.errors import BackendFailed, SparseCVError
from sparsecv_mio.formulation.backends.native.path import PathResult, solve_path
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.trees import HERE

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

LOOK = 0.05  # seconds between two looks at the deadline while a tree grows elsewhere
HELD_BYTES = 1 << 31  # of Gram matrices that the cluster keeps for later gammas and rounds
NOTHING = np.zeros((0, 0))


class SentTrees:
    """Grows trees on a cluster; should that be lost, here.

    Parameters
    ----------
    client : distributed.Client
    lost : callable
        Told once that the cluster was lost.

    Attributes
    ----------
    at_once : int
        Threads of all workers when the search began.
    """

    def __init__(self, client: Client, lost: Callable[[SparseCVError], None]) -> None:
        self.at_once = slots(client)
        self._client, self._pool, self._told = client, client.get_executor(pure=False), lost
        self._grams: OrderedDict[str, tuple[int, DaskFuture]] = OrderedDict()
        self._lock = threading.Lock()
        self._alone = False

    def grow(
        self, problem: SparseProblem, taus: Sequence[int], starts: Sequence[IntArray], effort: int, deadline: Deadline
    ) -> PathResult:
        """Solve some tau of a fold and gamma.

        Parameters
        ----------
        problem, taus, starts, effort, deadline
            As of `Trees.grow`.
        """
        if not self._alone and effort > 0 and not deadline.expired():
            try:
                return self._grown_there(problem, taus, starts, effort, deadline)
            except SparseCVError:
                raise
            except Exception as error:  # whatever befell the cluster, the search has its answer from here
                if not deadline.expired():
                    self._lose(error)
        return HERE.grow(problem, taus, starts, effort, deadline)

    def _grown_there(
        self, problem: SparseProblem, taus: Sequence[int], starts: Sequence[IntArray], effort: int, deadline: Deadline
    ) -> PathResult:
        gram = self._sent(problem.Q)
        rest = pickle.dumps((replace(problem, Q=NOTHING), list(taus), list(starts), effort))
        future = self._pool.submit(_grow, gram, rest, deadline.left)
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                if future.done():
                    raise
                if deadline.expired():
                    future.cancel()
                    raise CancelledError from None

    def _sent(self, gram: FloatArray) -> DaskFuture:
        """Return the Gram matrix as a result on the cluster; it is sent where it is not there yet."""
        import dask

        digest = hashlib.sha256(np.ascontiguousarray(gram).data).hexdigest()
        with self._lock:
            if digest not in self._grams:
                # in the task itself: so it outlives the worker that has it
                with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                    self._grams[digest] = gram.nbytes, self._client.submit(_same, gram, pure=False)
            self._grams.move_to_end(digest)
            while len(self._grams) > self.at_once and sum(size for size, _ in self._grams.values()) > HELD_BYTES:
                self._grams.popitem(last=False)
            return self._grams[digest][1]

    def _lose(self, error: Exception) -> None:
        with self._lock:
            first, self._alone = not self._alone, True
        if first:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._told(BackendFailed(f"the dask cluster was lost ({words}): what was left was computed here"))


@contextmanager
def sent_trees(address: str, lost: Callable[[SparseCVError], None]) -> Iterator[SentTrees]:
    """Connect to a cluster that grows trees.

    Parameters
    ----------
    address : str
        Of its scheduler.
    lost : callable
        As of `SentTrees`.

    Raises
    ------
    BackendUnavailable
        The cluster cannot be used.
    """
    with connected(address) as client:
        yield SentTrees(client, lost)


def _same(gram: FloatArray) -> FloatArray:
    return gram


def _grow(gram: FloatArray, rest: bytes, left: float) -> PathResult:
    """Grow a tree in a worker, until the limit or until nobody waits for it any more."""
    from distributed import get_worker

    problem, taus, starts, effort = pickle.loads(rest)
    problem = replace(problem, Q=np.array(gram))  # a worker holds what it received as read-only
    worker, until = get_worker(), time.monotonic() + left
    task = worker.state.tasks[worker.get_current_task()]

    def expired() -> bool:
        return time.monotonic() > until or task.state == "cancelled"

    with blas_on_one_thread():
        return solve_path(problem, taus, starts=starts, effort=effort, expired=expired)
