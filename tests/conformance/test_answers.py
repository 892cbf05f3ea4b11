"""Every backend and formulation against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from conformance_suite import (
    FORMS,
    Solver,
    brute_force,
    make_solver_fixture,
    problem_of,
    random_constraints,
    random_problem,
)
from slow import slow

from sparsecv_mio.errors import BackendFailed, BadInput
from sparsecv_mio.formulation.backends import contract
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Start, Stop
from sparsecv_mio.formulation.task import model_task
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.moment_fits import Fit, refit_moments
from sparsecv_mio.problem.problem import SparseProblem

QUICK, FULL = 5, 500
solver = make_solver_fixture(FORMS)


def check(outcome: Outcome, truth: float, problem: SparseProblem, limits: Limits | None = None) -> None:
    """Bounds hold, the status says what is true, the refit is the support's own value."""
    gap = (limits or Limits()).gap
    assert (outcome.stop is Stop.INFEASIBLE) == (truth == math.inf)
    if truth == math.inf:
        assert outcome.incumbent is None and outcome.lower == outcome.upper == math.inf
        return
    rounding = 1e-9 * truth + 1e-13 * problem.yy
    assert outcome.lower <= truth + rounding
    assert outcome.upper >= truth - rounding
    if outcome.stop is Stop.OPTIMAL:
        assert outcome.upper - outcome.lower <= gap * outcome.upper + outcome.allowance
        assert outcome.upper - truth <= gap * truth + outcome.allowance + rounding
    else:
        assert not math.isnan(outcome.lower) and not math.isnan(outcome.upper)


@pytest.mark.parametrize(("count", "seed"), [(QUICK, 20), *slow([(FULL, 21)])])
def test_random_problems(solver: Solver, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    unproved = 0
    for _ in range(count):
        problem = random_problem(rng)
        tau = int(rng.integers(0, problem.q + 1))
        truth = brute_force(problem, tau)
        outcome = solver.solve(problem, tau, limits=Limits(seconds=60.0))
        check(outcome, truth, problem)
        unproved += outcome.stop is not Stop.OPTIMAL
        assert outcome.upper <= truth * (1 + 1e-6) + 1e-12 * problem.yy
    assert unproved <= 0.02 * count, f"{unproved} of {count} not proved"


@pytest.mark.parametrize(("count", "seed"), [(QUICK, 30), *slow([(150, 31)])])
def test_side_constraints(solver: Solver, count: int, seed: int) -> None:
    kinds = sorted(solver.backend.capabilities.formulations[solver.form])
    if not kinds:
        pytest.skip("takes no side constraints")
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(count):
        problem = random_problem(rng, q=int(rng.integers(3, 7)))
        problem = problem_scaled(problem)
        tau = int(rng.integers(1, 4))
        some = frozenset(k for k in kinds if rng.random() < 0.5) or frozenset(kinds[:1])
        constraints = random_constraints(rng, problem.q, some)
        truth = brute_force(problem, tau, constraints)
        outcome = solver.solve(problem, tau, constraints=constraints, limits=Limits(seconds=60.0))
        check(outcome, truth, problem)
        seen.add(outcome.stop)
        if outcome.incumbent is not None:
            assert constraints.allows(outcome.incumbent, tau)
            fit = refit_moments(problem, outcome.incumbent, constraints.boxes(problem.q))
            assert fit.objective == pytest.approx(outcome.upper)
            lo, hi = constraints.interval(problem.q)
            at = list(outcome.incumbent)
            assert np.all(np.asarray(outcome.beta) >= lo[at]) and np.all(np.asarray(outcome.beta) <= hi[at])
    assert Stop.OPTIMAL in seen


def problem_scaled(problem: SparseProblem) -> SparseProblem:
    """The response in units that make the boxes of `random_constraints` bind."""
    unit = math.sqrt(problem.yy) / 3.0
    return SparseProblem(
        problem.Q, problem.c / unit, problem.yy / unit**2, problem.weight, problem.lam, problem.n, problem.v_mean, 0.0
    )


def test_infeasible_side_constraints_are_reported(solver: Solver) -> None:
    if "force" not in solver.backend.capabilities.formulations[solver.form]:
        problem = random_problem(np.random.default_rng(0), q=4)
        with pytest.raises(BadInput, match="does not support: force"):
            solver.solve(problem, 2, constraints=SideConstraints(forced_in=(0,)))
        return
    problem = random_problem(np.random.default_rng(0), q=5)
    for constraints in (
        SideConstraints(forced_in=(0, 1, 2)),
        SideConstraints(forced_in=(0,), forced_out=(0,)),
        SideConstraints(forced_in=(0,), terms=(Term((0, 1, 2), 3),)),
        SideConstraints(forced_in=(0, 1), at_most=((1, (0, 1, 2)),)),
    ):
        outcome = solver.solve(problem, 2, constraints=constraints)
        assert outcome.stop is Stop.INFEASIBLE
        assert outcome.incumbent is None and outcome.lower == outcome.upper == math.inf


@pytest.mark.parametrize("count", [QUICK, *slow([40])])
def test_the_solver_itself_finds_the_optimum_from_a_poor_start(solver: Solver, count: int) -> None:
    """The first support the contract builds is nearly always best; here the solver is given the empty one."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        problem = random_problem(rng, q=6)
        tau = int(rng.integers(1, 4))
        truth = brute_force(problem, tau)
        task = model_task(problem, tau, FREE, refit_moments(problem, ()), KnownBounds())
        answer = solver.run(task, Limits(seconds=60.0))
        trust = 0.0 if answer.certified else 2e-6 * problem.yy
        assert task.scaled.objective(answer.bound) - trust <= truth + 1e-9 * problem.yy
        best = min([refit_moments(problem, support).objective for support in answer.supports], default=problem.yy)
        assert best <= truth + 3e-6 * problem.yy


@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1e4, 1e8])
def test_tiny_and_huge_gamma(solver: Solver, gamma: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 6))
    problem = problem_of(X / np.linalg.norm(X, axis=0), X @ np.array([2.0, -1.0, 0.5, 0, 0, 0]) + 1.0, gamma)
    for tau in (2, 4):
        outcome = solver.solve(problem, tau, limits=Limits(seconds=60.0))
        check(outcome, brute_force(problem, tau), problem)
        assert outcome.stop is Stop.OPTIMAL


def from_nothing(problem: SparseProblem, tau: int, constraints: SideConstraints) -> Fit:
    """A start that leaves everything to the solver."""
    return refit_moments(problem, (), constraints.boxes(problem.q))


def best_refit(problem: SparseProblem, tau: int) -> float:
    """min f by enumeration, every fit in extended precision."""
    return min(refit_moments(problem, s).objective for s in itertools.combinations(range(problem.q), tau))


@pytest.mark.parametrize("count", [QUICK, *slow([40])])
def test_collinear_columns_under_a_tiny_gamma(solver: Solver, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients may then be 1e4 times their scale or more, where solvers give wrong bounds: none is passed on."""
    monkeypatch.setattr(contract, "feasible_start", from_nothing)
    rng = np.random.default_rng(15)
    for k in range(count):
        q = int(rng.integers(3, 8))
        X = rng.standard_normal((int(rng.integers(5, 25)), q))
        X[:, -1] = X[:, 0] + (10.0 ** rng.uniform(-7, -3) * rng.standard_normal(len(X)) if k % 2 else 0.0)
        X = X - X.mean(axis=0)
        problem = problem_of(X / np.linalg.norm(X, axis=0), rng.standard_normal(len(X)), 10.0 ** rng.uniform(-12, -6))
        tau = int(rng.integers(1, q + 1))
        try:
            outcome = solver.solve(problem, tau, limits=Limits(seconds=10.0))
        except (BadInput, BackendFailed):  # no valid big-M, or a breakdown: said, not hidden
            continue
        truth = best_refit(problem, tau)
        assert outcome.lower <= truth * (1 + 1e-9) and outcome.upper >= truth * (1 - 1e-9)
        if outcome.stop is Stop.OPTIMAL:
            assert outcome.upper <= truth * (1 + 1e-6)


def test_an_answer_far_below_the_scale(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    """R^2 of 1 - 1e-8: a share of ||y||^2 that solvers are trusted to is many times the answer, yet it is found."""
    rng = np.random.default_rng(16)
    for start in (None, from_nothing):
        if start is not None:
            monkeypatch.setattr(contract, "feasible_start", start)
        for _ in range(4):
            X = rng.standard_normal((40, 8))
            X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
            y = X @ np.array([2.0, -1.0, 1.5, 0.001, 0, 0, 0, 0]) + 3e-5 * rng.standard_normal(40)
            problem = problem_of(X, y, 1e-9)
            outcome = solver.solve(problem, 4, limits=Limits(seconds=30.0))
            truth = best_refit(problem, 4)
            assert truth < 1e-7 * problem.yy
            assert outcome.lower <= truth * (1 + 1e-9) and outcome.upper <= truth * (1 + 1e-6)
            assert outcome.stop is Stop.OPTIMAL and outcome.lower >= 0.99 * truth


def test_ties(solver: Solver) -> None:
    """Copies, negated copies and exchangeable columns: any of the tied supports, at the true value."""
    rng = np.random.default_rng(5)
    base = rng.standard_normal((20, 3))
    X = np.column_stack([base, base[:, 0], -base[:, 1]])
    problem = problem_of(X, base @ np.array([1.0, 1.0, 0.2]), 1.0)
    for tau in (1, 2, 3):
        outcome = solver.solve(problem, tau)
        check(outcome, brute_force(problem, tau), problem)
        assert outcome.stop is Stop.OPTIMAL
    flat = SparseProblem(np.eye(6), np.ones(6), 10.0, np.ones(6), 0.5, 20, np.zeros(6), 0.0)
    outcome = solver.solve(flat, 3)
    check(outcome, brute_force(flat, 3), flat)
    assert outcome.stop is Stop.OPTIMAL


def test_weights_and_degenerate_data(solver: Solver) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((25, 5))
    weighted = problem_of(X, rng.standard_normal(25), 0.3, weight=10.0 ** rng.uniform(-3, 3, 5))
    check(solver.solve(weighted, 2), brute_force(weighted, 2), weighted)
    nothing = SparseProblem(np.eye(3), np.zeros(3), 0.0, np.ones(3), 0.5, 9, np.zeros(3), 0.0)
    outcome = solver.solve(nothing, 2)
    assert outcome.stop is Stop.OPTIMAL and outcome.lower == 0.0 and outcome.upper <= 1e-300
    unrelated = SparseProblem(np.eye(3), np.zeros(3), 4.0, np.ones(3), 0.5, 9, np.zeros(3), 0.0)
    outcome = solver.solve(unrelated, 2)
    assert outcome.stop is Stop.OPTIMAL and outcome.upper == pytest.approx(4.0)
    zero = solver.solve(weighted, 0)
    assert zero.incumbent == () and zero.stop is Stop.OPTIMAL and zero.upper == weighted.yy


def test_warm_start_is_respected(solver: Solver) -> None:
    """With no time to search, the answer is the start handed in when that is better than the built-in one."""
    rng = np.random.default_rng(12)
    for _ in range(40):
        problem = random_problem(rng, q=8)
        best = min((refit_moments(problem, s).objective, s) for s in _pairs(8))
        outcome = solver.solve(problem, 2, start=Start(best[1], "brute force"), limits=Limits(seconds=0.0))
        assert outcome.upper == pytest.approx(best[0], rel=1e-12)
        assert outcome.stop in (Stop.TIME, Stop.OPTIMAL)
    if solver.backend.capabilities.formulations[solver.form] >= {"force"}:
        # a start that the side constraints exclude is ignored, not obeyed
        outcome = solver.solve(
            problem, 2, start=Start(best[1], "excluded"),
            constraints=SideConstraints(forced_out=best[1]),
        )  # fmt: skip
        assert not set(outcome.incumbent or ()) & set(best[1])


def _pairs(q: int) -> list[tuple[int, ...]]:
    return [(i, j) for j in range(q) for i in range(j)]


def test_advice_is_used_and_checked(solver: Solver) -> None:
    problem = random_problem(np.random.default_rng(13), q=7)
    truth = brute_force(problem, 3)
    plain = solver.solve(problem, 3)
    advice = KnownBounds(lower=truth * (1 - 1e-9), points=(np.linalg.solve(problem.M, problem.c),))
    best = Start(plain.incumbent or (), "plain run")
    outcome = solver.solve(problem, 3, advice=advice, start=best)
    check(outcome, truth, problem)
    assert outcome.lower >= truth * (1 - 2e-9)


def test_bad_requests_are_one_line(solver: Solver) -> None:
    problem = random_problem(np.random.default_rng(14), q=4)
    with pytest.raises(BadInput, match="is out of range; give a number from 0 to 4, the number of columns"):
        solver.solve(problem, 5)
    with pytest.raises(BadInput, match="no formulation 'nonsense'"):
        solver.backend.solve(problem, 2, formulation="nonsense")
