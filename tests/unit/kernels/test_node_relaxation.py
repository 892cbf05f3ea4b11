"""Partitions of columns by z, and the stationary point of each, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import node_relaxation as kernel
from sparsecv_mio.kernels.nodes import Accuracy
from sparsecv_mio.kernels.perspective_newton import new_factor

from . import plain
from .plain import KINDS, Small, node_of, small


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_partition_that_the_proximal_map_proposes(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    y, g = on_node(problem, inside, free, rng), rng.standard_normal(problem.q)
    buffer = np.empty(problem.q)
    for step in (1.0, 0.2):
        kind, sign = partition = kernel.new_partition(problem.q)
        assert not kind.any() and np.all(sign == 1.0)
        left = kernel.propose_partition(y, g, node_of(inside, free, k), step, partition, buffer)
        moved = y + step * g
        _, z = plain.proximal(moved[free], k, step)
        clear = np.abs(z - np.round(z)) > 1e-9
        assert np.all(kind[inside] == 1) and np.array_equal(kind[free][clear], np.full(clear.sum(), 2))
        assert np.all(kind[free][z == 0.0] == 0)
        assert left == max(k - np.count_nonzero(kind[free] == 1), 1e-9)
        assert np.array_equal(sign[free], np.where(moved[free] >= 0.0, 1.0, -1.0))


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_stationary_point_of_a_partition(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    q, members = problem.q, np.concatenate([inside, free])
    kind, sign = np.zeros(q, dtype=np.int8), rng.choice([-1.0, 1.0], q)
    kind[inside] = 1
    kind[free] = rng.integers(0, 3, len(free))
    kappa = float(max(k - np.count_nonzero(kind[free] == 1), 0.5))
    partition, factor, b = kernel.KindsOfColumns(kind, sign), new_factor(q, q), np.full(q, 3.0)
    held = members[kind[members] != 0]
    one, fractional = kind[held] == 1, kind[held] == 2
    matrix = problem.G[np.ix_(held, held)] + np.diag(np.where(one, 1.0, 1e-10))
    s = np.where(fractional, sign[held], 0.0)
    matrix += np.outer(s, s) / kappa
    size = kernel.partition_matrix(problem.G, members, partition, kappa, factor.work, factor.columns)
    assert size == len(held) and np.array_equal(factor.columns[:size], held)
    assert np.allclose(np.tril(factor.work[:size, :size]), np.tril(matrix))
    too_small = np.empty((max(len(held) - 1, 0), max(len(held) - 1, 0)))
    if len(held):
        assert kernel.partition_matrix(problem.G, members, partition, kappa, too_small, factor.columns) == -1
    if np.linalg.cond(matrix) < 1e6 if len(held) else True:
        assert kernel.newton_point(problem.form, members, partition, kappa, factor, b)
        assert np.allclose(b[held], np.linalg.solve(matrix, problem.c[held]))
        assert not b[np.setdiff1d(members, held)].any()


def test_partition_that_z_shows() -> None:
    z, b = np.array([1.0, 0.4, 0.0, 1.0, 0.6]), np.array([-1.0, 2.0, 0.0, 1.0, -3.0])
    inside, free = np.array([3]), np.array([0, 1, 2, 4])
    kind, sign = np.full(5, 9, dtype=np.int8), np.zeros(5)
    left, fractional = kernel.partition_columns(z, b, node_of(inside, free, 2), kernel.KindsOfColumns(kind, sign))
    assert (left, fractional, kind.tolist()) == (1.0, 2, [1, 2, 0, 1, 2])
    assert sign[free].tolist() == [-1.0, 1.0, 1.0, -1.0]


def node(seed: int) -> tuple[Small, np.ndarray, np.ndarray, int]:
    """A problem, some columns inside, some free (others dropped), and k with 0 < k < free; wide ones included."""
    kind = KINDS[seed % len(KINDS)]
    problem = small(seed, "tall" if kind == "one column" else kind)
    rng = np.random.default_rng(1000 + seed)
    order = rng.permutation(problem.q)
    held = int(rng.integers(0, 3))
    free = np.sort(order[held : problem.q - int(rng.integers(0, 2))])
    return problem, np.sort(order[:held]), free, int(rng.integers(1, len(free)))


def on_node(problem: Small, inside: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    b = np.zeros(problem.q)
    members = np.concatenate([inside, free])
    b[members] = rng.standard_normal(len(members)) * (rng.random(len(members)) < 0.8)
    return b


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_values_of_a_node(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    b, g, buffer, heap = on_node(problem, inside, free, rng), np.full(problem.q, 7.0), np.empty(problem.q), np.empty(k)
    members = np.concatenate([inside, free])
    quad = kernel.gradient(problem.G, problem.c, members, b, g)
    assert quad == pytest.approx(b @ problem.G @ b)
    assert np.allclose(g[members], (problem.c - problem.G @ b)[members])
    outside = np.setdiff1d(np.arange(problem.q), members)
    assert np.all(g[outside] == 7.0)
    at = node_of(inside, free, k)
    value = kernel.dual_value(problem.yy, quad, g, at, buffer, heap)
    assert value == pytest.approx(plain.dual(problem, inside, free, k, b))
    value = kernel.primal_value(problem.form, quad, b, at, buffer, heap)
    assert value == pytest.approx(plain.primal(problem, inside, free, k, b))


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_proximal_step(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    y, g = on_node(problem, inside, free, rng), rng.standard_normal(problem.q)
    b, buffer, step = np.zeros(problem.q), np.empty(problem.q), 0.3
    kernel.proximal_step(y, g, step, node_of(inside, free, k), buffer, b)
    expected, _ = plain.proximal(y[free] + step * g[free], k, step)
    assert np.allclose(b[free], expected, atol=1e-9) and np.allclose(b[inside], (y + step * g)[inside] / (1 + step))


def relaxed(problem: Small, inside, free, k, bar=np.inf, rel=1e-9, steps=2000):
    q = problem.q
    b, g, best_b, best_g = (np.zeros(q) for _ in range(4))
    found = kernel.relax(problem.form, node_of(inside, free, k), Accuracy(bar, rel, steps), b, g, best_b, best_g)
    return *found, best_b, best_g


@pytest.mark.parametrize("seed", range(5 * len(KINDS)))
def test_relaxation_is_closed_from_both_sides(seed: int) -> None:
    """The dual value is that of the point returned, no primal one is below the minimum: where they meet it is."""
    problem, inside, free, k = node(seed)
    bar = problem.yy * 1e6
    dual, primal, steps, b, g = relaxed(problem, inside, free, k, bar, 1e-16)
    assert dual == pytest.approx(plain.dual(problem, inside, free, k, b), rel=1e-9, abs=1e-12 * problem.yy)
    members = np.concatenate([inside, free])
    assert np.allclose(g[members], (problem.c - problem.G @ b)[members])
    assert primal - dual <= 1e-9 * problem.yy and steps <= 2000
    rng = np.random.default_rng(seed)
    for _ in range(20):
        anywhere = on_node(problem, inside, free, rng)
        assert plain.dual(problem, inside, free, k, anywhere) <= primal + 1e-9 * problem.yy
        assert plain.primal(problem, inside, free, k, anywhere) >= dual - 1e-9 * problem.yy
        support = [*inside, *rng.permutation(free)[:k]]
        assert problem.value(support) >= dual - 1e-9 * problem.yy


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_relaxation_stops_at_the_bar(seed: int) -> None:
    problem, inside, free, k = node(seed)
    exact = relaxed(problem, inside, free, k, problem.yy * 1e6, 1e-16)[0]
    dual, *_ = relaxed(problem, inside, free, k, bar=0.5 * exact, rel=0.0)
    assert 0.5 * exact <= dual <= exact * (1.0 + 1e-9)
    dual, primal, steps, *_ = relaxed(problem, inside, free, k, bar=np.inf, rel=0.0, steps=0)
    assert steps == 0 and dual <= exact + 1e-9 * problem.yy <= primal + 2e-9 * problem.yy
