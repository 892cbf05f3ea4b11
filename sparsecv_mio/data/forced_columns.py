"""Division of the columns into forced columns, which are in every support, and selectable columns.

Forced columns are required features, which tau counts, or adjustment columns, which tau does not count. The module also
converts tau to a number of columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray

Count = TypeVar("Count", int, IntArray)


@dataclass(frozen=True, eq=False)
class ForcedColumns:
    """Columns in every support, and columns that may be chosen, both ascending.

    A column in every support is forced in or adjusted for. Tau never includes adjusted columns.

    Attributes
    ----------
    forced, others : int arrays
        Columns in every support; all other columns.
    n_adjusted : int
        Number of columns in `forced` that are adjusted for.

    Examples
    --------
    >>> choice = ForcedColumns.from_positions(5, np.array([1, 3]), n_adjusted=1)
    >>> choice.inside(np.array([0, 1, 3, 4])).tolist(), choice.make_support(np.array([0, 2])).tolist()
    ([0, 2], [0, 1, 3, 4])
    >>> choice.n_columns(3), choice.size(3), choice.tau_of(4)
    (4, 2, 3)
    """

    forced: IntArray
    others: IntArray
    n_adjusted: int = 0

    @classmethod
    def from_positions(cls, q: int, forced: IntArray, n_adjusted: int = 0) -> ForcedColumns:
        """Split q columns.

        Parameters
        ----------
        q : int
            Number of columns.
        forced : int array
            Columns in every support, ascending.
        n_adjusted : int
            Number of columns in `forced` that are adjusted for.
        """
        others = np.ones(q, dtype=np.bool_)
        others[forced] = False
        return cls(forced, np.flatnonzero(others).astype(np.int64), n_adjusted)

    @classmethod
    def from_penalty_weights(cls, forced: IntArray, weight: FloatArray) -> ForcedColumns:
        """Split columns by their penalty weights (q,), which are 0 for adjusted columns alone."""
        return cls.from_positions(len(weight), forced, int(np.count_nonzero(weight[forced] == 0.0)))

    @cached_property
    def _place(self) -> IntArray:
        """(q,) place of each column among the others, -1 of one in every support."""
        place = np.full(len(self.forced) + len(self.others), -1, dtype=np.int64)
        place[self.others] = np.arange(len(self.others))
        return place

    @property
    def max_tau(self) -> int:
        """Tau of the support of all columns."""
        return self.tau_of(len(self.forced) + len(self.others))

    def tau_of(self, n_columns: int) -> int:
        """Return the number of features of a support of `n_columns` columns, without the adjusted ones."""
        return max(n_columns - self.n_adjusted, 0)

    def n_columns(self, tau: Count) -> Count:
        """Return the number of columns of a support of `tau` features, with the adjusted columns."""
        return tau + self.n_adjusted

    def size(self, tau: int) -> int:
        """Return the number of columns of a support of `tau` features that are chosen among the others."""
        return max(self.n_columns(tau) - len(self.forced), 0)

    def sizes(self, taus: Iterable[int]) -> list[int]:
        """Return `size` of several taus."""
        return [self.size(tau) for tau in taus]

    def has_one_support(self, tau: int) -> bool:
        """Return True if `tau` leaves one support: that of all columns, or of the columns in every support."""
        return not 0 < self.size(tau) < len(self.others)

    def inside(self, support: NDArray[np.integer]) -> IntArray:
        """Return a support without the columns in every support, by places in `others`."""
        if not len(self.forced):
            return np.asarray(support, dtype=np.int64)
        places = self._place[np.asarray(support, dtype=np.int64)]
        places = places[places >= 0]
        places.sort()
        return places

    def make_support(self, chosen: NDArray[np.integer]) -> IntArray:
        """Return places in `others` as columns, ascending, with the columns in every support."""
        if not len(self.forced):
            return np.asarray(chosen, dtype=np.int64)
        columns = np.concatenate((self.forced, self.others[chosen]))
        columns.sort()
        return columns
