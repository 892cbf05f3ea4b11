"""The scan over all supports of a size against their values in exact fractions, well conditioned or not."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.every_support import ScannedProblem, new_kept_supports, scan_supports

ERRORS = 1e-8, 1e-13, 50.0 * float(np.finfo(float).eps)  # share, slack, rounding


def unit_columns(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return M with a diagonal of 1, c and yy: more columns than rows, some of them nearly copies or copies."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(5, 9)), int(rng.integers(6, 11))
    X, y = rng.normal(size=(n, q)), rng.normal(size=n)
    X[:, -1] = X[:, 0] + [0.0, 1e-9, 1e-5][seed % 3] * X[:, -1]
    X /= np.linalg.norm(X, axis=0)
    M = X.T @ X
    np.fill_diagonal(M, 1.0)
    return M, X.T @ y, float(y @ y)


def exact_value(M: np.ndarray, c: np.ndarray, yy: float, S: tuple[int, ...]) -> Fraction | None:
    """Return `yy - c_S' M_S^{-1} c_S` in fractions; None where `M_S` is singular."""
    rows = [[Fraction(M[i, j]) for j in S] + [Fraction(c[i])] for i in S]
    value = Fraction(yy)
    for k in range(len(S)):
        if rows[k][k] == 0:
            return None
        value -= rows[k][-1] ** 2 / rows[k][k]
        for i in range(k + 1, len(S)):
            share = rows[i][k] / rows[k][k]
            rows[i] = [a - share * b for a, b in zip(rows[i], rows[k], strict=True)]
    return value


def scan(M: np.ndarray, c: np.ndarray, yy: float, size: int, room: int) -> tuple[bool, float, dict[tuple, float]]:
    problem, kept = ScannedProblem(M, c, yy, yy, *ERRORS), new_kept_supports(size, room, np.inf)
    complete = all(scan_supports(problem, size, first, kept) for first in range(len(c) - size + 1))
    supports = [tuple(row) for row in kept.supports[: kept.filled[0]].tolist()]
    assert len(set(supports)) == len(supports), "each once"
    return complete, float(kept.level[0]), dict(zip(supports, kept.lower.tolist(), strict=False))


@pytest.mark.parametrize("seed", range(12))
def test_every_support_that_may_be_the_best_is_kept(seed: int) -> None:
    M, c, yy = unit_columns(seed)
    for size in range(1, 5):
        complete, level, kept = scan(M, c, yy, size, 1000)
        assert complete
        truth = {S: exact_value(M, c, yy, S) for S in combinations(range(len(c)), size)}
        least = min(value for value in truth.values() if value is not None)
        assert least <= level
        for S, value in truth.items():
            assert value is not None and value > level if S not in kept else value is None or kept[S] <= value


def test_there_is_room_or_it_is_said() -> None:
    M, c, yy = np.eye(9), np.ones(9), 20.0  # all supports tie
    complete, _, kept = scan(M, c, yy, 3, 84)
    assert complete and len(kept) == 84 and not scan(M, c, yy, 3, 83)[0]
