"""The counterexample of docs/theory.md section 2, recomputed: the printed ellipsoid misses, the safe ones hold."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.problem.objective import fit

LAM = 1.0


def dual(r: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """D_1(r)."""
    return float(2 * r @ y - r @ r - np.max((X.T @ r) ** 2) / LAM)


@pytest.mark.parametrize("eps", [1.0, 0.3, 0.05])
def test_printed_ellipsoid_misses_the_best_support(eps: float) -> None:
    X = eps * np.eye(2)
    y = np.full(2, 1 / eps + eps / 2)
    relaxed = np.array([0.5, 0.5])
    r = y - X @ relaxed
    primal = float(r @ r + LAM * np.sum(relaxed**2 / 0.5))
    assert primal == pytest.approx(dual(r, X, y), rel=1e-12)  # so this is the relaxation's value

    model = fit(X, y, [0], 2 * LAM, scale="none", intercept="none")
    best = np.array([model.beta[0], 0.0])
    room = model.objective - primal
    step = relaxed - best
    left = float(step @ (X.T @ X + LAM * np.eye(2)) @ step)
    e = eps**2
    assert room == pytest.approx(e * (2 + e) / (4 * (1 + e)), rel=1e-9)
    assert left == pytest.approx(1 / (4 * (1 + e)) + (1 + e) / 4, rel=1e-9)
    assert left > room

    assert float(step @ X.T @ X @ step) <= room
    ridge = np.linalg.solve(X.T @ X + LAM * np.eye(2), X.T @ y)
    outer = model.objective - float(y @ y - ridge @ X.T @ y)
    away = ridge - best
    assert float(away @ (X.T @ X + LAM * np.eye(2)) @ away) == pytest.approx(outer, rel=1e-9)


def test_figures_a_reader_recomputes() -> None:
    X, y = np.eye(2), np.array([1.5, 1.5])
    model = fit(X, y, [0], 2.0, scale="none", intercept="none")
    assert model.beta == pytest.approx([0.75])
    assert model.objective == pytest.approx(3.375)
    assert dual(np.array([1.0, 1.0]), X, y) == pytest.approx(3.0)
