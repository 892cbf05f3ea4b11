"""Diagonals under M: every one leaves a positive semidefinite rest, whatever the columns."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem.diagonal import own_part, shifted, without_rows

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
    uniform, own = shifted(penalty, smallest), own_part(M)
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


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_without_the_rows_of_a_fold(seed: int, intercept: bool) -> None:
    """A diagonal of all rows, made valid for the training rows about their own means."""
    X, rng = columns(seed, "plain"), np.random.default_rng(seed)
    n, q = X.shape
    penalty, folds = rng.uniform(0.1, 1.0, q), [np.array([0]), np.array([3, 4, 5]), np.arange(10)]
    whole = X - X.mean(axis=0) if intercept else X
    M = whole.T @ whole + np.diag(penalty)
    own = own_part(M)
    assert own is not None
    H = whole @ np.linalg.solve(M, whole.T) + (1.0 / n if intercept else 0.0)
    leverage = np.array([np.linalg.eigvalsh(H[np.ix_(N, N)])[-1] for N in folds])
    for N, w in zip(folds, without_rows(own, leverage), strict=True):
        part = np.delete(X, N, axis=0)
        part = part - part.mean(axis=0) if intercept else part
        assert np.all(w > 0.0) and valid(part.T @ part + np.diag(penalty), w)
