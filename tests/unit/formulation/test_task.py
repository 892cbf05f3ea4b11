"""Tasks in scaled units for squared-error and logistic loss, with their bounds, fits and initial supports."""

from __future__ import annotations

import itertools
from itertools import combinations

import numpy as np
import pytest
from logistic_truth import drawn, enumerated, harder, least
from slow import slow

from sparsecv_mio import cross_validate
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import (
    ScaledLosses,
    expand_around_fit,
    feasible_start,
    fit_glm,
    level_set_interval,
    link_bounds,
    loss_task,
    require_finite,
    scaled_problem,
    unbounded_task,
)
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.targets import Loss

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
    with pytest.raises(
        BadInput, match=f"{backend} has no valid big-M; use a larger gamma, scaled columns or the native backend"
    ):
        fit_one(wide, tau=3, gamma=0.0, backend=backend)
    with pytest.raises(BadInput, match=rf"^tau 3, gamma 1e-300, .*: with this gamma .* {backend} has no valid big-M"):
        cross_validate(wide, "2", gammas=[1e-300, 1.0], taus=[3], backend=backend)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 12))])
def test_the_objective_is_an_upper_bound_and_tight(seed: int) -> None:
    problem = (drawn if seed % 2 else harder)(seed, 4).centre_columns()[0]
    for size in range(problem.p + 1):
        for S in combinations(range(problem.p), size):
            fit, truth = fit_glm(problem, S), least(problem.select_columns(np.array(S, dtype=np.int64)))
            assert fit.support == S
            value = float(truth.value)
            assert value - truth.off <= fit.objective <= value + fit.shortfall + truth.off
            assert fit.objective - fit.shortfall <= value + truth.off
            if seed % 2:  # weights of rows that span 16 orders leave more rounding
                assert fit.objective <= value * (1.0 + 1e-9) + truth.off
            assert problem.objective(fit.theta(problem)) == pytest.approx(fit.objective, rel=1e-9, abs=fit.shortfall)


def test_the_expansion_has_the_fit_as_its_own() -> None:
    """Around the fit of a support, the quadratic's fit of that support is the same; it is exact to second order."""
    for seed in (1, 3, 8, 9, 15):
        problem = drawn(seed, 4).centre_columns()[0]
        S = tuple(range(max(problem.p - 1, 1)))
        fit = fit_glm(problem, S)
        around = expand_around_fit(problem, fit)
        size = np.abs(fit.beta).max()
        assert refit_moments(around, S).beta == pytest.approx(fit.beta, rel=1e-5, abs=1e-6 * size)


def test_a_column_that_is_constant_in_the_training_rows_has_no_coefficient() -> None:
    """Under next to no ridge rounding gave it one, which counts where the row that it tells apart is scored."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), rng.poisson(500.0, 40).astype(float)
    X[:, 0] = 0.0
    X[33, 0] = 416.0
    data = standardize(as_counts(Dataset.from_arrays(X, y)), scale="none", loss=Loss.POISSON)
    train = np.setdiff1d(np.arange(40), [33, 34])
    both, alone = (refit_glm(data, train, np.array(S), 1e-4) for S in ([0, 1], [1]))
    assert both.beta[0] == 0.0 and both.beta[1] == pytest.approx(alone.beta[0], rel=1e-12)
    outside = np.array([33, 34])
    (losses, off), (without, _) = both.losses(data, outside), alone.losses(data, outside)
    assert losses == pytest.approx(without, rel=1e-9, abs=1e-12) and np.all(off <= 1e-10)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 12))])
def test_every_fit_as_good_as_the_start_is_within_the_bounds(seed: int) -> None:
    problem = (drawn if seed % 4 else harder)(seed, 4).centre_columns()[0]
    least = {S: float(truth.value) for S, truth in enumerated(problem).items()}
    for tau in range(problem.p + 1):
        start = feasible_start(problem, tau, FREE)
        assert start is not None and len(start.support) <= tau
        for first in (start, fit_glm(problem, ())):
            task = loss_task(problem, tau, FREE, first, KnownBounds())
            scaled = task.scaled
            assert isinstance(scaled, ScaledLosses)
            best = min(value for S, value in least.items() if len(S) <= tau)
            assert scaled.objective(task.floor) <= best * (1.0 + 1e-9)
            for S, value in least.items():
                if value <= first.objective and len(S) <= tau:
                    u, phi = scaled.fit_support(np.isin(np.arange(problem.p), S) * 1.0)
                    r = scaled.factor @ u
                    assert np.all(task.lo <= u[: problem.p]) and np.all(u[: problem.p] <= task.hi)
                    assert np.all(scaled.low <= r) and np.all(r <= scaled.high)
                    assert scaled.objective(phi) >= value * (1.0 - 1e-12)
                    smooth = scaled.row_weights @ scaled.losses_and_slopes(r)[0] + scaled.w @ u[: problem.p] ** 2
                    assert smooth == pytest.approx(value / scaled.unit**2, rel=1e-9)


def test_side_constraints_hold_and_none_is_said() -> None:
    problem = drawn(10, 5).centre_columns()[0]
    last = problem.p - 1
    start = feasible_start(problem, 1, SideConstraints(forced_in=(last,)))
    assert start is not None and start.support == (last,)
    assert feasible_start(problem, 0, SideConstraints(forced_in=(last,))) is None


def test_without_bounds() -> None:
    problem = drawn(10, 5).centre_columns()[0]
    none = fit_glm(problem, ())
    task = unbounded_task(problem, 1, SideConstraints(forced_out=(0,)), none, KnownBounds(lower=0.25))
    assert task.scaled.objective(task.floor) == pytest.approx(0.25) and task.z_hi[0] == 0.0
    assert task.scaled.yy == none.objective and np.all(np.isinf(task.hi))
    assert task.start_u.tolist() == [0.0] * problem.p + [none.intercept] * problem.first_coefficient


def test_a_row_that_weighs_nearly_all_leaves_bounds_of_solvers_untrusted() -> None:
    problem = harder(3036, 3).centre_columns()[0]
    assert loss_task(problem, 1, FREE, fit_glm(problem, ()), KnownBounds()).scaled.has_uneven_weights
    problem = drawn(10, 3).centre_columns()[0]
    assert not loss_task(problem, 1, FREE, fit_glm(problem, ()), KnownBounds()).scaled.has_uneven_weights
