"""Held-out errors bounded by rows with more weight, against every support within the level, by plain linear algebra."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.more_weight import WantedPairs, held_out_lower_bounds
from sparsecv_mio.problem.problem import SparseProblem

GAMMAS = np.array([1e-4, 3e-3, 0.1, 4.0])


def drawn(seed: int) -> tuple[SparseProblem, np.ndarray, np.ndarray]:
    """Training rows about their means, some of their columns near copies; rows left out about the same means."""
    rng = np.random.default_rng(seed)
    q, n, held = int(rng.integers(3, 8)), int(rng.integers(9, 30)), int(rng.integers(1, 9))
    X = rng.standard_normal((n + held, q))
    X[:, 1] = X[:, 0] + rng.choice([0.01, 0.5]) * X[:, 1]
    if seed % 5 == 0:
        X[:n, 2] = 3.0  # constant where the fold trains
    y = X @ rng.standard_normal(q) + rng.choice([0.1, 2.0]) * rng.standard_normal(n + held)
    mean, level = X[:n].mean(axis=0), float(y[:n].mean())
    V, r = X - mean, y - level
    forced = np.array([1] if seed % 3 == 0 else [], dtype=np.int64)
    problem = SparseProblem(
        V[:n].T @ V[:n], V[:n].T @ r[:n], float(r[:n] @ r[:n]), rng.uniform(0.5, 2.0, q), 1.0, n, mean, level,
        full_length=float(n), forced=forced,
    )  # fmt: skip
    return problem, V[n:], r[n:]


@pytest.mark.parametrize("seed", range(150))
def test_no_support_within_the_level_has_a_smaller_error(seed: int) -> None:
    problem, X, u = drawn(seed)
    rng, q = np.random.default_rng(seed), problem.q
    taus = np.arange(1, q + 1)
    values, errors = np.empty((len(GAMMAS), q)), np.full((len(GAMMAS), q), np.inf)
    fits = {}
    for g, gamma in enumerate(GAMMAS):
        M = replace(problem, lam=gamma / 2.0, kept={}).M
        for size in range(1, q + 1):
            for support in map(list, combinations(range(q), size)):
                if set(problem.forced.tolist()) <= set(support):
                    b = np.linalg.solve(M[np.ix_(support, support)], problem.c[support])
                    h = float(((u - X[:, support] @ b) ** 2).sum())
                    fits[g, tuple(support)] = problem.yy - float(problem.c[support] @ b), h
        for t, tau in enumerate(taus):
            mine = [fit for (at, s), fit in fits.items() if at == g and len(s) <= tau]
            level = min(f for f, _ in mine) * (1.0 + 1e-9) + 0.1 * float(rng.choice([0.0, rng.random()])) * problem.yy
            values[g, t], errors[g, t] = level, min(h for f, h in mine if f <= level)
    values[rng.random(values.shape) < 0.1] = np.inf
    wanted = rng.random(values.shape) < 0.8
    held_out = X.T @ X, X.T @ u, float(u @ u)
    found = held_out_lower_bounds(problem, held_out, WantedPairs(GAMMAS, taus, wanted), (values, errors), lambda: False)
    assert found.shape == values.shape and np.all(found >= 0.0) and not found[np.isinf(values)].any()
    assert np.all(found <= errors * (1.0 + 1e-9) + 1e-12 * problem.yy)


def test_they_say_something_and_end_when_told() -> None:
    problem, X, u = drawn(7)
    b = np.linalg.solve(problem.with_gamma(0.1).M, problem.c)
    value, error = problem.yy - float(problem.c @ b), float(((u - X @ b) ** 2).sum())
    held_out = X.T @ X, X.T @ u, float(u @ u)
    grid = WantedPairs(np.array([0.1]), np.array([2]), np.ones((1, 1), dtype=bool))
    known = np.full((1, 1), value), np.full((1, 1), error)  # of the ridge fit of all columns: no support is better
    assert held_out_lower_bounds(problem, held_out, grid, known, lambda: False)[0, 0] > 0.3 * error
    assert held_out_lower_bounds(problem, held_out, grid, known, lambda: True)[0, 0] == 0.0
