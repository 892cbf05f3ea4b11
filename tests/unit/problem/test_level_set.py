"""The ball around a ridge fit that need not be exact, against random points of the level set."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem.level_set import level_set_radius


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("error", [0.0, 1e-3, 0.5])
def test_the_level_set_lies_in_the_ball(seed: int, error: float) -> None:
    rng, q = np.random.default_rng(seed), 4
    A = rng.standard_normal((9, q))
    M, c = A.T @ A + 0.1 * np.eye(q), rng.standard_normal(q)
    exact = np.linalg.solve(M, c)
    centre = exact + error * rng.standard_normal(q)

    def f(b: np.ndarray) -> float:
        return float(b @ M @ b - 2.0 * c @ b)

    level = f(exact) + rng.uniform(0.0, 2.0)
    g = c - M @ centre
    radius = level_set_radius(level - f(centre), float(np.sqrt(g @ np.linalg.solve(M, g))))
    half = np.linalg.inv(np.linalg.cholesky(M)).T
    steps = rng.standard_normal((4000, q))
    steps /= np.linalg.norm(steps, axis=1)[:, None]
    edge = exact + np.sqrt(level - f(exact)) * steps @ half.T  # the boundary of the level set
    distance = np.sqrt(np.einsum("ij,jk,ik->i", edge - centre, M, edge - centre))
    assert np.all(distance <= radius * (1.0 + 1e-9))
    assert distance.max() >= 0.9 * radius if error == 0.0 else distance.max() >= 0.5 * radius
