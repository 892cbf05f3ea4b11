"""What a proof of squares chooses from: terms of columns, beside what every model is adjusted for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.elimination import ForcedColumns

Support = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ChosenTerms:
    """The terms of some data; supports of a proof are of terms, ascending.

    Attributes
    ----------
    choice : ForcedColumns
        Columns that are adjusted for, and those that are chosen from.
    terms : tuple of tuples of int
        Columns of each term, by their places among those that are chosen from; ordered by the first one.
    """

    choice: ForcedColumns
    terms: tuple[Support, ...]

    @classmethod
    def of(cls, data: StandardData) -> ChosenTerms:
        """Read the terms from the restrictions of the data."""
        choice = ForcedColumns.of(data.q, data.forced)
        terms = [term.columns for term in data.terms if term.columns and not term.always]
        place = {column: j for j, column in enumerate(choice.others.tolist())}
        chosen = [tuple(place[column] for column in columns) for columns in terms]
        return cls(choice, tuple(sorted(chosen) if data.terms else ((j,) for j in range(data.q))))

    @property
    def q(self) -> int:
        """How many terms there are."""
        return len(self.terms)

    @property
    def single(self) -> bool:
        """Whether each is one column."""
        return self.q == len(self.choice.others)

    @cached_property
    def _term_of(self) -> dict[int, int]:
        return {j: term for term, columns in enumerate(self.terms) for j in columns}

    def of_places(self, columns: Iterable[int]) -> Support:
        """Return the terms of columns, by their places among those that are chosen from."""
        return tuple(sorted({self._term_of[j] for j in columns}))

    def of_columns(self, support: IntArray) -> Support:
        """Return the terms of a support of the search."""
        return self.of_places(self.choice.inside(support).tolist())

    def columns(self, supports: Sequence[Support]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield, for each number of columns, which supports have so many (L,), and these columns (L, a)."""
        columns = [sorted(j for term in support for j in self.terms[term]) for support in supports]
        widths = np.array([len(some) for some in columns])
        for width in np.unique(widths).tolist():
            which = np.flatnonzero(widths == width)
            yield which, np.array([columns[i] for i in which], dtype=np.int64).reshape(len(which), width)
