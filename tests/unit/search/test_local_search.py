"""The search of one fold, against all subsets and plain ridge fits."""

from __future__ import annotations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.forward_selection import ForwardSelection, WeightedRows
from sparsecv_mio.problem.training_moments import row_moments, training_moments
from sparsecv_mio.search.problems import local_search as fold_searches
from sparsecv_mio.search.problems import local_search as module
from sparsecv_mio.search.problems.local_search import (
    FoldSearch,
    LocalSearches,
    columns_to_add,
    make_fold_search,
    make_seed_table,
    residuals,
    search_all_passes,
)
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.slices import Hands, Moment

from .drawn import FOLDS, LABELS, TOP, random_data

LAMS = np.array([0.01, 0.5])


def test_paths_have_full_supports_even_where_none_is_known() -> None:
    data = random_data(0, p=8)
    problem = row_moments(data, FOLDS.train_rows(0)).problem(data, 1.0)
    search = FoldSearch(0, problem, LAMS, 4)
    search.learn(np.array([[6, 7, -1, -1]]), np.array([0]))
    paths = search.paths(np.array([0, 2, 4]), *data.about(FOLDS.scored_rows(0), problem.v_mean, problem.r_mean))
    assert paths.support(0, 1).tolist() == [6, 7] and paths.support(0, 2).tolist() == [0, 1, 6, 7]
    assert [len(paths.support(1, t)) for t in range(3)] == [0, 2, 4] and search.last is paths
    for g, t in np.ndindex(2, 3):
        fit = ridge(problem.with_gamma(2.0 * LAMS[g]), paths.support(g, t))
        assert paths.objective[g, t] == pytest.approx(fit[1], rel=1e-9)


def begun(late: bool = False) -> LocalSearches:
    data = random_data(1, p=12)
    searches = LocalSearches(data, FOLDS, Grid.of([0.1, 1.0, 5.0], [0, 1, 3], 12), 1, Moment(lambda: late), Hands())
    for fold, moments in training_moments(data, FOLDS):
        problem = moments.problem(data, 1.0)
        searches.begin(FoldSearch(fold, problem, searches.lams, searches.top), make_seed_table([], searches.top))
    return searches


def test_a_pass_ends_with_the_time() -> None:
    searches = begun(late=True)
    assert len(searches.by_fold) == 3 and list(searches.walk()) == []


def first_search(data: StandardData, fold: int, top: int) -> tuple[FoldSearch, WeightedRows, ForwardSelection]:
    """A search on what forward selection picked."""
    rows = WeightedRows(data, FOLDS)
    forward = ForwardSelection(rows, [fold], *rows.squares_and_slopes([fold]), 0.05, TOP)
    forward.pick_columns(lambda: False)
    searches = LocalSearches(data, FOLDS, Grid.of([0.1], [top], data.q), 1, Moment(), Hands())
    search = make_fold_search(searches, fold, np.sort(forward.picked[0]))
    search.sweep([0], lambda: False)
    return search, rows, forward


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_left_out_have_no_influence(seed: int) -> None:
    found = []
    for held_out in (0.0, 1.0):
        search, rows, forward = first_search(random_data(seed, held_out=held_out), 0, TOP)
        more = columns_to_add(search, rows, rows.squares_and_slopes([0])[0][0].astype(np.float32))
        assert not np.isin(more, search.among).any() and len(more) > 0
        found.append((forward.picked[0], more.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(3))
def test_residuals_are_those_of_plain_refits(seed: int) -> None:
    data = random_data(seed)
    search, rows, _ = first_search(data, 1, 2)
    train = FOLDS.train_rows(1)
    supports: list[list[int]] = [[]]
    for size in (1, 2):
        supports.append(search.best_supports()[0, size, :size].tolist())
    supports += [np.delete(chosen, a).tolist() for chosen in supports[1:] for a in range(len(chosen))]
    found = residuals(search, rows) * data.y_unit
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
    results = []
    for most in (1200, 0):
        monkeypatch.setattr(module, "EXACT_COLUMNS", most)
        last = {paths.fold: paths for paths in search_all_passes(data, FOLDS, grid, threads=2)}
        results.append(last)
    ratio = np.array([results[1][fold].objective / results[0][fold].objective for fold in range(3)])
    assert np.mean(np.abs(ratio - 1.0) < 1e-7) > 0.9 and np.all(ratio < 1.05)


def test_sizes_beyond_the_table_are_answered_by_its_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(fold_searches, "STORE_BYTES", 8 * 216)
    for paths in search_all_passes(data, FOLDS, grid):
        assert [len(paths.support(0, t)) for t in range(3)] == [1, 6, 6]


@pytest.mark.parametrize("most", [1200, 0])
def test_a_stop_at_once_still_gives_every_fold_an_answer(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(module, "EXACT_COLUMNS", most)
    found = list(search_all_passes(data, FOLDS, grid, until=Moment(lambda: True), seeds=[np.array([3, 50])]))
    assert [paths.fold for paths in found] == [0, 1, 2]
    for paths in found:
        assert np.all(np.isfinite(paths.held_out))
        assert [len(set(paths.support(0, t).tolist())) for t in range(3)] == [1, 6, 60]
