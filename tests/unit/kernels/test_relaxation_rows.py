"""The relaxation on rows: working sets against full sorts, values closed from both sides, valid spreads."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import relaxation_rows as kernel
from sparsecv_mio.kernels.nodes import Effort, LevelSet, Rounding
from sparsecv_mio.kernels.relaxation_rows import slope_from_products

from . import plain
from .plain import KINDS, Small, small


def wide(seed: int, n: int = 8, q: int = 120) -> Small:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q)) * rng.choice([0.3, 1.0])
    return Small(X, X[:, 0] - X[:, 1] + 0.2 * rng.standard_normal(n))


def working_set(q: int, cap: int) -> kernel.WorkingSet:
    return kernel.WorkingSet(
        np.zeros(cap, dtype=np.int64), np.zeros(q, dtype=np.bool_), np.zeros(1, dtype=np.int64), np.zeros((cap, cap))
    )


def rows_of(problem: Small) -> kernel.Wide:
    return kernel.Wide(np.ascontiguousarray(problem.X.T), problem.y, problem.lipschitz)


def test_gram_of_the_working_set() -> None:
    problem = wide(0)
    Xt, chosen, gram = np.ascontiguousarray(problem.X.T), np.array([5, 0, 31, 7]), np.zeros((4, 4))
    kernel.extend_gram(Xt, chosen, 0, 2, gram)
    assert not gram[2:].any()
    kernel.extend_gram(Xt, chosen, 2, 4, gram)
    assert np.allclose(gram, problem.G[np.ix_(chosen, chosen)])


def test_slope_is_its_formula() -> None:
    problem, g = wide(1), np.empty(120)
    shift, residual = np.arange(120.0), problem.y - 1.0
    kernel.slope_of(np.ascontiguousarray(problem.X.T), residual, shift, g)
    assert np.allclose(g, problem.X.T @ residual + shift)


def test_largest_outside() -> None:
    g, inside = np.array([1.0, -5.0, 4.0, -4.5, 0.5]), np.array([False, True, False, False, False])
    found = np.empty(5, dtype=np.int64)
    assert kernel.largest_outside(g, inside, 1, 2, found) == 2 and found[:2].tolist() == [3, 2]
    assert kernel.largest_outside(g, inside, 1, 9, found) == 4 and 1 not in found[:4]
    assert kernel.largest_outside(g, np.ones(5, dtype=np.bool_), 5, 2, found) == 0


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
@pytest.mark.parametrize("cap", [75, 120])  # the smaller one has to let columns go
def test_relaxation_is_closed_from_both_sides(seed: int, cap: int) -> None:
    problem = small(seed) if seed % 2 else wide(seed)
    rng = np.random.default_rng(seed)
    q, every = problem.q, np.arange(problem.q)
    if q == 1:
        return
    shift = 0.1 * rng.standard_normal(q) * (seed % 3 == 0)
    sets = working_set(q, min(q, cap))
    for k in (1, min(3, q - 1)):
        b, g = np.zeros(q), np.zeros(q)
        dual, primal = kernel.relax_rows(rows_of(problem), shift, k, 1e-8 * problem.yy, 5000, sets, b, g)
        assert np.allclose(g, problem.c + shift - problem.G @ b)
        exact = plain.dual(problem, every[:0], every, k, b, problem.c + shift)
        assert dual == pytest.approx(exact, abs=1e-9 * problem.yy)
        assert primal - dual <= 1e-7 * problem.yy
        for _ in range(10):
            anywhere = rng.standard_normal(q) * (rng.random(q) < 0.3)
            value = plain.primal(problem, every[:0], every, k, anywhere, problem.c + shift)
            assert value >= dual - 1e-9 * problem.yy
        chosen, inside, ctrl, gram = sets
        held = chosen[: ctrl[0]]
        assert np.array_equal(np.sort(held), np.flatnonzero(inside))
        assert np.allclose(gram[: ctrl[0], : ctrl[0]], problem.G[np.ix_(held, held)])


@pytest.mark.parametrize("k", [20, 35])
def test_a_full_working_set_is_never_exceeded(k: int) -> None:
    problem = wide(1)
    chosen, inside, ctrl, _ = working_set(problem.q, 48)
    chosen[40:] = -1
    b, g = np.zeros((2, problem.q))
    near = kernel.WorkingSet(chosen[:40], inside, ctrl, np.zeros((40, 40)))
    kernel.relax_rows(rows_of(problem), np.zeros(problem.q), k, 0.0, 200, near, b, g)
    assert ctrl[0] <= 40 and inside.sum() == ctrl[0] and (chosen[40:] == -1).all()


@pytest.mark.parametrize("seed", range(10))
def test_spread_covers_the_best_support(seed: int) -> None:
    """Any t and b give `(ubar - D(b; c + t x / 2)) / t`; what comes back is at least the prediction it bounds."""
    problem, rng = wide(seed, q=9), np.random.default_rng(seed)
    q, k = problem.q, 1 + seed % 3
    value, support = problem.best(k)
    ubar, beta = value * (1.0 + 1e-9), problem.beta(support)
    wide_rows, sets = rows_of(problem), working_set(q, q)
    b, g = np.zeros(q), np.zeros(q)
    zeta, _ = kernel.relax_rows(wide_rows, np.zeros(q), k, 1e-9 * problem.yy, 5000, sets, b, g)
    x = rng.standard_normal(q)
    norm = float(np.sqrt(problem.yy))
    candidates = LevelSet(k, ubar, zeta)
    rounding = Rounding(1e-15, norm, norm, np.sqrt(np.diag(problem.M)))
    loose, _ = kernel.farthest_rows(wide_rows, x, candidates, b, 1.0, Effort(1, 5000), rounding, sets)
    bound, t = kernel.farthest_rows(wide_rows, x, candidates, b, 1.0, Effort(12, 5000), rounding, sets)
    assert x @ beta <= bound <= loose and t > 0.0
    every = np.arange(q)
    for other in np.geomspace(t / 30.0, 30.0 * t, 13):  # no t does much better
        moved = np.zeros(q)
        dual, primal = kernel.relax_rows(wide_rows, 0.5 * other * x, k, 1e-9 * problem.yy, 5000, sets, moved, g)
        assert dual == pytest.approx(
            plain.dual(problem, every[:0], every, k, moved, problem.c + 0.5 * other * x), abs=1e-8 * problem.yy
        )
        assert bound - x @ b <= 1.1 * ((ubar - dual) / other - x @ b) + 1e-9


def test_the_slope_in_all_columns_is_that_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(0)
    X, y, few = rng.normal(size=(7, 30)), rng.normal(size=7), np.array([4, 9, 2])
    b, g, c = np.array([1.5, 0.0, -2.0]), np.empty(30), X.T @ y
    slope_from_products(np.ascontiguousarray((X.T @ X)[few]), c, b, 3, g)
    np.testing.assert_allclose(g, X.T @ (y - X[:, few] @ b), atol=1e-12)
    slope_from_products((X.T @ X)[few], c, b, 0, g)
    assert np.array_equal(g, c)
