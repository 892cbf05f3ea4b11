"""Safe screening: the rule as it is written, and no support within the room lost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE
from sparsecv_mio.kernels.screening import fix_columns, screen

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
