"""The row regime: forward selection of several folds at once, working sets by training rows alone, the same answers."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.kernels import starts
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.heuristics import first_supports, wide
from sparsecv_mio.search.options import Grid

LABELS = np.arange(24) % 3
FOLDS = folds_from_labels(LABELS)
TOP = 5


def random_data(seed: int, n: int = 24, p: int = 60, intercept: str = "fold", held_out: float = 0.0) -> StandardData:
    """Correlated columns; `held_out` scales what is added to the targets of fold 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = X[:, 0] + X[:, 20] - X[:, 40] + 0.5 * rng.standard_normal(n)
    y[LABELS == 0] += held_out * rng.standard_normal(8)
    return standardize(Dataset.from_arrays(X, y), "length", intercept)


def selected(data: StandardData) -> wide.Forward:
    rows = wide.Rows(data, FOLDS)
    forward = wide.Forward(rows, [0, 1, 2], rows.spread([0, 1, 2]), 0.05, TOP)
    forward.run(lambda: False)
    return forward


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_forward_selection_is_that_of_each_fold(seed: int, intercept: str) -> None:
    data = random_data(seed, intercept=intercept)
    for fold, picked in enumerate(selected(data).picked):
        problem = row_moments(data, FOLDS.train_rows(fold)).problem(data, 0.1)
        best, masks = np.full(data.q + 1, np.inf), np.zeros((data.q + 1, data.q), dtype=bool)
        starts.forward_selection(problem.M, problem.c, problem.yy, TOP, best, masks)
        for size in range(1, TOP + 1):
            assert sorted(picked[:size]) == np.flatnonzero(masks[size]).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_held_out_targets_have_no_say_in_a_working_set(seed: int) -> None:
    found = []
    for held_out in (0.0, 1.0):
        data = random_data(seed, held_out=held_out)
        forward, rows = selected(data), wide.Rows(data, FOLDS)
        search = wide.working_search(data, FOLDS, 0, np.array([0.05]), TOP, np.sort(forward.picked[0]))
        search.sweep([0], lambda: False)
        more = wide.columns_to_add(search, rows, rows.spread([0])[0].astype(np.float32))
        found.append((forward.picked[0], forward.named[0], sorted(more.tolist())))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(3))
def test_residuals_are_those_of_plain_refits(seed: int) -> None:
    data = random_data(seed)
    forward, rows = selected(data), wide.Rows(data, FOLDS)
    search = wide.working_search(data, FOLDS, 1, np.array([0.05]), 2, np.sort(forward.picked[1]))
    search.sweep([0], lambda: False)
    train = FOLDS.train_rows(1)
    supports: list[list[int]] = [[]]
    for size in (1, 2):
        supports.append(search.found()[0, size, :size].tolist())
    supports += [np.delete(chosen, a).tolist() for chosen in supports[1:] for a in range(len(chosen))]
    found = wide.residuals(search, rows) * data.y_unit
    assert len(found) == len(supports)
    dataset = data.dataset
    for residual, support in zip(found, supports, strict=True):
        fit = objective.fit(dataset.X, dataset.y, support, 0.1, rows=train)
        plain = dataset.y[train] - fit.predict(dataset.X[train])
        np.testing.assert_allclose(residual[train], plain, atol=1e-8)
        assert np.all(residual[LABELS == 1] == 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_working_sets_find_what_all_columns_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(seed), Grid.of([0.01, 0.1, 1.0], [0, 1, 2, 3, 5], 60)
    module = importlib.import_module("sparsecv_mio.search.heuristics.first_supports")
    monkeypatch.setattr(wide, "FIRST_COLUMNS", 12)
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
    monkeypatch.setattr(importlib.import_module("sparsecv_mio.search.heuristics.first_supports"), "MOST_COLUMNS", most)
    dataset = data.dataset
    for paths in first_supports(data, FOLDS, grid):
        for g, t in np.ndindex(2, 3):
            support = data.columns[paths.support(g, t)].tolist()
            fit = objective.fit(dataset.X, dataset.y, support, grid.gammas[g], rows=FOLDS.train_rows(paths.fold))
            error = objective.held_out_error(fit, dataset.X, dataset.y, FOLDS.test_rows(paths.fold))
            assert paths.objective[g, t] * data.y_unit**2 == pytest.approx(fit.objective, rel=1e-7)
            assert paths.held_out[g, t] * data.y_unit**2 == pytest.approx(error, rel=1e-6)


def test_sizes_beyond_the_table_are_answered_by_its_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(importlib.import_module("sparsecv_mio.search.heuristics.first_supports"), "TABLE_SIZE", 216)
    for paths in first_supports(data, FOLDS, grid):
        assert [len(paths.support(0, t)) for t in range(3)] == [1, 6, 6]


def test_a_stop_at_once_still_gives_every_fold_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(importlib.import_module("sparsecv_mio.search.heuristics.first_supports"), "MOST_COLUMNS", 0)
    found = list(first_supports(data, FOLDS, grid, expired=lambda: True, seeds=[np.array([3, 50])]))
    assert [paths.fold for paths in found] == [0, 1, 2]
    for paths in found:
        assert np.all(np.isfinite(paths.held_out))
        assert [len(set(paths.support(0, t).tolist())) for t in range(3)] == [1, 6, 60]
