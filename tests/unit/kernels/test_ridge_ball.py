"""The ball around the ridge solution: leverages, the extremes of a sum of squares over it, every candidate inside."""

from __future__ import annotations

import numpy as np
import pytest
from ellipsoids import Ellipsoid

from sparsecv_mio.kernels import ridge_ball as kernel
from sparsecv_mio.kernels.forms import Fold, Rounding

from . import plain
from .plain import KINDS, fold_of, small


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_leverages(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    for rows in (0, 1, 4):
        X = rng.standard_normal((rows, problem.q))
        K, beta, ok = kernel.leverages(fold_of(problem, X, np.zeros(rows)))
        assert ok and np.allclose(K, X @ np.linalg.solve(problem.M, X.T)) and np.array_equal(K, K.T)
        assert np.allclose(beta, problem.beta(range(problem.q)))
    singular = Fold(np.ones((2, 2)), np.ones(2), 1.0, np.ones(2), np.ones((1, 2)), np.ones(1))
    assert not kernel.leverages(singular)[2]


@pytest.mark.parametrize("seed", range(4))
def test_largest_leverage(seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((4, 1 + seed))
    K = A @ A.T
    assert 0.0 <= kernel.largest_leverage(K) / np.linalg.eigvalsh(K)[-1] - 1.0 < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_squares_over_a_ball(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, rows = 5, (1, 2, 5, 8)[seed % 4]
    A = rng.standard_normal((9, m))
    M, rho = A.T @ A + 0.1 * np.eye(m), float(rng.uniform(0.1, 4.0))
    X, e = rng.standard_normal((rows, m)), 3.0 * rng.standard_normal(rows) * (seed != 2)
    low, high = kernel.squares_over_ball(X @ np.linalg.solve(M, X.T), e, rho)
    steps = rng.standard_normal((100_000, m))
    steps *= np.sqrt(rho) / np.linalg.norm(steps, axis=1)[:, None]
    inside = steps[:20_000] * rng.random((20_000, 1))
    half = np.linalg.inv(np.linalg.cholesky(M)).T
    values = np.sum((e - np.vstack([steps, inside]) @ half.T @ X.T) ** 2, axis=1)
    assert low <= values.min() and values.max() <= high
    body = Ellipsoid(np.zeros(m), M, rho).together(X, e)  # the same by a root finder
    assert low == pytest.approx(body.lower, rel=1e-6, abs=1e-6) and high == pytest.approx(body.upper, rel=1e-6)
    assert high <= 1.03 * values.max() and low >= 0.8 * values.min() - 0.05 * float(e @ e) - 0.05 * rho


def test_a_ball_without_extent_is_a_point() -> None:
    for K, rho in ((np.eye(2), 0.0), (np.zeros((2, 2)), 1.0)):
        low, high = kernel.squares_over_ball(K, np.array([3.0, 4.0]), rho)
        assert low <= 25.0 <= high and high - low < 1e-6


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"])
def test_every_candidate_is_covered(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    k, rows = int(rng.integers(1, problem.q)), 1 + seed % 3
    ubar = problem.best(k)[0] * 1.02
    fold = fold_of(problem, rng.standard_normal((rows, problem.q)), rng.standard_normal(rows))
    K, ridge, _ = kernel.leverages(fold)
    rounding = Rounding(1e-15, float(np.sqrt(problem.yy)), 0.0, np.ones(problem.q))
    low, high = kernel.squares_of_candidates(fold, ridge, K, ubar, rounding)
    for point in plain.candidates(problem, k, ubar, rng):
        assert low <= float(np.sum((fold.u - fold.X @ point) ** 2)) <= high
