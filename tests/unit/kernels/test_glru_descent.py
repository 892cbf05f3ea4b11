"""Coordinate descent, dense and sparse, against cyclic descent in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecv_mio.kernels.glru_descent import ColumnsOfX, DescentModel, descend


def twin(X: np.ndarray, h: np.ndarray, a: np.ndarray, w: np.ndarray, ridge: float, l1: float, free: int) -> np.ndarray:
    """Coordinate descent as in the kernel, in plain numpy, to the end."""
    u = w.copy()
    for _ in range(4_000):
        before = u.copy()
        for j in range(len(u)):
            second = float(h @ X[:, j] ** 2)
            if second + ridge <= 0.0:
                continue
            slope = float(X[:, j] @ (h * (X @ (u - w)) - a))
            pull = second * u[j] - slope
            if j == free:
                u[j] = pull / second if second > 0.0 else u[j]
            else:
                u[j] = np.sign(pull) * max(abs(pull) - l1, 0.0) / (second + ridge)
        if np.array_equal(before, u):
            break
    return u


def by_columns(X: np.ndarray) -> ColumnsOfX:
    n, d = X.shape
    return ColumnsOfX(np.ravel(X, order="F"), np.zeros(0, dtype=np.int64), np.arange(d) * n)


def model(X, h, a, w, u, ridge: float, l1: float, free: int) -> float:
    step, paid = X @ (u - w), np.arange(len(u)) != free
    smooth = 0.5 * float(h @ step**2) - float(a @ step)
    return smooth + 0.5 * ridge * float(np.sum(u[paid] ** 2)) + l1 * float(np.abs(u[paid]).sum())


@pytest.mark.parametrize("n, d, empty", [(30, 6, False), (4, 6, False), (5, 1, False), (30, 6, True)])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
@pytest.mark.parametrize("l1", [0.0, 1.5])
@pytest.mark.parametrize("free", [-1, 0])
def test_coordinate_descent_equals_its_twin(n: int, d: int, empty: bool, ridge: float, l1: float, free: int) -> None:
    if n < d and l1 == ridge == 0.0:
        return  # no unique minimiser to compare
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    if empty:
        X[:, 3] = 0.0
    h, a, w = rng.random(n), rng.normal(size=n), rng.normal(size=d)
    expected = twin(X, h, a, w, ridge, l1, free)
    numbers = DescentModel(h, a, np.square(X).T @ h, ridge, l1, free)
    dense, v = w.copy(), np.zeros(n)
    before, lowered = model(X, h, a, w, w, ridge, l1, free), np.inf
    while lowered > 1e-26:
        lowered = descend(by_columns(X), numbers, dense, v, 20, 1e-3)
        after = model(X, h, a, w, dense, ridge, l1, free)
        assert before - after >= lowered * (1.0 - 1e-9) - 1e-12, "the first sweep alone lowers the model by that much"
        before = after
    assert np.allclose(dense, expected, atol=1e-8) and np.allclose(v, X @ (dense - w))
    assert np.array_equal(dense == 0.0, expected == 0.0)
    csc, other, v = sp.csc_array(X), w.copy(), np.zeros(n)
    parts = ColumnsOfX(csc.data, csc.indices, csc.indptr)
    while descend(parts, numbers, other, v, 20, 1e-3) > 1e-26:
        pass
    assert np.allclose(other, expected, atol=1e-8) and np.allclose(v, X @ (other - w))


@pytest.mark.parametrize("ridge", [0.0, 0.4])
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_one_sweep_says_what_it_lowered_the_model_by(ridge: float, l1: float) -> None:
    """Exact without kinks; a step that crosses one lowers the model by more."""
    rng = np.random.default_rng(2)
    X, h, a, w = rng.normal(size=(20, 4)), rng.random(20), rng.normal(size=20), rng.normal(size=4)
    u = w.copy()
    numbers = DescentModel(h, a, np.square(X).T @ h, ridge, l1, -1)
    lowered = descend(by_columns(X), numbers, u, np.zeros(20), 1, 0.0)
    truth = model(X, h, a, w, w, ridge, l1, -1) - model(X, h, a, w, u, ridge, l1, -1)
    assert lowered == pytest.approx(truth) if l1 == 0.0 else lowered <= truth * (1.0 + 1e-9)


def test_no_column_and_no_sweep() -> None:
    X, ones, u, none = np.ones((3, 2)), np.ones(3), np.array([2.0, -1.0]), np.zeros(0)
    numbers = DescentModel(ones, ones, np.full(2, 3.0), 0.1, 0.1, -1)
    assert descend(by_columns(X[:, :0]), numbers._replace(second=none), none, np.zeros(3), 5, 0.5) == 0.0
    assert descend(by_columns(X), numbers, u, np.zeros(3), 0, 0.5) == -1.0
    assert u.tolist() == [2.0, -1.0]
