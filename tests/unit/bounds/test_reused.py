"""Points of all rows tested in a fold: valid there, and where one support is left it is the best one."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.fold import TIE, FoldBounds
from sparsecv_mio.bounds.reused import points_of, reuse
from sparsecv_mio.bounds.unit_diagonal import unit_diagonal
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import best_support


def problem_of(X: np.ndarray, y: np.ndarray, lam: float) -> SparseProblem:
    q = X.shape[1]
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), lam, len(y), np.zeros(q), 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lam", [0.05, 5.0])
def test_values_and_decisions(seed: int, lam: float) -> None:
    rng, sizes = np.random.default_rng(seed), [1, 2, 3]
    X = rng.standard_normal((40, 6))
    y = X[:, 0] - 2.0 * X[:, 3] + 0.3 * rng.standard_normal(40)
    points = points_of(unit_diagonal(problem_of(X, y, lam)), sizes)
    assert points is not None and points.of(2) == 1 and points.of(5) == -1
    part = problem_of(X[4:], y[4:], lam)
    fold = FoldBounds(part, X[:4], y[:4], points.diagonal)
    fold.search(sizes, swap_rounds=2)
    tested = reuse(fold, points, sizes, TIE, exact=True)
    assert tested is not None
    for t, tau in enumerate(sizes):
        value, support = best_support(part, tau)
        assert tested.dual[t] <= value
        if tested.decided[t]:
            assert np.array_equal(np.flatnonzero(fold.supports[tau]), support)
            b = np.linalg.solve(part.M[np.ix_(support, support)], part.c[support])
            error = float(np.sum((y[:4] - X[:4, support] @ b) ** 2))
            assert tested.numbers[t, 2] <= error <= tested.numbers[t, 3]


def test_nothing_to_test() -> None:
    problem = problem_of(np.eye(3), np.ones(3), 1.0)
    form, fold = unit_diagonal(problem), FoldBounds(problem, np.ones((1, 3)), np.ones(1))
    assert points_of(form, [0, 3]) is None and points_of(None, [1]) is None
    assert reuse(fold, None, [1], TIE) is None and reuse(fold, points_of(form, [1]), [2], TIE) is None
