"""The diagonal under M: valid whatever the start, and the maximiser of its own problem."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparsecv_mio.kernels.nodes import Fold
from sparsecv_mio.kernels.reduced_forms import (
    factor_difference,
    fill_valid_diagonal,
    inverse_of_factor,
    normalise,
    reduce_problem,
    sharpen,
)

from .plain import KINDS, fold_of, small


def exact(a: np.ndarray | float) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(a)


def solve_exactly(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve a positive definite system of fractions by elimination."""
    A, x = A.copy(), b.copy()
    for k in range(len(x)):
        for i in set(range(len(x))) - {k}:
            share = A[i, k] / A[k, k]
            A[i], x[i] = A[i] - share * A[k], x[i] - share * x[k]
    return x / A.diagonal()


def least_eigenvalue(M: np.ndarray, w: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(M - np.diag(w))[0])


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_factor_and_inverse_of_a_difference(seed: int) -> None:
    M, q = small(seed).M, small(seed).q
    w = np.random.default_rng(seed).uniform(0.0, 0.9, q)
    L, T, V = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    assert factor_difference(M, w, L)
    assert np.allclose(np.tril(L) @ np.tril(L).T, M - np.diag(w))
    inverse_of_factor(L, T, V)
    assert np.allclose(V, np.linalg.inv(M - np.diag(w))) and np.array_equal(V, V.T)
    assert not factor_difference(M, M.diagonal() + 1e-3, L)


@pytest.mark.parametrize("seed", range(len(KINDS)))
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_dominated_is_its_formula_and_valid(seed: int, share: float) -> None:
    M = small(seed).M
    w = np.empty(len(M))
    assert fill_valid_diagonal(M, share, w)
    V = np.linalg.inv(M)
    root = np.sqrt(V.diagonal())
    assert np.allclose(w, share / (np.abs(V) / root).sum(axis=1) / root)
    assert np.all(w > 0.0) and least_eigenvalue(M, w) > -1e-12
    assert not fill_valid_diagonal(M - 2.0 * np.diag(M.diagonal()), share, w)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_sharpened_is_valid_and_stationary(seed: int) -> None:
    M, sharpness = small(seed).M, 20.0
    w = np.full(len(M), 0.5)
    start = w.copy()
    assert sharpen(M, w, sharpness, 3) >= 1
    assert least_eigenvalue(M, w) > 0.0 and np.all(w > 0.0)

    def height(v: np.ndarray) -> float:
        return sharpness * float(np.log(v).sum()) + float(np.linalg.slogdet(M - np.diag(v))[1])

    assert height(w) >= height(start)
    for _ in range(30):  # each call stops near the maximum; the problem is concave, so a zero gradient is the maximum
        sharpen(M, w, sharpness, 1)
    assert np.allclose(sharpness / w, np.linalg.inv(M - np.diag(w)).diagonal(), rtol=1e-6)


def test_a_start_that_is_not_valid_is_left_alone() -> None:
    M = small(0).M
    w = 2.0 * M.diagonal()
    before = w.copy()
    assert sharpen(M, w, 20.0, 3) == -1 and np.array_equal(w, before)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_reduction_keeps_objective_and_residuals(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    M, c, yy, q = problem.M, problem.c, problem.yy, problem.q
    X, u = rng.standard_normal((3, q)), rng.standard_normal(3)
    for held in {0, 1, q // 2, q}:
        order = rng.permutation(q)
        inside, free = order[:held], order[held : held + 3]
        left, lever, ok = reduce_problem(fold_of(problem, X, u), inside, free, np.full(len(free), 0.5))
        M_f, c_f, yy_f, w, X_f, u_f = left
        b = rng.standard_normal(len(free))
        full = np.zeros(q)
        full[free] = b
        full[inside] = np.linalg.solve(M[np.ix_(inside, inside)], c[inside] - M[np.ix_(inside, free)] @ b)
        assert np.all(w == 0.5)
        assert ok and np.isclose(yy - 2 * c @ full + full @ M @ full, yy_f - 2 * c_f @ b + b @ M_f @ b)
        assert np.allclose(u - X @ full, u_f - X_f @ b)
        assert np.allclose(lever, np.abs(np.linalg.solve(M[np.ix_(inside, inside)], X[:, inside].T)).sum(axis=0))


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4, 1e-6])
def test_rounding_of_reduced_residuals(apart: float) -> None:
    """What columns that are minimised out leave to rounding where they are nearly alike, against fractions.

    Exact moments are off by up to `off` from the ones that are reduced, and the columns inside are fitted exactly.
    """
    rng, off, largest = np.random.default_rng(int(-np.log10(apart))), 1e-13, 0.0
    for _ in range(40):
        i, f, N = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3
        q = i + f
        A = rng.standard_normal((12, q))
        A[:, 1:i] = A[:, :1] + apart * A[:, 1:i]
        A /= np.linalg.norm(A, axis=0)
        y = A @ rng.standard_normal(q) + rng.standard_normal(12)
        X, u, b = rng.standard_normal((N, q)), rng.standard_normal(N), rng.standard_normal(f)
        M, c, length = A.T @ A + 1e-14 * np.eye(q), A.T @ y, float(np.linalg.norm(y))
        signs, unit = rng.choice([-1.0, 1.0], (q, q)), off + (4 * q + 64) * np.finfo(float).eps
        exact_M = exact(M) + exact(off * (np.tril(signs) + np.tril(signs, -1).T))
        exact_c = exact(c) + exact(off * length * rng.choice([-1.0, 1.0], q))
        inside, free = np.arange(i), np.arange(i, q)
        left, lever, ok = reduce_problem(Fold(M, c, length**2, np.ones(q), X, u), inside, free, np.ones(f))
        if not ok:
            continue
        of_inside = solve_exactly(exact_M[:i, :i], exact_c[:i] - exact_M[:i, i:] @ exact(b))
        whole = np.concatenate([of_inside, exact(b)])
        missed = np.abs((exact(u) - exact(X) @ whole - exact(left.u) + exact(left.X) @ exact(b)).astype(float))
        size = length + float(np.abs(whole).sum())
        assert np.all(missed <= unit * size * (lever + 1.0))
        largest = max(largest, float(np.max(missed / (unit * size))))
    assert apart == 1.0 or largest > 1.0  # without the lever it would not do


def test_a_singular_block_is_refused() -> None:
    inside, free = np.array([0, 1]), np.array([2])
    fold = Fold(np.ones((3, 3)), np.ones(3), 1.0, np.ones(3), np.zeros((0, 3)), np.zeros(0))
    assert not reduce_problem(fold, inside, free, np.ones(1))[-1]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_normal_form(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    w, X = rng.uniform(0.1, 2.0, problem.q), rng.standard_normal((2, problem.q))
    (G, c, yy, lipschitz), rows, root = normalise(Fold(problem.M, problem.c, problem.yy, w, X, np.zeros(2)))
    assert yy == problem.yy and lipschitz >= np.linalg.eigvalsh(G)[-1] * (1.0 - 1e-12)
    assert np.allclose(root, w**-0.5) and np.allclose(c, problem.c * root) and np.allclose(rows, X * root)
    assert np.allclose(G, problem.M * np.outer(root, root) - np.eye(problem.q))
