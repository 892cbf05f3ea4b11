"""Gains of one and of two columns beside those of a node, against the values of the supports themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import perspective_tree as kernel
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Margin, Node
from sparsecv_mio.kernels.perspective_tree import (
    correlations,
    eliminate,
    may_reach,
    new_rest,
    next_completion,
    sort_by_gain,
)

from .plain import KINDS, Small, copies_of, no_copies, small


def scanned(problem: Small, inside: list[int], k: int, bar: float) -> list[tuple[int, ...]]:
    """Supports that a scan names, in its order."""
    q, size = problem.q, len(inside)
    free = np.setdiff1d(np.arange(q), inside)
    node = Node(np.array([*inside, 0, 0]), size, free, len(free), k)
    rest = new_rest(q, size + k)
    assert eliminate(problem.form, node, np.empty((q, q)), np.empty(q), rest)
    assert rest.value[0] == pytest.approx(problem.value(inside), rel=1e-9)
    found, at = [], (0, 0)
    while True:
        first, second = next_completion(problem.form, node, rest, bar, at)
        if first == len(free):
            return found
        found.append(tuple(sorted([*inside, *free[[first, second][:k]].tolist()])))
        at = (first + 1, 0) if k == 1 else (first, second + 1)


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
@pytest.mark.parametrize("k", [1, 2])
def test_a_scan_names_every_support_within_the_bar_once(seed: int, k: int) -> None:
    problem = small(seed)
    for size in range(min(3, problem.q - k)):
        inside = np.random.default_rng(seed).permutation(problem.q)[:size].tolist()
        rest = np.setdiff1d(np.arange(problem.q), inside)
        values = {tuple(sorted([*inside, *K])): problem.value([*inside, *K]) for K in combinations(rest.tolist(), k)}
        for bar in np.quantile(list(values.values()), [0.0, 0.3, 1.0]) * (1.0 + 1e-9):
            found = scanned(problem, inside, k, float(bar))
            assert len(set(found)) == len(found)
            assert {S for S, value in values.items() if value <= bar * (1.0 - 1e-12)} <= set(found)
            assert all(values[S] <= bar * (1.0 + 1e-9) for S in found)


def test_columns_inside_that_are_no_basis_are_refused() -> None:
    problem = small(0)
    node = Node(np.array([0, 1]), 2, np.array([2]), 1, 1)
    form = problem.form._replace(G=np.full((problem.q, problem.q), -2.0))
    assert not eliminate(form, node, np.empty((2, 2)), np.empty(2), new_rest(problem.q, 3))


def leaders(problem: Small, inside: list[int], bar: float) -> tuple[list[int], set[int]]:
    """Free columns in the order of their gains, and those that may be the most useful of three within the bar."""
    q, size = problem.q, len(inside)
    free = np.setdiff1d(np.arange(q), inside)
    count = len(free)
    node, rest = Node(np.array([*inside, 0, 0, 0]), size, free, count, 3), new_rest(q, size + 3)
    assert sort_by_gain(problem.form, node, np.empty((q, q)), np.empty(q), rest)
    H, top, h, e, d = np.empty((count, count)), np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    assert correlations(problem.form, node, rest, H, top, h)
    gains = problem.value(inside) - np.array([problem.value([*inside, j]) for j in free])
    np.testing.assert_allclose(h**2, gains, rtol=1e-7, atol=1e-9 * problem.yy)
    assert np.all(np.diff(h**2) <= 1e-9 * problem.yy)
    need = rest.value[0] - bar
    return free.tolist(), {int(free[f]) for f in range(count) if may_reach(H, top, h, f, need, e, d)}


@pytest.mark.parametrize("seed", range(4 * len(KINDS)))
def test_the_most_useful_column_of_every_three_within_the_bar_is_named(seed: int) -> None:
    problem = small(seed)
    for size in range(min(3, problem.q - 3)):
        inside = np.random.default_rng(seed).permutation(problem.q)[:size].tolist()
        outside = np.setdiff1d(np.arange(problem.q), inside)
        values = {K: problem.value([*inside, *K]) for K in combinations(outside.tolist(), 3)}
        for bar in np.quantile(list(values.values()), [0.0, 0.1, 0.5, 1.0]) * (1.0 + 1e-9):
            order, named = leaders(problem, inside, float(bar))
            first = {K: min(K, key=order.index) for K, value in values.items() if value <= bar * (1.0 - 1e-12)}
            assert set(first.values()) <= named


def test_columns_without_correlation_are_left_out_where_their_gains_are_too_small() -> None:
    problem = Small(np.eye(9), np.arange(9.0))
    values = sorted(problem.value(K) for K in combinations(range(9), 3))
    assert leaders(problem, [], 0.5 * (values[0] + values[1]))[1] == {8}
    assert leaders(problem, [], values[0] * (1.0 - 1e-6))[1] == set()


def test_columns_that_are_nearly_one_are_always_named() -> None:
    column = np.linspace(1.0, 2.0, 12)
    X = np.column_stack([column, column * (1.0 + 1e-9 * np.arange(12)), *np.eye(12)[:3]]) * 1e5
    problem = Small(X, np.ones(12))
    order, named = leaders(problem, [], -1e9)
    assert {0, 1} & named == {next(j for j in order if j < 2)}


def solve(problem: Small, tau: int, keep: float, budget: int = 10**6, capacity: int = 64, status=None):
    """Run to the end in portions of `budget` nodes, growing where asked."""
    status = np.zeros(problem.q, dtype=np.int8) if status is None else status
    pool = kernel.new_pool(status, np.inf, np.inf, np.zeros(problem.q, dtype=np.bool_), capacity)
    truth = problem.best(tau)[0] if not status.any() else np.inf
    answers = []
    while True:
        answer = kernel.run(pool, problem.form, tau, copies_of(problem.X), Margin(keep, 0.0), budget)
        answers.append(answer)
        if answer == kernel.FINISHED:
            return pool, answers
        lower = min(pool.bound[0], pool.best[0])
        assert pool.ctrl[kernel.OPEN] > 0 and lower <= truth * (1.0 + 1e-9)
        if answer == kernel.FULL:
            pool = kernel.grown(pool)


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_optimum_and_every_support_within_the_bar(seed: int) -> None:
    problem = small(seed)
    before, _ = copies_of(problem.X)
    for tau in range(1, problem.q):
        for keep in (1e-9, 0.2):
            pool, _ = solve(problem, tau, keep)
            value, _ = problem.best(tau)
            assert pool.best[0] == pytest.approx(value, rel=1e-8)
            assert problem.value(np.flatnonzero(pool.best_mask)) == pytest.approx(value, rel=1e-8)
            count = pool.ctrl[kernel.KEPT]
            kept = {tuple(np.flatnonzero(mask).tolist()) for mask in pool.kept.mask[:count]}
            assert len(kept) == count and not pool.ctrl[kernel.OVERFLOW]
            for support in combinations(range(problem.q), tau):
                ordered = all(before[j] < 0 or before[j] in support for j in support)
                if ordered and problem.value(support) < value * (1.0 + keep) * (1.0 - 1e-9):
                    assert support in kept


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_portions_and_growth_change_nothing(seed: int) -> None:
    problem = small(seed, "wide")
    whole, _ = solve(problem, 3, 0.3)
    parts, answers = solve(problem, 3, 0.3, budget=1, capacity=3)
    assert parts.best[0] == whole.best[0] and np.array_equal(parts.best_mask, whole.best_mask)
    assert parts.ctrl[kernel.NODES] == whole.ctrl[kernel.NODES]
    assert whole.ctrl[kernel.NODES] == 1 or kernel.BUDGET in answers


def test_columns_fixed_from_the_start_stay() -> None:
    problem = small(0)
    status = np.zeros(problem.q, dtype=np.int8)
    status[0], status[4] = INSIDE, DROPPED
    pool, _ = solve(problem, 3, 1e-9, status=status)
    allowed = [s for s in combinations(range(problem.q), 3) if 0 in s and 4 not in s]
    assert pool.best[0] == pytest.approx(min(problem.value(s) for s in allowed), rel=1e-9)


def test_pool_and_its_growth() -> None:
    status = np.array([0, 1, 2], dtype=np.int8)
    pool = kernel.new_pool(status, 5.0, 6.0, np.array([True, False, False]), capacity=4)
    assert pool.best.tolist() == [5.0, 6.0] and pool.ctrl[kernel.OPEN] == 1 and pool.ctrl[kernel.SPARE] == 3
    assert pool.bound[0] == -np.inf and np.array_equal(pool.status[pool.row[0]], status)
    larger = kernel.grown(pool)
    assert len(larger.bound) == 8 and np.array_equal(larger.status[:4], pool.status)
    free = larger.spare[: larger.ctrl[kernel.SPARE]]
    assert sorted([*free.tolist(), int(larger.row[0])]) == list(range(8)), "every row is open or spare, once"


def test_more_supports_than_can_be_kept_are_reported() -> None:
    problem = Small(np.eye(7), np.ones(7))
    pool = kernel.new_pool(np.zeros(7, dtype=np.int8), np.inf, np.inf, np.zeros(7, dtype=np.bool_), 256, 5)
    assert kernel.run(pool, problem.form, 3, no_copies(7), Margin(1e-9, 0.0), 10**6) == kernel.FINISHED
    assert pool.ctrl[kernel.OVERFLOW] == 1 and pool.ctrl[kernel.KEPT] == 5, "35 supports tie"


def test_open_nodes_come_by_their_bounds_and_know_their_columns() -> None:
    q, none = 5, no_copies(5)
    pool = kernel.new_pool(np.full(q, FREE, dtype=np.int8), 9.0, 9.0, np.zeros(q, dtype=np.bool_))
    scratch = kernel.new_scratch(q, 2)
    assert kernel.take_node(pool, scratch.status) == (-np.inf, 0)
    assert scratch.status.tolist() == [FREE] * q and pool.ctrl[kernel.NODES] == 1
    assert pool.ctrl[kernel.SPARE] == 64, "its row may be used again"
    for bound, j in ((3.0, 1), (1.0, 4), (2.0, 0)):
        rows = kernel.branch(pool, bound, j, scratch, none)
        assert [pool.status[row, j] for row in rows] == [INSIDE, DROPPED]
        assert all(np.delete(pool.status[row], j).tolist() == [FREE] * 4 for row in rows)
    assert [kernel.take_node(pool, scratch.status)[0] for _ in range(6)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_the_columns_of_the_largest_weights_are_tried() -> None:
    problem = Small(np.eye(5), np.arange(5.0))
    pool = kernel.new_pool(np.zeros(5, dtype=np.int8), np.inf, np.inf, np.zeros(5, dtype=np.bool_))
    scratch = kernel.new_scratch(5, 3)
    scratch.inside[0], scratch.free[:3], scratch.x[:3] = 2, [0, 1, 4], [0.5, 0.1, 0.7]
    node = Node(scratch.inside, 1, scratch.free, 3, 2)
    kernel.try_largest(pool, problem.form, node, scratch, Margin(1e-9, 0.0))
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
            pool = kernel.new_pool(np.zeros(q, dtype=np.int8), np.inf, np.inf, np.zeros(q, dtype=np.bool_))
            scratch, trial = kernel.new_scratch(q, tau), kernel.new_scratch(q, tau)
            for work in (scratch, trial):
                work.status[:inside], work.status[inside:] = INSIDE, FREE
                work.inside[:inside], work.free[: q - inside] = np.arange(inside), np.arange(inside, q)
            values = {
                (*range(inside), *rest): problem.value((*range(inside), *rest))
                for rest in combinations(range(inside, q), k)
            }
            first = max(values, key=lambda s: values[s])
            kernel.improve(pool, np.array(first), tau, values[first] * (1.0 + 1e-9), margin)
            assert np.flatnonzero(pool.best_mask).tolist() == list(first)
            node = Node(scratch.inside, inside, scratch.free, q - inside, k)
            trial = trial._replace(inside=scratch.inside, free=scratch.free)
            assert kernel.ends_here(pool, problem.form, node, scratch, trial, none, margin)
            assert pool.best[0] == pytest.approx(min(values.values()), rel=1e-7)
            # one support left: all that is free, or nothing
            last = kernel.new_pool(np.zeros(q, dtype=np.int8), np.inf, np.inf, np.zeros(q, dtype=np.bool_))
            scratch.status[:] = DROPPED
            scratch.status[:tau] = [INSIDE] * inside + [FREE] * k
            scratch.inside[:inside] = np.arange(inside)
            rest = Node(scratch.inside, inside, scratch.free, k, k)
            assert kernel.ends_here(last, problem.form, rest, scratch, trial, none, margin)
            assert last.best[0] == pytest.approx(problem.value(range(tau)), rel=1e-7)
            too_few = Node(scratch.inside, inside, scratch.free, k - 1, k)
            assert kernel.ends_here(last, problem.form, too_few, scratch, trial, none, margin)
            many = Node(scratch.inside, 0, scratch.free, 9, 4)
            assert not kernel.ends_here(last, problem.form, many, scratch, trial, none, margin)
