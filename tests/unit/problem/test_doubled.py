"""Twice the precision: sums and products against fractions, and the fits that need them against exact elimination."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv_mio.problem.doubled import DoubleDouble
from sparsecv_mio.problem.objective import fit, held_out_error

Matrix = NDArray[np.float64]


def exact(number: DoubleDouble, place: int) -> Fraction:
    return Fraction(float(number.high[place])) + Fraction(float(number.low[place]))


def test_arithmetic_has_thirty_digits() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = rng.normal(size=(2, 7)) * 10.0 ** rng.uniform(-8, 8, size=(2, 7))
        A, B = (DoubleDouble.of(v) + v * 1e-17 * rng.normal(size=7) for v in (a, b))
        for i in range(7):
            x, y = exact(A, i), exact(B, i)
            pairs = [(A * B, x * y), (A / 3.7, x / Fraction(3.7)), (A * 2.3, x * Fraction(2.3))]
            pairs.append((A * A + B * B, x * x + y * y))
            for got, wanted in pairs:
                assert abs(exact(got, i) - wanted) <= abs(wanted) * Fraction(1, 10**30)
            assert abs(exact(A - B, i) - (x - y)) <= (abs(x) + abs(y)) * Fraction(1, 10**30)
        total = sum((exact(A, i) for i in range(7)), Fraction(0))
        size = sum((abs(exact(A, i)) for i in range(7)), Fraction(0))
        assert abs(exact(A.sum(0)[None], 0) - total) <= size * Fraction(1, 10**30)


def by_elimination(
    X: Matrix, y: Matrix, gamma: float, train: list[int], test: list[int], fold: bool
) -> tuple[float, float]:
    """Objective and held-out error of all columns under `scale none`, in rational arithmetic."""
    rows = [[Fraction(v) for v in row] for row in np.column_stack([X, y]).tolist()]
    s = X.shape[1]
    mean = [sum((rows[i][j] for i in train), Fraction(0)) / len(train) * fold for j in range(s + 1)]
    Z = [[v - m for v, m in zip(row, mean, strict=True)] for row in rows]
    T = [[sum((Z[i][a] * Z[i][b] for i in train), Fraction(0)) for b in range(s + 1)] for a in range(s)]
    for j in range(s):
        T[j][j] += Fraction(gamma) / 2
    yy = sum((Z[i][s] ** 2 for i in train), Fraction(0))
    c = [row[s] for row in T]
    for k in range(s):
        for i in range(s):
            if i != k:
                factor = T[i][k] / T[k][k]
                T[i] = [a - factor * b for a, b in zip(T[i], T[k], strict=True)]
    beta = [T[k][s] / T[k][k] for k in range(s)]
    f = yy - sum((a * b for a, b in zip(c, beta, strict=True)), Fraction(0))
    h = sum(((Z[i][s] - sum((Z[i][j] * beta[j] for j in range(s)), Fraction(0))) ** 2 for i in test), Fraction(0))
    return float(f), float(h)


@pytest.mark.parametrize("intercept", ["fold", "none"])
@pytest.mark.parametrize("noise", [1.0, 1e-6, 1e-10, 0.0])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_fits_that_leave_few_digits_are_right(offset: float, noise: float, intercept: str) -> None:
    rng = np.random.default_rng(1)
    for alike in (1.0, 1e-5):
        X = rng.normal(size=(14, 3))
        X[:, 2] = X[:, 1] + alike * X[:, 2]
        y = X @ np.array([1.0, -2.0, 0.5]) + noise * rng.normal(size=14) + offset
        for gamma in (1e-8, 0.1):
            train, test = list(range(11)), [11, 12, 13]
            model = fit(X, y, [0, 1, 2], gamma, scale="none", intercept=intercept, rows=np.array(train))
            f, h = by_elimination(X, y, gamma, train, test, intercept == "fold")
            assert model.objective == pytest.approx(f, rel=1e-9)
            assert held_out_error(model, X, y, np.array(test)) == pytest.approx(h, rel=1e-8)
