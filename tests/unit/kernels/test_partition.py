"""Partitions of columns by z, and the stationary point of each, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import partition as kernel
from sparsecv_mio.kernels.perspective_newton import new_factor

from . import plain
from .plain import KINDS, node_of
from .test_perspective import node, on_node


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
    kappa = max(k - np.count_nonzero(kind[free] == 1), 0.5)
    partition, factor, b = kernel.Partition(kind, sign), new_factor(q, q), np.full(q, 3.0)
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
    left, fractional = kernel.partition_of(z, b, node_of(inside, free, 2), kernel.Partition(kind, sign))
    assert (left, fractional, kind.tolist()) == (1.0, 2, [1, 2, 0, 1, 2])
    assert sign[free].tolist() == [-1.0, 1.0, 1.0, -1.0]
