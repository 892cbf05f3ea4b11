"""The search order that solves the pair with the best estimate first, and then excludes other pairs by bounds.

Of all bounding methods, the training-loss bound usually raises lower bounds most, and it needs trees of the full data.
If trees of the full data may exclude a pair (tau, gamma), they therefore come before trees of the folds of this pair.
Trees are extended in rounds: every tree gets a few nodes before any tree gets more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.held_out_lists import HeldOutLists
from sparsecv_mio.search.sources.initial_supports import FoldSupports
from sparsecv_mio.search.sources.relaxed_folds import FoldRelaxations
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.sources.weighted_rows import WeightedRelaxations
from sparsecv_mio.search.state.attempts import BOUNDED
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim, Pair, PairBounds, choose_aim
from sparsecv_mio.search.steps import Step, idle_steps


def winner_first(
    goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float
) -> Iterator[Step]:
    """Yield the next steps: those of the pair with the best estimate, then of the pair furthest below its cutoff.

    Late in a limit the pairs with the smallest bounds come first.
    """
    now, is_late = state.bounds(), share > plan.choice_share
    cutoff, near_best = _cutoff(now, state, plan, is_late), _near_best(now, plan)
    excluding = np.full(now.lower.shape, np.inf)
    if plan.max_tries > 1:  # with one try of each target nothing is put off
        excluding = state.objective_cutoffs(np.full(now.lower.shape, cutoff))
    if (easier := _find_easier_pair(now, state, plan, running)) is not None:
        tries = int(state.tried.lowest_tries[easier])
        yield from _steps_of_pair(state, plan, Aim(easier, np.inf), tries, plan.n_threads, running, excluding)
        return
    for tries in range(int(state.tried.round), plan.max_tries):
        if (is_late or tries) and (unweighed := _unweighed_folds(state, plan, running)):
            yield from unweighed
            return
        waiting = (state.tried.lowest_tries <= tries) & ~_busy_pairs(running, near_best)
        waiting &= ~_deferred_pairs(state, plan, excluding, tries)
        aim = _aim(now, state, plan, waiting, is_late)
        if aim is not None and not (running and aim.solves_pair and not near_best[aim.pair]):
            n_others = 1 if aim.solves_pair else int(((now.lower < aim.sum_cutoff) & waiting).sum())
            unweighed = _unweighed_folds(state, plan, running) if n_others > plan.weighted_pairs else []
            n_threads = -(-plan.n_threads // n_others)
            yield from unweighed or _steps_of_pair(state, plan, aim, tries, n_threads, running, excluding)
            return
        if running:
            return


def _deferred_pairs(state: GridState, plan: Plan, excluding: FloatArray, tries: int) -> BoolArray:
    """(G, T): pairs that had their work in a round, and that wait for the next one.

    Such a pair had a full-data tree and searches of its folds in this round, and a larger tree may exclude it; or it
    had a list in this round, and the list is not complete. In the last round no pair waits.

    Parameters
    ----------
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    excluding : (G, T) array
        Bounds on the full data that exclude a pair.
    tries : int
        Number of earlier rounds.
    """
    tried, all_rows = state.tried, state.all_rows
    is_searched = tried.is_pair_searched | (not plan.searches_folds_of_pair)
    by_tree = (tried.full_tries > tries) & is_searched & ~all_rows.solved_pairs() & (excluding <= all_rows.upper())
    by_list = (tried.list_tries > tries) & (tried.list_stage <= BOUNDED)
    return np.asarray((by_tree | by_list) & (tries + 1 < plan.max_tries))


def _steps_of_pair(
    state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int, running: Sequence[Step], excluding: FloatArray
) -> Iterator[Step]:  # fmt: skip
    """Yield the next steps of a pair: the full data if it may exclude the pair, lists, local search, then trees."""
    relaxations = idle_steps(FoldRelaxations().steps(state, plan, _pairs_of_gamma(state, aim.pair[0])), running)
    first = next(relaxations, None)
    if first is not None or any(s.source == FoldRelaxations.name and s.gamma == aim.pair[0] for s in running):
        yield from () if first is None else chain([first], relaxations)
        return
    full = list(FullDataTrees().steps(state, plan, aim, tries, n_threads))
    excludes = bool(full) and excluding[aim.pair] <= state.full_subset(aim.pair).upper
    searches = [] if excludes else _searches_before_trees(state, plan, aim, tries, n_threads)
    if searches:
        yield from () if running and plan.lists_held_out else searches  # a list takes all threads
        return
    if full and (excludes or not plan.lists_held_out):
        yield from full
        return
    yield from _trees_of_folds(state, plan, aim, tries, n_threads, running)


def _trees_of_folds(
    state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int, running: Sequence[Step]
) -> Iterator[Step]:  # fmt: skip
    """Yield trees of folds of a pair, of which no tree runs."""
    folds = [step.folds for step in running if step.covers(*aim.pair)]
    trees = SubproblemTrees().steps(state, plan, aim, tries, n_threads)
    yield from (step for step in trees if step.folds not in folds)


def _searches_before_trees(state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> list[Step]:
    """Return the searches before trees of folds: near-optimal supports of the full data, or local searches."""
    if plan.lists_held_out:
        return list(HeldOutLists().steps(state, plan, aim, tries, plan.n_threads))
    return list(FoldSupports().steps(state, plan, aim.pair)) if plan.searches_folds_of_pair else []


def _pairs_of_gamma(state: GridState, g: int) -> BoolArray:
    """(G, T): pairs of one gamma."""
    pairs = np.zeros(state.context.shape[:2], dtype=bool)
    pairs[g] = True
    return pairs


def _unweighed_folds(state: GridState, plan: Plan, running: Sequence[Step]) -> list[Step]:
    """Return the steps of folds without weighted bounds, except for those that are running."""
    if not plan.weighs_held_out or len(state.weighted) == state.context.folds.k:
        return []
    busy = {step.folds for step in running if step.source == WeightedRelaxations.name}
    steps = WeightedRelaxations().steps(state, plan, np.ones(state.context.shape[:2], dtype=bool))
    return [step for step in steps if step.folds not in busy]


def _busy_pairs(running: Sequence[Step], near_best: BoolArray) -> BoolArray:
    """(G, T): pairs that steps work on, except pairs near the best estimate, which several fold trees may share."""
    busy = np.zeros(near_best.shape, dtype=bool)
    for step in running:
        pair = step.gamma, step.taus[0]
        is_shared = step.source == SubproblemTrees.name and near_best[pair]
        if not (is_shared or step.source == FoldRelaxations.name):
            busy[step.gamma if step.gamma >= 0 else slice(None), list(step.taus)] = True
    return busy


def _cutoff(now: PairBounds, state: GridState, plan: Plan, is_late: bool) -> float:
    """Return the sum that excludes a pair; late in a limit that lists serve, a smaller sum on the way there."""
    cutoff = now.ceiling * (1.0 - state.context.gap)
    if is_late and plan.lists_held_out and now.ceiling < np.inf:
        cutoff = min(cutoff, max(plan.late_growth * now.floor, now.floor + plan.rise_share * now.ceiling))
    return float(cutoff)


def _near_best(now: PairBounds, plan: Plan) -> BoolArray:
    """(G, T): pairs with estimates near the best one."""
    return np.asarray(now.nominal <= plan.near_estimates * now.nominal[now.winner])


def _find_easier_pair(now: PairBounds, state: GridState, plan: Plan, running: Sequence[Step]) -> Pair | None:
    """Return the pair that comes before the pair with the best estimate; None if there is none.

    While no upper bound near the best estimate is known, it is the best of the pairs with estimates near this one whose
    full-data bounds are far closer: such a pair is solved by far less work, and gives such an upper bound.
    """
    if plan.lists_held_out or now.ceiling <= plan.near_estimates * now.nominal[now.winner]:
        return None
    widths, near_best = state.all_rows.upper() - state.all_rows.lower(), _near_best(now, plan)
    waiting = (state.tried.lowest_tries < plan.max_tries) & ~_busy_pairs(running, near_best)
    is_easier = waiting & near_best & (widths < plan.easier_share * widths[now.winner])
    ranked = np.where(is_easier, now.nominal, np.inf)
    g, t = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
    return (int(g), int(t)) if is_easier.any() else None


def _aim(now: PairBounds, state: GridState, plan: Plan, waiting: BoolArray, is_late: bool) -> Aim | None:
    """Return the pair of the next steps, with the sum of lower bounds at which they end; inf to solve the pair.

    If the pair with the best estimate is open after its work of a round, pairs with estimates near the best one follow,
    if their full-data bounds are closer: such a pair is solved by less work, and gives an upper bound on the minimum.
    Late in a limit the pair is one of those with the smallest bounds, as long as these leave a larger part of the gap
    than the pair with the best estimate does.
    """
    estimate = now.nominal[now.winner]
    if not (waiting[now.winner] or is_late or plan.lists_held_out):
        widths = state.all_rows.upper() - state.all_rows.lower()
        is_cheap = waiting & _near_best(now, plan) & (now.nominal < now.ceiling) & (widths < widths[now.winner])
        if is_cheap.any():
            g, t = np.unravel_index(int(np.argmin(np.where(is_cheap, widths, np.inf))), widths.shape)
            return Aim((int(g), int(t)), np.inf)
    if not is_late or now.ceiling + now.floor >= 2.0 * estimate:
        return choose_aim(now, state.context.gap, waiting, plan.open_share)
    cutoff = _cutoff(now, state, plan, is_late)
    is_weak = now.lower < cutoff
    if not plan.lists_held_out:
        is_weak &= now.lower <= now.floor + plan.weakest_share * (cutoff - now.floor)
    lowest = np.where(waiting & is_weak, now.lower, np.inf)
    g, t = np.unravel_index(int(np.argmin(lowest)), lowest.shape)
    return Aim((int(g), int(t)), cutoff) if np.isfinite(lowest[g, t]) else None
