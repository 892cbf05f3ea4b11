"""The coordinates of the bounds: unit diagonal, a valid w, columns that are constant in training."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.unit_diagonal import Diagonal, unit_diagonal
from sparsecv_mio.kernels import curvature
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import random_problem


@pytest.mark.parametrize("seed", range(6))
def test_diagonal_is_valid_and_beats_the_penalty(seed: int) -> None:
    problem, _ = random_problem(seed, n=(6, 40)[seed % 2])
    form = unit_diagonal(problem)
    assert form is not None
    assert np.linalg.eigvalsh(form.M - np.diag(form.w))[0] > -1e-13
    if seed % 2:
        assert np.log(form.diagonal).sum() > np.log(problem.penalty).sum()
    again = unit_diagonal(problem, near=form.diagonal * 1.5)  # not valid as it is: must be shrunk
    assert again is not None and np.linalg.eigvalsh(again.M - np.diag(again.w))[0] > -1e-13
    assert curvature.sharpen(form.M, 2.0 * np.ones(form.m), 20.0, 3) == -1


@pytest.mark.parametrize("diagonal", list(Diagonal))
def test_objective_and_residuals_are_those_of_the_problem(diagonal: Diagonal) -> None:
    problem, _ = random_problem(2)
    form, rng = unit_diagonal(problem, diagonal=diagonal), np.random.default_rng(0)
    assert form is not None and np.all(np.diag(form.M) == 1.0)
    b = rng.standard_normal(form.m)
    beta = form.scale * b
    whole = problem.yy - 2.0 * problem.c @ beta + beta @ problem.M @ beta
    assert form.yy - 2.0 * form.c @ b + b @ form.M @ b == pytest.approx(whole)
    V, r = rng.standard_normal((3, problem.q)), rng.standard_normal(3)
    X, u = form.rows(problem, V, r)
    np.testing.assert_allclose(u - X @ b, r - problem.r_mean - (V - problem.v_mean) @ beta)
    fold = form.fold(X, u)
    assert np.linalg.eigvalsh(fold.M - np.diag(fold.w))[0] > -1e-12 and fold.yy == problem.yy


def test_a_column_constant_in_training_is_an_empty_place() -> None:
    mean = np.array([0.0, 5.0])
    problem = SparseProblem(np.diag([2.0, 1e-31]), np.array([1.0, 1e-16]), 3.0, np.ones(2), 0.5, 9, mean, 0.0)
    form = unit_diagonal(problem)
    assert form is not None and form.dead.tolist() == [False, True]
    assert form.c[1] == 0.0 and form.M[0, 1] == 0.0
    X, _ = form.rows(problem, np.array([[1.0, 9.0]]), np.zeros(1))
    assert X[0, 1] == 0.0
