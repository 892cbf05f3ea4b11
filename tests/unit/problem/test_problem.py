"""The ball around a ridge fit that need not be exact, against random points of the level set."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem import problem as module
from sparsecv_mio.problem.problem import SparseProblem, level_set_radius, own_part


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


KINDS = ["plain", "correlated", "wide", "copies", "scaled"]


def columns(seed: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, q = (5, 8) if kind == "wide" else (20, 6)
    X = rng.standard_normal((n, q))
    if kind == "correlated":
        X = 0.1 * X + rng.standard_normal((n, 1))
    elif kind == "copies":
        X[:, 3] = -X[:, 1]
    elif kind == "scaled":
        X *= 10.0 ** rng.integers(-3, 4, q)
    return X


def valid(M: np.ndarray, w: np.ndarray) -> bool:
    """Whether `M - diag(w)` is positive semidefinite up to rounding, in units with `M_jj = 1`."""
    scale = 1.0 / np.sqrt(np.diag(M))
    return bool(np.linalg.eigvalsh((M - np.diag(w)) * scale[:, None] * scale)[0] > -1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_choice_is_valid(seed: int, kind: str) -> None:
    X, rng = columns(seed, kind), np.random.default_rng(seed)
    Q, penalty = X.T @ X, rng.uniform(0.01, 1.0, X.shape[1])
    M = Q + np.diag(penalty)
    smallest = max(float(np.linalg.eigvalsh(Q)[0]) - 1e-9, 0.0)
    uniform, own = penalty + smallest, own_part(M)
    assert np.all(uniform >= penalty) and valid(M, uniform)
    assert own is not None and np.all(own > 0.0) and valid(M, own)
    assert valid(M, 0.5 * (uniform + own)), "the mean of two, as the trees take it"
    V = np.linalg.inv(M)
    t = np.linalg.eigvalsh(M * np.sqrt(np.outer(np.diag(V), np.diag(V))))[0]
    np.testing.assert_allclose(own, t / np.diag(V), rtol=1e-6)


def test_a_matrix_singular_to_rounding_has_no_part_of_its_own() -> None:
    assert own_part(np.zeros((2, 2))) is None
    assert own_part(np.ones((3, 3))) is None
    with np.errstate(all="raise"):
        assert own_part(np.array([[0.0, 1.0], [1.0, 0.0]])) is None


def made(n: int, q: int, lam: float = 0.3) -> SparseProblem:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, q)), rng.normal(size=n)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), rng.uniform(1.0, 2.0, q), lam, n, np.zeros(q), 0.0)


@pytest.mark.parametrize(("n", "q"), [(30, 5), (4, 6), (6, 6), (30, 1), (5, 0)])
@pytest.mark.parametrize("limit", [1500, 3])
def test_the_spectrum_is_bounded(n: int, q: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CUBIC_COLUMNS", limit)
    problem = made(n, q)
    low, high = problem.spectrum()
    values = np.linalg.eigvalsh(problem.Q) if q else np.zeros(1)
    assert 0.0 <= low <= max(values[0], 0.0) + 1e-15 and high >= values[-1]
    assert low > 0.5 * values[0] or q >= n or q < 2
    if 0 < q < min(n, limit):
        assert low == pytest.approx(values[0], rel=1e-9) and high == pytest.approx(values[-1], rel=1e-9)
    assert problem.with_gamma(9.0).spectrum() is problem.spectrum()
