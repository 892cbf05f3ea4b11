"""The diagonal under M: valid whatever the start, and the maximiser of its own problem."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.nodes import Fold
from sparsecv_mio.kernels.reduced_forms import (
    dominated,
    factor_difference,
    inverse_of_factor,
    normalise,
    reduce_problem,
    sharpen,
)

from .plain import KINDS, fold_of, small


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
    assert dominated(M, share, w)
    V = np.linalg.inv(M)
    root = np.sqrt(V.diagonal())
    assert np.allclose(w, share / (np.abs(V) / root).sum(axis=1) / root)
    assert np.all(w > 0.0) and least_eigenvalue(M, w) > -1e-12
    assert not dominated(M - 2.0 * np.diag(M.diagonal()), share, w)


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
        left, ok = reduce_problem(fold_of(problem, X, u), inside, free, np.full(len(free), 0.5))
        M_f, c_f, yy_f, w, X_f, u_f = left
        b = rng.standard_normal(len(free))
        full = np.zeros(q)
        full[free] = b
        full[inside] = np.linalg.solve(M[np.ix_(inside, inside)], c[inside] - M[np.ix_(inside, free)] @ b)
        assert np.all(w == 0.5)
        assert ok and np.isclose(yy - 2 * c @ full + full @ M @ full, yy_f - 2 * c_f @ b + b @ M_f @ b)
        assert np.allclose(u - X @ full, u_f - X_f @ b)


def test_a_singular_block_is_refused() -> None:
    inside, free = np.array([0, 1]), np.array([2])
    fold = Fold(np.ones((3, 3)), np.ones(3), 1.0, np.ones(3), np.zeros((0, 3)), np.zeros(0))
    assert not reduce_problem(fold, inside, free, np.ones(1))[1]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_normal_form(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    w, X = rng.uniform(0.1, 2.0, problem.q), rng.standard_normal((2, problem.q))
    (G, c, yy, lipschitz), rows, root = normalise(Fold(problem.M, problem.c, problem.yy, w, X, np.zeros(2)))
    assert yy == problem.yy and lipschitz >= np.linalg.eigvalsh(G)[-1] * (1.0 - 1e-12)
    assert np.allclose(root, w**-0.5) and np.allclose(c, problem.c * root) and np.allclose(rows, X * root)
    assert np.allclose(G, problem.M * np.outer(root, root) - np.eye(problem.q))
