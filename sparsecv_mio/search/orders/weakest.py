"""The order that raises the smallest lower bounds of the grid: these are the gap that a limit leaves.

Trees on the full data compete with trees of folds with weighted held-out rows, by the measured rise a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.attempts import DONE
from sparsecv_mio.search.grid_state import GridState
from sparsecv_mio.search.orders.in_question import InQuestion
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.weighted_trees import WeightedTrees
from sparsecv_mio.search.steps import Step


def is_weakest_due(state: GridState, plan: Plan, pairs: BoolArray, share: float) -> bool:
    """Return True if the pairs with the smallest lower bounds are due: in the later part of a limit that no proof fits.

    Parameters
    ----------
    state : GridState
    plan : Plan
    pairs : (G, T) bool array
        In question.
    share : float
        Share of the time limit that has passed; 0 without one.
    """
    if share < plan.proof_share or not np.isfinite(state.bounds().upper.min()):
        return False
    return forecast_sweeps(state, plan, pairs) > state.context.deadline.left


def forecast_sweeps(state: GridState, plan: Plan, pairs: BoolArray) -> float:
    """Return about how many seconds sweeps take until no pair is in question, if all goes on as it went.

    Work is counted in nodes, so that a slow second of a busy machine changes little. A pair of a new size takes as much
    as one of the last new size, and more with each size by as much as pairs did from one to the next so far. A pair
    that is still in question takes more than at first by as much as its node limit grew. inf where nothing is known.

    Parameters
    ----------
    state, plan, pairs
        As of `is_weakest_due`.
    """
    swept, n_pairs = np.flatnonzero(state.tried.first_work > 0.0), pairs.sum(axis=0)
    if not len(swept) or not state.tried.first_seconds:
        return float(np.inf)
    n_swept = ((state.tried.full_tries > 0) | (state.tried.lowest_tries > 0)).sum(axis=0)
    each = np.zeros(len(n_pairs))
    each[swept] = state.tried.first_work[swept] / np.maximum(n_swept[swept], 1)
    growth = max(each[swept[-1]] / each[swept[0]], 1.0) ** (1.0 / max(len(swept) - 1, 1))
    tries = np.where(pairs, InQuestion.of(state, plan).tries, DONE).min(axis=0)
    each[swept] *= np.float64(plan.node_growth) ** np.where(tries < DONE, tries, 0)[swept]
    new = np.flatnonzero((state.tried.first_work == 0.0) & (n_pairs > 0))
    each[new] = each[swept[-1]] * growth ** (1.0 + np.arange(len(new)))
    return float(each @ n_pairs) * float(state.tried.first_seconds / state.tried.first_work.sum()) / plan.n_threads


def weakest(state: GridState, plan: Plan, pairs: BoolArray) -> Iterator[Step]:
    """Yield the step that raises the smallest lower bounds most for its time, as the records of sources tell.

    Parameters
    ----------
    state : GridState
    plan : Plan
    pairs : (G, T) bool array
        In question.
    """
    lower, ceiling = state.bounds().lower, float(state.bounds().upper.min())
    sums = np.where(pairs, lower, np.inf)
    rise = plan.raised_share * (ceiling - float(lower.min()))
    near = pairs & (sums <= sums.min(axis=0)) & (sums <= sums.min() + 0.5 * rise)
    aims = np.minimum(lower + rise, state.bars_in_question())
    sources = FullDataTrees().ranked_steps(state, plan, near, aims), WeightedTrees().steps(state, plan, near, aims)
    steps = [step for source in sources for step in islice(source, plan.compared_steps)]
    ranked = sorted(
        (step for step in steps if step.promised > 0.0),
        key=lambda step: state.records_of(step.source).expect_rates(step.promised, step.work),
        reverse=True,
    )
    yield from ranked[: plan.n_threads]
