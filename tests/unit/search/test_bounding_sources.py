"""Steps of single sources of bounds: what they claim is true, what they leave undone stays open."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import change_plan, new_run, to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.fold_searches import FoldSamples
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.support_fits import SupportFits
from sparsecv_mio.search.sources.weighted_trees import WeightedTrees
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.subsets import is_never_expired

from .judged import check_state, do, grow_full_data, random_search


def test_a_step_that_is_stopped_may_be_repeated() -> None:
    search = new_run(*drawn(p=5, n=48, folds="loo"))
    grow_full_data(search)
    step = LeftOutTrees().step(search.state, search.plan, 0, [0, 1, 2], 100)
    search.writer.take([LeftOutTrees().run(step, search.problems, lambda: True)])
    assert not search.state.tried.list_stage.any() and not search.state.cells.decided.any()


@pytest.mark.parametrize("seed", range(8))
def test_bounds_by_fitted_supports_hold_the_truth(seed: int) -> None:
    case, search = random_search(seed)
    grow_full_data(search)
    state, source = search.state, SupportFits()
    every = np.ones(state.context.shape[:2], dtype=bool)
    steps = list(source.steps(state, search.plan, every))
    assert [step.folds for step in steps] == [(fold,) for fold in range(case.folds.k)]
    do(search, steps)
    check_state(case, search)
    assert np.isfinite(state.objective_upper).all() and np.isfinite(state.cells.nominal).all()
    assert not list(source.steps(state, search.plan, every)), "what was fitted is not fitted again"


def test_a_step_that_is_stopped_says_what_it_has_fitted() -> None:
    _, search = random_search(1)
    grow_full_data(search)
    step = next(SupportFits().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool)))
    stopped = SupportFits().run(step, search.problems, lambda: True)
    assert stopped.was_stopped and stopped.statements == ()


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


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_every_subproblem_shows_a_support_of_its_fold(folds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, plan, grid = drawn(p=8, n=60, folds=folds)
    exact = to_end(new_run(data, plan, grid)).state.cells
    change_plan(monkeypatch, samples_folds=True)
    search = new_run(data, plan, grid)
    grow_full_data(search)
    state, every = search.state, np.ones(search.state.context.shape[:2], dtype=bool)
    low, high = state.cells.lower.copy(), state.cells.upper.copy()
    do(search, list(FoldSamples().steps(state, search.plan, every)))
    cells = state.cells
    assert int(state.tried.fold_passes) == DONE and np.isfinite(cells.nominal).all() and not cells.decided.any()
    assert np.array_equal(high, cells.upper) and np.all(cells.lower >= low)
    assert (cells.value >= exact.value * (1.0 - 1e-9)).all()
    assert np.mean(cells.value <= exact.value * (1.0 + 1e-9)) > 0.9
    assert not list(FoldSamples().steps(state, search.plan, every)), "once in a search"


@pytest.mark.parametrize("seed", range(8))
def test_what_a_sample_claims_is_true(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    change_plan(monkeypatch, samples_folds=True)
    case, search = random_search(600 + seed)
    grow_full_data(search)
    do(
        search,
        list(FoldSamples().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool))),
    )
    if seed != 5:  # there the leverages of two folds are so large that no fit of the full data scores them
        assert np.isfinite(search.state.cells.nominal).all()
    check_state(case, search)


def test_a_limit_leaves_one_pair_scored_with_bounds() -> None:
    data, folds, grid = drawn()
    search = new_run(data, folds, grid, seconds=60.0)
    grow_full_data(search)
    assert not np.isfinite(search.state.cells.nominal).any()
    search.context.deadline.stop.set()
    search.score_reported_pair()
    cells = search.state.cells
    pair = search.state.bounds().reported_pair(0.0, grid.gammas, grid.taus)
    assert np.isfinite(cells.nominal[pair]).all() and np.isfinite(cells.upper[pair]).all()


def test_nothing_before_anything_is_known() -> None:
    search = new_run(*drawn())
    search.score_reported_pair()
    assert not np.isfinite(search.state.cells.nominal).any()


def test_no_fold_is_searched_alone_where_the_sampled_folds_agree() -> None:
    search = new_run(*drawn(p=40, n=400, folds="loo", noise=0.1))
    grow_full_data(search)
    steps = list(FoldSamples().steps(search.state, search.plan, np.ones((2, 3), dtype=bool)))
    findings = [FoldSamples().run(step, search.problems, is_never_expired) for step in steps]
    assert [found.n_problems for found in findings] == [2], "the sample alone, and none of the 400 folds"
