"""The relaxation on rows against that by moments, split at a column, with room for more columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.unit_diagonal import Diagonal
from sparsecv_mio.bounds.wide_relaxation import WideRelaxation, WorkingColumns
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.problem.problem import SparseProblem


def test_rows_equal_moments() -> None:
    rng = np.random.default_rng(3)
    X, lam = rng.standard_normal((20, 60)) / 4.0, 0.5
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(20)
    problem = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(60), lam, 20, np.zeros(60), 0.0)
    wide = WideRelaxation(WideRows(X / np.sqrt(lam), y, np.zeros((0, 60)), np.zeros(0)))
    for tau in (1, 2, 5):
        point = relax_problem(problem, [tau], diagonal=Diagonal.PENALTY, accuracy=1e-9)[0]
        dual, primal = wide.solve(tau, 1e-9)
        assert dual <= primal and abs(dual - point.dual) <= 1e-7 * problem.yy
        np.testing.assert_allclose(wide.g, wide.rows.Xt @ (y - wide.rows.Xt.T @ wide.b), atol=1e-9)


def test_a_split_is_below_every_support_and_not_below_the_relaxation() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 9))
    rows = WideRows(X, X[:, 0] + X[:, 4] + 0.5 * rng.standard_normal(6), np.zeros((0, 9)), np.zeros(0))
    wide, every = WideRelaxation(rows), np.arange(9)
    for tau in (2, 3):
        dual, _ = wide.solve(tau, 1e-9)
        found = wide.split(tau, every)
        values = [
            rows.yy - rows.c[list(s)] @ np.linalg.solve(rows.matrix(np.array(s)), rows.c[list(s)])
            for s in combinations(range(9), tau)
        ]
        assert dual - 1e-3 * rows.yy <= found <= min(values) + 1e-9


def test_room_for_a_size_and_columns_to_start_with() -> None:
    columns = WorkingColumns(1100)
    held = np.array([5, 900])
    columns.take(held, np.ones((1100, 3)))
    columns.make_room(300)
    assert len(columns.arrays.chosen) == 4 * 300 + 80 - 180 and columns.arrays.held[0] == 2
    assert columns.arrays.chosen[:2].tolist() == [5, 900] and np.all(columns.arrays.gram[:2, :2] == 3.0)
    assert np.flatnonzero(columns.arrays.inside).tolist() == [5, 900]
