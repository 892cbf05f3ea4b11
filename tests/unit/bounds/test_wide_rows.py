"""Rows of a fold in the units of the bounds, against the fold's own problem by moments."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.wide_rows import WideRelaxation, WideRows, WideSupports, WorkingColumns, is_wide
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import training_moments


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_objective_and_residuals_are_those_by_moments(intercept: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 7)) + 3.0
    data = standardize(Dataset.from_arrays(X, X[:, 0] + rng.standard_normal(20)), "length", intercept)
    folds, gamma = make_folds("4", data.dataset), 0.7
    for fold, moments in training_moments(data, folds):
        problem, held_out = moments.problem(data, gamma), data.rows(folds.scored_rows(fold))
        rows = WideRows.of(data, folds.train_rows(fold), folds.scored_rows(fold), gamma)
        beta = rng.standard_normal(7)
        b = beta * np.sqrt(problem.penalty)
        every = np.arange(7)
        value = rows.yy - 2.0 * rows.c @ b + b @ rows.matrix(every) @ b
        assert value == pytest.approx(problem.yy - 2.0 * problem.c @ beta + beta @ problem.M @ beta)
        left = held_out[1] - problem.r_mean - (held_out[0] - problem.v_mean) @ beta
        np.testing.assert_allclose(rows.u - rows.X_test @ b, left, atol=1e-12)
        np.testing.assert_allclose(rows.square, np.diag(rows.matrix(every)))
        assert rows.largest >= np.linalg.eigvalsh(rows.matrix(every) - np.eye(7))[-1] * (1.0 - 1e-12)
        assert np.array_equal(rows.training.Xt, rows.Xt)


def test_allowance_covers_every_candidate() -> None:
    rng = np.random.default_rng(1)
    rows = WideRows(rng.standard_normal((5, 9)), rng.standard_normal(5), np.zeros((0, 9)), np.zeros(0))
    for tau in (1, 4, 9):
        made = rows.allowance_of(tau)
        for _ in range(20):
            held = rng.permutation(9)[:tau]
            b = np.linalg.solve(rows.matrix(held), rows.c[held])
            assert np.sqrt(rows.yy) + np.sqrt(rows.square[held]) @ np.abs(b) <= made.prior * (1.0 + 1e-12)
            assert np.linalg.norm(b) <= made.norm * (1.0 + 1e-12)


def test_what_is_wide() -> None:
    rng = np.random.default_rng(2)
    for n, p, expected in ((50, 601, True), (400, 601, False), (20, 100, False)):
        data = Dataset.from_arrays(rng.standard_normal((n, p)), rng.standard_normal(n))
        assert is_wide(standardize(data)) == expected


def drawn(seed: int, n: int = 12, q: int = 40) -> WideRows:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))
    return WideRows(X, 3.0 * X[:, 1] - 2.0 * X[:, 7] + 0.1 * rng.standard_normal(n), np.zeros((0, q)), np.zeros(0))


def objective(rows: WideRows, support: np.ndarray) -> float:
    return rows.yy - float(rows.c[support] @ np.linalg.solve(rows.matrix(support), rows.c[support]))


@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_the_supports(seed: int) -> None:
    rows = drawn(seed)
    known = WideSupports(rows, lambda: False)
    known.take([np.array([9, 3]), np.array([30])])
    first = dict(known.best)
    known.search([1, 2, 4], swap_rounds=2)
    assert known.support[2].tolist() == [1, 7]
    for size, support in known.support.items():
        assert len(support) == size and np.all(np.diff(support) > 0)
        assert known.best[size] == pytest.approx(objective(rows, support), rel=1e-9)
        assert known.best[size] <= first.get(size, np.inf)
    known.take([np.array([0, 2])])
    assert known.support[2].tolist() == [1, 7], "a worse one is not kept"


def test_a_point_is_rounded_and_time_ends_a_search() -> None:
    rows = drawn(0)
    known = WideSupports(rows, lambda: True)
    known.search([3])
    assert not known.best
    b, g = np.zeros(rows.q), rows.c.copy()
    b[[1, 7, 20]] = [2.0, -1.5, 0.01]
    known.round(2, b, g)
    assert known.support[2].tolist() == [1, 7]


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
