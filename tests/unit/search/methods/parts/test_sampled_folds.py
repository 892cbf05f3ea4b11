"""A sample of many folds: who searches, where, and what the other folds get."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.search.methods.parts.sampled_folds import (
    INFLUENTIAL,
    SAMPLED,
    SampledFolds,
    gammas_to_search,
    influential_folds,
)
from sparsecv_mio.search.shared_tree.engines import SharedTrees


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
    run.method._fit_all_rows()
    root = SharedTrees(run.run.state).root(0)
    assert root is not None
    sample = influential_folds(root)
    assert INFLUENTIAL <= len(sample) <= INFLUENTIAL + SAMPLED and len(np.unique(sample)) == len(sample)
    influence = root.residual**2 / (1.0 - root.leverage)
    assert set(np.argsort(-influence)[:INFLUENTIAL].tolist()) <= set(sample.tolist())


def test_folds_that_do_not_search_get_supports_of_every_pair() -> None:
    data, plan, grid = drawn(p=6, n=90, folds="loo")
    run = new_run(data, plan, grid)
    run.method._fit_all_rows()
    paths = list(SampledFolds(run.run, grid, lambda: False).paths(list(range(plan.k))))
    assert sorted(one.fold for one in paths) == list(range(plan.k))
    for one in paths:
        assert np.isfinite(one.objective).all() and np.isfinite(one.held_out).all()
        for g in range(len(grid.gammas)):
            for t, tau in enumerate(grid.taus.tolist()):
                assert len(one.support(g, t)) == min(tau, data.q)
