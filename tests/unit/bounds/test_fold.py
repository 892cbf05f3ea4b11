"""Bounds of one fold: spreads as sharp as a conic solver's, loose ends that change nothing, cells without a choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from conic_program import (
    conic_minimum,  # noqa: E402
    conic_spread,
)
from exact import check_allowance
from scipy.optimize import minimize_scalar

from sparsecv_mio.bounds import fold as fold_module
from sparsecv_mio.bounds import relaxation
from sparsecv_mio.bounds.fold import FoldBounds, Origin
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import HardFold, best_support, random_problem

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


@pytest.mark.parametrize("root", [None, np.ones(1)])
def test_what_is_singular_to_rounding_says_nothing(root: np.ndarray | None) -> None:
    problem = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 1e-20, 9, np.zeros(2), 0.0)
    fold = FoldBounds(problem, np.ones((1, 2)), np.ones(1), root=root)
    cell = fold.cells([1])[0]
    assert fold.form is None and (cell.lower, cell.upper) == (0.0, np.inf) and cell.objective_upper == np.inf


@pytest.mark.parametrize("forced", [(), (1,)])
def test_bounds_are_on_the_right_side_of_exact_numbers(
    forced: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def excesses(seed: int) -> Iterator[Fraction]:
        hard = HardFold.draw(seed)
        fold = FoldBounds(hard.problem(forced), hard.V_test, hard.r_test, root=np.full(len(hard.r_test), hard.root))
        fold.search([1, 2], swap_rounds=1)
        try:
            yield from hard.excesses(fold.cells(range(len(forced), 4)), forced)
        except Contradiction:
            yield Fraction(1)

    zeroed = (relaxation, "ROUNDING"), (fold_module, "OUTWARD")
    check_allowance(excesses, range(80), zeroed, monkeypatch)
