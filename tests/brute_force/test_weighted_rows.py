"""Weights of rows by their definition, all subsets tried: in every fit and in the error of held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.counts import repeated, repeated_folds
from sparsecv_mio.data.folds import folds_from_labels

GAMMAS = (0.05, 1.0)


@dataclass(frozen=True)
class Weighted:
    """Rows with their weights, and what the penalty and the intercept are."""

    X: FloatArray
    y: FloatArray
    weight: IntArray
    labels: IntArray
    scale: str
    intercept: bool

    @property
    def scales(self) -> FloatArray:
        """Of the penalty: weighted lengths or standard deviations of the columns."""
        if self.scale == "none":
            return np.ones(self.X.shape[1])
        total = self.weight.sum()
        centred = self.X - self.weight @ self.X / total
        squares = self.weight @ centred**2
        return np.sqrt(squares / (total if self.scale == "variance" else 1.0))

    def fit(self, rows: IntArray, support: tuple[int, ...], gamma: float) -> tuple[float, FloatArray, float]:
        """Objective, coefficients and intercept of one support, by weighted least squares."""
        X, y, weight = self.X[rows][:, support], self.y[rows], self.weight[rows]
        total = weight.sum()
        x_mean, y_mean = (weight @ X / total, weight @ y / total) if self.intercept else (np.zeros(len(support)), 0.0)
        Z, t = (X - x_mean), y - y_mean
        penalty = gamma / 2.0 * self.scales[list(support)] ** 2
        beta = np.linalg.solve(Z.T @ (weight[:, None] * Z) + np.diag(penalty), Z.T @ (weight * t))
        return float(weight @ (t - Z @ beta) ** 2 + penalty @ beta**2), beta, float(y_mean - x_mean @ beta)

    def best(self, rows: IntArray, tau: int, gamma: float) -> tuple[tuple[int, ...], FloatArray, float]:
        """Support, coefficients and intercept of the best subset of at most tau columns."""
        sizes = [S for size in range(tau + 1) for S in combinations(range(self.X.shape[1]), size)]
        fits = {S: self.fit(rows, S, gamma) for S in sizes}
        support = min(fits, key=lambda S: fits[S][0])
        return support, *fits[support][1:]

    def cv_error(self, tau: int, gamma: float) -> float:
        """Weighted mean of squared errors of held-out rows."""
        total = 0.0
        for fold in np.unique(self.labels[(self.labels >= 0) & (self.weight > 0)]):
            support, beta, intercept = self.best(np.flatnonzero(self.labels != fold), tau, gamma)
            held = self.labels == fold
            total += float(self.weight[held] @ (self.y[held] - intercept - self.X[held][:, support] @ beta) ** 2)
        return total / float(self.weight[self.labels >= 0].sum())


def drawn(seed: int) -> Weighted:
    """Random rows, a third of them of weight 0 or several; every training set has rows that count."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(8, 14)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    weight = rng.choice([0, 1, 1, 2, 3], size=n)
    weight[:4] = np.maximum(weight[:4], 1)
    labels = rng.permutation(np.arange(n) % k)
    labels[:4] = np.arange(4) % 2  # two rows that count in each of two folds
    if seed % 5 == 0:
        labels[4] = -1
    return Weighted(X, y, weight, labels, ("length", "variance", "none")[seed % 3], bool(seed % 2))


def check(seed: int) -> None:
    problem = drawn(seed)
    data = sc.Dataset.from_arrays(problem.X, problem.y)
    plan = folds_from_labels(np.unique(problem.labels, return_inverse=True)[1] - int((problem.labels < 0).any()))
    p = problem.X.shape[1]
    method = ("auto", "joint", "rounds", "grid", "algorithm1")[seed % 5]
    record = sc.cross_validate(
        repeated(data, problem.weight), repeated_folds(plan, problem.weight), gammas=GAMMAS, taus=range(p + 1),
        gap=0.0, scale=problem.scale, intercept="fold" if problem.intercept else "none", method=method, threads=1,
    )  # fmt: skip
    truth = {(gamma, tau): problem.cv_error(tau, gamma) for gamma in GAMMAS for tau in range(p + 1)}
    assert record.status == "proved"
    for row in record.table:
        right = truth[row.gamma, row.tau]
        assert row.lower <= right * (1 + 1e-8) and right <= row.upper * (1 + 1e-8), (seed, row, right)
    assert record.cv_error == pytest.approx(min(truth.values()), rel=1e-8), seed
    support, beta, intercept = problem.best(np.arange(len(problem.y)), record.tau, record.gamma)
    assert list(record.coefficients) == [f"x{j}" for j in support], seed
    assert list(record.coefficients.values()) == pytest.approx(beta.tolist(), rel=1e-7, abs=1e-9), seed
    assert record.intercept == pytest.approx(intercept, rel=1e-7, abs=1e-9), seed
    assert sc.verify(record, repeated(data, problem.weight), repeated_folds(plan, problem.weight)).ok, seed


@pytest.mark.parametrize("seed", range(15))
def test_weighted_rows(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_a_thousand_weighted_problems() -> None:
    for seed in range(1000):
        check(seed)
