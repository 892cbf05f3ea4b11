"""The relaxation as a smooth problem in z: value, point, direction and steps against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import perspective_newton as kernel

from .plain import KINDS, Small, all_free, node_of, small


def phi(problem: Small, z: np.ndarray) -> float:
    root = np.sqrt(z)
    inner = np.eye(problem.q) + problem.G * np.outer(root, root)
    return problem.yy - float((root * problem.c) @ np.linalg.solve(inner, root * problem.c))


def weights(problem: Small, k: int, rng: np.random.Generator) -> np.ndarray:
    """Some z with sum k, one entry at 1 and one at 0 where there is room."""
    z = rng.uniform(0.2, 0.8, problem.q)
    z[0] = 0.0
    for _ in range(200):
        inner = z > 0.0
        z[inner] = np.clip(z[inner] + (k - z.sum()) / inner.sum(), 1e-3, 1.0)
    return z


@pytest.mark.parametrize("seed", range(8))
def test_projection_on_the_capped_simplex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v, size = rng.standard_normal(6), 5
    for total in (0.5, 1.0, 2.7, 4.0):
        low = np.full(6, 9.0)
        kernel.spread_evenly(v, size, total, low)
        assert low[5] == 9.0 and low[:5].sum() == pytest.approx(total, abs=1e-9)
        assert low[:5].min() >= 0.0 and low[:5].max() <= 1.0
        inner = (low[:5] > 0.0) & (low[:5] < 1.0)
        shift = v[:5] - low[:5]  # one multiplier for all inside, no smaller above, no larger below
        if inner.any():
            mu = shift[inner].mean()
            assert np.allclose(shift[inner], mu, atol=1e-9)
            assert np.all(shift[low[:5] == 0.0] <= mu + 1e-9) and np.all(shift[low[:5] == 1.0] >= mu - 1e-9)


def test_weights_that_suit_a_point() -> None:
    free, buffer = np.array([0, 2, 3, 4]), np.empty(5)
    g = np.array([0.1, 9.0, -3.0, 2.0, 1.0])
    b = np.array([4.0, 5.0, -2.0, 1.0, 0.5])
    z = np.zeros(5)
    none = np.zeros(0, dtype=np.int64)
    kernel.fill_weights(b, g, node_of(none, free, 2), z, buffer)
    t = 1.0 / 3.5  # min(4t, 1) + 2t + t + t / 2 = 2
    assert np.allclose(z[free], np.minimum(np.abs(b[free]) * t, 1.0)) and z[1] == 0.0
    b[:] = [0.0, 5.0, -2.0, 0.0, 0.0]
    kernel.fill_weights(b, g, node_of(none, free, 3), z, buffer)
    assert z.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0], "the nonzero entry, then the largest |g|"


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_value_and_point(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, members = problem.q, np.arange(problem.q)
    z = weights(problem, max(q // 2, 1), rng) if q > 1 else np.ones(1)
    factor, b = kernel.new_factor(q, q), np.full(q, 5.0)
    value, size = kernel.fit(problem.form, z, members, factor)
    held = z > 0
    assert value == pytest.approx(phi(problem, z), rel=1e-9)
    assert np.array_equal(factor.columns[:size], np.flatnonzero(held))
    kernel.fill_point(factor, size, members, b)
    expected = np.linalg.solve(problem.G[np.ix_(held, held)] + np.diag(1.0 / z[held]), problem.c[held])
    assert np.allclose(b[held], expected) and not b[~held].any()
    assert np.allclose(b, z * (problem.c - problem.G @ b)), "b = Z g"
    assert kernel.fit(problem.form, z, members, kernel.new_factor(q, 0)) == (np.inf, 0)


def test_columns_a_step_may_move() -> None:
    z = np.array([1.0, 1.0, 0.5, 0.5, 0.0, 0.0])
    g = np.array([0.1, 9.0, 1.0, 2.0, 5.0, 0.2])  # the level is (1 + 4) / 2
    chosen, enter = np.empty(6, dtype=np.int64), np.empty(kernel.ENTER, dtype=np.int64)
    count = kernel.moving(z, g, all_free(6, 3), chosen, enter)
    assert sorted(chosen[:count].tolist()) == [0, 2, 3, 4]
    z = np.zeros(40)
    z[0] = 1.0
    g = np.arange(40.0)
    chosen = np.empty(40, dtype=np.int64)
    count = kernel.moving(z, g, all_free(40, 1), chosen, enter)
    pressing = list(range(39, 39 - kernel.ENTER, -1))
    assert chosen[:count].tolist() == [0, *pressing], "the falling one and the most pressing"


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_direction_is_newton_s(seed: int) -> None:
    """Hessian by finite differences of the gradient -g(z)^2; the direction solves the equality-constrained system."""
    problem, rng = small(seed), np.random.default_rng(seed)
    if problem.q < 3:
        return
    q = problem.q
    z = rng.uniform(0.2, 0.9, q)

    def slope(z: np.ndarray) -> np.ndarray:
        return -((problem.c - problem.G @ np.linalg.solve(problem.G + np.diag(1.0 / z), problem.c)) ** 2)

    step = 1e-6
    hessian = np.column_stack([(slope(z + step * e) - slope(z - step * e)) / (2 * step) for e in np.eye(q)])
    chosen = np.sort(rng.permutation(q)[:3])
    block = hessian[np.ix_(chosen, chosen)]
    if not np.linalg.cond(block) < 1e4:  # tied, zero and copied columns: no curvature to divide by
        return
    factor = kernel.new_factor(q, q)
    _, size = kernel.fit(problem.form, z, np.arange(q), factor)
    g = np.sqrt(-slope(z)) * np.sign(problem.c - problem.G @ np.linalg.solve(problem.G + np.diag(1.0 / z), problem.c))
    scratch = kernel.System(np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3))
    kernel.fill_hessian(problem.G, g, factor, size, chosen, scratch.H)
    assert np.allclose(np.tril(scratch.H), np.tril(block), rtol=1e-3, atol=1e-4 * np.abs(block).max())
    assert kernel.direction(g, chosen, 3, scratch)
    system = np.block([[block, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(-slope(z)[chosen], 0.0))[:3]
    assert np.allclose(scratch.d, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
def test_steps_lower_the_value_to_the_optimum(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, members = problem.q, np.arange(problem.q)
    if q < 3:
        return
    k = int(rng.integers(1, q - 1))
    z = weights(problem, k, rng)
    factor, b = kernel.new_factor(q, q), np.zeros(q)
    value, size = kernel.fit(problem.form, z, members, factor)
    kernel.fill_point(factor, size, members, b)
    for _ in range(60):
        g = problem.c - problem.G @ b
        before = value
        value, size = kernel.newton_step(problem.form, all_free(q, k), members, factor, (value, size), z, g, b)
        if size == 0:
            break
        assert value <= before and abs(z.sum() - k) < 1e-9 and z.min() >= 0.0 and z.max() <= 1.0
        assert value == pytest.approx(phi(problem, z), rel=1e-8)
    g = problem.c - problem.G @ b
    dual = problem.yy - b @ problem.G @ b - np.sort(g**2)[::-1][:k].sum()
    assert value - dual < 1e-6 * problem.yy


def test_a_slope_whose_square_no_float_holds_gives_no_direction() -> None:
    scratch = kernel.System(np.empty((1, 1)), np.empty((1, 1)), np.empty(1), np.empty(1))
    slopes, chosen = np.array([1e160]), np.zeros(1, dtype=np.int64)
    kernel.fill_hessian(np.eye(1), slopes, kernel.new_factor(1, 1), 0, chosen, scratch.H)
    assert not kernel.direction(slopes, chosen, 1, scratch)
