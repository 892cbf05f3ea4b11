"""The pairs that a proof by size still needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.attempts import DONE
from sparsecv_mio.search.grid_state import GridState
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees


@dataclass(frozen=True, eq=False)
class InQuestion:
    """The pairs that a proof still needs, and how often each was tried: what orders compute of a state at each turn.

    Attributes
    ----------
    pairs : (G, T) bool array
    cells : (G, T, K) bool array
        Their open subproblems.
    may_be_excluded : (G, T) bool array
        Pairs that a tree on the full data may exclude, against a best pair that is solved.
    tries : (G, T) int array
        Earlier tries of what is to be done next; `DONE` where nothing is.
    """

    pairs: BoolArray
    cells: BoolArray
    may_be_excluded: BoolArray
    tries: IntArray

    @classmethod
    def of(cls, state: GridState, plan: Plan) -> InQuestion:
        """Return what is in question in a state."""
        cells, upper = state.subproblems_in_question(), state.bounds().upper
        best, pairs = np.unravel_index(int(upper.argmin()), upper.shape), np.asarray(cells.any(axis=2))
        full_upper = state.all_rows.of_pairs(lambda subset: subset.upper)
        is_best_solved = bool(state.cells.final[best].all()) and np.isfinite(upper[best])
        has_trees = plan.uses(FullDataTrees.name)
        may = (has_trees and is_best_solved) & (state.cutoffs_to_exclude(state.bars_in_question()) <= full_upper)
        full = np.where(state.all_rows.solved_pairs() | (not has_trees), DONE, state.tried.full_tries)
        folds = np.maximum(state.tried.lowest_tries, may)  # not before the second sweep
        return cls(pairs, cells, may, np.where(pairs, np.minimum(full, folds), DONE))

    def is_any_size_tried(self) -> bool:
        """Return True if some size was swept: it is closed, or its pairs had nodes."""
        return bool((self.tries.min(axis=0) > 0).any())

    def due_sizes(self, state: GridState) -> IntArray:
        """Return the size to sweep, by index: the smallest new one, or the one that was tried least."""
        tries = self.tries.min(axis=0)
        new, tried = np.flatnonzero(tries == 0), np.flatnonzero((tries > 0) & (tries < DONE))
        if len(new) and (not len(tried) or state.tried.spent[0] <= state.tried.spent[1]):
            return new[:1]
        return tried[[np.argmin(tries[tried])]] if len(tried) else new[:1]
