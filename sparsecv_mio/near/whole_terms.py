"""Terms of several columns that enter a model together, such as all levels of a factor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import SideConstraints


@dataclass(frozen=True, eq=False)
class WholeTerms:
    """The terms of some columns, each named by its first column.

    Attributes
    ----------
    first : (q,) int array
        First column of the term of each column.
    adjusted : int array
        Adjusted columns, which are in every support and do not count.

    Examples
    --------
    >>> terms = WholeTerms(np.array([0, 1, 1, 3]))
    >>> terms.count(np.array([0, 1, 2])), terms.columns([1, 3]).tolist(), terms.most_columns(2)
    (2, [1, 2, 3], 3)
    """

    first: IntArray
    adjusted: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def from_data(cls, data: StandardData) -> WholeTerms:
        """Return the terms of data in standard coordinates."""
        first = np.arange(data.q)
        for term in data.terms:
            first[list(term.columns)] = term.columns[:1]
        return cls(first, data.adjusting)

    @cached_property
    def has_multicolumn_terms(self) -> bool:
        """True if some term has several columns."""
        return bool(np.any(self.first != np.arange(len(self.first))))

    def names(self, support: IntArray) -> IntArray:
        """Return the terms of a support in ascending order, each by its first column."""
        return np.unique(self.first[support]) if self.has_multicolumn_terms else support

    def count(self, support: IntArray) -> int:
        """Return the number of terms to which some columns belong, without adjusted columns."""
        return len(np.setdiff1d(self.names(support), self.adjusted))

    def columns(self, names: Iterable[int]) -> IntArray:
        """Return the columns of some terms, ascending."""
        chosen = np.array(sorted(names), dtype=np.int64)
        return np.flatnonzero(np.isin(self.first, chosen)).astype(np.int64) if self.has_multicolumn_terms else chosen

    def most_columns(self, tau: int) -> int:
        """Return the maximum number of columns of tau terms, with the adjusted columns."""
        widths = np.bincount(np.delete(self.first, self.adjusted))
        return int(np.sort(widths)[::-1][:tau].sum()) + len(self.adjusted)

    def constraints(self, forced: IntArray) -> SideConstraints:
        """Return the side constraints that describe the terms to trees, and the columns in every support."""
        groups = [np.flatnonzero(self.first == name).tolist() for name in np.unique(self.first).tolist()]
        terms = [Term(tuple(some)) for some in groups if len(some) > 1]
        terms += [Term((j,), 0, 0.0, True) for j in self.adjusted.tolist()]
        return SideConstraints(forced_in=tuple(forced.tolist()), terms=tuple(terms))

    def sets(self, among: IntArray, sizes: Sequence[int]) -> Iterator[IntArray]:
        """Yield the columns of every set of terms of given sizes among some columns."""
        names = self.names(among).tolist()
        for size in sizes:
            yield from map(self.columns, combinations(names, size))

    def neighbours(self, support: IntArray, forced: IntArray, taus: Sequence[int]) -> list[IntArray]:
        """Return the supports of some sizes that differ by adding, removing or exchanging one term.

        Parameters
        ----------
        support : int array
            Columns in ascending order.
        forced : int array
            Columns that stay.
        taus : sequence of int
            Wanted sizes, in terms.

        Examples
        --------
        >>> terms = WholeTerms(np.arange(3))
        >>> [one.tolist() for one in terms.neighbours(np.array([0, 1]), np.array([0]), [1, 2])]
        [[0], [0, 2]]
        """
        inside = self.names(support)
        size, outside = self.count(support), np.setdiff1d(self.names(np.arange(len(self.first))), inside).tolist()
        shorter = [np.setdiff1d(inside, [name]) for name in np.setdiff1d(inside, self.names(forced)).tolist()]
        made = list(shorter) if size - 1 in taus else []
        for start in (*(shorter if size in taus else ()), *([inside] if size + 1 in taus else ())):
            made += [np.append(start, name) for name in outside]
        return [self.columns(names.tolist()) for names in made]
