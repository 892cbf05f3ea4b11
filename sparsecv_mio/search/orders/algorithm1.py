"""Algorithm 1 of the paper: bounds of every fold without branching, then the widest folds of the lowest pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.grid_state import GridState
from sparsecv_mio.search.pairs import Aim
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_relaxations import FoldRelaxations
from sparsecv_mio.search.sources.fold_roots import FoldRoots
from sparsecv_mio.search.sources.fold_searches import FoldSearches
from sparsecv_mio.search.sources.initial_supports import InitialSupports
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.steps import Step, idle_steps


def algorithm1(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield bounds of all folds first, then subproblems, as many at once as there are threads.

    Parameters
    ----------
    goal : SearchGoal
        Not read: the order is that of the certified choice.
    state : GridState
    plan : Plan
        It leaves subproblems out where bounds alone are requested.
    running : sequence of Step
    share : float
        Share of the time limit that has passed; not read.
    """
    first = list(first_bounds(state, plan, running))
    if first or running and running[0].source != SubproblemTrees.name:
        yield from first
    elif plan.solves_subproblems:
        yield from _widest_of_lowest(state, plan, running)


def first_bounds(state: GridState, plan: Plan, running: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps of the first phase before any subproblem that is not over: supports, roots, relaxations.

    Parameters
    ----------
    state : GridState
    plan : Plan
    running : sequence of Step
    """
    every = np.ones(state.is_offered.shape, dtype=bool)
    for source in (InitialSupports(), FoldSearches(), FoldRoots(), FoldRelaxations()):
        steps = list(source.steps(state, plan, every))
        if steps or any(step.source == source.name for step in running):
            yield from idle_steps(steps, running)
            return


def _widest_of_lowest(state: GridState, plan: Plan, running: Sequence[Step]) -> Iterator[Step]:
    """Yield the widest open folds of the pair with the smallest lower bound, or of the reported one after it."""
    now, cells = state.bounds(), state.cells
    g, t = np.unravel_index(int(np.argmin(now.lower)), now.lower.shape)
    n_idle = plan.n_threads - len(running)
    for pair in ((int(g), int(t)), now.best):
        steps = {step.folds[0]: step for step in SubproblemTrees().steps(state, plan, Aim(pair, np.inf), 0, 1)}
        if steps:
            width = np.asarray(cells.upper[pair]) - np.asarray(cells.lower[pair])
            widest = sorted(steps, key=lambda fold: (-width[fold], fold))
            yield from list(idle_steps([steps[fold] for fold in widest], running))[: max(n_idle, 0)]
            return
