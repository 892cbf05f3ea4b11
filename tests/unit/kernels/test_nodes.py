"""Columns by what is known of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.nodes import (
    DROPPED,
    FREE,
    INSIDE,
    LEAST_GAP,
    LevelSet,
    Rounding,
    absolute,
    allowance,
    keep_support,
    later_copy_inside,
    list_columns,
    new_kept_supports,
    positive_gap,
    screen,
    size_of_candidates,
    uses_copies_in_order,
)

from . import plain
from .plain import KINDS, copies_of, small


@pytest.mark.parametrize("size", [0, 1, 9])
def test_lists_of_columns(size: int) -> None:
    status = np.random.default_rng(size).integers(0, 3, size).astype(np.int8)
    inside, free = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    held, left = list_columns(status, inside, free)
    assert np.array_equal(inside[:held], np.flatnonzero(status == INSIDE))
    assert np.array_equal(free[:left], np.flatnonzero(status == FREE))
    assert held + left + np.count_nonzero(status == DROPPED) == size


def test_supports_in_order_and_later_copies() -> None:
    X = small(3, "copies").X.copy()
    X[:, 6] = X[:, 1]  # columns 1, 3 and 6 are copies, and so are 2 and 5
    q, copies = X.shape[1], copies_of(X)
    for size in range(q + 1):
        for support in combinations(range(q), size):
            status = np.full(q, DROPPED, dtype=np.int8)
            status[list(support)] = FREE
            assert uses_copies_in_order(copies, status) == all(
                copies.before[j] < 0 or copies.before[j] in support for j in support
            )
            status[list(support)] = INSIDE
            for j in range(q):
                later = [i for i in support if i > j and np.array_equal(np.abs(X[:, i]), np.abs(X[:, j]))]
                assert later_copy_inside(j, copies.after, status) == bool(later)


def status_of(q: int, number: int) -> np.ndarray:
    """A support that tells its number: the columns of its binary digits."""
    digits = (number >> np.arange(q)) & 1
    return np.where(digits, np.where(np.arange(q) % 2, FREE, INSIDE), DROPPED).astype(np.int8)


def test_kept_supports_give_way_to_better_ones() -> None:
    rng, q, capacity = np.random.default_rng(0), 6, 5
    bars, kept, count = np.array([np.inf, np.inf]), new_kept_supports(capacity, q), 0
    expected: list[tuple[int, int, float]] = []
    for number in range(60):
        row, value = int(rng.integers(0, 2)), float(rng.uniform(0.0, 10.0))
        bars[row] = min(bars[row], value + 3.0)
        if value > bars[row]:
            continue
        found = keep_support(kept, count, status_of(q, number), row, value, bars)
        if len(expected) == capacity:
            expected = [one for one in expected if one[2] <= bars[one[1]]]
        if len(expected) == capacity:
            assert found == -1
            continue
        expected.append((number, row, value))
        count = found
        assert count == len(expected)
        for r, (known, at, f) in enumerate(expected):
            assert np.array_equal(kept.mask[r], status_of(q, known) != DROPPED)
            assert kept.row[r] == at and kept.value[r] == f


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"])
def test_size_of_candidates(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    w = rng.uniform(0.2, 1.0, problem.q)  # at most the penalty
    for k in range(problem.q + 1):
        bound = size_of_candidates(problem.yy, 1.0 / w, k)
        widest = np.sort(1.0 / w)[::-1][:k].sum()
        assert bound == pytest.approx(np.sqrt(problem.yy) * (1.0 + 2.0 * np.sqrt(widest)))
        for point in plain.candidates(problem, k, problem.yy, rng, each=2) if k else []:
            assert np.sqrt(problem.yy) + 2.0 * np.abs(point).sum() <= bound * (1.0 + 1e-9)


def test_gaps_accuracies_and_what_rounding_may_move() -> None:
    assert positive_gap(LevelSet(2, 5.0, 3.0), 10.0) == 2.0
    assert positive_gap(LevelSet(2, 3.0, 3.0), 10.0) == LEAST_GAP * 10.0
    near, stop = 1e-3, absolute(10.0, 1e-3, 7)
    assert stop.bar * stop.near == pytest.approx(near) and stop.bar >= 1e6 * 10.0 and stop.steps == 7
    b, length = np.array([1.0, -2.0, 0.0]), np.array([0.5, 2.0, 1.0])
    assert allowance(Rounding(1e-3, 2.0, 0.0, length), b) == pytest.approx(1e-3 * (2.0 + length @ np.abs(b)) ** 2)


@pytest.mark.parametrize("seed", range(16))
def test_the_screening_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = int(rng.integers(3, 9))
    columns = np.sort(rng.permutation(q)[: q - 1])
    d = rng.standard_normal(q) ** 2 if seed % 2 else np.ones(q)  # longer than the list: the last is no column
    count = len(columns)
    k, room = int(rng.integers(1, count)), float(rng.uniform(0.0, 1.0))
    falling = np.sort(d[:count])[::-1]
    expected = np.full(q, FREE)
    expected[columns[d[:count] - falling[k] > room]] = INSIDE
    expected[columns[falling[k - 1] - d[:count] > room]] = DROPPED
    status = np.zeros(q, dtype=np.int8)
    assert screen(d, count, columns, k, room, status) == np.count_nonzero(expected)
    assert np.array_equal(status, expected)


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
def test_no_support_within_the_bar_is_lost(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    for k in range(1, q):
        b = problem.beta(problem.best(k)[1]) + 0.01 * rng.standard_normal(q)
        g = problem.c - problem.G @ b
        dual = problem.yy - b @ problem.G @ b - np.sort(g**2)[::-1][:k].sum()
        bar = problem.best(k)[0] * (1.0 + 1e-9)
        status = np.zeros(q, dtype=np.int8)
        screen(g**2, q, np.arange(q), k, bar - dual, status)
        within = [s for s in combinations(range(q), k) if problem.value(s) <= bar]
        for support in within:
            held = np.isin(np.arange(q), support)
            assert np.all(held[status == INSIDE]) and not held[status == DROPPED].any()
