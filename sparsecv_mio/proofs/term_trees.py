"""Branch-and-bound trees over terms, which prove lower bounds (thresholds) on objectives by ridge fits.

A term is a column, or a group of columns such as a factor; `ChosenTerms` states which terms a support may contain. A
leaf is closed if the objective of the ridge fit on all its terms is at least the threshold. Otherwise the terms that
the leaf may choose are removed one at a time, and the objectives of the fits without these terms give the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import ForcedColumns, StandardData
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.proofs.threshold_trees import (
    NO_POINT,
    TOO_LARGE,
    TREE_MOST,
    ProofTree,
    TooLarge,
    Units,
    leaf_cutoffs,
    prove_thresholds,
)

Support = tuple[int, ...]
MOST_TERM_NODES = 1 << 15  # maximum number of nodes of a tree: about a minute


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


def prove_term_thresholds(
    problem: SparseProblem, chosen: ChosenTerms, above: Mapping[int, float], units: Units, margin: float,
    most: tuple[int, int] = TREE_MOST,
) -> Iterator[ProofTree]:  # fmt: skip
    """Yield trees over terms that prove a threshold for every size; see `prove_thresholds`.

    Parameters
    ----------
    problem : SparseProblem
        Problem in the columns that are chosen from.
    chosen : ChosenTerms
        Terms.
    above : mapping of size to threshold
        Thresholds in units of the file.
    units : Units
        Units of the target and of points.
    margin : float
        Amount by which leaves must exceed thresholds, in the problem's units.
    most : (int, int)
        Maximum numbers of listed supports and of nodes of a tree.
    """
    if chosen.has_single_column_terms:
        yield from prove_thresholds(problem, above, units, margin, most)
    else:
        yield prove_terms(problem, chosen, above, leaf_cutoffs(above, units, margin), most)


def prove_terms(
    problem: SparseProblem, chosen: ChosenTerms, above: Mapping[int, float], bars: Mapping[int, float],
    most: tuple[int, int],
) -> ProofTree:  # fmt: skip
    """Return one tree for all sizes.

    A node includes the terms I and leaves the terms F free; A is their union. A support that drops m terms of A has an
    objective of at least the m-th smallest of the f(A - t), t in F, because it misses m of these.

    Parameters
    ----------
    problem : SparseProblem
        Problem in the columns that are chosen from, at one gamma.
    chosen : ChosenTerms
        Terms.
    above : mapping of size to threshold
        Thresholds in units of the file.
    bars : mapping of size to float
        Values that leaves must reach, in the problem's units.
    most : (int, int)
        Maximum numbers of listed supports and of nodes.

    Raises
    ------
    TooLarge
        If the tree would be larger.
    """
    first, last, fits = min(above), max(above), _Fits(problem, chosen)
    nodes, listed = list[int](), dict[int, list[Support]]()
    waiting = [(frozenset[int](), frozenset(range(chosen.q)))]
    while waiting:
        if len(nodes) > min(most[1], MOST_TERM_NODES) or sum(map(len, listed.values())) > most[0]:
            raise TooLarge(TOO_LARGE)
        inside, free = waiting.pop()
        every, low, high = inside | free, len(inside), len(inside) + len(free)
        without = {term: fits.value(every - {term}) for term in free}
        bounds = [fits.value(every), *sorted(without.values())]
        sizes = range(max(first, low), min(last, high) + 1)
        open_sizes = {size for size in sizes if size in bars and bounds[high - size] < bars[size]}
        ends = {high: every}
        if low in open_sizes - {high} and fits.value(inside) < bars[low]:
            ends[low] = inside
        if open_sizes <= set(ends):
            for size in sorted(open_sizes):
                listed.setdefault(size, []).append(tuple(sorted(ends[size])))
            nodes.append(NO_POINT)
            continue
        branch = max(free, key=lambda term: (without[term], -term))
        nodes.append(branch)
        waiting += [(inside, free - {branch}), (inside | {branch}, free - {branch})]
    every_above = {tau: above.get(tau, -1e-3 * max(above.values())) for tau in range(first, last + 1)}
    return ProofTree(nodes, listed, every_above, [])


class _Fits:
    """Objectives of sets of terms, each computed once."""

    def __init__(self, problem: SparseProblem, chosen: ChosenTerms) -> None:
        self.problem, self.chosen = problem, chosen
        self.known: dict[frozenset[int], float] = {}

    def value(self, terms: frozenset[int]) -> float:
        """Return the objective of some terms."""
        if terms not in self.known:
            columns, p = [j for term in sorted(terms) for j in self.chosen.terms[term]], self.problem
            b = np.linalg.solve(p.M[np.ix_(columns, columns)], p.c[columns])
            self.known[terms] = float(p.yy - p.c[columns] @ b)
        return self.known[terms]
