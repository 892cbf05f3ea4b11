"""Bounds of the record contain the exact numbers of the stored data, by fractions, to the last bit."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sparsecv_mio as sc

Rows = list[list[Fraction]]


def solve_system(A: Rows, b: list[Fraction]) -> list[Fraction]:
    M = [[*row, value] for row, value in zip(A, b, strict=True)]
    for i in range(len(M)):
        for k in range(len(M)):
            if k != i:
                factor = M[k][i] / M[i][i]
                M[k] = [a - factor * c for a, c in zip(M[k], M[i], strict=True)]
    return [M[i][-1] / M[i][i] for i in range(len(M))]


def best_fit(
    X: np.ndarray, y: np.ndarray, tau: int, gamma: float, scales: list[Fraction]
) -> tuple[Fraction, tuple[int, ...], list[Fraction], Fraction]:
    """Return the minimum objective, with its support, coefficients and intercept."""
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    target, n = [Fraction(v) for v in y.tolist()], len(y)
    means, level = [sum(col) / n for col in zip(*rows, strict=True)], sum(target) / n
    Z = [[v - m for v, m in zip(row, means, strict=True)] for row in rows]
    t = [v - level for v in target]
    fits = []
    for S in combinations(range(len(means)), tau):
        ridge = [Fraction(gamma) / 2 * scales[j] for j in S]
        A = [[sum(z[a] * z[b] for z in Z) + (ridge[i] if a == b else 0) for b in S] for i, a in enumerate(S)]
        c = [sum(z[a] * v for z, v in zip(Z, t, strict=True)) for a in S]
        beta = solve_system(A, c)
        value = sum(v * v for v in t) - sum(a * b for a, b in zip(c, beta, strict=True))
        fits.append((value, S, beta, level - sum(b * means[j] for j, b in zip(S, beta, strict=True))))
    return min(fits)


def unit_scales(X: np.ndarray, scale: str) -> list[Fraction]:
    if scale == "none":
        return [Fraction(1)] * X.shape[1]
    columns = [[Fraction(v) for v in col] for col in X.T.tolist()]
    means = [sum(col) / len(col) for col in columns]
    squares = [sum((v - m) ** 2 for v in col) for col, m in zip(columns, means, strict=True)]
    return squares if scale == "length" else [s / len(X) for s in squares]


@pytest.mark.parametrize("seed", range(12))
def test_bounds_contain_the_exact_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(6, 10)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    X = np.round(rng.normal(size=(n, p)), 2)
    y = np.round(X @ rng.normal(size=p) * 3.0 + rng.normal(size=n) / 4.0, 3)
    if seed % 3 == 0:
        X[1, -1], y[1] = 1001.0, 498.617  # a row far from the others
    scale, gamma = ("none", "length", "variance")[seed % 3], (0.5, 1.0, 10.0)[seed // 4]
    labels = np.arange(n) % 3 if seed % 2 else np.arange(n)
    record = sc.solve(
        sc.Dataset.from_arrays(X, y), folds=labels, gammas=[gamma], taus=[tau], scale=scale, gap=0.0, time_limit=120
    )
    scales = unit_scales(X, scale)
    least = best_fit(X, y, tau, gamma, scales)[0]
    assert Fraction(record.refit.lower) <= least <= Fraction(record.refit.upper)
    total = Fraction(0)
    for fold in range(int(labels.max()) + 1):
        train = labels != fold
        _, support, beta, intercept = best_fit(X[train], y[train], tau, gamma, scales)
        for row, value in zip(X[~train].tolist(), y[~train].tolist(), strict=True):
            guess = intercept + sum(b * Fraction(row[j]) for j, b in zip(support, beta, strict=True))
            total += (Fraction(value) - guess) ** 2
    (pair,) = record.table
    assert Fraction(record.lower) <= total / n <= Fraction(record.upper)
    assert Fraction(pair.lower) <= total / n <= Fraction(pair.upper)
