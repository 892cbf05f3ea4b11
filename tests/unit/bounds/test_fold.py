"""Bounds of one fold: spreads as sharp as a conic solver's, loose ends that change nothing, cells without a choice."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from conic_program import conic_minimum  # noqa: E402
from conic_spread import conic_spread
from plain_ridge import ridge
from reused_points import reused_bounds
from scipy.optimize import minimize_scalar

from sparsecv_mio.bounds.fold import TIE, FoldBounds, Origin, relax_full_data, reuse
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import best_support, random_problem

pytest.importorskip("clarabel")


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
            return (ubar - conic_minimum(moved.M, moved.c, moved.yy, form.diagonal, tau)) / t

        exact = minimize_scalar(bound, bounds=(-10.0, 8.0), method="bounded", options={"xatol": 1e-3}).fun
        assert -1e-4 * (high[0] - low[0]) <= end - exact <= 0.01 * (high[0] - low[0])


@pytest.mark.parametrize("seed", range(6))
def test_ends_that_say_nothing_about_the_error_are_left_loose_only(seed: int) -> None:
    problem, _ = random_problem(seed, lam=0.05)
    rng = np.random.default_rng(seed)
    V, r = rng.standard_normal((3, problem.q)), rng.standard_normal(3)
    fold = FoldBounds(problem, V, r)
    fold.search([2, 3, 5], swap_rounds=2)
    for tau in (2, 3, 5):
        (least, most), (lower, upper) = (
            (np.sum(np.maximum(np.maximum(low - r, r - high), 0.0) ** 2), np.sum(np.maximum(r - low, high - r) ** 2))
            for low, high in (conic_spread(problem, V, tau, fold.best[tau], screened=False, r=x) for x in (r, None))
        )
        assert most == pytest.approx(upper, rel=0.01) and least == pytest.approx(lower, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("tau", [0, 8, 20])
def test_no_column_and_all_of_them_leave_no_choice(tau: int) -> None:
    problem, _ = random_problem(3)
    rng = np.random.default_rng(0)
    V, r = rng.standard_normal((3, 8)), rng.standard_normal(3)
    cell = FoldBounds(problem, V, r).cells([tau])[0]
    beta = np.linalg.solve(problem.M, problem.c) if tau else np.zeros(8)
    assert cell.low_origin is cell.high_origin is Origin.EXACT and cell.left == 0
    assert float(np.sum((r - V @ beta) ** 2)) in cell.interval and cell.interval.upper - cell.interval.lower < 1e-9
    value = problem.yy - float(problem.c @ beta)
    assert cell.objective_lower <= value <= cell.objective_upper


def test_what_is_singular_to_rounding_says_nothing() -> None:
    problem = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 1e-20, 9, np.zeros(2), 0.0)
    fold = FoldBounds(problem, np.ones((1, 2)), np.ones(1))
    cell = fold.cells([1])[0]
    assert fold.form is None and (cell.lower, cell.upper) == (0.0, np.inf) and cell.objective_upper == np.inf


def objective(problem: SparseProblem, support: list[int]) -> float:
    c = problem.c[support]
    return problem.yy - float(c @ np.linalg.solve(problem.M[np.ix_(support, support)], c))


def problem_of(X: np.ndarray, y: np.ndarray, lam: float) -> SparseProblem:
    q = X.shape[1]
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), lam, len(y), np.zeros(q), 0.0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("how", ["solution", "nearby", "anywhere", "wild"])
def test_screening_by_any_point_loses_no_support(seed: int, how: str) -> None:
    rng, sizes = np.random.default_rng(seed), np.array([1, 2, 3, 4])
    X = rng.standard_normal((12, 5)) if seed % 3 else np.diag([3.0, 2.0, 1.0, 0.5, 0.1])
    y = X[:, 0] - 2.0 * X[:, 3] + 0.3 * rng.standard_normal(len(X))
    problem = problem_of(X, y, (0.05, 5.0)[seed % 2])
    points = relax_full_data(unit_diagonal(problem), sizes)
    assert points is not None
    moved = {"nearby": 0.01, "anywhere": 1.0, "wild": 1e4}.get(how, 0.0) * rng.standard_normal((4, 5))
    points = replace(points, beta=points.beta + moved)
    V, r = rng.standard_normal((2, 5)), rng.standard_normal(2)
    fold = FoldBounds(problem, V, r)
    fold.search(sizes, swap_rounds=9)
    tested, form = reuse(fold, points, sizes, TIE), fold.form
    assert tested is not None and form is not None
    for t, k in enumerate(sizes.tolist()):
        value, support = best_support(problem, k)
        fold.improve(k, np.array(support), value)
        twin = reused_bounds(form, points.beta[t], [k])[0]
        assert tested.dual[t] == pytest.approx(max(twin, 0.0), abs=1e-9 * problem.yy + 1e-6 * max(-twin, 0.0))
        b = points.beta[t] / form.scale
        d = (form.c - form.M @ b + form.w * b) ** 2 / form.w
        falling, room = np.sort(d)[::-1], value - twin
        usable, close = b @ (form.M @ b - form.w * b) <= 4.0 * problem.yy, 1e-8 * problem.yy
        out, into = falling[k - 1] - d - room, d - falling[k] - room
        status = tested.status[t]
        assert not (status == DROPPED)[(out < -close) | (not usable)].any()
        assert not (status == INSIDE)[(into < -close) | (not usable)].any()
        assert not usable or (status == DROPPED)[out > close].all()
        assert not usable or (status == INSIDE)[(into > close) & (out < -close)].all()
        for held in combinations(range(5), k):
            at = list(held)
            if objective(problem, at) <= value * (1.0 + 1e-9):
                assert np.isin(np.flatnonzero(status == INSIDE), at).all() and not (status[at] == DROPPED).any()
        assert tested.decided[t] == (np.count_nonzero(status == INSIDE) == k and FREE not in status)
        assert tested.decided[t] != np.isnan(tested.numbers[t]).all()
        if tested.decided[t]:
            error = float(np.sum((r - V[:, support] @ ridge(problem, support)[0]) ** 2))
            low, high = tested.numbers[t, 2:4]
            assert low <= error * (1 + 1e-9) and error <= high * (1 + 1e-9) and high - low < 1e-6
            assert tested.numbers[t, 0] <= value * (1 + 1e-9) and value <= tested.numbers[t, 1]


def test_nothing_to_test() -> None:
    problem = problem_of(np.eye(3), np.ones(3), 1.0)
    form, fold = unit_diagonal(problem), FoldBounds(problem, np.ones((1, 3)), np.ones(1))
    assert relax_full_data(form, [0, 3]) is None and relax_full_data(None, [1]) is None
    assert reuse(fold, None, [1], TIE) is None and reuse(fold, relax_full_data(form, [1]), [2], TIE) is None
