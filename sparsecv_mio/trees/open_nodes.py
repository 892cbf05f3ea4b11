"""Open nodes of a best-first search, whatever a node is: what every tree in Python is grown with."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar

Node = TypeVar("Node")


class OpenNodes(Generic[Node]):
    """Nodes with their bounds: the least first, of equal ones that which came first.

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
