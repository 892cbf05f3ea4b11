"""The order for cheap trees: all sizes of a gamma at once, all folds at once if there are many, then single folds.

With few columns there are usually two phases: first trees of the full data, then trees of folds, those with the fewest
tries first. If there are many small folds, one tree for all folds of a gamma comes between the two phases.

If the first trees of the full data take long, pairs (tau, gamma) that a bound has already excluded get no further
trees. The order then bounds the folds of all other pairs. Trees of single folds follow, first for the pair that has the
best estimate at that moment, until every fold of this pair has a tree. The other pairs follow, gamma by gamma, in the
order of the estimates. Under a time limit, short trees of the full data come first. If the proof does not fit into the
time limit, the order uses the last part of the time to raise the smallest lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.orders.weakest import is_weakest_due, weakest
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.initial_supports import SupportFits
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.attempts import BOUNDED, NOT_A_TRY, SOLVED
from sparsecv_mio.search.state.grid_state import GridState, SearchGoal
from sparsecv_mio.search.state.pairs import likely_winner
from sparsecv_mio.search.steps import Step, first_phase


def together(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield the steps of the first unfinished phase.

    If the goal names no pairs, all pairs that are not excluded are solved.
    """
    pairs, has_supports = goal.pairs(state), bool(state.has_supports.all())
    is_expensive = plan.bounds_before_trees or state.tried.full_nodes.sum() > plan.cheap_nodes
    leaves_out = plan.may_leave_out and bool(is_expensive)
    looks = leaves_out and plan.looks_first and has_supports
    wanted = state.open & pairs[:, :, None] if pairs.any() else state.worth_work()
    grows_first = share <= plan.first_trees_share or not state.has_supports.any()  # an answer comes before any limit
    phases = (
        (plan.bounds_before_trees and leaves_out and has_supports, _bounds(state, plan)),
        (looks, _looks(state, plan)),
        (looks, _weakest(state, plan, wanted, share)),
        (grows_first, _first_trees(state, plan, looks)),
        (leaves_out, _bounds(state, plan)),
        (leaves_out, _trees_of_likely_winner(state, plan)),
        (True, _left_out_trees(state, plan, wanted, leaves_out)),
        (True, _fold_trees(state, plan, wanted)),
    )
    steps = first_phase((phase for applies, phase in phases if applies), running)
    yield from islice(steps, plan.n_threads if leaves_out else None)  # to omit pairs, the state is read after each step


def _bounds(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield bounds of all folds in closed form, and fits in every fold at the gammas where these cannot be used."""
    if plan.leaves_folds_out:
        yield from LeftOutTrees().steps(state, plan, state.tried.list_stage < BOUNDED, 0)
    if not plan.leaves_folds_out or not (state.tried.list_stage < BOUNDED).any():
        yield from SupportFits().steps(state, plan, ~np.isfinite(state.cells.nominal.sum(axis=2)))


def _first_trees(state: GridState, plan: Plan, ends_excluded: bool) -> Iterator[Step]:
    """Yield the first trees of the full data; a tree may end once its pair is excluded."""
    if not ends_excluded:
        yield from FullDataTrees().first_trees(state, plan, np.ones(state.context.shape[:2], dtype=bool))
        return
    pairs = (state.tried.full_tries == 0) & ~state.all_rows.solved_pairs()
    gammas = np.flatnonzero(pairs.any(axis=1))[-plan.n_threads :]
    pairs[: gammas.min(initial=len(pairs))] = False
    yield from FullDataTrees().steps_of_pairs(state, plan, pairs, state.bars_in_question(), 0, plan.first_full_nodes)


def _looks(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield short trees of the full data at all gammas, which are sufficient for small sizes."""
    pairs = (state.tried.full_tries == 0) & ~state.tried.is_looked_at
    yield from FullDataTrees().steps_of_pairs(
        state, plan, pairs, state.bars_in_question(), NOT_A_TRY, plan.look_nodes, plan.slice_seconds
    )


def _weakest(state: GridState, plan: Plan, wanted: BoolArray, share: float) -> Iterator[Step]:
    """Yield steps that raise the smallest lower bounds if no proof fits into the limit."""
    pairs = np.asarray(wanted.any(axis=2))
    if is_weakest_due(state, plan, pairs, share):
        yield from weakest(state, plan, pairs)


def _trees_of_likely_winner(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield trees of the pair with the best estimate: one tree for all folds, or of each fold that has no tree yet.

    The order reads the state again after each step, and another pair may then have the best estimate.
    """
    g, t = likely_winner(state.bounds())
    if plan.leaves_folds_out and state.tried.list_stage[g, t] < SOLVED:
        yield LeftOutTrees().step(state, plan, g, [t], max(int(state.tried.full_nodes[g]), 1))
    elif state.tried.lowest_tries[g, t] == 0:
        untried = np.zeros(state.context.shape, dtype=bool)
        untried[g, t] = state.open[g, t] & (np.asarray(state.tried.tree_tries[g, t]) == 0)
        yield from SubproblemTrees().steps_by_fold(state, plan, untried, 0)


def _left_out_trees(state: GridState, plan: Plan, wanted: BoolArray, by_estimate: bool) -> Iterator[Step]:
    """Yield one shared tree for all folds of a gamma: the largest gamma first, or the gamma with the best estimate."""
    pairs = wanted.any(axis=2) & (state.tried.list_stage < SOLVED)
    if not plan.leaves_folds_out or not pairs.any():
        return
    gammas = np.flatnonzero(pairs.any(axis=1))[::-1]
    if by_estimate:
        gammas = gammas[np.argsort(state.bounds().nominal.min(axis=1)[gammas], kind="stable")][:1]
    for g in gammas.tolist()[: plan.gammas_at_once]:
        nodes = max(int(state.tried.full_nodes[g]), 1)
        yield LeftOutTrees().step(state, plan, g, np.flatnonzero(pairs[g]).tolist(), nodes)


def _fold_trees(state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
    """Yield trees of the folds with the fewest tries."""
    tries = np.where(wanted, state.tried.tree_tries, plan.max_tries)
    lowest = int(tries.min(initial=plan.max_tries))
    if lowest < plan.max_tries:
        yield from SubproblemTrees().steps_by_fold(state, plan, wanted & (tries == lowest), lowest)
