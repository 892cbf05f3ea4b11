"""Safe screening: the rule as it is written, and no support within the room lost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Incumbents
from sparsecv_mio.kernels.screening import Reused, ReuseTask, fix_columns, reused_duals, screen

from . import plain
from .plain import KINDS, Small, fold_of, small
from .test_level_sets import centre_of


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



SEVERAL = [k for k in range(3 * len(KINDS)) if KINDS[k % len(KINDS)] != "one column"]


@pytest.mark.parametrize("seed", SEVERAL)
@pytest.mark.parametrize("how", ["solution", "nearby", "anywhere", "wild"])
def test_value_screening_and_decision(seed: int, how: str) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    sizes = np.arange(1, q, dtype=np.int64)
    T, scale = len(sizes), rng.uniform(0.5, 2.0, q)
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    points = np.empty((T, q))
    for t, k in enumerate(sizes):
        best[k], support = problem.best(int(k))
        supports[k, list(support)] = True
        centre = centre_of(problem, int(k))[0]
        points[t] = {
            "solution": centre,
            "nearby": centre + 0.01 * rng.standard_normal(q),
            "anywhere": rng.standard_normal(q),
            "wild": 1e4 * rng.standard_normal(q),
        }[how]
    X, u, tie = rng.standard_normal((2, q)), rng.standard_normal(2), 2e-9
    dual, status = np.empty(T), np.empty((T, q), dtype=np.int8)
    decided, rows = np.empty(T, dtype=np.bool_), np.full((T, 8), np.nan)
    reused_duals(
        fold_of(problem, X, u), scale, points * scale, ReuseTask(tie, 1e-15, 4.0, 2, True),
        Incumbents(best, supports), Reused(sizes, dual, status, decided, rows),
    )  # fmt: skip
    every = np.arange(q)
    for t, k in enumerate(sizes):
        exact = plain.dual(problem, every[:0], every, int(k), points[t])
        assert dual[t] == pytest.approx(max(exact, 0.0), abs=1e-9 * problem.yy + 1e-6 * max(-exact, 0.0))
        d = (problem.c - problem.G @ points[t]) ** 2
        falling, gap = np.sort(d)[::-1], best[k] * (1.0 + tie) - exact
        usable = points[t] @ problem.G @ points[t] <= 4.0 * problem.yy
        close = 1e-9 * problem.yy
        out, into = falling[k - 1] - d - gap, d - falling[k] - gap
        assert np.all((status[t] == DROPPED)[out > close]) == (usable or not np.any(out > close))
        assert not (status[t] == DROPPED)[(out < -close) | (not usable)].any()
        assert not (status[t] == INSIDE)[(into < -close) | (not usable)].any()
        assert not usable or np.all((status[t] == INSIDE)[(into > close) & (out < -close)])
        mask = supports[k]
        assert decided[t] == bool(np.array_equal(status[t], np.where(mask, INSIDE, DROPPED)))
        for s in combinations(range(q), int(k)):
            if problem.value(s) <= best[k] * (1.0 + 1e-9):
                held = np.isin(every, s)
                assert np.all(held[status[t] == INSIDE]) and not held[status[t] == DROPPED].any()
        if decided[t]:
            held_out = float(np.sum((u - X @ problem.beta(np.flatnonzero(mask))) ** 2))
            assert rows[t, 2] <= held_out * (1 + 1e-9) and held_out <= rows[t, 3] * (1 + 1e-9)
            assert rows[t, 3] - rows[t, 2] < 1e-6 and rows[t, 0] <= best[k] * (1 + 1e-9) and best[k] <= rows[t, 1]
        else:
            assert np.all(np.isnan(rows[t]))


def test_the_point_of_orthogonal_columns_decides() -> None:
    """There the relaxation is tight: its point names the support, and with it the prediction."""
    problem = Small(np.diag([3.0, 2.0, 1.0, 0.5, 0.1]), np.array([4.0, -3.0, 2.0, 1.0, 1.0]))
    q, k = problem.q, 3
    value, support = problem.best(k)
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    best[k] = value
    supports[k, list(support)] = True
    X, u = np.ones((1, q)), np.zeros(1)
    point = centre_of(problem, k)[0][None, :]
    dual, status, decided = np.empty(1), np.empty((1, q), dtype=np.int8), np.empty(1, dtype=np.bool_)
    for exact in (False, True):
        rows = np.full((1, 8), np.nan)
        reused_duals(
            fold_of(problem, X, u), np.ones(q), point, ReuseTask(2e-9, 1e-15, 4.0, 1, exact),
            Incumbents(best, supports), Reused(np.array([k]), dual, status, decided, rows),
        )  # fmt: skip
        assert decided[0] and dual[0] == pytest.approx(value, rel=1e-6)
        assert np.isnan(rows).all() != exact
    assert rows[0, 6] == pytest.approx(float((X @ problem.beta(support))[0]) ** 2, rel=1e-6)
