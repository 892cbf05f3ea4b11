"""Refits and held-out errors against exact fractions: the numbers, and that their rounding bounds hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparsecv_mio.kernels import held_out_sums as kernel
from sparsecv_mio.kernels.held_out_sums import (
    HeldOutMoments,
    RidgeFits,
    SupportRows,
    held_out_moments,
    held_out_rows,
    new_scores,
    refit_supports,
)
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Rounding
from sparsecv_mio.kernels.perspective_newton import new_factor

from .plain import KINDS, Small, fold_of, small

EPS = 2.0**-52


def exact(M: np.ndarray, c: np.ndarray) -> list[Fraction]:
    """The solution of `M x = c` for these very floats."""
    rows = [[Fraction(float(x)) for x in row] + [Fraction(float(y))] for row, y in zip(M, c, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def supports_of(problem: Small, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Some supports of every size, padded with columns that must not be read."""
    q = problem.q
    sizes = np.arange(min(q, 4) + 1)
    return np.array([rng.permutation(q)[: min(q, 4)] for _ in sizes], dtype=np.int64), sizes


def refitted(problem: Small, penalty: np.ndarray, supports: np.ndarray, sizes: np.ndarray):
    shape = supports.shape
    fits = RidgeFits(np.full(shape, np.nan), np.full(shape, np.nan), np.empty(len(sizes)), np.empty(len(sizes)))
    refit_supports(problem.G, problem.c, problem.yy, penalty, SupportRows(supports, sizes), 4.0 * EPS, fits)
    return fits


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_refit_and_its_rounding(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    penalty = rng.uniform(0.5, 2.0, problem.q) * (1e-9 if seed >= len(KINDS) else 1.0)
    if seed >= len(KINDS) and KINDS[seed % len(KINDS)] in ("zero column", "copies", "wide"):
        penalty *= 1e6
    supports, sizes = supports_of(problem, rng)
    beta, spread, value, error = refitted(problem, penalty, supports, sizes)
    for r, size in enumerate(sizes):
        held = supports[r, :size]
        M = problem.G[np.ix_(held, held)] + np.diag(penalty[held])
        x = exact(M, problem.c[held])
        gain = sum((Fraction(float(a)) * b for a, b in zip(problem.c[held], x, strict=True)), Fraction())
        f = Fraction(problem.yy) - gain
        assert abs(value[r] - float(f)) <= error[r] + 1e-300
        for a in range(size):
            assert abs(Fraction(float(beta[r, a])) - x[a]) <= spread[r, a]
            assert spread[r, a] <= 1e-5 * abs(beta[r, :size]).max(), "a bound, not a blanket"
        assert np.all(np.isnan(beta[r, size:]))


def test_a_singular_support_has_no_fit() -> None:
    problem = Small(np.ones((3, 2)), np.ones(3))
    beta, spread, value, error = refitted(problem, np.zeros(2), np.array([[0, 1]]), np.array([2]))
    assert value[0] == error[0] == np.inf and np.all(np.isinf(spread)) and not beta.any()


def test_moments_that_rounding_may_have_made_regular_have_no_fit() -> None:
    """Entries are known to 4 eps of themselves, and 2 eps of a column is all that it does not share with the other."""
    close = Small(np.array([[1.0, 1.0], [0.0, 2.0 * np.sqrt(EPS)], [1.0, 1.0]]), np.array([1.0, 1.0, 0.0]))
    pair = np.array([[0, 1]]), np.array([2])
    _, spread, _, error = refitted(close, np.zeros(2), *pair)
    assert error[0] == np.inf and np.all(np.isinf(spread))
    _, spread, value, error = refitted(close, np.full(2, 1e-3), *pair)
    assert np.isfinite(value[0]) and error[0] < 1e-11 and np.all(spread < 1e-9)


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_held_out_errors_by_rows_and_by_moments(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    supports, sizes = supports_of(problem, rng)
    beta, spread, *_ = fits = refitted(problem, np.ones(problem.q), supports, sizes)
    spread *= 1e6  # so that coefficients somewhere in it make a difference
    V, r = rng.standard_normal((5, problem.q)), rng.standard_normal(5)
    level, T = np.zeros(problem.q + 1), len(sizes)
    by_rows, row_bound = scores = new_scores(T)
    held_out_rows(V, r, level, SupportRows(supports, sizes), fits, scores)
    by_moments, moment_bound = scores = new_scores(T)
    moments = HeldOutMoments(V.T @ V, V.T @ r, float(r @ r), 5)
    held_out_moments(moments, level, SupportRows(supports, sizes), 8.0 * EPS, fits, scores)
    for s, size in enumerate(sizes):
        held = supports[s, :size]
        middle = float(np.sum((r - V[:, held] @ beta[s, :size]) ** 2))
        assert by_rows[s] == pytest.approx(middle, rel=1e-12) and by_moments[s] == pytest.approx(middle, rel=1e-9)
        for _ in range(50):
            moved = beta[s, :size] + spread[s, :size] * rng.choice([-1.0, 1.0], size)
            truth = float(np.sum((r - V[:, held] @ moved) ** 2))
            assert abs(truth - by_rows[s]) <= row_bound[s] * (1.0 + 1e-9)
            assert abs(truth - by_moments[s]) <= moment_bound[s] * (1.0 + 1e-9)


def test_rounding_of_the_means_widens_both_bounds() -> None:
    """A row is about means known to `level` ulps: moving every one of them by as much stays within the bound."""
    rng = np.random.default_rng(0)
    V, r, beta = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal((1, 3))
    level = np.array([1e7, 3e7, 2e7, 5e7])
    listed = SupportRows(np.array([[0, 1, 2]]), np.array([3]))
    fits = RidgeFits(beta, np.zeros((1, 3)), np.zeros(1), np.zeros(1))
    error, bound = scores = new_scores(1)
    held_out_rows(V, r, level, listed, fits, scores)
    moments, wide = scores = new_scores(1)
    held_out_moments(HeldOutMoments(V.T @ V, V.T @ r, float(r @ r), 6), level, listed, EPS, fits, scores)
    for _ in range(50):
        side = rng.choice([-1.0, 1.0], 4) * level * EPS
        truth = float(np.sum((r + side[3] - (V + side[:3]) @ beta[0]) ** 2))
        assert abs(truth - error[0]) <= bound[0] and abs(truth - moments[0]) <= wide[0]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_only_support_left(seed: int) -> None:
    """Columns inside; all free ones too while the inside ones are fewer than k."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    X, lo, hi = rng.standard_normal((3, q)), np.empty(3), np.empty(3)
    factor, rounding = new_factor(q, q), Rounding(1e-9, 1.0, 0.0, np.ones(q))
    fold = fold_of(problem, X, np.zeros(3))
    status = np.full(q, DROPPED, dtype=np.int8)
    status[: q // 2] = INSIDE
    status[q // 2 : q // 2 + 2] = FREE
    for k in (q // 2, q // 2 + 2):
        held = np.flatnonzero((status == INSIDE) | ((status == FREE) & (k > q // 2)))
        assert kernel.one_support(fold, status, k, rounding, lo, hi, factor)
        exact = X @ problem.beta(held)
        assert np.all(lo <= exact) and np.all(exact <= hi) and np.all(hi - lo < 1e-5)
    status[:] = INSIDE
    if q > 1:
        assert not kernel.one_support(fold._replace(M=np.ones((q, q))), status, q, rounding, lo, hi, factor)


@pytest.mark.parametrize("seed", range(8))
def test_distances_and_blur(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, lo = rng.standard_normal(4), rng.standard_normal(4)
    hi = lo + rng.random(4) * (rng.random(4) < 0.7)
    low, high = kernel.distances(u, lo, hi)
    near = np.clip(u, lo, hi)
    assert low == pytest.approx(np.sum((u - near) ** 2))
    assert high == pytest.approx(np.sum(np.maximum(np.abs(u - lo), np.abs(u - hi)) ** 2))
    assert kernel.distances(np.zeros(0), np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    N, rounding, prior = 4, 1e-3, 5.0
    off = kernel.off_by_means(N, Rounding(rounding, prior, 0.0, u))
    assert off == pytest.approx(0.1 * rounding * prior * 2.0)
    wide = kernel.widen_interval(low, high, off)
    for _ in range(50):  # every residual off by up to a tenth of rounding times prior
        e = np.sqrt(high / N) + 0.1 * rounding * prior * rng.uniform(-1.0, 1.0, N)
        assert np.sum(e**2) <= wide[1]
        e = np.sqrt(low / N) + 0.1 * rounding * prior * rng.uniform(-1.0, 1.0, N)
        assert np.sum(e**2) >= wide[0]
    assert wide == pytest.approx((max(low**0.5 - off, 0.0) ** 2, (high**0.5 + off) ** 2))


def test_cells_written() -> None:
    cell, ends = np.full(8, 5.0), np.zeros((2, 2))
    kernel.write_unknown_subproblem(cell, ends, 3.0)
    assert cell[:6].tolist() == [3.0, np.inf, 0.0, np.inf, kernel.NOTHING, kernel.NOTHING] and np.isnan(cell[6])
    assert ends.tolist() == [[-np.inf, np.inf]] * 2 and cell[7] == 5.0
    kernel.settle(cell, 1.0, 2.0, kernel.ROWS, kernel.EXACT)
    assert cell[:6].tolist() == [3.0, np.inf, 1.0, 2.0, kernel.ROWS, kernel.EXACT]
