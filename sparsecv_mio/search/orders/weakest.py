"""The order that raises the smallest lower bounds of the grid: these are the gap that a limit leaves.

Trees on the full data compete with trees of folds with weighted held-out rows, by what each keeps of its promises for
the nodes that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.grid_state import DONE, GridState
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.weighted_trees import WeightedTrees
from sparsecv_mio.search.steps import Step


def is_weakest_due(state: GridState, plan: Plan, share: float) -> bool:
    """Return True if the pairs with the smallest lower bounds are due: in the later part of a limit.

    Parameters
    ----------
    state : GridState
    plan : Plan
    share : float
        Share of the time limit that has passed; 0 without one.
    """
    return share >= plan.choice_share


def weakest(state: GridState, plan: Plan, pairs: BoolArray) -> Iterator[Step]:
    """Yield the step that raises the smallest lower bounds most for its nodes.

    Parameters
    ----------
    state : GridState
    plan : Plan
    pairs : (G, T) bool array
        In question.
    """
    lower, ceiling = state.bounds().lower, float(state.bounds().upper.min())
    sums = np.where(pairs, lower, np.inf)
    near = pairs & (sums <= sums.min(axis=0)) & (sums <= sums.min() + 0.5 * plan.rise_share * ceiling)
    aims = np.minimum(lower + plan.rise_share * ceiling, state.bars_in_question())
    tries = np.where(state.all_rows.solved_pairs(), DONE, state.full_tries)
    lowest = int(np.where(near, tries, DONE).min())
    full = FullDataTrees().steps_of_pairs(
        state, plan, near & (tries == lowest), aims, lowest, plan.node_limit(lowest), plan.slice_seconds
    )  # fmt: skip
    trees = WeightedTrees().steps(state, plan, near, aims)
    steps = [step for source in (full, trees) for step in islice(source, plan.compared_steps)]
    ranked = sorted(
        (step for step in steps if step.promised > 0.0),
        key=lambda step: -step.promised * state.records_of(step.source).share / step.work,
    )
    yield from ranked[: plan.n_threads]
