"""The relaxation against a conic solver, its steps one by one, and what leaves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conic_spread import conic_spread, spread_bound
from ellipsoids import Ellipsoid
from plain_ridge import ridge
from reused_points import reused_bounds
from scipy.optimize import minimize_scalar

from sparsecv_mio.bounds.fold import FoldBounds, Which
from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.saddle import saddle_point
from sparsecv_mio.bounds.screening import screen
from sparsecv_mio.bounds.unit_diagonal import Diagonal, unit_diagonal
from sparsecv_mio.bounds.wide_relaxation import WideRelaxation
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.kernels import curvature
from sparsecv_mio.problem.problem import SparseProblem

pytest.importorskip("clarabel")
from conic_program import conic_minimum  # noqa: E402


def random_problem(
    seed: int, n: int = 30, q: int = 8, lam: float = 0.3, rho: float = 0.6
) -> tuple[SparseProblem, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.standard_normal((n, q)) + np.sqrt(rho) * rng.standard_normal((n, 1))
    X /= np.linalg.norm(X, axis=0)
    y = X @ rng.standard_normal(q) + 0.3 * rng.standard_normal(n)
    weight = rng.uniform(0.5, 2.0, q)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), weight, lam, n, np.zeros(q), 0.0), X


def conic_value(problem: SparseProblem, tau: int, w: np.ndarray) -> float:
    """The relaxation of a problem by the conic solver."""
    return conic_minimum(problem.M, problem.c, problem.yy, w, tau)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("diagonal", [Diagonal.PENALTY, Diagonal.SHARP])
def test_equals_the_conic_solver(seed: int, diagonal: Diagonal) -> None:
    problem, _ = random_problem(seed, n=(5, 30)[seed % 2], lam=(0.003, 0.1, 3.0)[seed % 3], rho=(0.0, 0.9)[seed % 2])
    form = unit_diagonal(problem, diagonal=diagonal)
    assert form is not None
    for point in relax_problem(problem, [1, 2, 4, 7], diagonal=diagonal, accuracy=1e-10):
        value = conic_value(problem, point.tau, form.diagonal)
        assert point.dual <= value + 1e-7 * problem.yy
        assert abs(point.dual - value) <= 1e-7 * problem.yy and abs(point.primal - value) <= 1e-7 * problem.yy


def test_rows_equal_moments_and_the_saddle_point() -> None:
    rng = np.random.default_rng(3)
    X, lam = rng.standard_normal((20, 60)) / 4.0, 0.5
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(20)
    problem = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(60), lam, 20, np.zeros(60), 0.0)
    wide = WideRelaxation(WideRows(X / np.sqrt(lam), y, np.zeros((0, 60)), np.zeros(0)))
    for tau in (1, 2, 5):
        point = relax_problem(problem, [tau], diagonal=Diagonal.PENALTY, accuracy=1e-9)[0]
        dual, primal = wide.solve(tau, 1e-9)
        assert dual <= primal and abs(dual - point.dual) <= 1e-7 * problem.yy
        saddle = saddle_point(X, y, lam, tau, iterations=3000)
        assert saddle.dual <= point.primal + 1e-12 and saddle.dual >= point.dual - 0.02 * problem.yy
        assert abs(saddle.z.sum() - tau) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_diagonal_is_valid_and_beats_the_penalty(seed: int) -> None:
    problem, _ = random_problem(seed, n=(6, 40)[seed % 2])
    form = unit_diagonal(problem)
    assert form is not None
    assert np.linalg.eigvalsh(form.M - np.diag(form.w))[0] > -1e-13
    if seed % 2:
        assert np.log(form.diagonal).sum() > np.log(problem.penalty).sum()
    again = unit_diagonal(problem, near=form.diagonal * 1.5)  # not valid as it is: must be shrunk
    assert again is not None and np.linalg.eigvalsh(again.M - np.diag(again.w))[0] > -1e-13
    assert curvature.sharpen(form.M, 2.0 * np.ones(form.m), 20.0, 3) == -1


def best_support(problem: SparseProblem, tau: int) -> tuple[float, np.ndarray]:
    from itertools import combinations

    return min(
        ((ridge(problem, np.array(s))[1], np.array(s)) for s in combinations(range(problem.q), tau)), key=lambda x: x[0]
    )


@pytest.mark.parametrize("seed", range(8))
def test_screening_and_spreads_against_the_best_support(seed: int) -> None:
    problem, X = random_problem(seed, lam=1.0, rho=0.2)
    for tau in (1, 3, 6):
        value, support = best_support(problem, tau)
        beta = np.zeros(problem.q)
        beta[support] = ridge(problem, support)[0]
        point = relax_problem(problem, [tau])[0]
        found = screen(point, value * (1 + 1e-12))
        assert set(found.inside) <= set(support) and not set(found.dropped) & set(support)
        V = np.random.default_rng(seed).standard_normal((4, problem.q))
        for screened in (True, False):
            low, high = conic_spread(problem, V, tau, value, screened=screened)
            assert np.all(low <= V @ beta + 1e-9) and np.all(V @ beta <= high + 1e-9)
        form = unit_diagonal(problem, diagonal=Diagonal.PENALTY)
        assert form is not None
        rng = np.random.default_rng(seed)
        for _ in range(20):  # any t, any b
            bound = spread_bound(form, V[0] * form.scale, tau, value, 10 ** rng.uniform(-2, 1), rng.standard_normal(8))
            assert V[0] @ beta <= bound + 1e-9
        assert reused_bounds(form, rng.standard_normal(8), [tau])[0] <= value


@pytest.mark.parametrize("seed", range(6))
def test_conic_spread_is_the_exact_one(seed: int) -> None:
    """`max x'b` over the relaxation's level set by the conic solver, t by a scalar search."""
    problem, _ = random_problem(seed, n=(6, 12)[seed % 2], lam=0.01, rho=(0.0, 0.97)[seed % 2])
    tau, form = 2 + seed % 4, unit_diagonal(problem)
    assert form is not None
    value, _ = best_support(problem, tau)
    ubar = value * (1.0 + 1e-9)
    x = np.random.default_rng(seed).standard_normal(problem.q)
    low, high = conic_spread(problem, x[None, :], tau, ubar, screened=False)
    assert high[0] - low[0] > 1e-3
    for sign, end in ((1.0, high[0]), (-1.0, -low[0])):

        def bound(log_t: float, side: float = sign) -> float:
            t = float(np.exp(log_t))
            moved = replace(problem, c=problem.c + 0.5 * t * side * x)
            return (ubar - conic_value(moved, tau, form.diagonal)) / t

        exact = minimize_scalar(bound, bounds=(-10.0, 8.0), method="bounded", options={"xatol": 1e-3}).fun
        assert -1e-4 * (high[0] - low[0]) <= end - exact <= 0.01 * (high[0] - low[0])


@pytest.mark.parametrize("seed", range(6))
def test_ends_that_say_nothing_about_the_error_are_left_loose_only(seed: int) -> None:
    problem, _ = random_problem(seed, lam=0.05)
    rng = np.random.default_rng(seed)
    V, r = rng.standard_normal((3, problem.q)), rng.standard_normal(3)
    fold = FoldBounds(problem, V, r)
    fold.search([2, 3, 5], swap_rounds=2)
    for cell in fold.cells([2, 3, 5], Which.CONIC):
        low, high = conic_spread(problem, V, cell.tau, fold.best[cell.tau], screened=False)
        lower = np.sum(np.maximum(np.maximum(low - r, r - high), 0.0) ** 2)
        upper = np.sum(np.maximum(r - low, high - r) ** 2)
        assert cell.upper == pytest.approx(upper, rel=0.01) and cell.lower == pytest.approx(lower, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_squares_over_an_ellipsoid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, rows = 5, (2, 8)[seed % 2]
    A = rng.standard_normal((9, m))
    body = Ellipsoid(rng.standard_normal(m), A.T @ A + 0.1 * np.eye(m), rng.uniform(0.1, 4.0))
    X, u = rng.standard_normal((rows, m)), 3.0 * rng.standard_normal(rows) * (seed != 2)
    ends = body.together(X, u)
    half = np.linalg.inv(np.linalg.cholesky(body.G)).T
    points = rng.standard_normal((200_000, m))
    points *= np.sqrt(body.radius) / np.linalg.norm(points, axis=1)[:, None]
    values = np.sum((u - (body.centre + points @ half.T) @ X.T) ** 2, axis=1)
    assert ends.lower <= values.min() and values.max() <= ends.upper
    assert ends.upper <= 1.02 * values.max()
    low, high = body.spread(X)
    inside = (body.centre + points @ half.T) @ X.T
    assert np.all(low <= inside.min(0)) and np.all(inside.max(0) <= high)
    assert np.allclose(high, inside.max(0), rtol=0.05, atol=0.2)
    rows_only = body.rows(X, u)
    assert rows_only.lower <= ends.lower + 1e-6 and ends.upper <= rows_only.upper + 1e-6
