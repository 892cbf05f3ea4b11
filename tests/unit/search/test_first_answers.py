"""First answers: any search can be driven and watched, and what the first passes over the folds show is true."""

from __future__ import annotations

import numpy as np
from runs import new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.state.pairs import Grid


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.state.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


def search_folds(run: object, n_passes: int) -> None:
    """Take turns until so many passes over the folds are done."""
    while int(run.state.tried.fold_passes) < n_passes:  # type: ignore[attr-defined]
        run.step()  # type: ignore[attr-defined]


def test_a_quick_answer_has_not_seen_the_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    shown = []
    for change in (0.0, 50.0):
        folds = make_folds("5", Dataset.from_arrays(X, y))
        other = y.copy()
        other[folds.scored_rows(1)] += change * X[folds.scored_rows(1), 7]
        data = standardize(Dataset.from_arrays(X, other), "none")
        run = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 40), seconds=600.0)
        search_folds(run, 1)
        shown.append([supports(run, fold) for fold in (0, 1)])
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]  # another fold trains on these rows
