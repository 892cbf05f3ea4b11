"""Grid search, the baseline of the papers: all subproblems are solved, sorted by gamma, size and fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.search.orders.algorithm1 import first_bounds
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.grid_state import GridState, SearchGoal
from sparsecv_mio.search.steps import Step, idle_steps


def grid(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield supports of all folds first, then every subproblem in order.

    Parameters
    ----------
    goal : SearchGoal
        Goal whose pairs are solved.
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    running : sequence of Step
        Steps that are running.
    share : float
        Share of the time limit that has passed; not read.
    """
    first = first_bounds(state, plan, running)
    if first is not None:
        yield from first
        return
    for g, t in np.argwhere(goal.pairs(state) & (state.tried.lowest_tries < plan.max_tries)).tolist():
        folds = state.open_folds((g, t), 0).tolist()
        yield from idle_steps(SubproblemTrees().steps_of_folds(state, plan, (g, t), folds, 0), running)
