"""Sizes that stay alive in a node, against all supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import dropping_costs as kernel
from sparsecv_mio.kernels.node_bounds import remaining_sizes  # so that what replaces it meets this test
from sparsecv_mio.kernels.path_tree import Child

from .plain import KINDS, Small, small

SEEDS = [k for k in range(4 * len(KINDS)) if KINDS[k % len(KINDS)] != "one column"]


def root(problem: Small) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Columns by falling cost, their coefficients and costs, and f of all of them."""
    V = np.linalg.inv(problem.M)
    beta = V @ problem.c
    cost = beta**2 / np.diag(V)
    order = np.argsort(-cost, kind="stable")
    return order, beta[order], cost[order], float(problem.yy - problem.c @ beta)


def bars_of(problem: Small, rng: np.random.Generator) -> np.ndarray:
    """By size, about the least value."""
    bars = np.full(problem.q + 1, np.inf)
    for size in range(1, problem.q + 1):
        least = min(problem.value(list(s)) for s in combinations(range(problem.q), size))
        bars[size] = least * (1.0 + rng.choice([-0.3, -0.01, 1e-6, 0.1]))
    return bars


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("second", [False, True])
def test_no_size_with_a_support_below_its_bar_is_left_out(seed: int, second: bool) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, bars = problem.q, bars_of(problem, rng)
    _, beta, cost, value = root(problem)
    w = max(float(np.linalg.eigvalsh(problem.M)[0]) * (1.0 - 1e-9), 0.0) if second else 0.0
    child = Child(np.arange(q), beta, cost)
    low, high = remaining_sizes(value, child, q, q, (1, q - 1), w, bars, np.empty(q))
    rising = np.concatenate(([0.0], np.cumsum(np.sort(w * beta**2))))
    for size in range(1, q):
        bound = value + cost[size]
        if w > 0.0:
            bound = max(bound, value + rising[q - size])
        least = min(problem.value(list(s)) for s in combinations(range(q), size))
        assert bound <= least + 1e-9 * problem.yy
        if least < bars[size] - 1e-9 * problem.yy:
            assert low <= size <= high
    for end in (low, high) if low <= high else ():
        assert value + cost[end] < bars[end] and (w == 0.0 or value + rising[q - end] < bars[end])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_of_a_chain_holds_no_support_below_its_bar(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, bars = problem.q, bars_of(problem, rng)
    order, beta, cost, value = root(problem)
    weight = np.full(q, max(float(np.linalg.eigvalsh(problem.M)[0]) * (1.0 - 1e-9), 0.0))
    last = kernel.last_split(value, cost, weight * beta**2, 0, np.array([1, q]), bars)
    split, others = order[:last].tolist(), order[last:].tolist()
    for size in range(max(last, 1), q):
        for some in combinations(others, size - last):
            assert problem.value([*split, *some]) >= bars[size] - 1e-9 * problem.yy
