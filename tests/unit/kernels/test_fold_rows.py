"""Ends of single predictions: candidates inside, and as sharp as a conic solver over the same level set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sparsecv_mio.kernels import fold_rows as kernel
from sparsecv_mio.kernels.node_relaxation import new_partition, partition_matrix, propose_partition
from sparsecv_mio.kernels.nodes import Effort, LevelSet, Rounding

from . import plain
from .plain import KINDS, Small, all_free, small
from .test_level_sets import centre_of

pytest.importorskip("clarabel")
from conic_program import conic_minimum  # noqa: E402

SEVERAL = [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"]


@pytest.mark.parametrize("seed", SEVERAL)
def test_factor_at_the_centre(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    node = all_free(q, int(rng.integers(1, q)))
    b = rng.standard_normal(q) * (rng.random(q) < 0.7)
    factor, columns = np.empty((q, q)), np.empty(q, dtype=np.int64)
    size = kernel.centre_factor(problem.form, node, b, factor, columns)
    partition = new_partition(q)
    left = propose_partition(b, problem.c - problem.G @ b, node, 1.0, partition, np.empty(q))
    expected, index = np.empty((q, q)), np.empty(q, dtype=np.int64)
    full = partition_matrix(problem.G, node.free, partition, left, expected, index)
    K = np.tril(expected[:full, :full]) + np.tril(expected[:full, :full], -1).T
    if np.linalg.eigvalsh(K)[0] > 1e-9:
        assert size == full and np.array_equal(columns[:size], index[:size])
        L = np.tril(factor[:size, :size])
        assert np.allclose(L @ L.T, K)


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_value_along_a_direction(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, every = problem.q, np.arange(problem.q)
    k = int(rng.integers(1, q + 1))
    b, x, t = rng.standard_normal(q), rng.standard_normal(q), 0.7
    value = kernel.value_along(problem.form, all_free(q, k), x, t, b, kernel.new_scratch(q, k))
    expected = plain.primal(problem, every[:0], every, k, b) - t * x @ b - problem.yy
    assert value == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEVERAL)
def test_newton_on_point_and_multiplier(seed: int) -> None:
    """What comes back is weak duality at the point and t that come back, and at least every candidate's prediction."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q, every = problem.q, np.arange(problem.q)
    k = int(rng.integers(1, q))
    ubar = problem.best(k)[0] * 1.02
    x = rng.standard_normal(q)
    centre, zeta, _ = centre_of(problem, k)
    best = np.zeros(q)
    goal = kernel.Goal(x, float(x @ centre), np.inf, -np.inf, 0.0)
    bound, t, _ = kernel.joint_newton(
        problem.form, all_free(q, k), LevelSet(k, ubar, zeta), goal, 0.5, Rounding(0.0, 0.0, 0.0, np.ones(q)),
        kernel.new_scratch(q, k), (centre.copy(), best),
    )  # fmt: skip
    dual = plain.dual(problem, every[:0], every, k, best, problem.c + 0.5 * t * x)
    assert bound == pytest.approx((ubar - dual) / t, rel=1e-9)
    for point in plain.candidates(problem, k, ubar, rng):
        assert x @ point <= bound + 1e-9


def ends_of(problem: Small, k: int, ubar: float, X: np.ndarray, u: np.ndarray, shift: np.ndarray) -> np.ndarray:
    q = problem.q
    b, dual, _ = centre_of(problem, k)
    moved, ends = np.full((len(X), 2, q), np.nan), np.empty((len(X), 2))
    norm = float(np.sqrt(problem.yy))
    rows, rounding = kernel.PredictedRows(X, shift, u, np.arange(q), moved), Rounding(1e-15, norm, norm, np.ones(q))
    kernel.bound_rows(problem.form, LevelSet(k, ubar, dual), rows, b, Effort(6, 3000), rounding, ends)
    return ends


@pytest.mark.parametrize("seed", SEVERAL)
def test_ends_contain_and_are_sharp(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    k = int(rng.integers(1, q))
    ubar = problem.best(k)[0] * 1.01
    X, shift = rng.standard_normal((2, q)), rng.standard_normal(2)
    points = plain.candidates(problem, k, ubar, rng)
    ends = ends_of(problem, k, ubar, X, np.full(2, np.nan), shift)
    predictions = np.array(points) @ X.T + shift
    assert np.all(ends[:, 0] <= predictions.min(0) + 1e-9) and np.all(predictions.max(0) <= ends[:, 1] + 1e-9)
    wide = float(ends[0, 1] - ends[0, 0])
    for sign, end in ((1.0, ends[0, 1] - shift[0]), (-1.0, shift[0] - ends[0, 0])):

        def bound(log_t: float, side: float = sign) -> float:
            t = float(np.exp(log_t))
            c = problem.c + 0.5 * t * side * X[0]
            return (ubar - conic_minimum(problem.M, c, problem.yy, np.ones(q), k)) / t

        exact = minimize_scalar(bound, bounds=(-8.0, 8.0), method="bounded", options={"xatol": 1e-3}).fun
        assert -1e-3 * wide <= end - exact <= 0.02 * wide


@pytest.mark.parametrize("seed", SEVERAL)
def test_only_ends_that_say_nothing_about_the_error_are_loose(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    k = int(rng.integers(1, problem.q))
    ubar = problem.best(k)[0] * 1.01
    X, u, zero = rng.standard_normal((3, problem.q)), rng.standard_normal(3), np.zeros(3)
    sharp, loose = ends_of(problem, k, ubar, X, np.full(3, np.nan), zero), ends_of(problem, k, ubar, X, u, zero)
    assert np.all(loose[:, 0] <= sharp[:, 0] + 0.02) and np.all(loose[:, 1] >= sharp[:, 1] - 0.02)
    for ends in (sharp, loose):
        near = np.maximum(np.maximum(ends[:, 0] - u, u - ends[:, 1]), 0.0)
        far = np.maximum(u - ends[:, 0], ends[:, 1] - u)
        if ends is sharp:
            expected = near, far
    assert near == pytest.approx(expected[0], rel=0.03, abs=0.02) and far == pytest.approx(expected[1], rel=0.03)
