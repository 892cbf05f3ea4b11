"""Scaling, level-set bounds, refits, feasibility, side constraints: each against its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.bigm import level_set_interval, link_bounds, require_finite
from sparsecv_mio.formulation.constraints import FREE, SideConstraints, side_constraints
from sparsecv_mio.formulation.feasible import feasible_start
from sparsecv_mio.formulation.outcome import Advice, Outcome, Stop
from sparsecv_mio.formulation.refit import refit
from sparsecv_mio.formulation.scaled import scaled_problem
from sparsecv_mio.formulation.task import make_task
from sparsecv_mio.problem.problem import SparseProblem


def problem_of(rng: np.random.Generator, n: int, q: int, gamma: float, rho: float = 0.5) -> SparseProblem:
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, q))
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = X @ rng.standard_normal(q) + 0.3 * rng.standard_normal(n)
    y -= y.mean()
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), gamma / 2, n, np.zeros(q), 0.0)


def f(problem: SparseProblem, beta: np.ndarray) -> float:
    return float(problem.yy - 2 * problem.c @ beta + beta @ (problem.M @ beta))


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
        assert scaled.to_beta(u) == pytest.approx(beta)
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
                truth[support] = scaled.value(refit(problem, support).objective)
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
        fits = [refit(problem, s) for k in range(7) for s in itertools.combinations(range(6), k)]
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


def test_refit_is_the_ridge_fit() -> None:
    rng = np.random.default_rng(4)
    problem = problem_of(rng, 25, 6, 0.01)
    for support in ((), (2,), (5, 0, 3)):
        fit = refit(problem, support)
        assert fit.support == tuple(sorted(support))
        beta, value = problem.ridge(np.array(sorted(support), dtype=np.intp))
        assert fit.beta == pytest.approx(beta) and fit.objective == pytest.approx(value)
        assert 0.0 <= fit.shortfall <= 1e-12 * problem.yy


def test_refit_survives_collinear_columns_and_wild_weights() -> None:
    twice = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 0.0, 9, np.zeros(2), 0.0)
    assert refit(twice, (0, 1)).objective == pytest.approx(1.0)
    wild = SparseProblem(np.eye(2), np.ones(2), 2.0, np.array([1e-280, 1e280]), 1.0, 9, np.zeros(2), 0.0)
    assert refit(wild, (0, 1)).objective == pytest.approx(1.0)


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
        fit = refit(problem, (0, 1, 2, 3), constraints)
        assert np.all(fit.beta >= lo) and np.all(fit.beta <= hi)
        assert fit.shortfall <= 1e-9 * max(problem.yy, fit.objective)
        for _ in range(50):
            other = np.clip(fit.beta + rng.normal(0, 10.0 ** rng.uniform(-4, 0), 4), lo, hi)
            assert f(problem, other) >= fit.objective - fit.shortfall - 1e-9 * problem.yy


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
    best = min(refit(problem, s).objective for s in itertools.combinations(range(12), 3))
    assert fit is not None and fit.objective <= 1.02 * best


def test_links_never_contradict_the_start() -> None:
    rng = np.random.default_rng(8)
    problem = problem_of(rng, 30, 5, 0.3)
    start = refit(problem, (0, 1))
    task = make_task(problem, 2, FREE, start, Advice())
    u, z = task.start_u, task.start_z
    assert np.all(task.lo * z <= u + 1e-15) and np.all(u <= task.hi * z + 1e-15)
    assert np.all(task.z_lo <= z) and np.all(z <= task.z_hi)


def test_constraints_from_names_carry_units() -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((20, 4)) * np.array([1.0, 100.0, 0.01, 0.0])
    data = standardize(Dataset.from_arrays(X, 50.0 * X[:, 0] + rng.standard_normal(20), ["a", "b", "c", "k"]))
    found = side_constraints(
        data, force_in=["a"], force_out=["k", "c"], together=[["a", "b"]], at_most=[(1, ["b", "c"])],
        box={"b": (0.0, 2.0)},
    )  # fmt: skip
    assert found.forced_in == (0,) and found.forced_out == (2,)
    assert found.together == ((0, 1),) and found.at_most == ((1, (1, 2)),)
    (j, lo, hi), = found.box
    coefficients, _ = data.coefficients([1], np.array([hi]), np.zeros(3), 0.0)
    assert (j, lo) == (1, 0.0) and coefficients["b"] == pytest.approx(2.0)
    for bad, message in (
        ({"force_in": ["x"]}, "there is no feature 'x'"),
        ({"force_in": ["k"]}, "'k' is constant"),
        ({"box": {"a": (1.0, -1.0)}}, "bounds of 'a' are reversed"),
        ({"at_most": [(-1, ["a"])]}, "must not be negative"),
    ):
        with pytest.raises(BadInput, match=message):
            side_constraints(data, **bad)  # type: ignore[arg-type]


def test_boxes_that_hold_no_number_are_refused() -> None:
    with pytest.raises(BadInput, match="holds no number"):
        SideConstraints(box=((0, math.inf, math.inf),))
    with pytest.raises(BadInput, match="do not meet"):
        SideConstraints(box=((0, 0.0, 1.0), (0, 2.0, 3.0))).interval(2)


def test_outcome_gap() -> None:
    assert Outcome(Stop.TIME, None).gap == math.inf
    assert Outcome(Stop.OPTIMAL, (0,), 0.0, 0.0).gap == 0.0
    assert Outcome(Stop.OPTIMAL, (0,), 0.9, 1.0).gap == pytest.approx(0.1)
