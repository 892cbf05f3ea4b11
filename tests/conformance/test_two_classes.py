"""Every backend that takes logistic loss against enumeration, whatever ends its work."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conformance_suite import NAMES, Polled, Solver, _meets, make_solver_fixture, random_constraints, usable
from logistic_truth import drawn, enumerated, harder
from lowered_points import objective, violation
from slow import slow

from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.contract import TRUST
from sparsecv_mio.formulation.models import FactorModel, PiecewiseModel, lower_model
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Start, Stop
from sparsecv_mio.formulation.task import ModelTask, feasible_start, fit_glm, loss_task
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.targets import Loss

FORMS = [(name, form) for name in NAMES for form in get_backend(name).capabilities.logistic]
MOST = 3  # columns
solver = make_solver_fixture(FORMS)


@cache
def values(seed: int, hard: bool = False) -> tuple[GlmProblem, dict[tuple[int, ...], float]]:
    """A hostile problem and the least objective of every support."""
    problem = (harder if hard else drawn)(seed, MOST)
    return problem, {S: float(truth.value) for S, truth in enumerated(problem).items()}


def check(outcome: Outcome, truth: float, scale: float, gap: float = 1e-7) -> None:
    rounding = 1e-9 * truth + 1e-12 * scale
    assert outcome.lower <= truth + rounding and outcome.upper >= truth - rounding
    assert type(outcome.lower) is float and type(outcome.upper) is float
    if outcome.stop is Stop.OPTIMAL:
        assert outcome.upper - outcome.lower <= gap * outcome.upper + outcome.allowance
        assert outcome.upper <= truth * (1.0 + gap) + outcome.allowance + rounding


@pytest.mark.parametrize(
    ("seeds", "hard"), [(range(8), False), *slow((range(1000, 1100), hard) for hard in (False, True))]
)
def test_hostile_problems(solver: Solver, seeds: range, hard: bool) -> None:
    optimal = 0
    for seed in seeds:
        problem, least = values(seed, hard)
        tau = seed % problem.p + (seed % 3 > 0)
        outcome = solver.solve(problem, min(tau, problem.p), limits=Limits(seconds=60.0))
        truth = min(value for S, value in least.items() if len(S) <= tau)
        check(outcome, truth, least[()])
        assert least[outcome.incumbent or ()] == pytest.approx(outcome.upper, rel=1e-9)
        assert outcome.formulation == solver.form
        optimal += outcome.stop is Stop.OPTIMAL
    assert optimal >= 0.7 * len(seeds), f"{optimal} of {len(seeds)} proved"  # a tiny gamma leaves bounds untrusted


def task_of(problem: GlmProblem, tau: int, start: tuple[int, ...] | None = None) -> ModelTask:
    inner = problem.centre_columns()[0]
    first = feasible_start(inner, tau, FREE) if start is None else fit_glm(inner, start)
    assert first is not None
    return loss_task(inner, tau, FREE, first, KnownBounds())


@pytest.mark.parametrize("seeds", [[1, 7, 17], *slow([[2, 10]])])
def test_the_solver_itself_finds_the_optimum_and_its_bound_is_within_the_tolerance(
    solver: Solver, seeds: list[int]
) -> None:
    """From the empty support, and with nothing taken off its bound."""
    for seed in seeds:
        problem, least = values(seed)
        problem = replace(problem, gamma=max(problem.gamma, 0.05))
        least = {S: float(truth.value) for S, truth in enumerated(problem).items()}
        tau = max(problem.p - 1, 1)
        task = task_of(problem, tau, ())
        answer = solver.run(task, Limits(seconds=60.0))
        truth, scale = min(value for S, value in least.items() if len(S) <= tau), least[()]
        assert task.scaled.objective(answer.bound) <= truth + 0.25 * TRUST * scale
        assert min([least[S] for S in answer.supports], default=scale) <= truth + 3e-6 * scale


def test_side_constraints(solver: Solver) -> None:
    rng, stops = np.random.default_rng(0), set()
    kinds = solver.backend.capabilities.logistic[solver.form]
    for seed in (2, 3, 9, 10, 18, 26):
        problem, least = values(seed)
        constraints = random_constraints(rng, problem.p, kinds)
        tau = int(rng.integers(1, problem.p + 1))
        allowed = [value for S, value in least.items() if len(S) <= tau and _meets(S, constraints)]
        outcome = solver.solve(problem, tau, constraints=constraints, limits=Limits(seconds=60.0))
        stops.add(outcome.stop)
        if not allowed:
            assert outcome.stop is Stop.INFEASIBLE and outcome.incumbent is None
            continue
        check(outcome, min(allowed), least[()])
        assert constraints.allows(outcome.incumbent or (), tau)
    assert Stop.OPTIMAL in stops
    words = f"backend {solver.backend.name}, formulation {solver.form}, with loss logistic, does not support: box, sign"
    with pytest.raises(BadInput, match=words):
        solver.solve(values(2)[0], 1, constraints=SideConstraints(box=((0, 0.0, 1.0),)))


def noise(n: int, p: int) -> GlmProblem:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return GlmProblem(rng.standard_normal((n, p)), y, np.ones(n), np.ones(p), 1.0)


def test_limits_leave_bounds_that_hold(solver: Solver) -> None:
    problem = noise(120, 90)  # no solver ends soon
    inner = problem.centre_columns()[0]
    known = feasible_start(inner, 8, FREE)
    assert known is not None
    for limits, stops in (
        (Limits(seconds=0.1), {Stop.TIME}),
        (Limits(seconds=0.0), {Stop.TIME}),
        (Limits(nodes=1, seconds=0.5), {Stop.NODES, Stop.TIME}),
    ):
        outcome = solver.solve(problem, 8, limits=limits, start=Start(known.support, "by hand"))
        assert outcome.stop in stops
        assert 0.0 <= outcome.lower < outcome.upper <= known.objective * (1.0 + 1e-12)
        assert outcome.upper == pytest.approx(fit_glm(inner, outcome.incumbent or ()).objective, rel=1e-12)


def test_cancel(solver: Solver) -> None:
    outcome = solver.solve(noise(30, 20), 6, limits=Limits(cancel=Polled(), seconds=60.0))
    assert outcome.stop is Stop.INTERRUPTED
    assert 0.0 <= outcome.lower < outcome.upper < math.inf


def test_a_gap_that_was_asked_for(solver: Solver) -> None:
    problem, least = values(10)
    outcome = solver.solve(problem, 1, limits=Limits(gap=0.3))
    assert outcome.stop is Stop.OPTIMAL
    check(outcome, min(value for S, value in least.items() if len(S) <= 1), least[()], 0.3)


def test_coefficients_are_those_of_the_columns_as_given() -> None:
    """Columns far from 0, in any units: a solver sees others."""
    problem, _ = values(14)
    shifted = replace(problem, X=problem.X * 1e3 + 50.0, weight=problem.weight * 1e6)
    one, other = (get_backend("native").solve(p, 1) for p in (problem, shifted))
    assert one.upper == pytest.approx(other.upper, rel=1e-8) and one.incumbent == other.incumbent
    assert np.array(one.beta) == pytest.approx(np.array(other.beta) * 1e3, rel=1e-6)


def test_who_does_not_take_it_says_so() -> None:
    class Squares(type(get_backend("highs"))):  # type: ignore[misc]
        name = "squares"
        capabilities = replace(get_backend("highs").capabilities, logistic={})

    assert Squares.capabilities.losses == (Loss.SQUARED,)
    with pytest.raises(
        BadInput, match="^backend squares does not support loss logistic; `sparsecv backends` lists the"
    ):
        Squares().solve(values(2)[0], 1)


def test_gurobi_past_its_size_limit() -> None:
    backend = usable("gurobi")
    if "size-limited" not in backend.available().licence:
        pytest.skip("a full licence has no size limit")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1200) < 0.5, 1.0, -1.0)
    problem = GlmProblem(rng.standard_normal((1200, 4)), y, np.ones(1200), np.ones(4), 1.0)
    with pytest.raises(BackendUnavailable, match="outer with 4 columns exceeds the size limit of this licence$"):
        backend.solve(problem, 2)


# -- the models -------------------------------------------------------------------------------------------------------


def test_the_model_says_the_objective_of_a_fit_and_nothing_below_it() -> None:
    """At the fit of every support: feasible where it is as good as the start, its rows of losses tight."""
    for seed in (2, 7, 9, 10):
        problem, least = values(seed)
        task = task_of(problem, problem.p, ())
        model = FactorModel(task)
        arrays = lower_model(model)
        assert len(arrays.losses) == len(task.problem.y)  # type: ignore[union-attr]
        for S, value in least.items():
            z = np.isin(np.arange(problem.p), S) * 1.0
            u, phi = task.scaled.fit_support(z)
            x = arrays.vector(model.point(task, u, z))
            assert task.scaled.objective(objective(arrays, x)) == pytest.approx(value, rel=1e-9)
            assert task.scaled.objective(phi) == pytest.approx(value, rel=1e-9)
            assert violation(arrays, x) <= 1e-9 * (1.0 + np.abs(x).max())
            r, s = x[np.array(arrays.losses).T]
            assert np.exp(-s) + np.exp(-r - s) == pytest.approx(1.0, abs=1e-12)


def test_mosek_sees_the_same_objective_and_a_loss_that_is_too_small() -> None:
    """Built without a licence, in exponential cones, and asked about points."""
    mosek = pytest.importorskip("mosek")
    from lowered_points import evaluate

    from sparsecv_mio.formulation.backends.mosek import build, whole_point

    with mosek.Env() as env:
        for seed in (2, 7, 10):
            problem, least = values(seed)
            task = task_of(problem, problem.p, ())
            model = FactorModel(task)
            arrays = lower_model(model)
            with build(env, arrays) as solver:
                for S, value in least.items():
                    z = np.isin(np.arange(problem.p), S) * 1.0
                    x = arrays.vector(model.point(task, task.scaled.fit_support(z)[0], z))
                    found, wrong = evaluate(solver, whole_point(arrays, x))
                    assert task.scaled.objective(found) == pytest.approx(value, rel=1e-9)
                    assert wrong <= 1e-9 * (1.0 + np.abs(x).max())
                short = x.copy()
                short[arrays.losses[0][1]] *= 0.5
                assert evaluate(solver, whole_point(arrays, short))[1] > 1e-4  # the sum of the exponentials
                point = whole_point(arrays, x)
                point[arrays.size] *= 0.5
                assert evaluate(solver, point)[1] > 1e-4  # the cone of one


def test_mosek_is_handed_everything_up_to_its_licence() -> None:
    pytest.importorskip("mosek")
    backend = get_backend("mosek")
    if backend.available().usable:
        pytest.skip("mosek has a licence here")
    with pytest.raises(BackendUnavailable, match="backend mosek has no licence"):
        backend._run(task_of(values(10)[0], 1, ()), "exponential", Limits(seconds=5.0))


def test_a_linear_model_is_below_by_no_more_than_it_says() -> None:
    """With so many tangents, at the fit of every support: s may be as low as the greatest tangent."""
    for seed in (2, 7, 10):
        problem, least = values(seed)
        problem = replace(problem, gamma=max(problem.gamma, 0.05))
        task = task_of(problem, problem.p)
        model = PiecewiseModel(task, None, 12)
        arrays = lower_model(model)
        for S in least:
            z = np.isin(np.arange(problem.p), S) * 1.0
            u, phi = task.scaled.fit_support(z)
            if phi > task.scaled.value(task.start.objective):
                continue
            x = arrays.vector(model.point(task, u, z))
            assert violation(arrays, x) <= 1e-7
            low, high = (np.array([end(r) for r in model.r]) for end in (lambda r: r.lb, lambda r: r.ub))
            at = np.linspace(low, high, 12)
            value, slope = task.scaled.losses_and_slopes(at)
            residual = task.scaled.factor @ u
            lost = task.scaled.losses_and_slopes(residual)[0] - (value + slope * (residual - at)).max(axis=0)
            assert lost.min() >= -1e-12 and task.scaled.row_weights @ lost <= model.missed
