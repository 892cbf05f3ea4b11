"""Random problems whose rows have weights, and what is true of them by definition: all subsets tried, in every fold."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray

GAMMAS = (0.05, 1.0)
Fit = tuple[float, FloatArray, float]  # objective, coefficients, intercept


@dataclass(frozen=True)
class Weighted:
    """Rows with their weights, and what the penalty and the intercept are.

    A label is the fold that scores a row, -1 for none.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    labels: IntArray
    scale: str
    intercept: str

    @property
    def scales(self) -> FloatArray:
        """Of the penalty: weighted lengths or standard deviations of the columns."""
        if self.scale == "none":
            return np.ones(self.X.shape[1])
        total = self.weight.sum()
        squares = self.weight @ (self.X - self.weight @ self.X / total) ** 2
        return np.sqrt(squares / (total if self.scale == "variance" else 1.0))

    def fit(self, rows: IntArray, support: tuple[int, ...], gamma: float) -> Fit:
        """Weighted least squares of one support."""
        about = {"fold": rows, "global": np.arange(len(self.y)), "none": None}[self.intercept]
        x_mean, y_mean = np.zeros(len(support)), 0.0
        if about is not None:
            share = self.weight[about] / self.weight[about].sum()
            x_mean, y_mean = share @ self.X[about][:, support], float(share @ self.y[about])
        root = np.sqrt(self.weight[rows])
        Z, t = root[:, None] * (self.X[rows][:, support] - x_mean), root * (self.y[rows] - y_mean)
        penalty = np.sqrt(gamma / 2.0) * self.scales[list(support)]
        A, b = np.vstack([Z, np.diag(penalty)]), np.concatenate([t, np.zeros(len(support))])
        beta = np.linalg.lstsq(A, b, rcond=None)[0]
        return float(np.sum((b - A @ beta) ** 2)), beta, float(y_mean - x_mean @ beta)

    def best(self, rows: IntArray, gamma: float) -> list[tuple[tuple[int, ...], FloatArray, float]]:
        """Support, coefficients and intercept of the best subset of at most tau columns, for tau = 0, 1, .."""
        found: list[tuple[float, tuple[int, ...], FloatArray, float]] = []
        for size in range(self.X.shape[1] + 1):
            fits = ((S, self.fit(rows, S, gamma)) for S in combinations(range(self.X.shape[1]), size))
            here = [(value, S, beta, intercept) for S, (value, beta, intercept) in fits]
            found.append(min([*found[-1:], *here], key=lambda fit: fit[0]))
        return [fit[1:] for fit in found]

    def cv_errors(self, gamma: float) -> FloatArray:
        """Weighted mean of squared errors of held-out rows, by tau."""
        total = np.zeros(self.X.shape[1] + 1)
        for fold in np.unique(self.labels[(self.labels >= 0) & (self.weight > 0)]):
            held = self.labels == fold
            for tau, (support, beta, intercept) in enumerate(self.best(np.flatnonzero(~held), gamma)):
                miss = self.y[held] - intercept - self.X[held][:, support] @ beta
                total[tau] += float(self.weight[held] @ miss**2)
        return total / float(self.weight[self.labels >= 0].sum())


def drawn(seed: int, whole: bool = False) -> Weighted:
    """Random rows, some of weight 0, the others whole or spread over six decades; every training set has some.

    Parameters
    ----------
    seed : int
    whole : bool
        Weights are small whole numbers.
    """
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(8, 14)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    weight = rng.choice([0.0, 1.0, 1.0, 2.0, 3.0], size=n) if whole else 10.0 ** rng.uniform(-3.0, 3.0, n)
    if not whole:
        weight[rng.random(n) < 0.2] = 0.0
    weight[:4] = np.maximum(weight[:4], 1.0 if whole else 0.5)
    if seed % 3 == 0:
        labels = np.arange(n)
    else:
        labels = rng.permutation(np.arange(n) % k)
        labels[:4] = np.arange(4) % 2  # two rows that count in each of two folds
        if seed % 5 == 0:
            labels[4] = -1
    return Weighted(X, y, weight, labels, ("length", "variance", "none")[seed // 3 % 3], MODES[seed // 9 % 4])


MODES = ("fold", "global", "none", "fold")
