"""Rows of a fold in the units of the bounds, against the fold's own problem by moments."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import training_moments


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
