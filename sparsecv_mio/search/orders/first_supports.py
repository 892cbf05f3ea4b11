"""The search order that comes first with many columns: local search in all folds, proofs for small sizes, cheap bounds.

Under a time limit, sizes with few possible supports are solved as soon as an initial support is known in every fold.
Only after that, the search looks for supports with smaller objectives. As a result, some pairs are solved even if the
time limit ends the search early.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.fold_searches import FoldSamples, FoldSearches
from sparsecv_mio.search.sources.full_data import FullDataRelaxations
from sparsecv_mio.search.sources.initial_supports import InitialSupports
from sparsecv_mio.search.sources.relaxed_folds import Enclosures
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.sources.weighted_rows import WeightedTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Pair
from sparsecv_mio.search.steps import Step, first_phase


def first_supports(
    goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float
) -> Iterator[Step]:
    """Yield the steps of the first unfinished phase."""
    every = np.ones(state.context.shape[:2], dtype=bool)
    passes = list(FoldSearches().steps(state, plan, every))
    phases = (
        passes if passes and state.tried.fold_passes == 0 else InitialSupports().steps(state, plan, every),
        _small_sizes(state, plan),
        passes,
        FoldSamples().steps(state, plan, every),
        FullDataRelaxations().steps(state, plan, every) if plan.relaxes_full_data else (),
        Enclosures().steps(state, plan, every),
        WeightedTrees().relaxations(state, plan, np.asarray(state.unexcluded_by_size().any(axis=2))),
    )
    yield from first_phase(phases, running)


def _small_sizes(state: GridState, plan: Plan) -> Iterator[Step]:
    """Yield trees of the sizes with few supports: first of the pair with the best estimate of each size, then all."""
    cells = state.unexcluded_by_size() & (state.tried.tree_tries == 0)
    sizes = state.context.grid.indices_of(plan.small_sizes)
    for t in sizes:
        pair = find_winner_of_sizes(state, t, t)
        if cells[pair].any() and not np.isfinite(state.cells.upper[pair]).all():
            only = np.zeros(cells.shape, dtype=bool)
            only[pair] = cells[pair]
            yield from SubproblemTrees().steps_by_fold(state, plan, only, 0)
            return
    small = np.isin(np.arange(cells.shape[1]), sizes)
    yield from SubproblemTrees().steps_by_fold(state, plan, cells & small[None, :, None], 0)


def find_winner_of_sizes(state: GridState, last: int, first: int = 0) -> Pair:
    """Return the pair with the best estimate among sizes from index `first` to index `last`."""
    now, places, grid = state.bounds(), np.arange(len(state.context.grid.taus)), state.context.grid
    pairs = np.broadcast_to((first <= places) & (places <= last), now.lower.shape)
    return now.restrict(pairs, grid.gammas, grid.taus).winner
