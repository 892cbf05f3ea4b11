"""Best subsets of every size in one tree, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import path_tree as kernel
from sparsecv_mio.kernels.elimination import new_levels
from sparsecv_mio.kernels.kept import Margin

from .plain import KINDS, Small, copies_of, small


def state_of(problem: Small, low: int, high: int, keep: float, capacity: int = 4096):
    V = np.linalg.inv(problem.M)
    beta = V @ problem.c
    value = problem.yy - problem.c @ beta
    best = np.full(problem.q + 1, np.inf)
    best[problem.q] = value
    return kernel.new_state(new_levels(V, beta, value, low, high), best, Margin(keep, 0.0), capacity)


def kept(state) -> dict[int, set[tuple[int, ...]]]:
    out: dict[int, set[tuple[int, ...]]] = {}
    for r in range(state.ctrl[kernel.KEPT]):
        mask, size, value = (array[r] for array in state.kept)
        if value <= state.bar[size]:
            out.setdefault(int(size), set()).add(tuple(np.flatnonzero(mask).tolist()))
    return out


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
@pytest.mark.parametrize("second_term", [False, True])
def test_every_size_and_every_support_within_the_bar(seed: int, second_term: bool) -> None:
    problem = small(seed)
    q = problem.q
    w = float(np.linalg.eigvalsh(problem.M)[0]) * (1.0 - 1e-9) if second_term else 0.0
    before, _ = copies_of(problem.X)
    for low, high, keep in ((1, q, 1e-8), (2, max(q - 2, 2), 0.1)):
        if high > q:
            continue
        state = state_of(problem, low, high, keep)
        assert kernel.run(state, copies_of(problem.X), w, Margin(keep, 0.0), 10**7)
        found = kept(state)
        for tau in range(low, min(high, q - 1) + 1):
            value = problem.best(tau)[0]
            assert state.best[tau] == pytest.approx(value, rel=1e-8)
            for support in combinations(range(q), tau):
                ordered = all(before[j] < 0 or before[j] in support for j in support)
                if ordered and problem.value(support) < value * (1.0 + keep) * (1.0 - 1e-8):
                    assert support in found[tau]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_stopped_at_any_node_the_open_part_is_bounded(seed: int) -> None:
    problem = small(seed)
    q = problem.q
    best = {tau: problem.best(tau)[0] for tau in range(1, q)}
    state = state_of(problem, 1, q, 1e-9)
    finished = False
    while not finished:
        finished = kernel.run(state, copies_of(problem.X), 0.0, Margin(1e-9, 0.0), 1)
        bounds = np.full(q + 1, np.inf)
        kernel.open_bounds(state, bounds)
        for tau, value in best.items():
            assert min(bounds[tau], state.best[tau]) <= value * (1.0 + 1e-8)
    assert np.all(np.isinf(bounds)), "nothing is open at the end"
    once = state_of(problem, 1, q, 1e-9)
    kernel.run(once, copies_of(problem.X), 0.0, Margin(1e-9, 0.0), 10**6)
    assert np.array_equal(once.best, state.best) and once.ctrl[kernel.NODES] == state.ctrl[kernel.NODES]


def test_more_supports_than_can_be_kept_are_reported() -> None:
    problem = Small(np.eye(7), np.ones(7))
    state = state_of(problem, 3, 3, 1e-9, capacity=5)
    assert kernel.run(state, copies_of(np.eye(7)), 0.0, Margin(1e-9, 0.0), 10**6)
    assert state.ctrl[kernel.OVERFLOW] == 1 and state.ctrl[kernel.KEPT] == 5, "35 supports tie"
    room = state_of(problem, 3, 3, 1e-9)
    assert kernel.run(room, copies_of(np.eye(7)), 0.0, Margin(1e-9, 0.0), 10**6)
    assert room.ctrl[kernel.OVERFLOW] == 0 and len(kept(room)[3]) == 35
