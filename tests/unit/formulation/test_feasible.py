"""First feasible supports against enumeration."""

from __future__ import annotations

import itertools

import numpy as np

from sparsecv_mio.formulation.constraints import FREE, SideConstraints
from sparsecv_mio.formulation.feasible import feasible_start
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
