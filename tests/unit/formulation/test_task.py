"""The scaled problem: its objective in its units, and cuts from its dual."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.task import level_set_interval, link_bounds, require_finite, scaled_problem
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem

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


@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_solvers_refuse_what_has_no_valid_big_m(backend: str) -> None:
    if not (usable := get_backend(backend).available()).usable:
        pytest.skip(usable.why)
    rng = np.random.default_rng(0)
    wide = Dataset.from_arrays(rng.normal(size=(7, 8)), rng.normal(size=7))
    with pytest.raises(BadInput, match=f"{backend} has no valid big-M; use a larger gamma or the native backend"):
        fit_one(wide, tau=3, gamma=0.0, backend=backend)
