"""Trees over terms of several columns that prove lower bounds (thresholds) on objectives by ridge fits.

The ridge fit on all terms of a leaf closes the leaf, or the fits that each leave out one free term.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.proofs.chosen_terms import ChosenTerms, Support
from sparsecv_mio.proofs.threshold_trees import (
    NO_POINT,
    NONE_KEPT,
    TOO_LARGE,
    TREE_MOST,
    ProofTree,
    TooLarge,
    TreeKeeper,
    Units,
    leaf_cutoffs,
    prove_thresholds,
)

MOST_TERM_NODES = 1 << 15  # maximum number of nodes of a tree: about a minute


def prove_term_thresholds(
    problem: SparseProblem, chosen: ChosenTerms, above: Mapping[int, float], units: Units, margin: float,
    most: tuple[int, int] = TREE_MOST, kept: TreeKeeper = NONE_KEPT,
) -> list[ProofTree]:  # fmt: skip
    """Return trees over terms that prove a threshold for every size; see `prove_thresholds`.

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
    kept : TreeKeeper, optional
        Store of trees made before, to which new ones are added.
    """
    if chosen.has_single_column_terms:
        return prove_thresholds(problem, above, units, margin, most, kept)
    stored = kept.find(above)
    if stored is not None:
        return [stored]
    return [kept.keep(prove_terms(problem, chosen, above, leaf_cutoffs(above, units, margin), most))]


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
