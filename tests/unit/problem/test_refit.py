"""Refits from the rows and from the moments against the definition, with their own bounds on rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem import moment_fits, refit
from sparsecv_mio.problem.beyond_floats import EXACT_WORK
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments

from ..formulation.problems import f, problem_of

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("seed", range(60))
def test_the_three_fits_agree_within_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 40)), int(rng.integers(2, 7))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 1e3, 1e6])
    X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=n)
    X *= 10.0 ** rng.uniform(-3, 3, size=p)
    y = X @ (rng.normal(size=p) / X.std(axis=0)) + rng.choice([1e-6, 1e-2, 1.0]) * rng.normal(size=n)
    scale, intercept = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "global", "none"]))
    data = standardize(Dataset.from_arrays(X, y), scale, intercept)
    support = np.sort(rng.choice(data.q, int(rng.integers(1, data.q + 1)), replace=False)).astype(np.int64)
    test = rng.choice(n, 3, replace=False)
    train, gamma, unit = np.setdiff1d(np.arange(n), test), 10.0 ** rng.uniform(-4, 2), data.y_unit**2

    columns = data.columns[support].tolist()
    truth = fit(X, y, columns, gamma, scale=scale, intercept=intercept, rows=train)
    made = refit_rows(data, train, support, gamma)
    assert abs(made.objective * unit - truth.objective) <= made.objective_error * unit + 1e-10 * truth.objective
    said, _ = data.coefficients(support, made.beta, np.zeros(data.q), 0.0)
    reach = made.spread * data.y_unit / data.divisor[support]
    assert np.all(np.abs(np.array(list(said.values())) - truth.beta) <= reach + 1e-9 * np.abs(truth.beta).max())
    total, rounding = made.held_out(data, test)
    expected = held_out_error(truth, X, y, test)
    assert abs(total * unit - expected) <= rounding * unit + 1e-9 * expected

    problem = row_moments(data, train).problem(data, gamma)
    again = refit_moments(problem, tuple(support.tolist()))
    lost = 1e3 * EPS * problem.yy * problem.n  # what the moments themselves have lost
    assert abs(again.objective - made.objective) <= made.objective_error + again.shortfall + lost


@pytest.fixture
def short_long_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, and on Macs with processors of Apple: long double is no longer than double."""
    for module in (refit, moment_fits):
        monkeypatch.setattr(module, "LONG", np.float64)
    monkeypatch.setattr(refit, "FINE", 16.0 * EPS)
    monkeypatch.setattr(moment_fits, "SLACK", 16.0 * EPS)


@pytest.mark.parametrize("seed", range(100, 140))
def test_the_bounds_hold_where_long_double_is_no_longer(seed: int, short_long_double: None) -> None:
    test_the_three_fits_agree_within_their_bounds(seed)


@pytest.mark.parametrize("seed", range(20))
def test_an_objective_of_moments_is_an_upper_bound_there(seed: int, short_long_double: None) -> None:
    """Against the objective in fractions: sums that cancel, down to nothing."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        k = int(rng.integers(1, 7))
        V = rng.normal(size=(k + 2, k)) + 10.0 ** rng.integers(0, 4)
        beta = rng.normal(size=k)
        r = V @ beta + 10.0 ** rng.integers(-9, 1) * rng.normal(size=k + 2)
        M, c, yy = V.T @ V, V.T @ r, float(r @ r)
        b, q, Q = [Fraction(x) for x in beta], [Fraction(x) for x in c], [[Fraction(x) for x in row] for row in M]
        pairs = sum(b[i] * Q[i][j] * b[j] for i in range(k) for j in range(k))
        exact = Fraction(yy) - 2 * sum(x * y for x, y in zip(b, q, strict=True)) + pairs
        assert Fraction(moment_fits._long_objective(yy, M, c, beta)) >= exact


def test_a_support_whose_columns_are_one_has_no_error_bound() -> None:
    many = np.arange(EXACT_WORK / 2)  # too many rows for fractions
    data = standardize(Dataset.from_arrays(np.outer(many, [1.0, 2.0]), many**2))
    assert refit_rows(data, slice(0, data.n), np.array([0, 1]), 1e-30).objective_error == np.inf
    assert np.isfinite(refit_rows(data, slice(0, data.n), np.array([0]), 1e-30).objective_error)
    few = refit_rows(data, slice(0, 6), np.array([0, 1]), 1e-30)
    assert few.objective_error <= 1e-14 * few.objective


def test_refit_survives_collinear_columns_and_wild_weights() -> None:
    twice = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 0.0, 9, np.zeros(2), 0.0)
    assert refit_moments(twice, (0, 1)).objective == pytest.approx(1.0)
    wild = SparseProblem(np.eye(2), np.ones(2), 2.0, np.array([1e-280, 1e280]), 1.0, 9, np.zeros(2), 0.0)
    assert refit_moments(wild, (0, 1)).objective == pytest.approx(1.0)


def test_refit_in_a_box_survives_columns_that_are_collinear_to_rounding() -> None:
    """The matrix of a vendor's support may have an eigenvalue below zero by rounding."""
    near = 1.0 - 1e-16 + np.array([[1e-16, 3e-16], [3e-16, 1e-16]])
    for turn in (1.0, -1.0):
        for blur in (0.0, 1e-15):
            Q = np.array([[1.0, turn], [turn, 1.0 - blur]]) * near
            problem = SparseProblem(Q, np.array([1.0, turn]), 2.0, np.ones(2), 0.0, 9, np.zeros(2), 0.0)
            fit = refit_moments(problem, (0, 1), (np.zeros(2), np.full(2, np.inf)))
            assert np.all(fit.beta >= 0.0) and fit.objective == pytest.approx(1.0)


def test_constrained_refit_is_optimal_and_certified() -> None:
    """Against a grid of feasible points, and with the certificate's own bound on what is left."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        problem = problem_of(rng, 20, 4, 10.0 ** rng.uniform(-4, 1), rho=rng.uniform(0, 0.99))
        lo = np.where(rng.random(4) < 0.5, rng.normal(-0.5, 0.5, 4), -np.inf)
        hi = np.where(rng.random(4) < 0.5, np.maximum(lo, rng.normal(0.5, 0.5, 4)), np.inf)
        if rng.random() < 0.3:
            lo[0] = hi[0] = 0.7
        constraints = SideConstraints(box=tuple((j, lo[j], hi[j]) for j in range(4)))
        fit = refit_moments(problem, (0, 1, 2, 3), constraints.boxes(problem.q))
        assert np.all(fit.beta >= lo) and np.all(fit.beta <= hi)
        assert fit.shortfall <= 1e-9 * max(problem.yy, fit.objective)
        for _ in range(50):
            other = np.clip(fit.beta + rng.normal(0, 10.0 ** rng.uniform(-4, 0), 4), lo, hi)
            assert f(problem, other) >= fit.objective - fit.shortfall - 1e-9 * problem.yy


def test_forward_selection_ends_where_columns_have_nothing_of_their_own() -> None:
    X = np.random.default_rng(0).normal(size=(9, 2))
    X = np.column_stack((X, X))
    assert len(moment_fits.select_forward(X.T @ X, X.T @ X[:, 0], 4)) == 2
