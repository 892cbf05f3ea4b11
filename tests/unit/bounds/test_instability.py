"""Bounds of the change of folds whose best model is not known, against every model that may be optimal there."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.instability import OpenFolds, residual_distances


def ridge(V: np.ndarray, r: np.ndarray, lam: float, support: tuple[int, ...]) -> tuple[np.ndarray, float]:
    part = V[:, support]
    beta = np.linalg.solve(part.T @ part + lam * np.eye(len(support)), part.T @ r)
    rest = r - part @ beta
    return rest, float(rest @ rest + lam * beta @ beta)


@pytest.mark.parametrize("seed", range(40))
def test_every_model_at_least_as_good_is_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, q, tau, held = 14, 5, int(rng.integers(1, 5)), int(rng.integers(1, 4))
    V, lam = rng.normal(size=(n, q)) / np.sqrt(n), float(10.0 ** rng.uniform(-3, 2))
    r = 2.0 * V @ rng.normal(size=q) + rng.normal(size=n) * 0.3
    train, left = slice(held, n), slice(0, held)
    full = ridge(V, r, lam, tuple(sorted(rng.choice(q, tau, replace=False).tolist())))[0]
    fits = {}
    for support in combinations(range(q), tau):
        part = V[train][:, support]
        beta = np.linalg.solve(part.T @ part + lam * np.eye(tau), part.T @ r[train])
        fits[support] = r - V[:, support] @ beta, ridge(V[train], r[train], lam, support)[1]
    value = sorted(one for _, one in fits.values())[int(rng.integers(0, len(fits)))] * (1.0 + 1e-9)
    good = [residual for residual, one in fits.values() if one <= value]
    errors = [float(residual[left] @ residual[left]) for residual in good]
    scores = (V[train].T @ full[train]) ** 2 / lam
    distance = residual_distances(full[train, None], r[train, None], scores[:, None], tau, np.array([value]))
    assert all(np.linalg.norm(residual[train] - full[train]) <= distance[0] * (1.0 + 1e-12) for residual in good)
    one = np.ones(1)
    for known in (distance, np.inf * one):
        folds = OpenFolds(
            one * (full[train] @ full[train]), one * (full[left] @ full[left]), one * value, one * min(errors),
            one * max(errors), np.array([held == 1]), np.array([True]), known,
        )  # fmt: skip
        low, high = folds.changes()
        changes = [float(np.abs(residual**2 - full**2).sum()) for residual in good]
        assert low[0] <= min(changes) * (1.0 + 1e-9) + 1e-12 and max(changes) <= high[0] * (1.0 + 1e-9) + 1e-12


def test_nothing_is_known_of_a_fold_that_does_not_score_all_it_leaves_out() -> None:
    one, no = np.ones(1), np.zeros(1, dtype=bool)
    assert OpenFolds(one, one, one, one, one, no, no, one).changes()[1][0] == np.inf
