"""First supports: both ways to them, by Gram matrices and by working sets, against plain refits."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem import objective
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics import first_supports as module
from sparsecv_mio.search.heuristics import fold_searches, working_sets
from sparsecv_mio.search.heuristics.first_supports import first_supports

from .drawn import FOLDS, random_data


@pytest.mark.parametrize("seed", range(3))
def test_working_sets_find_what_all_columns_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(seed), Grid.of([0.01, 0.1, 1.0], [0, 1, 2, 3, 5], 60)
    monkeypatch.setattr(working_sets, "FIRST_COLUMNS", 12)
    results = []
    for most in (1200, 0):
        monkeypatch.setattr(module, "MOST_COLUMNS", most)
        last = {paths.fold: paths for paths in first_supports(data, FOLDS, grid, threads=2)}
        results.append(last)
    ratio = np.array([results[1][fold].objective / results[0][fold].objective for fold in range(3)])
    assert np.mean(np.abs(ratio - 1.0) < 1e-7) > 0.9 and np.all(ratio < 1.05)


@pytest.mark.parametrize("most", [1200, 0])
def test_values_are_plain_refits(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(7), Grid.of([0.01, 1.0], [1, 4, 30], 60)
    monkeypatch.setattr(module, "MOST_COLUMNS", most)
    dataset = data.dataset
    for paths in first_supports(data, FOLDS, grid):
        for g, t in np.ndindex(2, 3):
            support = data.columns[paths.support(g, t)].tolist()
            fit = objective.fit(dataset.X, dataset.y, support, grid.gammas[g], rows=FOLDS.train_rows(paths.fold))
            error = objective.held_out_error(fit, dataset.X, dataset.y, FOLDS.scored_rows(paths.fold))
            assert paths.objective[g, t] * data.y_unit**2 == pytest.approx(fit.objective, rel=1e-7)
            assert paths.held_out[g, t] * data.y_unit**2 == pytest.approx(error, rel=1e-6)


def test_sizes_beyond_the_table_are_answered_by_its_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(fold_searches, "TABLE_SIZE", 216)
    for paths in first_supports(data, FOLDS, grid):
        assert [len(paths.support(0, t)) for t in range(3)] == [1, 6, 6]


@pytest.mark.parametrize("most", [1200, 0])
def test_a_stop_at_once_still_gives_every_fold_an_answer(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(module, "MOST_COLUMNS", most)
    found = list(first_supports(data, FOLDS, grid, expired=lambda: True, seeds=[np.array([3, 50])]))
    assert [paths.fold for paths in found] == [0, 1, 2]
    for paths in found:
        assert np.all(np.isfinite(paths.held_out))
        assert [len(set(paths.support(0, t).tolist())) for t in range(3)] == [1, 6, 60]
