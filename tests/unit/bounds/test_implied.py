"""What lower bounds of f at some pairs say of the others, against all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsecv_mio.bounds.implied import implied_lower_bounds


def optima(X: np.ndarray, y: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """(G, p + 1): f of every pair by trying every support."""
    f = np.full((len(gammas), X.shape[1] + 1), float(y @ y))
    for g, gamma in enumerate(gammas):
        for tau in range(1, X.shape[1] + 1):
            values = []
            for support in combinations(range(X.shape[1]), tau):
                A = np.vstack([X[:, support], np.sqrt(gamma / 2.0) * np.eye(tau)])
                b = np.append(y, np.zeros(tau))
                values.append(float(((b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) ** 2).sum()))
            f[g, tau] = min(values)
    return f


def test_no_bound_exceeds_an_optimum_and_none_falls() -> None:
    sharper = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 15)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, p))
        y = X[:, 0] + rng.uniform(0.0, 2.0) * rng.normal(size=n)
        gammas = np.sort(10.0 ** rng.uniform(-3.0, 3.0, size=int(rng.integers(1, 7))))
        f = optima(X, y, gammas)
        lower = f * rng.choice([0.0, 0.5, 0.9, 1.0], size=f.shape)
        found = implied_lower_bounds(gammas, lower)
        assert np.all(found >= lower) and np.all(found <= f * (1.0 + 1e-12))
        # nothing more follows from what was found
        np.testing.assert_allclose(implied_lower_bounds(gammas, found), found, rtol=1e-9)
        sharper += int((found > lower * (1.0 + 1e-9)).sum())
    assert sharper > 200


def test_bounds_far_apart_keep_their_digits() -> None:
    gammas = np.array([1e-300, 1e-3, 1.0, 1e300])
    lower = np.array([[1e-200], [0.0], [3.0], [4.0]])
    found = implied_lower_bounds(gammas, lower)
    assert np.all(np.isfinite(found)) and np.all(found >= lower) and np.all(np.diff(found[:, 0]) >= 0.0)
