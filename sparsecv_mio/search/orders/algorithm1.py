"""The search orders (schedules of steps) of the papers (docs/papers.md), which are Algorithm 1 and grid search.

In both orders, the bounds of all folds are computed first, without branching. Each later step of Algorithm 1 selects
the pair (tau, gamma) with the smallest lower bound, and solves the fold of this pair with the widest interval. Grid
search solves all subproblems, sorted by gamma, size and fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np

from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_searches import FoldSearches
from sparsecv_mio.search.sources.initial_supports import InitialSupports
from sparsecv_mio.search.sources.relaxed_folds import FoldRelaxations, FoldRoots
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Step, idle_steps


def algorithm1(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield bounds of all folds first, then subproblems, as many at once as there are threads.

    If only bounds are requested, subproblems are omitted.
    """
    first = first_bounds(state, plan, running)
    if first is not None:
        yield from first
    elif plan.solves_subproblems:
        yield from _widest_of_lowest(state, plan, running)


def first_bounds(state: GridState, plan: Plan, running: Sequence[Step]) -> Iterator[Step] | None:
    """Return the steps of the first unfinished phase before any subproblem; None once all phases have ended.

    The phases are supports, roots and relaxations. Each step is built when it is taken.

    Parameters
    ----------
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    running : sequence of Step
        Steps that are running.
    """
    every = np.ones(state.context.shape[:2], dtype=bool)
    for source in (InitialSupports(), FoldSearches(), FoldRoots(), FoldRelaxations()):
        steps = idle_steps(source.steps(state, plan, every), running)
        first = next(steps, None)
        if first is not None:
            return chain([first], steps)
        if any(step.source == source.name for step in running):
            return iter(())
    return None


def _widest_of_lowest(state: GridState, plan: Plan, running: Sequence[Step]) -> Iterator[Step]:
    """Yield the widest open folds of the pair with the smallest lower bound, else of the reported pair, else of others.

    With ties, these two pairs may be solved before the choice is certified.
    """
    now, cells = state.bounds(), state.cells
    ascending = np.argsort(now.lower, axis=None, kind="stable").tolist()
    pairs = [divmod(place, now.lower.shape[1]) for place in ascending]
    for pair in (pairs[0], now.best, *pairs[1:]):
        folds = state.open_folds(pair, 0)
        if len(folds):
            width = cells.upper[pair][folds] - cells.lower[pair][folds]
            widest = folds[np.argsort(-width, kind="stable")].tolist()
            steps = SubproblemTrees().steps_of_folds(state, plan, pair, widest, 0)
            yield from islice(idle_steps(steps, running), max(plan.n_threads - len(running), 0))
            return


def grid(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield supports of all folds first, then every subproblem in order."""
    first = first_bounds(state, plan, running)
    if first is not None:
        yield from first
        return
    for g, t in np.argwhere(goal.pairs(state) & (state.tried.lowest_tries < plan.max_tries)).tolist():
        folds = state.open_folds((g, t), 0).tolist()
        yield from idle_steps(SubproblemTrees().steps_of_folds(state, plan, (g, t), folds, 0), running)
