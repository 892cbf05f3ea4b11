"""How far a sum of squares can move: formulas, candidates inside every bound, and as sharp as a conic solver."""

from __future__ import annotations

import numpy as np
import pytest
from conic_program import conic_minimum  # noqa: E402
from ellipsoids import held_out_interval
from scipy.optimize import minimize_scalar

from sparsecv_mio.kernels import level_sets as kernel
from sparsecv_mio.kernels.node_relaxation import new_partition, partition_matrix, propose_partition, relax
from sparsecv_mio.kernels.nodes import Effort, Fold, LevelSet, Rounding, absolute

from . import plain
from .plain import KINDS, Small, all_free, fold_of, small

pytest.importorskip("clarabel")

SEVERAL = [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"]


def centre_of(problem: Small, k: int) -> tuple[np.ndarray, float, float]:
    """Solution of the relaxation, dual and primal value."""
    b, g, best_b, best_g = (np.zeros(problem.q) for _ in range(4))
    stop = absolute(problem.yy, 1e-10 * problem.yy, 5000)
    dual, primal, _ = relax(problem.form, all_free(problem.q, k), stop, b, g, best_b, best_g)
    return best_b, dual, primal


@pytest.mark.parametrize("seed", SEVERAL)
def test_relaxation_at_the_root(seed: int) -> None:
    problem = small(seed)
    q, every = problem.q, np.arange(problem.q)
    for k in range(1, q):
        b, dual, primal = centre_of(problem, k)
        assert dual == pytest.approx(plain.dual(problem, every[:0], every, k, b), abs=1e-10 * problem.yy)
        exact = conic_minimum(problem.M, problem.c, problem.yy, np.ones(q), k)
        assert abs(dual - exact) <= 1e-7 * problem.yy and abs(primal - exact) <= 1e-7 * problem.yy


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_formulas(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    b, t = rng.standard_normal(q), float(rng.uniform(-0.5, 2.0))
    for rows in (0, 1, 4):
        X, u = rng.standard_normal((rows, q)), rng.standard_normal(rows)
        G, c = np.empty((q, q)), np.empty(q)
        yy = kernel.add_rows(problem.G, problem.c, problem.yy, X, u, t, G, c)
        assert np.allclose(G, problem.G + t * X.T @ X) and np.allclose(c, problem.c + t * X.T @ u)
        assert yy == pytest.approx(problem.yy + t * u @ u)
        assert kernel.squares(X, u, b) == pytest.approx(np.sum((u - X @ b) ** 2))
        columns = np.linalg.norm(X, axis=0)
        size = np.linalg.norm(u) + columns @ np.abs(b) + np.linalg.norm(columns) * 3.0
        assert kernel.size_of_rows(X, u, b, 3.0) == pytest.approx(size**2)


def test_weights() -> None:
    assert kernel.next_weight(2.0, 4.0, 0.0, np.inf) == 4.0
    assert kernel.next_weight(1.0, 1e9, 0.0, np.inf) == 100.0, "a step has an end"
    assert kernel.next_weight(2.0, 4.0, 2.0, 3.0) == pytest.approx(np.sqrt(6.0))
    assert kernel.next_weight(2.0, 4.0, 0.0, 3.0) == pytest.approx(0.9)
    assert kernel.next_weight(2.0, 0.25, 2.0, np.inf) == 6.0


@pytest.mark.parametrize("seed", SEVERAL)
@pytest.mark.parametrize("room", [1e-9, 0.05])
def test_least_and_most_squares(seed: int, room: float) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    k = int(rng.integers(1, q))
    ubar = problem.best(k)[0] * (1.0 + room)
    rows = 1 + seed % 4
    X, u = rng.standard_normal((rows, q)), 2.0 * rng.standard_normal(rows)
    b, dual, primal = centre_of(problem, k)
    norm, ones = float(np.sqrt(problem.yy)), np.ones(q)
    candidates, rounding = LevelSet(k, ubar, primal), Rounding(1e-15, norm, norm, ones)
    low = kernel.least_squares(problem.form, candidates, X, u, b, Effort(25, 3000), rounding)
    reach = float(np.linalg.eigvalsh(X @ np.linalg.solve(problem.M, X.T))[-1]) * (1.0 + 1e-9)
    shares = plain.read_only(np.linspace(0.1, 0.9, 9))
    fold = Fold(problem.M, problem.c, problem.yy, ones, X, u)
    high = kernel.most_squares(fold, candidates, reach, b, shares, 3000, rounding)
    for point in plain.candidates(problem, k, ubar, rng):
        held = float(np.sum((u - X @ point) ** 2))
        assert low <= held * (1.0 + 1e-9) + 1e-9 and held <= high * (1.0 + 1e-9) + 1e-9

    def lower(t: float) -> float:
        moved = problem.M + t * X.T @ X, problem.c + t * X.T @ u, problem.yy + t * u @ u
        return (conic_minimum(*moved, ones, k) - ubar) / t

    def upper(s: float) -> float:
        t = s / reach
        moved = problem.M - t * X.T @ X, problem.c - t * X.T @ u, problem.yy - t * u @ u
        return (ubar - conic_minimum(*moved, (1.0 - s) * ones, k)) / t

    size = float(u @ u) + high
    trained = lower(1.0)
    assert low >= trained - 0.02 * size, "t = 1 is the training-loss bound"
    assert low >= max(lower(float(t)) for t in np.geomspace(0.01, 100.0, 9)) - 0.05 * size
    exact = [upper(float(s)) for s in shares]
    assert min(exact) - 1e-6 * size <= high <= min(exact[4], exact[0]) + 0.05 * size


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
    body = held_out_interval(M, rho, X, e)  # the same by a root finder
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
