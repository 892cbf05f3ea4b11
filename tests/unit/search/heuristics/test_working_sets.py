"""Working sets of columns: training rows alone decide about them, residuals are those of plain refits."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem import objective
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fold_search import FoldSearch
from sparsecv_mio.search.heuristics.fold_searches import FoldSearches
from sparsecv_mio.search.heuristics.forward_selection import ForwardSelection, TrainingRows
from sparsecv_mio.search.heuristics.working_sets import (
    MORE_COLUMNS,
    WorkingSets,
    columns_to_add,
    fold_batches,
    largest_working_set,
    residuals,
    search_on,
)

from .drawn import FOLDS, LABELS, TOP, random_data


def first_search(data: StandardData, fold: int, top: int) -> tuple[FoldSearch, TrainingRows, ForwardSelection]:
    """A search on what forward selection picked."""
    rows = TrainingRows(data, FOLDS)
    forward = ForwardSelection(rows, [fold], rows.squares([fold]), 0.05, TOP)
    forward.run(lambda: False)
    searches = FoldSearches(data, FOLDS, Grid.of([0.1], [top], data.q), 1, lambda: False)
    search = search_on(searches, fold, np.sort(forward.picked[0]))
    search.sweep([0], lambda: False)
    return search, rows, forward


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_left_out_have_no_influence(seed: int) -> None:
    found = []
    for held_out in (0.0, 1.0):
        search, rows, forward = first_search(random_data(seed, held_out=held_out), 0, TOP)
        more = columns_to_add(search, rows, rows.squares([0])[0].astype(np.float32))
        assert not np.isin(more, search.among).any() and 0 < len(more) <= MORE_COLUMNS
        found.append((forward.picked[0], forward.rank[0], sorted(more.tolist())))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(3))
def test_residuals_are_those_of_plain_refits(seed: int) -> None:
    data = random_data(seed)
    search, rows, _ = first_search(data, 1, 2)
    train = FOLDS.train_rows(1)
    supports: list[list[int]] = [[]]
    for size in (1, 2):
        supports.append(search.found()[0, size, :size].tolist())
    supports += [np.delete(chosen, a).tolist() for chosen in supports[1:] for a in range(len(chosen))]
    found = residuals(search, rows) * data.y_unit
    assert len(found) == len(supports)
    dataset = data.dataset
    for residual, support in zip(found, supports, strict=True):
        fit = objective.fit(dataset.X, dataset.y, support, 0.1, rows=train)
        plain = dataset.y[train] - fit.predict(dataset.X[train])
        np.testing.assert_allclose(residual[train], plain, atol=1e-8)
        assert np.all(residual[LABELS == 1] == 0.0)


def test_a_pass_never_makes_a_fold_worse_and_sets_grow() -> None:
    data = random_data(2)
    searches = FoldSearches(data, FOLDS, Grid.of([0.1, 1.0], [1, 3], data.q), 1, lambda: False)
    best: dict[int, float] = {}
    sizes = []
    for improved in WorkingSets(searches).passes([]):
        for paths in improved:
            assert paths.objective.sum() <= best.get(paths.fold, np.inf) * (1.0 + 1e-12)
            best[paths.fold] = float(paths.objective.sum())
        sizes.append(sum(len(search.among) for search in searches.by_fold.values()))
    assert len(sizes) >= 3 and set(best) == {0, 1, 2}


def test_sizes_and_batches() -> None:
    assert largest_working_set(10, 50, 5) == 50 and largest_working_set(10, 10_000, 200) == 400
    assert [fold for batch in fold_batches(FOLDS, 1 << 22) for fold in batch] == [0, 1, 2]
