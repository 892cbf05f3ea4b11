"""Elimination before a solver runs, and the gap of an outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.backends.contract import find_nonzero_columns, reduce_task
from sparsecv_mio.formulation.outcome import KnownBounds, Outcome, Stop
from sparsecv_mio.formulation.task import ModelTask, feasible_start, model_task
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem

from .problems import problem_of as problem_of_from_problems


def test_feasible_start_meets_the_constraints_or_proves_there_is_none() -> None:
    rng = np.random.default_rng(6)
    found = {True: 0, False: 0}
    for _ in range(150):
        problem = problem_of_from_problems(rng, 20, 6, 0.5)
        pick = [tuple(int(j) for j in rng.permutation(6)[: int(rng.integers(1, 4))]) for _ in range(4)]
        whole, most = Term(pick[2], len(pick[2])), (int(rng.integers(0, 2)), pick[3])
        constraints = SideConstraints(pick[0][:1], pick[1][:2], (whole,), (most,))
        tau = int(rng.integers(0, 5))
        exists = any(constraints.allows(s, tau) for k in range(tau + 1) for s in itertools.combinations(range(6), k))
        fit = feasible_start(problem, tau, constraints)
        assert (fit is not None) == exists
        found[exists] += 1
        if fit is not None:
            assert constraints.allows(fit.support, tau)
    assert min(found.values()) > 10


def test_start_where_columns_are_collinear_to_rounding() -> None:
    """Large offsets, no intercept, signs, a group limit: matrices that are singular except for rounding."""
    constraints = SideConstraints(at_most=((1, (0, 1, 3)),), box=((1, 0.0, np.inf), (3, 0.0, np.inf)))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = 1e8 * rng.uniform(-1.0, 1.0, 4) + rng.normal(size=(8, 4))
        problem = full_problem(standardize(Dataset.from_arrays(X, rng.normal(size=8)), "none", "none"), 1.0)
        fit = feasible_start(problem, 2, constraints)
        assert fit is not None and constraints.allows(fit.support, 2)
        assert np.all(np.isfinite(fit.beta)) and fit.objective <= problem.yy


def problem_of(rng: np.random.Generator, noise: float, q: int = 6, gamma: float = 1e-3) -> SparseProblem:
    X = rng.standard_normal((40, q)) + rng.standard_normal((40, 1))
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = X[:, 0] - 2.0 * X[:, 1] + 0.01 * X[:, 2] + noise * rng.standard_normal(40)
    y = y - y.mean()
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), gamma / 2.0, 40, np.zeros(q), 0.0)


def task_of(problem: SparseProblem, constraints: SideConstraints = FREE, tau: int = 3) -> ModelTask:
    supports = [s for s in itertools.combinations(range(problem.q), tau) if constraints.allows(s, tau)]
    box = constraints.boxes(problem.q)
    start = min((refit_moments(problem, s, box) for s in supports), key=lambda fit: fit.objective)
    return model_task(problem, tau, constraints, start, KnownBounds())


def test_the_reduced_problem_is_the_same_problem() -> None:
    rng = np.random.default_rng(0)
    reduced = 0
    for k in range(30):
        task = task_of(problem_of(rng, 10.0 ** -(k % 5)))
        part = reduce_task(task, KnownBounds())
        reduced += bool(len(part.choice.forced))
        assert sorted((*part.choice.forced, *part.choice.others)) == list(range(task.q))
        assert part.make_support(part.task.start.support) == task.start.support
        assert part.task.tau == task.tau - len(part.choice.forced)
        for size in range(part.task.tau + 1):
            for support in itertools.combinations(range(part.task.q), size):
                here = refit_moments(part.task.problem, support).objective
                there = refit_moments(task.problem, part.make_support(support)).objective
                assert here == pytest.approx(there, rel=1e-9, abs=1e-13 * task.problem.yy)
    assert reduced > 15


def test_columns_proven_in_are_in_everything_as_good_as_the_start() -> None:
    rng = np.random.default_rng(1)
    for k in range(30):
        task = task_of(problem_of(rng, 10.0 ** -(k % 4)))
        inside = set(np.flatnonzero(find_nonzero_columns(task)).tolist())
        for support in itertools.combinations(range(task.q), 3):
            if refit_moments(task.problem, support).objective <= task.start.objective:
                assert inside <= set(support)


def test_side_constraints_carry_over() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        pick = [tuple(int(j) for j in rng.permutation(6)[: int(rng.integers(1, 4))]) for _ in range(3)]
        whole, most = Term(pick[1], len(pick[1])), (int(rng.integers(1, 3)), pick[2])
        constraints = SideConstraints(pick[0][:1], (), (whole,), (most,))
        if not any(constraints.allows(s, 3) for s in itertools.combinations(range(6), 3)):
            continue
        task = task_of(problem_of(rng, 0.1), constraints)
        part = reduce_task(task, KnownBounds())
        assert set(constraints.forced_in) <= set(part.choice.forced.tolist())
        for size in range(part.task.tau + 1):
            for support in itertools.combinations(range(part.task.q), size):
                inner = part.task.constraints.allows(support, part.task.tau)
                assert inner == constraints.allows(part.make_support(support), 3)


def test_boxed_and_collinear_columns_stay() -> None:
    problem = problem_of(np.random.default_rng(4), 1e-6)
    boxed = task_of(problem, SideConstraints(box=((0, -9.0, 9.0),)))
    assert 0 not in reduce_task(boxed, KnownBounds()).choice.forced
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 4))
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
    y = X @ np.array([1.0, 3.0, 1.0, 0.0])
    near = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(4), 1e-12, 30, np.zeros(4), 0.0)
    held = model_task(near, 3, SideConstraints(forced_in=(0, 1)), refit_moments(near, (0, 1, 2)), KnownBounds())
    assert len(reduce_task(held, KnownBounds()).choice.forced) == 0


def test_outcome_gap() -> None:
    assert Outcome(Stop.TIME, None).gap == math.inf
    assert Outcome(Stop.OPTIMAL, (0,), 0.0, 0.0).gap == 0.0
    assert Outcome(Stop.OPTIMAL, (0,), 0.9, 1.0).gap == pytest.approx(0.1)
