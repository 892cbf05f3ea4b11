"""Search orders that solve, or only estimate, every pair (tau, gamma) of a goal, even pairs that bounds could exclude.

In the order `given_pairs`, the pair with the fewest attempts comes first, so that easy pairs do not wait for hard ones.
Among pairs with the same number of attempts, the smallest gamma comes first, then the smallest tau. In the order
`estimates`, a local search in every fold looks for supports of the open pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_searches import FoldSamples, FoldSearches
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim
from sparsecv_mio.search.steps import Step


def given_pairs(
    goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float
) -> Iterator[Step]:
    """Yield the full data of the pairs if the goal needs their models, and then trees of their open folds."""
    pairs = goal.pairs(state)
    if goal.needs_full_data:
        for g, t in np.argwhere(pairs & state.needs_full_tree()).tolist():
            if not running:
                yield FullDataTrees().step(state, (g, t), n_threads=plan.n_threads)
            return
    busy = {(step.gamma, step.taus[0], step.folds) for step in running}
    tries_of_pairs = np.where(pairs, state.tried.lowest_tries, plan.max_tries)
    tries = int(tries_of_pairs.min())
    next_pairs = np.argwhere((tries_of_pairs == tries) & (tries < plan.max_tries))  # sorted by gamma, then by tau
    for g, t in next_pairs[:1].tolist():
        for step in SubproblemTrees().steps(state, plan, Aim((g, t), np.inf), tries, plan.n_threads):
            if (g, t, step.folds) not in busy:
                yield step


def estimates(goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float) -> Iterator[Step]:
    """Yield the next pass over all folds."""
    if not running:
        yield from FoldSearches().steps(state, plan, goal.pairs(state), are_estimates=True)
        yield from FoldSamples().steps(state, plan, goal.pairs(state))
