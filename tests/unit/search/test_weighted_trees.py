"""Relaxations and trees of folds with weighted held-out rows: lower bounds that no optimum falls below."""

from __future__ import annotations

import numpy as np
import pytest
from runs import change_plan, new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.support_fits import SupportFits
from sparsecv_mio.search.sources.weighted_trees import WeightedTrees
from sparsecv_mio.search.state.pairs import Grid

from .judged import do, grow_full_data, random_search


def fitted(monkeypatch: pytest.MonkeyPatch, seed: int, **settings: float) -> tuple[object, GridSearch]:
    """A search whose folds show the supports of the full data, with bounds on their objectives."""
    change_plan(monkeypatch, grows_weighted_trees=True, **settings)
    case, search = random_search(seed)
    grow_full_data(search)
    do(
        search,
        list(SupportFits().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool))),
    )
    return case, search


def test_relaxations_and_trees_raise_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = np.zeros(2, dtype=int)
    for seed in range(6):
        with monkeypatch.context() as patch:
            _, search = fitted(patch, seed)
            state, source, every = (search.state, WeightedTrees(), np.ones(search.state.context.shape[:2], dtype=bool))
            before = state.cells.lower.copy()
            do(search, list(source.relaxations(state, search.plan, every)))
            raised[0] += int((state.cells.lower > before).sum())
            before = state.cells.lower.copy()
            do(search, list(source.steps(state, search.plan, every, state.cells.nominal.sum(axis=2))))
            raised[1] += int((state.cells.lower > before).sum())
    assert (raised > 0).all()


def test_a_target_that_held_out_rows_share_with_training_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the folds before the far row every model predicts the constant: what its mean leaves of rows is rounding."""
    change_plan(monkeypatch, grows_weighted_trees=True)
    rng = np.random.default_rng(3)
    y = np.where(np.arange(24) == 23, 7.3, 0.1)
    dataset = Dataset.from_arrays(rng.normal(size=(24, 4)), y)
    data, folds = standardize(dataset), make_folds("forward:6", dataset)
    search: GridSearch = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 4))
    grow_full_data(search)
    state, every = search.state, np.ones(search.state.context.shape[:2], dtype=bool)
    do(search, list(SupportFits().steps(state, search.plan, every)))
    state.cells.nominal[...] = 2.5e-33  # what fits show of it
    do(search, list(WeightedTrees().relaxations(state, search.plan, every)))
    assert folds.k > 2 and not state.cells.lower[:, :, :-1].any()
