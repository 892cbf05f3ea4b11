"""Bounds on coefficients: every good enough fit lies inside, links hold zero."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.bigm import level_set_interval, link_bounds, require_finite
from sparsecv_mio.formulation.scaled import scaled_problem
from sparsecv_mio.problem.moment_refit import refit_moments
from sparsecv_mio.problem.problem import SparseProblem

from .problems import problem_of


@pytest.mark.parametrize("gamma", [1e-6, 1e-2, 1.0, 1e4])
def test_level_set_intervals_hold_every_good_enough_fit(gamma: float) -> None:
    """2,000 supports a gamma, none of whose coefficients may leave the interval of its own objective."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        problem = problem_of(rng, int(rng.integers(3, 30)), 6, gamma, rho=rng.uniform(0, 0.999))
        scaled = scaled_problem(problem)
        fits = [refit_moments(problem, s) for k in range(7) for s in itertools.combinations(range(6), k)]
        for level in rng.choice([fit.objective for fit in fits], 3):
            lo, hi = level_set_interval(scaled, scaled.value(float(level)))
            for fit in fits:
                if fit.objective <= level:
                    u = np.zeros(6)
                    u[list(fit.support)] = fit.beta
                    u = scaled.to_u(u)
                    assert np.all(u >= lo) and np.all(u <= hi)


def test_singular_matrices_claim_nothing() -> None:
    Q = np.ones((3, 3))
    problem = SparseProblem(Q, np.ones(3), 5.0, np.ones(3), 1e-20, 9, np.zeros(3), 0.0)
    scaled = scaled_problem(problem)
    lo, hi = level_set_interval(scaled, 0.0)
    assert not np.isfinite(lo).any() and not np.isfinite(hi).any()
    with pytest.raises(BadInput, match="no valid big-M"):
        require_finite(lo, hi, "scip")


def test_links_hold_zero_and_bind_as_boxes_do() -> None:
    rng = np.random.default_rng(3)
    problem = problem_of(rng, 30, 4, 1.0)
    scaled = scaled_problem(problem)
    free = (np.full(4, -np.inf), np.full(4, np.inf))
    lo, hi = link_bounds(scaled, 0.0, free)
    assert np.all(lo <= 0) and np.all(hi >= 0)
    boxed, _ = link_bounds(scaled, 0.0, (np.full(4, 0.1), np.full(4, np.inf)))
    assert boxed == pytest.approx(scaled.to_u(np.full(4, 0.1)))
