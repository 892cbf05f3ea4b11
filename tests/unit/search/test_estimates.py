"""A sample of many folds: who searches, where, and what the other folds get."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, to_end

from sparsecv_mio.search import estimates
from sparsecv_mio.search.estimates import SAMPLED, SampledFolds, gammas_to_search, influential_folds
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.thresholds import FEW_FOLDS


def test_every_fold_searches_at_so_many_gammas_and_every_gamma_is_searched() -> None:
    for gammas in (1, 4, 15):
        for on_average in (0.3, 1.0, 2.5, 40.0):
            visits = [gammas_to_search(fold, gammas, on_average) for fold in range(200)]
            assert all(one == sorted(set(one), reverse=True) for one in visits)
            each = np.bincount(np.concatenate(visits).astype(int), minlength=gammas)
            assert (each > 0).all() and each.max() - each.min() <= 0.1 * each.max() + 1
            mean = sum(map(len, visits)) / len(visits)
            assert abs(mean - min(on_average, gammas)) < 0.05 * on_average


def test_the_most_influential_folds_are_in_the_sample() -> None:
    data, plan, grid = drawn(p=6, n=150, folds="loo")
    run = new_run(data, plan, grid)
    run._fit_all_rows()
    root = SharedTrees(run.run).root(0)
    assert root is not None
    sample = influential_folds(root)
    assert FEW_FOLDS <= len(sample) <= FEW_FOLDS + SAMPLED and len(np.unique(sample)) == len(sample)
    influence = root.residual**2 / (1.0 - root.leverage)
    assert set(np.argsort(-influence)[:FEW_FOLDS].tolist()) <= set(sample.tolist())


def test_folds_that_do_not_search_get_supports_of_every_pair() -> None:
    data, plan, grid = drawn(p=6, n=90, folds="loo")
    run = new_run(data, plan, grid)
    run._fit_all_rows()
    paths = list(SampledFolds(run.run, grid, lambda: False).paths(list(range(plan.k))))
    assert sorted(one.fold for one in paths) == list(range(plan.k))
    for one in paths:
        assert np.isfinite(one.objective).all() and np.isfinite(one.held_out).all()
        for g in range(len(grid.gammas)):
            for t, tau in enumerate(grid.taus.tolist()):
                assert len(one.support(g, t)) == min(tau, data.q)


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_every_cell_shows_a_support_of_its_fold(folds: str) -> None:
    data, plan, grid = drawn(p=8, n=60, folds=folds)
    run, exact = new_run(data, plan, grid), to_end(new_run(data, plan, grid)).run.cells
    run._fit_all_rows()
    cells = run.run.cells
    low, high = cells.lower.copy(), cells.upper.copy()
    run.estimates.at_end()
    assert run.estimates.done and np.isfinite(cells.nominal).all() and not cells.decided.any()
    assert np.array_equal(low, cells.lower) and np.array_equal(high, cells.upper)
    assert (cells.value >= exact.value * (1.0 - 1e-9)).all()
    assert np.mean(cells.value <= exact.value * (1.0 + 1e-9)) > 0.9


def test_once_in_a_run() -> None:
    data, plan, grid = drawn()
    run = new_run(data, plan, grid)
    run.estimates.resume()
    assert not run.estimates.done  # with few columns nothing is searched for before the proof
    run.estimates.done = True
    run.estimates.at_end()
    assert not np.isfinite(run.run.cells.nominal).any()


def test_a_limit_leaves_one_pair_scored_with_bounds() -> None:
    data, folds, grid = drawn()
    run = new_run(data, folds, grid, seconds=60.0)
    run._fit_all_rows()
    assert not np.isfinite(run.run.cells.nominal).any()
    run.context.deadline.stop.set()
    run.score_reported_pair()
    cells = run.run.cells
    pair = run.run.bounds().reported_pair(0.0, grid.gammas, grid.taus)
    assert np.isfinite(cells.nominal[pair]).all() and np.isfinite(cells.upper[pair]).all()


def test_many_small_folds_are_scored_in_closed_form() -> None:
    data, folds, grid = drawn(n=40, folds="loo")
    run = new_run(data, folds, grid)
    run._fit_all_rows()
    estimates._score_in_closed_form(run.run, run.trees, 1, 1)
    exact = new_run(data, folds, grid)
    exact._fit_all_rows()
    estimates._give_support(exact.run, (1, 1), np.arange(40))
    ours, theirs = run.run.cells, exact.run.cells
    assert np.allclose(ours.nominal[1, 1], theirs.nominal[1, 1], rtol=1e-8)


def test_nothing_before_anything_is_known() -> None:
    run = new_run(*drawn())
    run.score_reported_pair()
    assert not np.isfinite(run.run.cells.nominal).any()
