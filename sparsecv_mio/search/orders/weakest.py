"""The phase `weakest` of the orders `together` and `by_size`: steps that raise the smallest lower bounds of the grid.

These bounds determine the gap when a limit ends the search. The phase measures how fast trees of the full data, and
trees of folds with weighted held-out rows, raise these bounds. The phase prefers the kind of tree that raises the
bounds faster. The class `OpenPairs` has the pairs (tau, gamma) that are neither excluded nor solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.weighted_rows import WeightedTrees
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Step


@dataclass(frozen=True, eq=False)
class OpenPairs:
    """The pairs that are neither excluded nor solved, with the number of tries of each; every turn computes them again.

    Attributes
    ----------
    pairs : (G, T) bool array
        Open pairs.
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
    def from_state(cls, state: GridState, plan: Plan) -> OpenPairs:
        """Return the open pairs in a state."""
        cells, upper = state.unexcluded_by_size(), state.bounds().upper
        best, pairs = np.unravel_index(int(upper.argmin()), upper.shape), np.asarray(cells.any(axis=2))
        full_upper = state.all_rows.upper()
        is_best_solved = bool(state.cells.final[best].all()) and np.isfinite(upper[best])
        has_trees = plan.uses(FullDataTrees.name)
        may = (has_trees and is_best_solved) & (state.objective_cutoffs(state.sum_cutoffs()) <= full_upper)
        full = np.where(state.all_rows.solved_pairs() | (not has_trees), DONE, state.tried.full_tries)
        folds = np.maximum(state.tried.lowest_tries, may)  # not before the second round
        return cls(pairs, cells, may, np.where(pairs, np.minimum(full, folds), DONE))

    def has_tried_size(self) -> bool:
        """Return True if some size had its first round: the size is closed, or each of its open pairs had nodes."""
        return bool((self.tries.min(axis=0) > 0).any())

    def due_sizes(self, state: GridState) -> IntArray:
        """Return the index of the size of the next round: the smallest new size, or the size with the fewest tries."""
        tries = self.tries.min(axis=0)
        new, tried = np.flatnonzero(tries == 0), np.flatnonzero((tries > 0) & (tries < DONE))
        if len(new) and (not len(tried) or state.tried.spent[0] <= state.tried.spent[1]):
            return new[:1]
        return tried[[np.argmin(tries[tried])]] if len(tried) else new[:1]


def is_weakest_due(state: GridState, plan: Plan, pairs: BoolArray, share: float) -> bool:
    """Return True if the pairs with the smallest lower bounds are due: late in a time limit too short for the proof.

    Parameters
    ----------
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    pairs : (G, T) bool array
        Open pairs.
    share : float
        Share of the time limit that has passed; 0 without a limit.
    """
    if share < plan.proof_share or not np.isfinite(state.bounds().upper.min()):
        return False
    return forecast_rounds(state, plan, pairs) > state.context.deadline.remaining_seconds


def forecast_rounds(state: GridState, plan: Plan, pairs: BoolArray) -> float:
    """Return a forecast of the seconds that rounds take until no pair is open, at the speed so far.

    Work is counted in nodes, so that a slow second of a busy machine changes little. For a pair of a new size, the
    forecast is the work of a pair of the last new size, times the average growth from one tried size to the next. For a
    pair that is still open, it is the work of its first try, times the growth of its node limit. The forecast is inf if
    nothing was measured.

    Parameters
    ----------
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    pairs : (G, T) bool array
        Open pairs.
    """
    begun, n_pairs = np.flatnonzero(state.tried.first_work > 0.0), pairs.sum(axis=0)
    if not len(begun) or not state.tried.first_seconds:
        return float(np.inf)
    n_begun = ((state.tried.full_tries > 0) | (state.tried.lowest_tries > 0)).sum(axis=0)
    each = np.zeros(len(n_pairs))
    each[begun] = state.tried.first_work[begun] / np.maximum(n_begun[begun], 1)
    growth = max(each[begun[-1]] / each[begun[0]], 1.0) ** (1.0 / max(len(begun) - 1, 1))
    tries = np.where(pairs, OpenPairs.from_state(state, plan).tries, DONE).min(axis=0)
    each[begun] *= np.float64(plan.node_growth) ** np.where(tries < DONE, tries, 0)[begun]
    new = np.flatnonzero((state.tried.first_work == 0.0) & (n_pairs > 0))
    each[new] = each[begun[-1]] * growth ** (1.0 + np.arange(len(new)))
    return float(each @ n_pairs) * float(state.tried.first_seconds / state.tried.first_work.sum()) / plan.n_threads


def weakest(state: GridState, plan: Plan, pairs: BoolArray) -> Iterator[Step]:
    """Yield the steps that, by the records of the sources, raise the smallest lower bounds most for their time.

    Parameters
    ----------
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    pairs : (G, T) bool array
        Open pairs.
    """
    lower, ceiling = state.bounds().lower, float(state.bounds().upper.min())
    sums = np.where(pairs, lower, np.inf)
    rise = plan.raised_share * (ceiling - float(lower.min()))
    near = pairs & (sums <= sums.min(axis=0)) & (sums <= sums.min() + plan.near_share * rise)
    aims = np.minimum(lower + rise, state.sum_cutoffs())
    sources = FullDataTrees().ranked_steps(state, plan, near, aims), WeightedTrees().steps(state, plan, near, aims)
    steps = [step for source in sources for step in islice(source, plan.compared_steps)]
    ranked = sorted(
        (step for step in steps if step.promised > 0.0),
        key=lambda step: state.source_record(step.source).expect_rates(step.promised, step.work),
        reverse=True,
    )
    yield from ranked[: plan.n_threads]
