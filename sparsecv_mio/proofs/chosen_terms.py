"""Terms (columns, or groups such as a factor) that a support may contain, for proofs with squared-error loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.forced_columns import ForcedColumns
from sparsecv_mio.data.standard import StandardData

Support = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ChosenTerms:
    """The terms of a data set; supports of a proof are ascending lists of terms.

    Attributes
    ----------
    choice : ForcedColumns
        Split of the columns into adjustment columns and those that are chosen from.
    terms : tuple of tuples of int
        Columns of each term, as positions among those that are chosen from; ordered by the first one.
    """

    choice: ForcedColumns
    terms: tuple[Support, ...]

    @classmethod
    def from_data(cls, data: StandardData) -> ChosenTerms:
        """Return the terms that the restrictions of the data define."""
        choice = data.choice
        terms = [term.columns for term in data.terms if term.columns and not term.always]
        place = {column: j for j, column in enumerate(choice.others.tolist())}
        chosen = [tuple(place[column] for column in columns) for columns in terms]
        return cls(choice, tuple(sorted(chosen) if data.terms else ((j,) for j in range(data.q))))

    @property
    def q(self) -> int:
        """Number of terms."""
        return len(self.terms)

    @property
    def has_single_column_terms(self) -> bool:
        """True if every term is one column."""
        return self.q == len(self.choice.others)

    @cached_property
    def _term_by_column(self) -> dict[int, int]:
        return {j: term for term, columns in enumerate(self.terms) for j in columns}

    def column_terms(self, columns: Iterable[int]) -> Support:
        """Return the terms of columns, given as positions among those that are chosen from."""
        return tuple(sorted({self._term_by_column[j] for j in columns}))

    def support_terms(self, support: IntArray) -> Support:
        """Return the terms of a support of the search."""
        return self.column_terms(self.choice.inside(support).tolist())

    def columns(self, supports: Sequence[Support]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield, for each number a of columns, the indices (L,) of the supports with it and their columns (L, a)."""
        columns = [sorted(j for term in support for j in self.terms[term]) for support in supports]
        widths = np.array([len(some) for some in columns])
        for width in np.unique(widths).tolist():
            which = np.flatnonzero(widths == width)
            yield which, np.array([columns[i] for i in which], dtype=np.int64).reshape(len(which), width)
