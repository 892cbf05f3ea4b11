"""Fits within bounds against SciPy, bounds of a node against every support of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from sparsecv_mio.kernels.cluster_relaxation import BoxEnds
from sparsecv_mio.kernels.held_out_sums import RidgeFits, SupportRows
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Form
from sparsecv_mio.kernels.restricted_node import (
    NodePoint,
    Rules,
    bounded_fit,
    bounded_value,
    node_bound,
    refit_in_bounds,
)


def drawn(rng: np.random.Generator, m: int) -> tuple[np.ndarray, np.ndarray, float]:
    """G, c, y'y of rows whose penalty is 1 in every column."""
    X = rng.normal(size=(12, m)) @ (np.eye(m) + 0.5 * rng.normal(size=(m, m)))
    y = X @ rng.normal(size=m) + rng.normal(size=12)
    return X.T @ X, X.T @ y, float(y @ y)


def ends_of(sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds that hold coefficients to signs."""
    return np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf)


def plain(M: np.ndarray, c: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The minimiser of `b'M b - 2 c'b` within bounds."""
    L = np.linalg.cholesky(M)
    return lsq_linear(L.T, np.linalg.solve(L, c), ends, method="bvls", tol=1e-15).x


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_within_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    G, c, yy = drawn(rng, m)
    M, ends = G + np.eye(m), ends_of(rng.integers(-1, 2, m))
    if seed % 2:
        low, high = np.sort(rng.normal(size=(2, m)), axis=0)
        ends = np.where(rng.random(m) < 0.7, low, -np.inf), np.where(rng.random(m) < 0.7, high, np.inf)
    b = np.clip(rng.normal(size=m), *ends)
    assert bounded_fit(M, c, *ends, b, m)
    assert np.all((ends[0] <= b) & (b <= ends[1]))
    expected = plain(M, c, ends)
    assert b == pytest.approx(expected, abs=1e-8)
    value = yy + expected @ M @ expected - 2.0 * c @ expected
    assert bounded_value(M, c, yy, *ends, b, m) == pytest.approx(value, rel=1e-9, abs=1e-9 * yy)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_and_fixed_columns_of_a_node(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    m = 6
    G, c, yy = drawn(rng, m)
    sign = rng.integers(-1, 2, m).astype(np.int8)
    group = rng.integers(-1, 2, m)
    status = rng.choice(np.array([FREE, FREE, FREE, INSIDE, DROPPED], dtype=np.int8), m)
    room, cap = int(rng.integers(0, 4)), rng.integers(0, 3, 2)
    inside, free = (np.flatnonzero(status == word).tolist() for word in (INSIDE, FREE))
    values = {}
    for size in range(min(room, len(free)) + 1):
        for more in combinations(free, size):
            if all(np.sum(group[list(more)] == g) <= cap[g] for g in range(2)):
                S = [*inside, *more]
                b = plain(G[np.ix_(S, S)] + np.eye(len(S)), c[S], ends_of(sign[S])) if S else np.zeros(0)
                values[more] = yy - float(c[S] @ b)
    bar = min(values.values()) * 1.05
    point = NodePoint(np.zeros(m), np.zeros(m), np.empty(m), np.empty(m))
    rules, found = Rules(*ends_of(sign), group, cap, room, np.arange(m), 1e-12), status.copy()
    bound, value = node_bound(Form(G, c, yy, np.trace(G)), 1.0, rules, found, np.inf, 40, point)
    assert bound <= min(values.values()) * (1 + 1e-9)
    assert value <= min(values.values()) * (1 + 1e-9)
    bound, _ = node_bound(Form(G, c, yy, np.trace(G)), 1.0, rules, found, bar, 40, point)
    for more, f in values.items():
        if f <= bar:
            fixed = {j for j in free if found[j] == INSIDE}
            gone = {j for j in free if found[j] == DROPPED}
            held = [j for j in more if abs(point.b[j]) > 0.0 or sign[j] == 0]
            assert gone.isdisjoint(held), more
            assert fixed.issubset(more), more


@pytest.mark.parametrize("seed", range(20))
def test_bounds_and_fixed_columns_of_a_node_of_terms(seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    m, terms = 9, 5
    term = rng.permutation(np.concatenate([np.arange(terms), rng.integers(0, terms, m - terms)]))
    G, c, yy = drawn(rng, m)
    sign = rng.integers(-1, 2, m).astype(np.int8) if seed % 4 == 0 else np.zeros(m, dtype=np.int8)
    of_term, group_of = (
        rng.choice(np.array([FREE, FREE, FREE, INSIDE, DROPPED], dtype=np.int8), terms),
        rng.integers(-1, 2, terms),
    )
    room, cap, first = (
        int(rng.integers(0, 4)),
        rng.integers(0, 3, 2),
        np.array([np.argmax(term == t) for t in range(terms)]),
    )
    inside, free = (np.flatnonzero(of_term == word).tolist() for word in (INSIDE, FREE))
    values = {}
    for size in range(min(room, len(free)) + 1):
        for more in combinations(free, size):
            if all(np.sum(group_of[list(more)] == g) <= cap[g] for g in range(2)):
                S = np.flatnonzero(np.isin(term, [*inside, *more]))
                b = plain(G[np.ix_(S, S)] + np.eye(len(S)), c[S], ends_of(sign[S])) if len(S) else np.zeros(0)
                values[more] = yy - float(c[S] @ b)
    bar = min(values.values()) * 1.05
    point = NodePoint(np.zeros(m), np.zeros(m), np.empty(m), np.empty(m))
    rules, found = Rules(*ends_of(sign), group_of[term], cap, room, first[term], 1e-12), of_term[term]
    bound, value = node_bound(Form(G, c, yy, np.trace(G)), 1.0, rules, found, np.inf, 40, point)
    assert max(bound, value) <= min(values.values()) * (1 + 1e-9)
    found = of_term[term]
    node_bound(Form(G, c, yy, np.trace(G)), 1.0, rules, found, bar, 40, point)
    assert all(len(set(found[term == t].tolist())) == 1 for t in range(terms))
    for more, f in values.items():
        if f <= bar:
            assert all(found[first[t]] != INSIDE for t in free if t not in more), more
            held = [t for t in more if np.any(point.b[term == t] != 0.0) or not np.any(sign[term == t])]
            assert all(found[first[t]] != DROPPED for t in held), more


@pytest.mark.parametrize("seed", range(20))
def test_fits_that_cross_a_bound_are_replaced(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, c, yy = drawn(rng, 4)
    M, table = Q + np.eye(4), np.array([[0, 1, 2], [1, 3, 0]])
    sizes, ends = np.array([3, 2]), BoxEnds(np.full(4, -0.2), np.full(4, 0.3))
    beta = np.zeros((2, 3))
    for row, size in enumerate(sizes.tolist()):
        at = table[row, :size]
        beta[row, :size] = np.linalg.solve(M[np.ix_(at, at)], c[at])
    fits = RidgeFits(beta, np.zeros((2, 3)), np.full(2, -1.0), np.full(2, -1.0))
    refit_in_bounds(Q, c, yy, np.ones(4), ends, SupportRows(table, sizes), 1e-15, fits)
    for row, size in enumerate(sizes.tolist()):
        at = table[row, :size]
        free = np.linalg.solve(M[np.ix_(at, at)], c[at])
        if np.all((free >= -0.2) & (free <= 0.3)):
            assert fits.value[row] == -1.0  # left as it was
            continue
        root = np.linalg.cholesky(M[np.ix_(at, at)]).T
        best = lsq_linear(root, np.linalg.solve(root.T, c[at]), (-0.2, 0.3), tol=1e-14).x
        value = yy - 2.0 * c[at] @ best + best @ M[np.ix_(at, at)] @ best
        np.testing.assert_allclose(fits.beta[row, :size], best, atol=1e-6)
        assert abs(fits.value[row] - value) <= 1e-9 * yy
