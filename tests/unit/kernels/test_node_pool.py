"""The open nodes of a tree of one size: they come by their bounds, and their last levels are met as a whole."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import node_pool
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Margin, Node

from .plain import KINDS, Small, no_copies, small


def test_pool_and_its_growth() -> None:
    status = np.array([0, 1, 2], dtype=np.int8)
    pool = node_pool.new_pool(status, 5.0, 6.0, np.array([True, False, False]), capacity=4)
    assert pool.best.tolist() == [5.0, 6.0] and pool.ctrl[node_pool.OPEN] == 1 and pool.ctrl[node_pool.SPARE] == 3
    assert pool.bound[0] == -np.inf and np.array_equal(pool.status[pool.row[0]], status)
    larger = node_pool.grow_pool(pool)
    assert len(larger.bound) == 8 and np.array_equal(larger.status[:4], pool.status)
    free = larger.spare[: larger.ctrl[node_pool.SPARE]]
    assert sorted([*free.tolist(), int(larger.row[0])]) == list(range(8)), "every row is open or spare, once"


def test_open_nodes_come_by_their_bounds_and_know_their_columns() -> None:
    q, none = 5, no_copies(5)
    pool = node_pool.new_pool(np.full(q, FREE, dtype=np.int8), 9.0, 9.0, np.zeros(q, dtype=np.bool_))
    scratch = node_pool.new_scratch(q, 2)
    assert node_pool.take_node(pool, scratch.status, 0)[0] == node_pool.BUDGET
    assert node_pool.take_node(pool, scratch.status, 1) == (node_pool.TAKEN, -np.inf, 0)
    assert scratch.status.tolist() == [FREE] * q and pool.ctrl[node_pool.NODES] == 1
    assert pool.ctrl[node_pool.SPARE] == 64, "its row may be used again"
    for bound, j in ((3.0, 1), (1.0, 4), (2.0, 0)):
        rows = node_pool.branch(pool, bound, j, scratch, none)
        assert [pool.status[row, j] for row in rows] == [INSIDE, DROPPED]
        assert all(np.delete(pool.status[row], j).tolist() == [FREE] * 4 for row in rows)
    assert [node_pool.take_node(pool, scratch.status, 9)[1] for _ in range(4)] == [1.0, 1.0, 2.0, 2.0]
    pool.best[1] = 3.0
    assert node_pool.take_node(pool, scratch.status, 9)[0] == node_pool.FINISHED and pool.ctrl[node_pool.OPEN] == 0
    node_pool.branch(pool, 2.0, 1, scratch, none)
    pool.ctrl[node_pool.SPARE] = 1
    assert node_pool.take_node(pool, scratch.status, 9)[0] == node_pool.FULL


def test_the_columns_of_the_largest_weights_are_tried() -> None:
    problem = Small(np.eye(5), np.arange(5.0))
    pool = node_pool.new_pool(np.zeros(5, dtype=np.int8), np.inf, np.inf, np.zeros(5, dtype=np.bool_))
    scratch = node_pool.new_scratch(5, 3)
    scratch.inside[0], scratch.free[:3], scratch.x[:3] = 2, [0, 1, 4], [0.5, 0.1, 0.7]
    node = Node(scratch.inside, 1, scratch.free, 3, 2)
    node_pool.try_largest(pool, problem.form, node, scratch, Margin(1e-9, 0.0))
    assert np.flatnonzero(pool.best_mask).tolist() == [0, 2, 4]
    assert pool.best[0] == pytest.approx(problem.value([0, 2, 4]), rel=1e-12)


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"])
def test_the_last_levels_are_met_as_a_whole(seed: int) -> None:
    problem = small(seed)
    q, none, margin = problem.q, no_copies(problem.q), Margin(0.05, 1e-9 * problem.yy)
    for inside in range(3):
        for k in (1, 2, 3):
            tau = inside + k
            if tau >= q:
                continue
            pool = node_pool.new_pool(np.zeros(q, dtype=np.int8), np.inf, np.inf, np.zeros(q, dtype=np.bool_))
            scratch = node_pool.new_scratch(q, tau)
            scratch.status[:inside], scratch.status[inside:] = INSIDE, FREE
            scratch.inside[:inside], scratch.free[: q - inside] = np.arange(inside), np.arange(inside, q)
            values = {
                (*range(inside), *rest): problem.value((*range(inside), *rest))
                for rest in combinations(range(inside, q), k)
            }
            first = max(values, key=lambda s: values[s])
            node_pool.improve(pool, np.array(first), tau, values[first] * (1.0 + 1e-9), margin)
            assert np.flatnonzero(pool.best_mask).tolist() == list(first)
            node = Node(scratch.inside, inside, scratch.free, q - inside, k)
            assert node_pool.ends_here(pool, problem.form, node, scratch, none, margin)
            assert pool.best[0] == pytest.approx(min(values.values()), rel=1e-7)
            # one support left: all that is free, or nothing
            last = node_pool.new_pool(np.zeros(q, dtype=np.int8), np.inf, np.inf, np.zeros(q, dtype=np.bool_))
            scratch.status[:] = DROPPED
            scratch.status[:tau] = [INSIDE] * inside + [FREE] * k
            scratch.inside[:inside] = np.arange(inside)
            rest = Node(scratch.inside, inside, scratch.free, k, k)
            assert node_pool.ends_here(last, problem.form, rest, scratch, none, margin)
            assert last.best[0] == pytest.approx(problem.value(range(tau)), rel=1e-7)
            too_few = Node(scratch.inside, inside, scratch.free, k - 1, k)
            assert node_pool.ends_here(last, problem.form, too_few, scratch, none, margin)
            many = Node(scratch.inside, 0, scratch.free, 9, 4)
            assert not node_pool.ends_here(last, problem.form, many, scratch, none, margin)
