"""A sample of many folds: who searches, where, and what the other folds get."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import change_plan, new_run, to_end

from sparsecv_mio.search.sources.fold_searches import FoldSamples
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.trees.subsets import is_never_expired

from .judged import check_state, do, grow_full_data, random_search


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
