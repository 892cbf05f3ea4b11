"""The search order (schedule of steps) that comes first: supports, estimates and bounds without trees for all pairs.

The middle gamma comes first, so that a search that ends at its limit has an answer. A phase begins after the previous
phase has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_searches import FoldSearches
from sparsecv_mio.search.sources.full_data import FullDataRelaxations
from sparsecv_mio.search.sources.held_out_lists import HeldOutLists
from sparsecv_mio.search.sources.initial_supports import FoldSupports, InitialSupports, SupportFits, SupportsInFolds
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.attempts import BOUNDED, NOT_LISTED
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim, Pair
from sparsecv_mio.search.steps import Step, first_phase


def first_answers(
    goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float
) -> Iterator[Step]:
    """Yield the steps of the first unfinished phase."""
    every = np.ones(state.context.shape[:2], dtype=bool)
    middle = np.zeros_like(every)
    middle[-1 - len(every) // 2] = True
    is_late = share > plan.initial_share and bool(state.has_supports.any())
    first = (
        _searches_of_all_folds, _full_data_supports, _bounds_of_single_sizes, _left_out_bounds, _supports_in_folds,
        _fold_supports, _bounds_of_winner,
    )  # fmt: skip
    phases = [(phase, middle) for phase in first] + [(phase, every) for phase in first]
    phases += [(_relaxations, every), (_trees_of_single_sizes, every)]
    yield from first_phase((phase(state, plan, wanted, is_late) for phase, wanted in phases), running)


def _searches_of_all_folds(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield the next pass over all folds, at every pair."""
    yield from FoldSearches().steps(state, plan, np.ones_like(wanted))


def _full_data_supports(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield local searches in the full data; late in a limit supports are fitted without exchanges."""
    yield from InitialSupports().steps(state, plan, wanted, exchanges=not is_late)


def _bounds_of_single_sizes(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield the sizes with a single possible support, at every gamma: their CV errors then have an upper bound."""
    for t in state.context.grid.indices_of(plan.single_sizes):
        for g in np.flatnonzero(wanted.any(axis=1) & state.has_supports).tolist():
            if not plan.lists_held_out:
                if state.context.grid.taus[t] == 0:  # the null model takes little time, all columns a fit in every fold
                    yield from SubproblemTrees().steps(state, plan, Aim((g, t), np.inf), 0, plan.n_threads)
            elif state.tried.list_stage[g, t] == NOT_LISTED and not state.is_bounded((g, t)):
                yield _bound_by_known_support(state, (g, t), 1, 0.0)


def _bound_by_known_support(state: GridState, pair: Pair, node_limit: int, cutoff: float) -> Step:
    return HeldOutLists().step(state, pair, (state.full_support(pair),), node_limit, cutoff)


def _left_out_bounds(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield bounds of all folds by fits of the full data, where folds are many and small."""
    if plan.leaves_folds_out:
        yield from LeftOutTrees().steps(state, plan, wanted & (state.tried.list_stage < BOUNDED), 0)


def _supports_in_folds(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield fits of the full-data supports in every fold, unless the folds have separate supports."""
    if plan.searches_all_folds:
        return
    if plan.holds_out:
        yield from SupportsInFolds().steps(state, plan, wanted)
    else:
        is_missing = ~np.isfinite(state.bounds().nominal) & state.has_supports[:, None]
        yield from SupportFits().steps(state, plan, wanted & is_missing)


def _fold_supports(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield local searches in folds, at increasing sizes of a gamma, until the estimates of the gamma have risen."""
    if not plan.searches_folds_first:
        return
    sums = state.bounds().nominal
    first = max(int(np.argmin(sums.min(axis=0))) - plan.max_rises, 0)
    for g in np.flatnonzero(wanted.any(axis=1)).tolist():
        smallest, n_rises = np.inf, 0
        for t in range(first, wanted.shape[1]):
            steps = list(FoldSupports().steps(state, plan, (g, t)))
            if n_rises == plan.max_rises:
                break
            if steps:
                yield from steps
                return
            estimate = float(sums[g, t])
            smallest, n_rises = min(smallest, estimate), 0 if estimate < smallest else n_rises + 1


def _bounds_of_winner(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield bounds on the pair with the best estimate late in a limit, for any supports; one pass over the rows."""
    if plan.lists_held_out and is_late:
        pair = state.bounds().winner
        if state.tried.list_stage[pair] == NOT_LISTED and not state.is_bounded(pair):
            yield _bound_by_known_support(state, pair, 0, np.inf)


def _relaxations(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield relaxations of the full data, which give most pairs a lower bound before any tree."""
    if plan.relaxes_full_data:
        yield from FullDataRelaxations().steps(state, plan, wanted)


def _trees_of_single_sizes(state: GridState, plan: Plan, wanted: BoolArray, is_late: bool) -> Iterator[Step]:
    """Yield the folds of the best pair of every size with a single possible support."""
    errors = state.bounds().nominal
    for t in state.context.grid.indices_of(plan.single_sizes) if not plan.lists_held_out else ():
        if np.isfinite(errors[:, t]).any():
            pair = int(np.nanargmin(errors[:, t])), t
            yield from SubproblemTrees().steps(state, plan, Aim(pair, np.inf), 0, plan.n_threads)
