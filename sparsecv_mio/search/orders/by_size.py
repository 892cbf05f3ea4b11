"""The search order (schedule of steps) for many columns and few folds: it solves small sizes before large ones.

Branch-and-bound trees become more expensive as the size grows. In the same time, complete proofs for the small sizes
therefore exclude more pairs (tau, gamma) than partial work on every size.

1. The search begins with the pair with the best estimate. Each attempt to solve the pair has a node limit twice as high
as the previous attempt. The attempts end if the next one would not fit into half of the remaining time. The attempts
also end if bounds on the full data could exclude less than half of the other open pairs even after the pair was solved.
2. Then the search works on the other sizes: together on all sizes up to that of the pair with the best estimate, and
one by one on the larger sizes. For each size, trees of the full data come before trees of folds. The trees of the full
data run until the open pairs of the size are excluded, or until the trees cannot exclude another pair. 3. The search
then repeats the open pairs with a node limit eight times as high. This work alternates with work on the next size: the
kind of work that has cost fewer nodes so far comes next. After the first size, every open pair gets one short tree of
the full data. 4. If the proof for all pairs is not expected to fit into the time limit, the pairs with the smallest
lower bounds get a part of the time (module `weakest`). 5. When items 1 to 4 have no step left, the search goes on with
the phases of the order `together`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.orders.first_supports import find_winner_of_sizes
from sparsecv_mio.search.orders.together import looks, together
from sparsecv_mio.search.orders.weakest import OpenPairs, is_weakest_due, weakest
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Pair
from sparsecv_mio.search.steps import Step, idle_steps


def by_size(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield the next steps."""
    now = OpenPairs.from_state(state, plan)
    if not now.pairs.any():
        yield from together(goal, state, plan, running, share)
        return
    for steps in _phases(state, plan, now, share):
        phase = list(islice(idle_steps(steps, running), plan.n_threads))  # a solved fold may leave others without need
        if phase or running:
            yield from phase
            return
    yield from together(goal, state, plan, running, share)  # what the phases left open


def _phases(state: GridState, plan: Plan, now: OpenPairs, share: float) -> Iterator[Iterator[Step]]:
    """Yield the steps of each phase whose conditions hold; if a phase has no step, the next phase follows."""
    winner, is_first = find_winner_of_sizes(state, now.pairs.shape[1] - 1), not now.has_tried_size()
    if now.pairs[winner] and _is_winner_due(state, plan, now, winner):
        yield _trees_of_winner(state, plan, winner)
    if not is_first and not state.tried.is_looked_at.any():
        yield looks(state, plan, now.pairs)
    if is_weakest_due(state, plan, now.pairs, share):
        yield weakest(state, plan, now.pairs)
    sizes = np.arange(winner[1] + 1) if is_first and not now.pairs[winner] else now.due_sizes(state)
    yield _round_of_sizes(state, plan, now, sizes)


def _is_winner_due(state: GridState, plan: Plan, now: OpenPairs, winner: Pair) -> bool:
    """Return True if the pair with the best estimate comes before all other pairs."""
    if state.tried.lowest_tries[winner] == 0:
        return True
    others = now.pairs.copy()
    others[winner] = False
    bars = np.full(others.shape, state.cells.nominal[winner].sum() * (1.0 - state.context.gap))
    full_upper = state.all_rows.upper()
    may = (state.bounds().lower >= bars) | (state.objective_cutoffs(bars) <= full_upper)
    next_seconds = (plan.winner_growth - 1) * state.tried.tree_seconds[winner] / plan.n_threads
    fits = next_seconds <= plan.winner_share * state.context.deadline.remaining_seconds
    return fits and int((others & may).sum()) >= plan.excluded_share * int(others.sum())


def _trees_of_winner(state: GridState, plan: Plan, winner: Pair) -> Iterator[Step]:
    """Yield the folds with the fewest tries of the pair with the best estimate, with growing node limits."""
    only, tries = np.zeros(state.context.shape, dtype=bool), int(state.tried.lowest_tries[winner])
    only[winner] = ~state.cells.final[winner] & (state.tried.tree_tries[winner] <= tries)
    yield from SubproblemTrees().steps_by_fold(
        state, plan, only, tries, plan.first_node_limit * plan.winner_growth**tries
    )


def _round_of_sizes(state: GridState, plan: Plan, now: OpenPairs, sizes: IntArray) -> Iterator[Step]:
    """Yield the full data of some sizes, then the folds of the pair with the best estimate, then all folds."""
    at_sizes = np.isin(np.arange(now.pairs.shape[1]), sizes)
    tries = int(now.tries[:, at_sizes].min())
    full = now.pairs & at_sizes & (state.tried.full_tries <= tries)
    bars, is_yielded = state.sum_cutoffs(), False
    for step in FullDataTrees().steps_of_pairs(state, plan, full, bars, tries, plan.node_limit(tries)):
        is_yielded = True
        yield step
    deferred = now.may_be_excluded if tries == 0 else np.zeros_like(now.pairs)
    cells = now.cells & ~deferred[:, :, None] & (state.tried.tree_tries <= tries)
    for t in sizes.tolist() if not is_yielded else ():
        winner = find_winner_of_sizes(state, t)
        for pairs in (_mask(cells, winner) if winner[1] == t else cells & False, _size(cells, t)):
            if pairs.any():
                yield from SubproblemTrees().steps_by_fold(state, plan, pairs, tries)
                return


def _mask(cells: BoolArray, pair: Pair) -> BoolArray:
    only = np.zeros_like(cells)
    only[pair] = cells[pair]
    return only


def _size(cells: BoolArray, t: int) -> BoolArray:
    return np.asarray(cells & (np.arange(cells.shape[1]) == t)[None, :, None])
