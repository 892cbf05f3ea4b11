"""The scaled problem: its objective in its units, and cuts from its dual."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsecv_mio.formulation.scaled import scaled_problem
from sparsecv_mio.problem.moment_refit import refit_moments

from .problems import f, problem_of


@pytest.mark.parametrize("gamma", [1e-4, 0.1, 1e3])
@pytest.mark.parametrize("n", [5, 40])
def test_phi_is_f_in_other_units(gamma: float, n: int) -> None:
    rng = np.random.default_rng(0)
    problem = problem_of(rng, n, 7, gamma)
    scaled = scaled_problem(problem)
    assert np.all(scaled.w > 0)
    assert np.linalg.eigvalsh(scaled.G)[0] >= -1e-13
    assert np.allclose(scaled.factor.T @ scaled.factor, scaled.G, atol=1e-13)
    for _ in range(20):
        beta = rng.standard_normal(7)
        u = scaled.to_u(beta)
        phi = u @ (scaled.G @ u) + scaled.w @ u**2 - 2 * scaled.g @ u
        assert scaled.objective(phi) == pytest.approx(f(problem, beta), rel=1e-9)
        assert u * scaled.unit / scaled.column == pytest.approx(beta)
    assert scaled.floor == pytest.approx(-1.0, abs=1e-6)


@pytest.mark.parametrize("gamma", [1e-4, 0.1, 1e3])
def test_dual_cuts_hold_at_every_support_and_are_tight_at_their_own(gamma: float) -> None:
    rng = np.random.default_rng(1)
    for n in (4, 30):
        problem = problem_of(rng, n, 6, gamma)
        scaled = scaled_problem(problem)
        truth = {}
        for size in range(7):
            for support in itertools.combinations(range(6), size):
                truth[support] = scaled.value(refit_moments(problem, support).objective)
        for tau in range(1, 7):
            best = min(v for s, v in truth.items() if len(s) <= tau)
            assert scaled.own_lower(tau) <= best + 1e-9
            floor = scaled.own_lower(6)
            for u in (scaled.ridge, rng.standard_normal(6), np.zeros(6)):
                for a, s in (scaled.dual_cut(u), scaled.clipped_cut(u, floor)):
                    for support, value in truth.items():
                        assert a - s[list(support)].sum() <= value + 1e-7
        for support in ((0, 2), (1, 3, 5)):
            z = np.zeros(6)
            z[list(support)] = 1.0
            a, s = scaled.dual_cut(scaled.fractional_fit(z))
            assert a - s @ z == pytest.approx(truth[support], abs=1e-8)
