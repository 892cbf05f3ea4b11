"""The tree for one tau: optimum, all supports within the bar, and valid bounds wherever it stops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import perspective_tree as kernel
from sparsecv_mio.kernels.kept import Margin
from sparsecv_mio.kernels.status import DROPPED, INSIDE

from .plain import KINDS, Small, copies_of, no_copies, small


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
