"""Nodes of a tree that leaves columns out, against ridge fits on the columns that are left."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import elimination as kernel
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .plain import KINDS, copies_of, no_copies, small


def levels_of(problem) -> kernel.Levels:
    V = np.linalg.inv(problem.M)
    beta = V @ problem.c
    return kernel.new_levels(V, beta, problem.yy - problem.c @ beta, 1, problem.q)


def check(problem, levels: kernel.Levels, level: int, kept: list[int]) -> None:
    """A level holds the ridge fit on `kept`, its free columns by falling cost."""
    m = levels.node[level, kernel.COUNT]
    free = levels.column[level, :m]
    V = np.linalg.inv(problem.M[np.ix_(kept, kept)])
    at = [kept.index(j) for j in free]
    start = levels.node[level, kernel.START]
    assert np.allclose(levels.V[start : start + m * m].reshape(m, m), V[np.ix_(at, at)])
    assert np.allclose(levels.beta[level, :m], problem.beta(kept)[free])
    assert np.allclose(levels.cost[level, :m], problem.beta(kept)[free] ** 2 / np.diag(V)[at])
    assert np.all(np.diff(levels.cost[level, :m]) <= 0.0)
    assert levels.value[level] == pytest.approx(problem.value(kept), rel=1e-8)


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] not in ("one column", "tied")])
def test_children_are_the_fits_without_a_column(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    levels, child = levels_of(problem), kernel.new_child(problem.q)
    kept = list(range(problem.q))
    check(problem, levels, 0, kept)
    for level in range(3):
        size, included = levels.node[level, [kernel.COUNT, kernel.INCLUDED]]
        t = int(rng.integers(0, min(size - 1, 2)))
        start = levels.node[level, kernel.START]
        pivot = 1.0 / levels.V[start + t * size + t]
        kernel.child_costs(levels.node, levels.V, levels.beta, level, t, pivot, child)
        kernel.put_child(levels, level, t, pivot, child, 2, 5)
        kept.remove(int(levels.column[level, t]))
        check(problem, levels, level + 1, kept)
        assert levels.node[level + 1, : kernel.START].tolist() == [size - t - 1, included + t, 0, 2, 5]


def test_the_way_through_a_level() -> None:
    problem = small(0)
    levels = levels_of(problem)
    node, column, status = levels.node, levels.column, levels.status
    before = no_copies(problem.q).before
    node[0, [kernel.LOW, kernel.HIGH]] = 2, 3
    node[1, [kernel.COUNT, kernel.INCLUDED, kernel.CHILD, kernel.LOW, kernel.HIGH]] = 3, 1, 1, 2, 3
    column[1, :3] = [4, 2, 6]
    node[0, kernel.CHILD] = 2
    status[column[0, :2]], status[4] = [INSIDE, DROPPED], INSIDE
    assert not kernel.finished(node, column, status, 1, before)
    for child, low, high, done in [(3, 2, 3, True), (1, 4, 4, True), (2, 2, 2, True), (2, 2, 3, False)]:
        node[1, [kernel.CHILD, kernel.LOW, kernel.HIGH]] = child, low, high
        assert kernel.finished(node, column, status, 1, before) == done
    assert kernel.back_up(node, column, status, 1) == 0
    assert np.all(status[[4, 2]] == FREE) and np.all(status[column[0, :2]] == INSIDE)
    assert kernel.back_up(node, column, status, 0) == -1 and np.all(status == FREE)


def test_a_level_ends_where_copies_leave_their_order() -> None:
    problem = small(3, "copies")
    levels, before = levels_of(problem), copies_of(problem.X).before
    levels.column[0, :2] = [3, 1]  # column 3 is a copy of 1
    levels.node[0, kernel.CHILD] = 1  # the next children hold column 3
    assert not kernel.finished(levels.node, levels.column, levels.status, 0, before)
    levels.status[1] = DROPPED
    assert kernel.finished(levels.node, levels.column, levels.status, 0, before)
