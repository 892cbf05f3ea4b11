"""Best subsets by rows, where screening leaves too many columns for a matrix: those of the trees on all columns."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.subproblem import all_rows_by_rows
from sparsecv_mio.search.subproblem.all_rows_by_rows import all_rows_of, solve_by_rows


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_on_the_rows_finds_the_best_subset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rows_by_rows, "PART_COLUMNS", 5)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 25)) + rng.normal(size=(20, 1))
    data = standardize(Dataset.from_arrays(X, X[:, ::6].sum(axis=1) + 2.0 * rng.normal(size=20)))
    whole, tau = all_rows_of(data, 0.1, lambda: False), 2 + seed % 3
    whole.search([tau])
    found = solve_by_rows(data, whole, tau, 0.1, lambda: False)
    true = solve_path(row_moments(data, slice(0, data.n)).problem(data, 0.1), [tau]).cells[tau]
    cell = found.cells[tau]
    assert cell.complete and cell.support.tolist() == true.support.tolist()
    assert cell.lower <= true.upper and cell.upper == pytest.approx(true.upper, rel=1e-8)
    early = solve_by_rows(data, whole, tau, 0.1, lambda: False, effort=1).cells[tau]
    assert early.lower <= true.upper
