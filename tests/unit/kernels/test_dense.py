"""Cholesky factors, solutions, values of a support and inverses against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, invert, put, support_value, times

from .plain import KINDS, small


def test_copies_and_products() -> None:
    a, b = np.array([1.0, -2.0, 3.0]), np.full(4, 7.0)
    put(a, b)
    assert b.tolist() == [1.0, -2.0, 3.0, 7.0], "entries beyond the source are not touched"
    assert times(a, b[:3]).tolist() == [1.0, 4.0, 9.0]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_factor_and_solve(size: int) -> None:
    rng = np.random.default_rng(size)
    A = rng.standard_normal((5, 8))
    M = A @ A.T + 0.1 * np.eye(5)
    work, b = M.copy(), rng.standard_normal(5)
    x = b.copy()
    assert cholesky_in_place(work, size)
    assert np.allclose(np.tril(work[:size, :size]), np.linalg.cholesky(M[:size, :size]) if size else 0.0)
    assert np.array_equal(work[size:], M[size:]), "rows beyond the size are not touched"
    cholesky_solve(work, x, size)
    assert np.allclose(x[:size], np.linalg.solve(M[:size, :size], b[:size]))
    assert np.array_equal(x[size:], b[size:])


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, -1.0]), np.diag([1.0, np.nan])])
def test_matrices_that_are_not_positive_are_refused(bad: np.ndarray) -> None:
    assert not cholesky_in_place(bad.copy(), 2)
    assert not invert(bad)[1]
    work, x = np.empty((2, 2)), np.empty(2)
    assert support_value(bad, 0.0, np.ones(2), 3.0, np.arange(2), 2, work, x) == np.inf


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_value_of_a_support(seed: int) -> None:
    problem = small(seed)
    rng = np.random.default_rng(seed)
    work, x = np.empty((problem.q, problem.q)), np.empty(problem.q)
    for size in range(problem.q + 1):
        support = rng.permutation(problem.q)[:size]
        value = support_value(problem.G, 1.0, problem.c, problem.yy, support, size, work, x)
        assert value == pytest.approx(problem.value(support), rel=1e-9)
        assert np.allclose(x[:size], problem.beta(support)[support])


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_inverse(seed: int) -> None:
    M = small(seed).M
    V, ok = invert(M)
    assert ok and np.allclose(V @ M, np.eye(len(M)), atol=1e-9) and np.array_equal(V, V.T)
