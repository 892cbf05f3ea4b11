"""Small problems of one fold, for every test of this folder."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import ModelTask, feasible_start, model_task
from sparsecv_mio.problem.constraints import FREE, SideConstraints
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


def task_of(seed: int, gamma: float = 0.3, tau: int = 3, constraints: SideConstraints = FREE, q: int = 6) -> ModelTask:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, q))
    y = rng.standard_normal(25)
    problem = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), gamma / 2, 25, np.zeros(q), 0.0)
    start = feasible_start(problem, tau, constraints)
    assert start is not None
    return model_task(problem, tau, constraints, start, KnownBounds())
