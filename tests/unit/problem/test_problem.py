"""The inner problem: its matrix, another gamma, and bounds on its spectrum."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem import problem as module
from sparsecv_mio.problem.problem import SparseProblem


def made(n: int, q: int, lam: float = 0.3) -> SparseProblem:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, q)), rng.normal(size=n)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), rng.uniform(1.0, 2.0, q), lam, n, np.zeros(q), 0.0)


def test_the_matrix_holds_the_penalty() -> None:
    problem = made(20, 4)
    assert pytest.approx(problem.Q + 0.3 * np.diag(problem.weight)) == problem.M
    other = problem.with_gamma(4.0)
    assert other.lam == 2.0 and other.Q is problem.Q
    assert pytest.approx(problem.Q + 2.0 * np.diag(problem.weight)) == other.M
    huge = made(20, 4, 1e308)
    assert np.isfinite(huge.M).all() and huge.penalty.max() == module.LARGEST_PENALTY


@pytest.mark.parametrize(("n", "q"), [(30, 5), (4, 6), (6, 6), (30, 1), (5, 0)])
@pytest.mark.parametrize("limit", [1500, 3])
def test_the_spectrum_is_bounded(n: int, q: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EIGEN_LIMIT", limit)
    problem = made(n, q)
    low, high = problem.spectrum()
    values = np.linalg.eigvalsh(problem.Q) if q else np.zeros(1)
    assert 0.0 <= low <= max(values[0], 0.0) + 1e-15 and high >= values[-1]
    assert low > 0.5 * values[0] or q >= n or q < 2
    if 0 < q < min(n, limit):
        assert low == pytest.approx(values[0], rel=1e-9) and high == pytest.approx(values[-1], rel=1e-9)
    assert problem.with_gamma(9.0).spectrum() is problem.spectrum()
