"""What a tree says of the best subset of one size, and of several; and the open nodes that it grows by.

Loads no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar

import numpy as np

from sparsecv_mio.arrays import IntArray

MOST_NODES = 1 << 20  # of a list or an optimum that something else needs; beyond, that is left open
UNLIMITED = 1 << 62  # nodes
FIRST_LOOK = 1024  # nodes of a first pass over the sizes, and between two looks at what a size shows
ROUND_GROWTH = 8  # times as many nodes in the next round, or in the next tree of a pair or a part
FIRST_NODES = FIRST_LOOK // ROUND_GROWTH**2  # of a tree before any is chosen, or blocks of columns are
SWAP_ROUNDS = 4  # of exchanges of a column of a support for another one, at most
MOST_TRIED = 4096  # supports of a size that are all tried, or listed for a pass over all folds
MAX_SCANNED_SUPPORTS = 200_000_000  # supports of a size that are tried one by one if no tree is valid: about a second
MOST_REFITTED = 512  # the same where each is fitted from rows; and tied ones: of more, the best is not known


def never() -> bool:
    """Return False: the clock that never stops anything."""
    return False


@dataclass(frozen=True, eq=False)
class BestSubset:
    """What is known of one tau: `lower <= min f <= upper = f(support)` in the units of the problem.

    `complete` says that `candidates` holds every support that can be optimal, up to copies, to columns that are
    constant in training, and to a target that is; then `lower` is `upper` less the rounding margin.
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
    def unproved(cls, tau: int, support: IntArray, upper: float = np.inf, lower: float = 0.0) -> BestSubset:
        """Return a support that is not known to be the best one.

        Parameters
        ----------
        tau : int
        support : int array
        upper, lower : float
            At least and at most the optimum; by default nothing is known.
        """
        return cls(tau, support, lower, upper, (), (), 0.0, complete=False, branched=False)

    def joined(self, other: BestSubset) -> BestSubset:
        """Return what two results together say of a tau: the better support, the larger lower bound."""
        if self.complete or other.complete:
            return self if self.complete else other
        return replace(other if other.upper <= self.upper else self, lower=max(self.lower, other.lower))


@dataclass(frozen=True, eq=False)
class BestSubsets:
    """Best subsets by size and the nodes they cost; `finished` when every one is complete or can never be.

    `reused` counts nodes that the dual point of their parent closed, without a relaxation of their own.
    """

    by_size: dict[int, BestSubset]
    nodes: int
    finished: bool
    reused: int = 0

    def joined(self, other: BestSubsets) -> BestSubsets:
        """Return what two results together say, the other one of some of the sizes."""
        cells = self.by_size | {tau: self.by_size[tau].joined(cell) for tau, cell in other.by_size.items()}
        return BestSubsets(cells, self.nodes + other.nodes, all(cell.complete for cell in cells.values()))

    def with_forced(
        self, size: Callable[[int], int], whole: Callable[[IntArray], IntArray], taus: Sequence[int]
    ) -> BestSubsets:
        """Return the result for a problem without its columns that are forced in as one of the whole problem.

        Parameters
        ----------
        size, whole : callables
            Those of `ForcedColumns`.
        taus : sequence of int
            Sizes of the whole supports that were asked for.
        """
        cells = {}
        for tau in taus:
            cell = self.by_size[size(tau)]
            candidates = tuple(whole(candidate) for candidate in cell.candidates)
            first = len(candidates) > 0 and cell.candidates[0].tobytes() == cell.support.tobytes()
            support = candidates[0] if first else whole(cell.support)
            cells[tau] = BestSubset(
                tau, support, cell.lower, cell.upper, candidates, cell.values, cell.margin, cell.complete, cell.branched
            )
        return BestSubsets(cells, self.nodes, self.finished, self.reused)

    def in_columns(self, columns: IntArray) -> BestSubsets:
        """Return the result for a problem on some columns in the columns of the whole."""
        cells = {
            tau: replace(
                best, support=columns[best.support], candidates=tuple(columns[support] for support in best.candidates)
            )
            for tau, best in self.by_size.items()
        }
        return replace(self, by_size=cells)


Node = TypeVar("Node")


class OpenNodes(Generic[Node]):
    """Nodes of a best-first search with their bounds: the least first, of equal ones that which came first.

    Every tree in Python is grown with them, whatever its nodes are.

    Examples
    --------
    >>> waiting = OpenNodes[str]()
    >>> for bound, node in ((2.0, "b"), (1.0, "a"), (2.0, "c")):
    ...     waiting.push(bound, node)
    >>> waiting.least, waiting.pop(), waiting.pop(), len(waiting), list(waiting)
    (1.0, 'a', 'b', 1, ['c'])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Node]] = []
        self._number = count()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Node]:
        """Yield them in no order."""
        return (node for _, _, node in self._heap)

    @property
    def least(self) -> float:
        """The least bound; inf where none is open."""
        return self._heap[0][0] if self._heap else inf

    @property
    def first(self) -> Node:
        """The node that `pop` takes next."""
        return self._heap[0][2]

    def push(self, bound: float, node: Node) -> None:
        """Open a node."""
        heappush(self._heap, (bound, next(self._number), node))

    def pop(self) -> Node:
        """Take the node with the least bound."""
        return heappop(self._heap)[2]

    def clear(self) -> None:
        """Close all."""
        self._heap.clear()
