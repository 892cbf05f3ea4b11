"""Cholesky factors, solutions, values of a support and inverses against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.dense import (
    LONG,
    add_multiple,
    cholesky_in_place,
    cholesky_solve,
    copy_entries,
    copy_vector,
    dot,
    gather,
    gershgorin,
    gram_of_lower,
    invert,
    invert_lower,
    solve_lower,
    solve_lower_rows,
    solve_upper,
    subtract_multiples,
    support_value,
    times,
)

from .plain import KINDS, small


def test_copies_and_products() -> None:
    u, v = np.random.default_rng(0).standard_normal((2, 99))
    assert dot(u, v, 90) == pytest.approx(u[:90] @ v[:90], rel=1e-12) and dot(u, v, 0) == 0.0
    a, b = np.array([1.0, -2.0, 3.0]), np.full(4, 7.0)
    copy_vector(a, b)
    assert b.tolist() == [1.0, -2.0, 3.0, 7.0], "entries beyond the source are not touched"
    copy_entries(np.arange(4.0), b, np.array([3, 0]))
    assert b.tolist() == [0.0, -2.0, 3.0, 3.0]
    copy_vector(a, b)
    assert times(a, b[:3]).tolist() == [1.0, 4.0, 9.0]
    add_multiple(2.0, a, b[:3])
    assert b.tolist() == [3.0, -6.0, 9.0, 3.0]


@pytest.mark.parametrize("count", range(7))
def test_multiples_of_rows_are_subtracted_and_many_right_sides_solved(count: int) -> None:
    rng = np.random.default_rng(count)
    weights, rows, L = rng.standard_normal(7), rng.standard_normal((7, 9)), np.tril(rng.uniform(1.0, 2.0, (7, 7)))
    out = np.full(5, 3.0)
    subtract_multiples(weights, rows, count, out)
    assert np.allclose(out, 3.0 - weights[:count] @ rows[:count, :5], rtol=1e-13)
    B = rows.copy()
    solve_lower_rows(L, B, count)
    assert np.allclose(B[:count], np.linalg.solve(L[:count, :count], rows[:count])) and np.array_equal(
        B[count:], rows[count:]
    )


@pytest.mark.parametrize("size", [0, 1, 2, 5, LONG + 1, LONG + 30])
def test_factor_and_solve(size: int) -> None:
    rng = np.random.default_rng(size)
    q = max(5, size + 1)
    A = rng.standard_normal((q, q + 3))
    M = A @ A.T + 0.1 * np.eye(q)
    work, b = M.copy(), rng.standard_normal(q)
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
    assert not cholesky_in_place(np.pad(bad, ((LONG, 0), (LONG, 0))) + np.diag([1.0] * LONG + [0.0, 0.0]), LONG + 2)
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


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_triangular_solves_and_inverses(seed: int) -> None:
    rng, M = np.random.default_rng(seed), small(seed).M
    q, x = len(M), np.random.default_rng(seed).standard_normal(len(M))
    L, low, up = np.linalg.cholesky(M), x.copy(), x.copy()
    solve_lower(L, low, q)
    solve_upper(L, up, q)
    assert np.allclose(L @ low, x) and np.allclose(L.T @ up, x)
    T, gram = np.zeros((q, q)), np.empty((q, q))
    invert_lower(L, T, q)
    gram_of_lower(T, gram)
    assert np.allclose(T @ L, np.eye(q)) and np.allclose(gram, np.linalg.inv(M)) and np.array_equal(gram, gram.T)
    support, part = rng.permutation(q), np.full((q, q), 7.0)
    size = max(q - 1, 1)
    gather(M, support, size, part)
    held = support[:size]
    assert np.array_equal(np.tril(part[:size, :size]), np.tril(M[np.ix_(held, held)]))
    assert np.all(part[size:] == 7.0)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_bound_of_the_largest_eigenvalue(seed: int) -> None:
    G = small(seed).G
    bound = gershgorin(G)
    assert bound >= np.linalg.eigvalsh(G)[-1] * (1.0 - 1e-12)
    assert bound == pytest.approx(min(np.abs(G).sum(axis=1).max(), np.trace(G)))
    assert gershgorin(np.zeros((2, 2))) > 0.0
