"""First feasible supports against enumeration."""

from __future__ import annotations

import itertools

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.constraints import FREE, SideConstraints
from sparsecv_mio.formulation.feasible import feasible_start
from sparsecv_mio.problem.accumulate import full_problem
from sparsecv_mio.problem.moment_refit import refit_moments

from .problems import problem_of


def test_feasible_start_meets_the_constraints_or_proves_there_is_none() -> None:
    rng = np.random.default_rng(6)
    found = {True: 0, False: 0}
    for _ in range(150):
        problem = problem_of(rng, 20, 6, 0.5)
        pick = [tuple(int(j) for j in rng.permutation(6)[: int(rng.integers(1, 4))]) for _ in range(4)]
        constraints = SideConstraints(pick[0][:1], pick[1][:2], (pick[2],), ((int(rng.integers(0, 2)), pick[3]),))
        tau = int(rng.integers(0, 5))
        exists = any(
            constraints.allows(s, tau) for k in range(tau + 1) for s in itertools.combinations(range(6), k)
        )
        fit = feasible_start(problem, tau, constraints)
        assert (fit is not None) == exists
        found[exists] += 1
        if fit is not None:
            assert constraints.allows(fit.support, tau)
    assert min(found.values()) > 10


def test_start_is_good_without_constraints() -> None:
    rng = np.random.default_rng(7)
    problem = problem_of(rng, 60, 12, 0.05, rho=0.1)
    fit = feasible_start(problem, 3, FREE)
    best = min(refit_moments(problem, s).objective for s in itertools.combinations(range(12), 3))
    assert fit is not None and fit.objective <= 1.02 * best


def test_start_where_columns_are_collinear_to_rounding() -> None:
    """Large offsets, no intercept, signs, a group limit: matrices that are singular but for rounding."""
    constraints = SideConstraints(at_most=((1, (0, 1, 3)),), box=((1, 0.0, np.inf), (3, 0.0, np.inf)))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = 1e8 * rng.uniform(-1.0, 1.0, 4) + rng.normal(size=(8, 4))
        problem = full_problem(standardize(Dataset.from_arrays(X, rng.normal(size=8)), "none", "none"), 1.0)
        fit = feasible_start(problem, 2, constraints)
        assert fit is not None and constraints.allows(fit.support, 2)
        assert np.all(np.isfinite(fit.beta)) and fit.objective <= problem.yy
