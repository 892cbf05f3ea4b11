"""The search order (schedule of steps) for problems with cheap trees: a step covers all sizes of a gamma together.

With few columns there are usually two phases: first trees of the full data, then trees of folds. Folds with the fewest
attempts come first. If there are many small folds, one tree for all folds of a gamma is built between the two phases.

If the first trees of the full data take long, work that may exclude pairs (tau, gamma) comes before trees of all folds.
The search then computes bounds for the folds of all pairs that are not excluded. Trees of single folds follow, first
for the pair with the best estimate at that moment (the winner), until every fold of this pair has a tree. The other
pairs follow, gamma by gamma, in the order of the estimates. Under a time limit, short trees of the full data come
before all other work. If the proof for all pairs is not expected to fit into the time limit, the last part of the time
is used to raise the smallest lower bounds.

The function `_phases` has the conditions of all phases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.orders.weakest import is_weakest_due, weakest
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FirstFullDataTrees, FullDataTrees
from sparsecv_mio.search.sources.initial_supports import SupportFits
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.attempts import BOUNDED, NOT_A_TRY, SOLVED
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Step, first_phase


def together(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield the steps of the first unfinished phase.

    If the goal names no pairs, all pairs that are not excluded are solved.
    """
    excludes_first = plan.bounds_before_trees or bool(state.tried.full_nodes.sum() > plan.cheap_nodes)
    steps = first_phase(_phases(goal, state, plan, share, excludes_first), running)
    yield from islice(steps, plan.n_threads if excludes_first else None)  # a step may exclude pairs of the next steps


def _phases(
    goal: SearchGoal, state: GridState, plan: Plan, share: float, excludes_first: bool
) -> Iterator[Iterator[Step]]:
    """Yield the steps of each phase whose conditions hold, in the order of the phases."""
    pairs, has_supports = goal.pairs(state), bool(state.has_supports.all())
    wanted = state.open & pairs[:, :, None] if pairs.any() else state.unexcluded_subproblems()
    open_pairs, has_looks = np.asarray(wanted.any(axis=2)), excludes_first and plan.looks_first and has_supports
    if plan.bounds_before_trees and has_supports:
        yield _bounds(state, plan)
    if has_looks:
        yield looks(state, plan, (state.tried.full_tries == 0) & ~state.tried.is_looked_at)
    if has_looks and is_weakest_due(state, plan, open_pairs, share):
        yield weakest(state, plan, open_pairs)
    if share <= plan.first_trees_share or not state.has_supports.any():  # an answer comes before any limit
        yield _first_trees(state, plan, has_looks)
    if excludes_first:
        yield _bounds(state, plan)
        yield _trees_of_winner(state, plan)
    if plan.leaves_folds_out:
        yield _left_out_trees(state, plan, open_pairs, excludes_first)
    yield _fold_trees(state, plan, wanted)


def _bounds(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield bounds of all folds in closed form, and fits in every fold at the gammas where these cannot be used."""
    if plan.leaves_folds_out:
        yield from LeftOutTrees().steps(state, plan, state.tried.list_stage < BOUNDED, 0)
    if not plan.leaves_folds_out or not (state.tried.list_stage < BOUNDED).any():
        yield from SupportFits().steps(state, plan, ~np.isfinite(state.bounds().nominal))


def _first_trees(state: GridState, plan: Plan, ends_excluded: bool) -> Iterator[Step]:
    """Yield the first trees of the full data; a tree may end once its pair is excluded."""
    if not ends_excluded:
        yield from FirstFullDataTrees().steps(state, plan, np.ones(state.context.shape[:2], dtype=bool))
        return
    pairs = (state.tried.full_tries == 0) & ~state.all_rows.solved_pairs()
    gammas = np.flatnonzero(pairs.any(axis=1))[-plan.n_threads :]
    pairs[: gammas.min(initial=len(pairs))] = False
    yield from FullDataTrees().steps_of_pairs(state, plan, pairs, state.sum_cutoffs(), 0, plan.first_full_nodes)


def looks(state: GridState, plan: Plan, pairs: BoolArray) -> Iterator[Step]:
    """Yield short trees of the full data at all gammas of some pairs (G, T), which are sufficient for small sizes."""
    yield from FullDataTrees().steps_of_pairs(
        state, plan, pairs, state.sum_cutoffs(), NOT_A_TRY, plan.look_nodes, plan.slice_seconds
    )


def _trees_of_winner(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield trees of the pair with the best estimate: one tree for all folds, or of each fold that has no tree yet.

    The next steps are chosen from the new state after each step, and another pair may then have the best estimate.
    """
    g, t = state.bounds().winner
    if plan.leaves_folds_out and state.tried.list_stage[g, t] < SOLVED:
        yield LeftOutTrees().step(state, plan, g, [t], max(int(state.tried.full_nodes[g]), 1))
    elif state.tried.lowest_tries[g, t] == 0:
        untried = np.zeros(state.context.shape, dtype=bool)
        untried[g, t] = state.open[g, t] & (state.tried.tree_tries[g, t] == 0)
        yield from SubproblemTrees().steps_by_fold(state, plan, untried, 0)


def _left_out_trees(state: GridState, plan: Plan, open_pairs: BoolArray, by_estimate: bool) -> Iterator[Step]:
    """Yield one shared tree for all folds of a gamma: the largest gamma first, or the gamma with the best estimate."""
    pairs = open_pairs & (state.tried.list_stage < SOLVED)
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
