"""Best subsets by rows, where screening leaves too many columns for a matrix: those of the trees on all columns."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, to_end

from sparsecv_mio import thresholds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search import all_rows
from sparsecv_mio.search.all_rows import all_rows_of, solve_by_rows
from sparsecv_mio.search.problems.by_rows import RowsProblems, threads_for
from sparsecv_mio.trees.every_size import solve_path


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_on_the_rows_finds_the_best_subset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rows, "PART_COLUMNS", 5)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 25)) + rng.normal(size=(20, 1))
    data = standardize(Dataset.from_arrays(X, X[:, ::6].sum(axis=1) + 2.0 * rng.normal(size=20)))
    whole, tau = all_rows_of(data, 0.1, lambda: False), 2 + seed % 3
    whole.search([tau])
    found = solve_by_rows(data, whole, tau, 0.1, lambda: False)
    true = solve_path(row_moments(data, slice(0, data.n)).problem(data, 0.1), [tau]).by_size[tau]
    cell = found.by_size[tau]
    assert cell.complete and cell.support.tolist() == true.support.tolist()
    assert cell.lower <= true.upper and cell.upper == pytest.approx(true.upper, rel=1e-8)
    early = solve_by_rows(data, whole, tau, 0.1, lambda: False, effort=1).by_size[tau]
    assert early.lower <= true.upper


def test_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    data, folds, grid = drawn(p=24, n=16, folds="4")
    exact = to_end(new_run(data, folds, grid)).run.cells
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)
    run = to_end(new_run(data, folds, grid))
    ours = run.run.cells
    assert isinstance(run.problems, RowsProblems) and exact.decided.all() and np.isfinite(ours.nominal).all()
    slack = 1e-9 * exact.upper + 1e-12
    assert (ours.lower <= exact.upper + slack).all() and (exact.lower <= ours.upper + slack).all()
    cell = run.best_on_all_rows(0, 2)
    assert len(cell.support) == 2


def test_threads_share_the_room_for_copies() -> None:
    data, _, _ = drawn()
    assert threads_for(data, 3) == 3
