"""The order for estimates, in which every fold searches for good supports of the open pairs (tau, gamma)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_searches import FoldSamples, FoldSearches
from sparsecv_mio.search.state.grid_state import GridState, SearchGoal
from sparsecv_mio.search.steps import Step


def estimates(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield the next pass over all folds.

    Parameters
    ----------
    goal : SearchGoal
        Goal whose pairs need estimates.
    state : GridState
        State of the search.
    plan : Plan
        Plan of the search.
    running : sequence of Step
        Steps that are running.
    share : float
        Share of the time limit that has passed; not read.
    """
    if not running:
        yield from FoldSearches().steps(state, plan, goal.pairs(state), are_estimates=True)
        yield from FoldSamples().steps(state, plan, goal.pairs(state))
