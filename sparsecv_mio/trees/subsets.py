"""Results of a branch-and-bound tree, such as the best subset of a size, and the queue of its open nodes.

This module imports no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain, count
from math import inf
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.parallel import on_threads

MOST_NODES = 1 << 20  # maximum nodes of a tree whose list or optimum another step needs; beyond, the step is skipped
UNLIMITED = 1 << 62  # number of nodes that no tree reaches
FIRST_LOOK = 1024  # nodes of the first pass over the sizes, and between two checks of the bounds of a size
ROUND_GROWTH = 8  # factor on the number of nodes in the next round, or in the next tree of a pair or a part
FIRST_NODES = FIRST_LOOK // ROUND_GROWTH**2  # nodes of a tree before trees, or block bounds, are chosen
SWAP_ROUNDS = 4  # maximum number of rounds of exchanges of a column of a support
MOST_TRIED = 4096  # maximum number of supports of a size that are all tried, or listed for a pass over all folds
MAX_SCANNED_SUPPORTS = 200_000_000  # supports of a size that are tried one by one if no tree is valid: about a second
MOST_REFITTED = 512  # maximum number of supports fitted from rows, or tied; with more, the best one is not known


def is_never_expired() -> bool:
    """Return False: a clock that never stops the work."""
    return False


def is_always_expired() -> bool:
    """Return True: a clock that stops the work at its first check."""
    return True


@dataclass(frozen=True, eq=False)
class BestSubset:
    """The result for one tau: `lower <= min f <= upper = f(support)` in the units of the problem.

    If `complete` is True, `candidates` contains every support that can be optimal, up to the choice among duplicate
    columns, columns that are constant in training, and a constant target. In this case `lower` is `upper` minus the
    margin for rounding.
    """

    tau: int
    support: IntArray
    lower: float
    upper: float
    candidates: tuple[IntArray, ...]
    values: tuple[float, ...]
    margin: float
    complete: bool
    branched: bool

    @classmethod
    def from_bounds(cls, tau: int, support: IntArray, upper: float = np.inf, lower: float = 0.0) -> BestSubset:
        """Return a support without a proof of optimality.

        Parameters
        ----------
        tau : int
            Size.
        support : int array
            Columns.
        upper, lower : float
            Bounds on the optimum; by default nothing is known.
        """
        return cls(tau, support, lower, upper, (), (), 0.0, complete=False, branched=False)

    def merge(self, other: BestSubset) -> BestSubset:
        """Return the combination of two results for a tau: the better support and the larger lower bound."""
        if self.complete or other.complete:
            return self if self.complete else other
        return replace(other if other.upper <= self.upper else self, lower=max(self.lower, other.lower))


@dataclass(frozen=True, eq=False)
class BestSubsets:
    """Best subsets by size, and the number of nodes.

    `finished` is True if every result is complete or can never be. `reused` counts nodes closed by the dual point of
    their parent, without solving a relaxation.
    """

    by_size: dict[int, BestSubset]
    nodes: int
    finished: bool
    reused: int = 0

    def merge(self, other: BestSubsets) -> BestSubsets:
        """Return the combination with another result for some of the sizes."""
        subsets = self.by_size | {tau: self.by_size[tau].merge(subset) for tau, subset in other.by_size.items()}
        return BestSubsets(subsets, self.nodes + other.nodes, all(subset.complete for subset in subsets.values()))

    def add_forced_columns(
        self, size: Callable[[int], int], whole: Callable[[IntArray], IntArray], taus: Sequence[int]
    ) -> BestSubsets:
        """Return the result in terms of the whole problem, given that of the problem without its forced columns.

        Parameters
        ----------
        size, whole : callables
            Methods of `ForcedColumns` that map sizes and supports.
        taus : sequence of int
            Requested sizes of the whole supports.
        """
        cells = {}
        for tau in taus:
            subset = self.by_size[size(tau)]
            candidates = tuple(whole(candidate) for candidate in subset.candidates)
            first = len(candidates) > 0 and subset.candidates[0].tobytes() == subset.support.tobytes()
            support = candidates[0] if first else whole(subset.support)
            cells[tau] = BestSubset(
                tau,
                support,
                subset.lower,
                subset.upper,
                candidates,
                subset.values,
                subset.margin,
                subset.complete,
                subset.branched,
            )
        return BestSubsets(cells, self.nodes, self.finished, self.reused)

    def map_to_columns(self, columns: IntArray) -> BestSubsets:
        """Return the result in the columns of the whole problem, given that of the problem on some columns."""
        cells = {
            tau: replace(
                best, support=columns[best.support], candidates=tuple(columns[support] for support in best.candidates)
            )
            for tau, best in self.by_size.items()
        }
        return replace(self, by_size=cells)


def join_sizes(parts: Sequence[BestSubsets]) -> BestSubsets:
    """Return the combination of results for different sizes."""
    by_size = {size: subset for part in parts for size, subset in part.by_size.items()}
    return BestSubsets(by_size, sum(part.nodes for part in parts), all(part.finished for part in parts))


Node = TypeVar("Node")


@dataclass(eq=False)
class HeldOutFolds:
    """Bounds and best supports of k folds of one size that are handled together; arrays are (k,).

    Attributes
    ----------
    lower, upper : arrays
        Bounds on the held-out loss at the optimum of the fold.
    is_listed : bool array
        True if every support that may be optimal was tried.
    best : int array
        Index of the tried support with the smallest known objective, -1 for none.
    objective, held_out : arrays
        Upper bound on its objective, and its held-out loss.
    tie : array
        Difference of the held-out losses of the supports that may be optimal.
    tied : dict of int to list of int
        Indices of these supports, for folds with several.
    """

    lower: FloatArray
    upper: FloatArray
    is_listed: BoolArray
    best: NDArray[np.int32]
    objective: FloatArray
    held_out: FloatArray
    tie: FloatArray
    tied: dict[int, list[int]]


class OpenNodes(Generic[Node]):
    """Best-first search: the open node with the smallest bound comes first, and equal bounds in the order of arrival.

    All trees written in Python are searched by `search`, with any type of node. Another thread may read the smallest
    bound and the nodes at any moment.

    Attributes
    ----------
    n_expanded : int
        Number of nodes that were expanded.

    Examples
    --------
    >>> waiting = OpenNodes[str]()
    >>> for bound, node in ((2.0, "b"), (1.0, "a"), (2.0, "c")):
    ...     waiting.push(bound, node)
    >>> waiting.smallest_bound, waiting.pop(), waiting.pop(), len(waiting), list(waiting)
    (1.0, 'a', 'b', 1, ['c'])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Node]] = []
        self._in_work: list[tuple[float, int, Node]] = []
        self._number = count()
        self.n_expanded = 0

    def __len__(self) -> int:
        """Return the number of open nodes."""
        return len(self._heap) + len(self._in_work)

    def __iter__(self) -> Iterator[Node]:
        """Yield the open nodes in no particular order."""
        return (node for _, _, node in (*self._in_work, *self._heap))

    @property
    def smallest_bound(self) -> float:
        """Smallest bound; inf if no node is open."""
        return min((bound for bound, _, _ in (*self._in_work, *self._heap[:1])), default=inf)

    def push(self, bound: float, node: Node) -> None:
        """Add a node."""
        heappush(self._heap, (bound, next(self._number), node))

    def pop(self) -> Node:
        """Remove and return the node with the smallest bound."""
        return heappop(self._heap)[2]

    def clear(self) -> None:
        """Remove all nodes."""
        self._heap.clear()

    def search(
        self,
        expand: Callable[[float, Node], Iterable[tuple[float, Node]]],
        cutoff: Callable[[], float],
        may_continue: Callable[[], bool],
        threads: int = 1,
    ) -> bool:
        """Replace nodes by their children, the smallest bound first, until no bound is below the cutoff.

        Parameters
        ----------
        expand : callable
            Function `(bound, node) -> children`, each child with its bound; a node that is not finished is its own
            child. A child whose bound is inf is dropped.
        cutoff : callable
            Function that returns the bound from which nodes need no work; it may fall during the search.
        may_continue : callable
            Function that returns False when the node limit or the time is over.
        threads : int
            Number of nodes that are expanded at the same time.

        Returns
        -------
        bool
            True if no open node has a bound below the cutoff.
        """
        while self._heap and self._heap[0][0] < cutoff():
            if not may_continue():
                return False
            for _ in range(min(len(self._heap), threads)):
                self._in_work.append(self._heap[0])
                heappop(self._heap)
            self.n_expanded += len(self._in_work)
            expanded = on_threads(lambda entry: list(expand(entry[0], entry[2])), self._in_work, threads)
            for bound, child in chain.from_iterable(expanded):
                if bound < inf:
                    self.push(bound, child)
            self._in_work.clear()
        return True
