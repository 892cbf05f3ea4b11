"""Refits of a support, with and without boxes, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.formulation.constraints import SideConstraints
from sparsecv_mio.problem.moment_refit import refit_moments
from sparsecv_mio.problem.problem import SparseProblem

from ..formulation.problems import f, problem_of


def test_refit_is_the_ridge_fit() -> None:
    rng = np.random.default_rng(4)
    problem = problem_of(rng, 25, 6, 0.01)
    for support in ((), (2,), (5, 0, 3)):
        fit = refit_moments(problem, support)
        assert fit.support == tuple(sorted(support))
        beta, value = ridge(problem, np.array(sorted(support), dtype=np.intp))
        assert fit.beta == pytest.approx(beta) and fit.objective == pytest.approx(value)
        assert 0.0 <= fit.shortfall <= 1e-12 * problem.yy


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
