"""Rows of a fold in the units of the bounds, against the fold's own problem by moments."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact import check_allowance, fractions, solve

from sparsecv_mio.bounds import wide as wide_module
from sparsecv_mio.bounds import wide_rows
from sparsecv_mio.bounds.wide import WideFold, farthest
from sparsecv_mio.bounds.wide_rows import WideRelaxation, WideRows, WideSupports
from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.kernels.nodes import LevelSet

from ..kernels import plain
from ..kernels.plain import Small


def test_allowance_covers_every_candidate() -> None:
    rng = np.random.default_rng(1)
    rows = WideRows(rng.standard_normal((5, 9)), rng.standard_normal(5), np.zeros((0, 9)), np.zeros(0))
    for tau in (1, 4, 9):
        made = rows.rounding_allowance(tau)
        for _ in range(20):
            held = rng.permutation(9)[:tau]
            b = np.linalg.solve(rows.matrix(held), rows.c[held])
            assert np.sqrt(rows.yy) + np.sqrt(rows.square[held]) @ np.abs(b) <= made.prior * (1.0 + 1e-12)
            assert np.linalg.norm(b) <= made.norm * (1.0 + 1e-12)


def drawn(seed: int, n: int = 12, q: int = 40) -> WideRows:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))
    return WideRows(X, 3.0 * X[:, 1] - 2.0 * X[:, 7] + 0.1 * rng.standard_normal(n), np.zeros((0, q)), np.zeros(0))


def test_a_point_is_rounded_and_time_ends_a_search() -> None:
    rows = drawn(0)
    known = WideSupports(rows, lambda: True)
    known.search([3])
    assert not known.best
    b, g = np.zeros(rows.q), rows.c.copy()
    b[[1, 7, 20]] = [2.0, -1.5, 0.01]
    known.round(2, b, g)
    assert known.support[2].tolist() == [1, 7]


def few_rows(seed: int, n: int = 8, q: int = 120) -> WideRows:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q)) * rng.choice([0.3, 1.0])
    return WideRows(X, X[:, 0] - X[:, 1] + 0.2 * rng.standard_normal(n), np.zeros((0, q)), np.zeros(0))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cap", [75, 1000])  # the smaller one has to let columns go
def test_the_relaxation_is_closed_from_both_sides(seed: int, cap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_rows, "CAPACITY", cap)
    monkeypatch.setattr(wide_rows, "WORKING_SET", (0, 0))
    rows, rng = few_rows(seed), np.random.default_rng(seed)
    problem, q, every = Small(rows.Xt.T, rows.y), rows.q, np.arange(rows.q)
    shift = 0.1 * rng.standard_normal(q) * (seed % 3 == 0)
    wide = WideRelaxation(rows)
    for k in (1, 3, 20, 35):
        wide.b[:] = 0.0
        dual, primal = wide.solve_for_rows(rows.training, wide.columns, k, 1e-8 * rows.yy, shift)
        np.testing.assert_allclose(wide.g, problem.c + shift - problem.G @ wide.b, atol=1e-9)
        assert dual == pytest.approx(plain.dual(problem, every[:0], every, k, wide.b, problem.c + shift), abs=1e-9)
        assert dual <= primal + 1e-9 * rows.yy and (k > 3 or primal - dual <= 1e-7 * rows.yy)
        for _ in range(10):
            anywhere = rng.standard_normal(q) * (rng.random(q) < 0.3)
            value = plain.primal(problem, every[:0], every, k, anywhere, problem.c + shift)
            assert value >= dual - 1e-9 * rows.yy
        held = wide.columns.chosen
        assert len(held) <= cap and np.array_equal(np.sort(held), np.flatnonzero(wide.columns.inside))
        np.testing.assert_allclose(wide.columns.gram, problem.G[np.ix_(held, held)], atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_farthest_prediction_covers_that_of_the_best_support(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any t and b give `(ubar - D(b; c + t x / 2)) / t`; what comes back is at least the prediction it bounds."""
    rows, rng = few_rows(seed, q=9), np.random.default_rng(seed)
    problem, q, k = Small(rows.Xt.T, rows.y), rows.q, 1 + seed % 3
    value, support = problem.best(k)
    ubar, beta, wide = value * (1.0 + 1e-9), problem.beta(support), WideRelaxation(rows)
    zeta, _ = wide.solve(k, 1e-9 * rows.yy)
    x, b, candidates = rng.standard_normal(q), wide.b.copy(), LevelSet(k, ubar, zeta)
    rounding = rows.rounding_allowance(k)._replace(unit=1e-15)
    found = []
    for rounds in (1, 12):
        monkeypatch.setattr(wide_module, "RELAXED_AT_MOST", rounds)
        wide.b = b.copy()
        found.append(farthest(wide, x, candidates, 1.0, rounding))
    (loose, _), (bound, t) = found
    assert x @ beta <= bound <= loose and t > 0.0
    for other in np.geomspace(t / 30.0, 30.0 * t, 13):  # no t does much better
        dual, _ = wide.solve_for_rows(rows.training, wide.columns, k, 1e-9 * rows.yy, 0.5 * other * x)
        assert bound - x @ b <= 1.1 * ((ubar - dual) / other - x @ b) + 1e-9


def excesses_of_farthest(seed: int) -> list[Fraction]:
    """One support fits nearly exactly, so that the level set is as narrow as the rounding of its objective."""
    rng = np.random.default_rng(seed)
    X = 1e4 * np.linalg.qr(rng.standard_normal((6, 3)))[0]
    rows = WideRows(X, 3.0 * X[:, 0], np.zeros((0, 3)), np.zeros(0))
    column, y = fractions(X[:, 0]), fractions(rows.y)
    beta = column @ y / (column @ column + 1)
    ubar, relaxation, x = np.nextafter(float(y @ y - beta * (column @ y)), np.inf), WideRelaxation(rows), np.zeros(3)
    x[0] = rng.uniform(1.0, 2.0)
    _, zeta = relaxation.solve(1, 1e-30)
    bound, _ = farthest(relaxation, x, LevelSet(1, ubar, zeta), 10.0 ** rng.uniform(-9, 3), rows.rounding_allowance(1))
    return [Fraction(x[0]) * beta - Fraction(bound)]


def test_the_farthest_prediction_allows_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    check_allowance(excesses_of_farthest, range(30), [(wide_rows, "ROUNDING")], monkeypatch)


def exact_fit(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, u: np.ndarray) -> tuple[Fraction, Fraction]:
    """Least f of all columns under a penalty of 1, and the held-out sum of squares, in fractions."""
    A, target = fractions(X), fractions(y)
    b = solve(A.T @ A + fractions(np.eye(X.shape[1])), A.T @ target)
    rest, out = target - A @ b, fractions(u) - fractions(X_test) @ b
    return rest @ rest + b @ b, out @ out


@pytest.mark.parametrize("seed", range(40))
def test_bounds_count_what_nearly_equal_forced_columns_leave_to_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, f, N = int(rng.integers(6, 11)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    X = rng.standard_normal((n + N, f + 2))
    X[:n, 1:f] = X[:n, :1] + 10.0 ** rng.uniform(-8.0, 0.0) * X[:n, 1:f]
    X *= 10.0 ** rng.uniform(0.0, 7.0)
    y = 10.0 ** rng.uniform(-3.0, 0.0) * rng.standard_normal(n + N)
    fold = WideFold(WideRows(X[:n], y[:n], X[n:], y[n:], choice=ForcedColumns.from_positions(X.shape[1], np.arange(f))))
    for tau in (f, f + 1):
        cell = fold.cells([tau])[0]
        supports = [list(range(f)), *([*range(f), j] for j in (f, f + 1))] if tau > f else [list(range(f))]
        value, error = min(exact_fit(X[:n, S], y[:n], X[n:, S], y[n:]) for S in supports)
        assert cell.objective_lower <= value <= cell.objective_upper
        assert cell.lower <= error <= cell.upper
