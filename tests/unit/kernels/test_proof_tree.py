"""The leaves of a proof tree, against all supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.kernels.proof_tree import ENDED, LISTED, SHORT, prove


def problem(seed: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * q, q)) + rng.normal(size=(2 * q, 1))
    y = X[:, 0] + rng.normal(size=2 * q)
    return X.T @ X, X.T @ y, rng.uniform(0.1, 5.0, size=q), float(y @ y)


def value(Q: np.ndarray, c: np.ndarray, weight: np.ndarray, yy: float, support: tuple[int, ...]) -> float:
    at = list(support)
    return yy - float(c[at] @ np.linalg.solve(Q[np.ix_(at, at)] + np.diag(weight[at]), c[at])) if at else yy


@pytest.mark.parametrize("seed", range(20))
def test_supports_below_the_bars_are_listed_and_leaves_cover(seed: int) -> None:
    q = 2 + seed % 6
    Q, c, weight, yy = problem(seed, q)
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(0, q + 1, size=2).tolist())
    every = {tau: [value(Q, c, weight, yy, s) for s in combinations(range(q), tau)] for tau in range(low, high + 1)}
    bars = np.full(q + 1, -np.inf)
    for tau, values in every.items():
        bars[tau] = min(values) * (1.0 + rng.choice([-0.1, 1e-6, 0.2, 1.0]))
    V = np.linalg.inv(Q + np.diag(weight))
    nodes, listed = np.empty(1 << 10, dtype=np.int64), np.zeros((1 << 7, q), dtype=bool)

    def tree(nodes: np.ndarray, listed: np.ndarray) -> tuple[int, int, int]:
        root = new_levels(V, V @ c, yy - float(c @ V @ c), low, high)
        return prove(root, weight, np.array([low, high]), bars, nodes, listed)

    ended, used, found = tree(nodes, listed)
    assert ended == ENDED
    known = {tuple(np.flatnonzero(row).tolist()) for row in listed[:found]}
    assert len(known) == found
    for tau, values in every.items():
        for support, f in zip(combinations(range(q), tau), values, strict=True):
            assert support in known or f >= bars[tau] * (1.0 - 1e-9)
    open_nodes = 1
    for node in nodes[:used].tolist():
        assert open_nodes > 0
        open_nodes += 1 if node >= 0 else -1
    assert open_nodes == 0
    if used > 1:
        assert tree(nodes[: used - 1], listed)[0] == SHORT
    if found:
        assert tree(nodes, listed[: found - 1])[0] == LISTED
