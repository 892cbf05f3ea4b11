"""The ridge ball of a fold: every fit up to the level inside, from rows, from moments and from the fit on all rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.ridge_ball import Centre, RidgeBall, ball_of_left_out
from sparsecv_mio.problem.problem import SparseProblem

UNIT = 1e-14


def problem_of(X: np.ndarray, y: np.ndarray, lam: float) -> SparseProblem:
    q = X.shape[1]
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), lam, len(y), np.zeros(q), 0.0)


def drawn(seed: int, m: int, q: int = 5) -> tuple[SparseProblem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, q)), rng.standard_normal(20)
    X[:, 1] += 2.0 * X[:, 0]
    return problem_of(X, y, float(rng.choice([0.01, 1.0]))), rng.standard_normal((m, q)), rng.standard_normal(m)


def fits(problem: SparseProblem) -> list[tuple[float, np.ndarray]]:
    """f and coefficients of every support."""
    found = []
    for size in range(problem.q + 1):
        for support in combinations(range(problem.q), size):
            held, b = list(support), np.zeros(problem.q)
            b[held] = np.linalg.solve(problem.M[np.ix_(held, held)], problem.c[held])
            found.append((float(problem.yy - problem.c @ b), b))
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("m", [1, 3, 40])
def test_every_fit_up_to_the_level_is_inside(seed: int, m: int) -> None:
    problem, X, u = drawn(seed, m)
    by_rows = RidgeBall.of_rows(problem, X, u, UNIT)
    by_moments = RidgeBall.of_moments(problem, X.T @ X, X.T @ u, float(u @ u), UNIT)
    assert by_rows is not None and by_moments is not None
    every = fits(problem)
    for level in np.quantile([value for value, _ in every], [0.0, 0.3, 1.0]):
        one, two = by_rows.held_out(float(level)), by_moments.held_out(float(level))
        for value, b in every:
            if value <= level:
                error = float(np.sum((u - X @ b) ** 2))
                assert one.lower <= error * (1 + 1e-9) and error <= one.upper * (1 + 1e-9)
                assert two.lower <= error * (1 + 1e-6) and error <= two.upper * (1 + 1e-6)
        if m <= 2 * problem.q:  # of more rows the sum of the leverages stands for the largest eigenvalue
            assert one.upper - one.lower <= (two.upper - two.lower) * (1.0 + 1e-3) + 1e-6


def test_at_the_ridge_fit_the_ball_is_a_point() -> None:
    problem, X, u = drawn(0, 3)
    ball, b = RidgeBall.of_rows(problem, X, u, UNIT), np.linalg.solve(problem.M, problem.c)
    assert ball is not None
    found = ball.held_out(float(problem.yy - problem.c @ b))
    assert float(np.sum((u - X @ b) ** 2)) in found and found.upper - found.lower < 1e-4
    unknown = ball.held_out(np.inf)
    assert (unknown.lower, unknown.upper) == (0.0, np.inf)


def test_moments_without_digits_say_nothing() -> None:
    X = np.ones((9, 2))
    problem = problem_of(X, np.arange(9.0), 1e-18)
    assert RidgeBall.of_rows(problem, X, np.ones(9), UNIT) is None
    assert RidgeBall.of_moments(problem, X.T @ X, X.T @ np.ones(9), 9.0, UNIT) is None
    problem, *_ = drawn(1, 1)
    assert Centre.of(problem, UNIT) is not None and Centre.of(problem, 1.0) is None


@pytest.mark.parametrize("seed", range(12))
def test_ball_of_a_fold_from_the_fit_on_all_rows(seed: int) -> None:
    """No fit on the fold's training rows is needed: its ridge ball, looser, from residuals and leverages."""
    rng, q = np.random.default_rng(seed), 4
    X, y, lam = rng.standard_normal((30, q)), rng.standard_normal(30), 0.5
    rows = np.arange(1 + seed % 3)
    rest = np.setdiff1d(np.arange(30), rows)
    whole, part = problem_of(X, y, lam), problem_of(X[rest], y[rest], lam)
    b = np.linalg.solve(whole.M, whole.c)
    e, H = (y - X @ b)[rows], X[rows] @ np.linalg.solve(whole.M, X[rows].T)
    leverage = float(np.linalg.eigvalsh(H)[-1])
    decrease = float(e @ e) / (1.0 - leverage)
    every = fits(part)
    for level in np.quantile([value for value, _ in every], [0.2, 1.0]):
        room = level - (whole.yy - whole.c @ b - decrease)
        ceiling = ball_of_left_out(np.array([room]), np.array([np.linalg.norm(e)]), np.array([leverage]))[0]
        inside = [float(np.sum((y[rows] - X[rows] @ b) ** 2)) for value, b in every if value <= level]
        assert max(inside) <= ceiling * (1.0 + 1e-9)
