"""Safe screening: the rule as it is written, and no support within the room lost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.screening import fix_columns, leaves_only, screen
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .plain import KINDS, small


@pytest.mark.parametrize("seed", range(16))
def test_the_rule(seed: int) -> None:
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
    for ask in (
        lambda status: screen(d, count, columns, k, room, status),
        lambda status: fix_columns(d, count, columns, falling[k - 1], falling[k], room, status),
    ):
        status = np.zeros(q, dtype=np.int8)
        assert ask(status) == np.count_nonzero(expected)
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
        masks = np.array([np.isin(np.arange(q), s) for s in combinations(range(q), k)])
        only = leaves_only(np.tile(g**2, (len(masks), 1)), k, np.full(len(masks), bar - dual), masks)
        decided = not np.any(status == FREE)
        assert only.sum() == int(decided)
        assert not decided or np.array_equal(masks[only][0], np.isin(np.arange(q), within[0]))


def test_where_a_number_is_none_nothing_is_said() -> None:
    d, masks = np.array([[4.0, 1.0, np.nan], [4.0, 1.0, 0.0]]), np.array([[True, False, False]] * 2)
    assert leaves_only(d, 1, np.array([0.5, 0.5]), masks).tolist() == [False, True]
    assert not leaves_only(d, 1, np.array([np.nan, np.nan]), masks).any()
