"""The pairs (tau, gamma) that the order `by_size` has neither excluded nor solved yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.grid_state import GridState


@dataclass(frozen=True, eq=False)
class InQuestion:
    """The pairs that a proof still needs, with the number of tries of each; orders compute it at each turn.

    Attributes
    ----------
    pairs : (G, T) bool array
        Pairs in question.
    cells : (G, T, K) bool array
        Open subproblems of these pairs.
    may_be_excluded : (G, T) bool array
        Pairs that a tree on the full data may exclude when compared with a solved best pair.
    tries : (G, T) int array
        Number of earlier tries of the next work on the pair; `DONE` if no work is left.
    """

    pairs: BoolArray
    cells: BoolArray
    may_be_excluded: BoolArray
    tries: IntArray

    @classmethod
    def from_state(cls, state: GridState, plan: Plan) -> InQuestion:
        """Return the pairs in question in a state."""
        cells, upper = state.subproblems_in_question(), state.bounds().upper
        best, pairs = np.unravel_index(int(upper.argmin()), upper.shape), np.asarray(cells.any(axis=2))
        full_upper = state.all_rows.upper()
        is_best_solved = bool(state.cells.final[best].all()) and np.isfinite(upper[best])
        has_trees = plan.uses(FullDataTrees.name)
        may = (has_trees and is_best_solved) & (state.cutoffs_to_exclude(state.bars_in_question()) <= full_upper)
        full = np.where(state.all_rows.solved_pairs() | (not has_trees), DONE, state.tried.full_tries)
        folds = np.maximum(state.tried.lowest_tries, may)  # not before the second sweep
        return cls(pairs, cells, may, np.where(pairs, np.minimum(full, folds), DONE))

    def is_any_size_tried(self) -> bool:
        """Return True if some size was swept: the size is closed, or each of its pairs in question had nodes."""
        return bool((self.tries.min(axis=0) > 0).any())

    def due_sizes(self, state: GridState) -> IntArray:
        """Return the index of the size to sweep: the smallest new size, or the size with the fewest tries."""
        tries = self.tries.min(axis=0)
        new, tried = np.flatnonzero(tries == 0), np.flatnonzero((tries > 0) & (tries < DONE))
        if len(new) and (not len(tried) or state.tried.spent[0] <= state.tried.spent[1]):
            return new[:1]
        return tried[[np.argmin(tries[tried])]] if len(tried) else new[:1]
