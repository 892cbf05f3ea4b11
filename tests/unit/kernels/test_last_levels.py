"""Gains of one, two and three columns beside those of a node, against the values of the supports themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.last_levels import (
    correlations,
    eliminate,
    may_reach,
    new_rest_arrays,
    next_completion,
    sort_by_gain,
)
from sparsecv_mio.kernels.nodes import Node

from .plain import KINDS, Small, small


def scanned(problem: Small, inside: list[int], k: int, bar: float) -> list[tuple[int, ...]]:
    """Supports that a scan names, in its order."""
    q, size = problem.q, len(inside)
    free = np.setdiff1d(np.arange(q), inside)
    node = Node(np.array([*inside, 0, 0]), size, free, len(free), k)
    rest = new_rest_arrays(q, size + k)
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
    assert not eliminate(form, node, np.empty((2, 2)), np.empty(2), new_rest_arrays(problem.q, 3))


def leaders(problem: Small, inside: list[int], bar: float) -> tuple[list[int], set[int]]:
    """Free columns in the order of their gains, and those that may be the most useful of three within the bar."""
    q, size = problem.q, len(inside)
    free = np.setdiff1d(np.arange(q), inside)
    count = len(free)
    node, rest = Node(np.array([*inside, 0, 0, 0]), size, free, count, 3), new_rest_arrays(q, size + 3)
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
