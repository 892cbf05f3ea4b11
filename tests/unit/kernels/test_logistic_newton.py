"""Fits of logistic regression and their proofs against numpy, and against long double."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import drawn, least, mask_of

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.kernels.logistic_newton import fit_and_prove, newton, proved, refit, worst_ratio
from sparsecv_mio.problem import logistic
from sparsecv_mio.problem.logistic import LogisticProblem

SEEDS = range(300, 332)


def plain_newton(problem: LogisticProblem, theta: FloatArray) -> tuple[FloatArray, float]:
    """Damped Newton in numpy, on all columns."""
    Z, y, v, penalty = problem.rows, problem.y, problem.v, problem.penalty
    value = problem.objective(theta)
    for _ in range(200):
        share = 1.0 / (1.0 + np.exp(np.clip(y * (Z @ theta), -700, 700)))
        gradient = 2.0 * penalty * theta - Z.T @ (v * y * share)
        H = (Z * (v * share * (1.0 - share))[:, None]).T @ Z + np.diag(2.0 * penalty)
        step = -np.linalg.solve(H, gradient)
        size = 1.0
        while size > 1e-12 and not problem.objective(theta + size * step) < value:
            size /= 2.0
        if size <= 1e-12:
            break
        theta = theta + size * step
        value = problem.objective(theta)
    return theta, value


def parts(problem: LogisticProblem) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    return np.ascontiguousarray(problem.X), problem.y, problem.v, problem.ridge


@pytest.mark.parametrize("seed", SEEDS)
def test_fits_are_those_of_numpy(seed: int) -> None:
    problem = drawn(seed)
    if seed % 8 in (5, 6):  # so badly scaled that numpy's own solve is no judge; long double is, below
        return
    columns, theta = np.arange(problem.p), problem.start()
    value = newton(*parts(problem), columns, theta, problem.first)
    twin, best = plain_newton(problem, problem.start())
    assert value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert problem.rows @ theta == pytest.approx(problem.rows @ twin, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_value_lies_between_its_bounds_from_any_point(seed: int) -> None:
    problem = drawn(seed)
    columns, rng = np.arange(problem.p), np.random.default_rng(seed)
    value, off = least(problem)
    theta = problem.start()
    upper, lower, radius = fit_and_prove(*parts(problem), columns, theta, problem.first, problem.start()[0])
    assert lower <= value and value - off <= upper
    if seed % 8 in (0, 2, 3, 4, 7):
        assert radius < np.inf and upper - lower <= 1e-10 * (upper + 1.0)
    for far in (1e-8, 1e-4, 1e-2, 1.0):
        point = theta + far * rng.standard_normal(len(theta)) * np.maximum(np.abs(theta), 1e-3)
        upper, lower, _ = proved(*parts(problem), columns, point, problem.first)
        assert lower <= value and value - off <= upper


def test_many_supports_are_fitted_as_one_by_one() -> None:
    problem = drawn(307)
    masks = np.array([mask_of((j,), problem.p) for j in range(problem.p)])
    lower, upper, origin = np.empty(len(masks)), np.empty(len(masks)), problem.start()[0]
    refit(*parts(problem), (masks, problem.start()), problem.first, origin, (lower, upper))
    for j in range(problem.p):
        theta = problem.only(np.array([j])).start()
        alone = fit_and_prove(*parts(problem), np.array([j]), theta, problem.first, origin)
        assert (upper[j], lower[j]) == alone[:2]


def test_what_curvature_keeps_is_that_of_numpy_and_below_the_exact_ratio() -> None:
    for t in np.concatenate([np.logspace(-12, 3, 400), [0.0]]):
        exact = float(2 * (np.expm1(-np.longdouble(t)) + np.longdouble(t)) / np.longdouble(t) ** 2) if t > 1e-3 else 1.0
        assert worst_ratio(t) == pytest.approx(float(logistic.worst_ratio(np.array([t]))[0]), rel=1e-15)
        assert worst_ratio(t) <= exact
