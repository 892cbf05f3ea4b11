"""The diagonal under M: valid whatever the start, and the maximiser of its own problem."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.curvature import dominated, factor_difference, inverse_of_factor, sharpen

from .plain import KINDS, small


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
