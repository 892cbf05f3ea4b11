"""Leave-one-out best subsets of every size and fold in one tree, against enumeration of each fold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import alive_folds as kernel
from sparsecv_mio.kernels.nodes import Margin
from sparsecv_mio.kernels.path_tree import new_levels

from .plain import KINDS, Small, copies_of, small


def state_of(problem: Small, folds: np.ndarray, low: int, high: int, capacity: int, sizes=None):
    V = np.linalg.inv(problem.M)
    beta = V @ problem.c
    A = problem.X[folds]
    W = V @ A.T
    row_of = np.full(problem.q + 1, -1, dtype=np.int64)
    asked = np.arange(low, high + 1) if sizes is None else np.asarray(sizes)
    row_of[asked] = np.arange(len(asked))
    bar = np.full((len(asked), len(problem.y)), np.inf)
    e, h = problem.y[folds] - A @ beta, np.einsum("ij,ji->i", A, W)
    state = kernel.new_state(
        new_levels(V, beta, problem.yy - problem.c @ beta, low, high), W, e, h, folds.astype(np.int64), row_of, bar,
        capacity,
    )  # fmt: skip
    return state, asked


def finish(state, problem: Small, keep: float, budget: int):
    answers = set()
    while True:
        answer = kernel.process_nodes(state, copies_of(problem.X), Margin(keep, 0.0), budget)
        answers.add(answer)
        if answer == kernel.FINISHED:
            return state, answers
        if answer == kernel.FULL:
            state = kernel.grow_state(state)


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"])
def test_every_size_of_every_fold(seed: int) -> None:
    problem = small(seed)
    q, n = problem.q, len(problem.y)
    folds = np.arange(n) if n < 6 else np.array([0, 3, 4, n - 1])
    state, sizes = state_of(problem, folds, 1, q - 1, 4096)
    state, _ = finish(state, problem, 1e-9, 10**6)
    for i in folds:
        rest = problem.without([i])
        for row, tau in enumerate(sizes):
            value = rest.best(int(tau))[0]
            assert state.answers.best[row, i] == pytest.approx(value, rel=1e-7)
            support = np.flatnonzero(state.kept_mask[state.answers.which[row, i]])
            assert len(support) == tau and rest.value(support) == pytest.approx(value, rel=1e-7)
            assert state.answers.bar[row, i] == pytest.approx(value * (1 + 1e-9), rel=1e-7)
    others = np.setdiff1d(np.arange(n), folds)
    assert np.all(np.isinf(state.answers.best[:, others])) and np.all(state.answers.which[:, others] == -1)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_second_best_is_never_below_the_truth(seed: int) -> None:
    """With a generous `keep` nothing near the best is pruned, so the runner-up is exact."""
    problem = small(seed)
    state, sizes = state_of(problem, np.array([2, 5]), 3, 5, 8)
    state, answers = finish(state, problem, 10.0, 3)
    assert {kernel.BUDGET, kernel.FULL, kernel.FINISHED} == answers
    for i in (2, 5):
        rest = problem.without([i])
        for row, tau in enumerate(sizes):
            values = sorted(rest.value(s) for s in combinations(range(problem.q), int(tau)))
            assert state.answers.best[row, i] == pytest.approx(values[0], rel=1e-7)
            assert state.answers.second[row, i] == pytest.approx(values[1], rel=1e-7)


def test_sizes_not_asked_for_are_skipped() -> None:
    problem = small(0)
    state, _ = state_of(problem, np.array([1]), 2, 5, 64, sizes=[2, 5])
    state, _ = finish(state, problem, 1e-9, 10**6)
    rest = problem.without([1])
    assert state.answers.best[:, 1] == pytest.approx([rest.best(2)[0], rest.best(5)[0]], rel=1e-7)


def test_a_tree_grows_to_its_end_or_is_given_up() -> None:
    problem = small(0)
    asked, sizes = state_of(problem, np.arange(3), 2, 4, 64, sizes=[2, 4])
    solved = np.linalg.inv(problem.M), problem.beta(range(problem.q)), problem.value(range(problem.q))
    A = problem.X[:3]
    W = solved[0] @ A.T
    fits = W, problem.y[:3] - A @ solved[1], np.einsum("ij,ji->i", A, W)
    copies, margin, rows = copies_of(problem.X), Margin(1e-9, 0.0), {int(size): row for row, size in enumerate(sizes)}
    state, ended = kernel.grow(solved, fits, rows, np.full((2, 3), np.inf), copies, margin, 10**6, lambda: False)
    asked, _ = finish(asked, problem, 1e-9, 10**6)
    assert ended and np.allclose(state.answers.best, asked.answers.best[:, :3], rtol=1e-9)
    for most, is_expired in ((0, False), (10**6, True)):
        state, ended = kernel.grow(
            solved, fits, rows, np.full((2, 3), np.inf), copies, margin, most, lambda ended=is_expired: ended
        )
        assert not ended and state.ctrl[kernel.NODES] == 0


def test_memory_and_growth() -> None:
    problem = Small(np.random.default_rng(0).standard_normal((60, 40)), np.ones(60))
    state, _ = state_of(problem, np.arange(60), 1, 5, 16)
    large = state.levels.V.nbytes + sum(array.nbytes for array in state.alive)
    assert kernel.memory(40, 60) == pytest.approx(large, rel=0.1)
    state.kept_mask[3, 7] = True
    larger = kernel.grow_state(state)
    assert larger.kept_mask.shape == (32, 40) and larger.kept_mask[3, 7] and larger.kept_mask.sum() == 1
    assert larger.alive.W is state.alive.W
