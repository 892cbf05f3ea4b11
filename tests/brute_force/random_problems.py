"""Random small problems with everything that is hard about real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.model_space import NONE, Restrictions

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RandomProblem:
    """A data set, its folds, and what is asked of them."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    scale: str
    intercept: str
    restrictions: Restrictions = NONE


def random_problem(seed: int, rows: int = 60, columns: int = 10) -> RandomProblem:
    """Draw a problem: `6 <= n <= rows`, `1 <= p <= columns`, gamma in 1e-4 .. 1e4, any folds, scale and intercept."""
    rng = np.random.default_rng([20240511, seed])
    while True:
        n = int(rng.integers(6, rows + 1)) if rng.random() < 0.7 else int(rng.integers(6, min(rows, 12) + 1))
        p = int(rng.integers(1, columns + 1))
        X = _design(rng, n, p)
        y = _target(rng, X)
        if np.ptp(y) > 1e-12 * np.abs(y).max() and (np.ptp(X, axis=0) > 0.0).any():
            break
    if rng.random() < 0.08:
        X = X * rng.choice([1e-150, 1e150], size=p if rng.random() < 0.5 else 1)
    if rng.random() < 0.08:
        y = (y - y.mean()) / np.std(y) * rng.choice([1e-150, 1e150])
    data = Dataset.from_arrays(X, y, aux={"id": np.asarray(_labels(rng, n))})
    gammas = np.unique(10.0 ** rng.uniform(-4, 4, size=rng.integers(1, 4))).tolist()
    taus = np.unique(rng.integers(0, p + 1, size=rng.integers(1, p + 2))).tolist()
    return RandomProblem(
        data,
        _folds(rng, data, seed),
        gammas,
        taus,
        str(rng.choice(["length", "length", "variance", "none"])),
        str(rng.choice(["fold", "fold", "global", "none"])),
    )


def _design(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    kind = rng.choice(["normal", "correlated", "integer", "signs", "one-hot", "low rank", "rare", "heavy"])
    X = rng.normal(size=(n, p))
    if kind == "correlated":
        X += rng.uniform(0.5, 5.0) * rng.normal(size=(n, 1))
    elif kind == "integer":
        X = np.round(X * rng.choice([0.7, 2.0]))
    elif kind == "signs":
        X = rng.choice([-1.0, 1.0], size=(n, p))
    elif kind == "one-hot":
        X = _one_hot(rng, n, p)
    elif kind == "low rank":
        k = int(rng.integers(1, p + 1))
        X = rng.normal(size=(n, k)) @ np.round(rng.normal(size=(k, p)))
    elif kind == "rare":
        X = (rng.random((n, p)) < 1.5 / n).astype(float)
    elif kind == "heavy":
        X = rng.standard_cauchy(size=(n, p))
    if p > 1 and rng.random() < 0.35:
        for _ in range(int(rng.integers(1, p))):
            i, j = rng.choice(p, size=2, replace=False)
            X[:, j] = X[:, i] * rng.choice([1.0, -1.0, 2.0, -0.3]) + rng.choice([0.0, 0.0, 1.0])
            X[:, j] += rng.choice([0.0, 0.0, 0.0, 1e-2, 1e-6]) * rng.normal(size=n)
    if p > 2 and rng.random() < 0.2:
        X[:, -1] = X[:, 0] + X[:, 1]
    if p > 1 and rng.random() < 0.1:
        X[:, rng.integers(p)] = rng.choice([0.0, 3.7])
    if rng.random() < 0.3:
        X += rng.choice([1.0, 30.0, 1e3]) * rng.normal(size=p)
    if rng.random() < 0.2:
        X *= 10.0 ** rng.uniform(-3, 3, size=p)
    return X


def _one_hot(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Blocks of indicators, every level present as a column."""
    blocks, left = [], p
    while left:
        k = min(left, int(rng.integers(2, 5)))
        blocks.append((rng.integers(0, k, size=n)[:, None] == np.arange(k)).astype(float))
        left -= k
    return np.hstack(blocks)


def _target(rng: np.random.Generator, X: FloatArray) -> FloatArray:
    n, p = X.shape
    size = X.std(axis=0) + 1e-300
    signal = (X / size) @ (np.round(3.0 * rng.normal(size=p)) * (rng.random(p) < 0.5))
    kind = rng.choice(["noisy", "noisy", "span", "integer", "binary", "noise", "one"])
    if kind == "noisy":
        y = signal + rng.choice([0.03, 1.0, 10.0]) * rng.normal(size=n)
    elif kind == "span":
        y = signal + rng.choice([0.0, 0.0, 1e-6]) * rng.normal(size=n)
    elif kind == "integer":
        y = np.round(signal + rng.normal(size=n))
    elif kind == "binary":
        y = (signal + rng.normal(size=n) > 0.0).astype(float)
    elif kind == "one":
        y = np.eye(1, n, int(rng.integers(n)))[0]
    else:
        y = rng.normal(size=n)
    return np.asarray(y + rng.choice([0.0, 0.0, 5.0, 1e3]))


def _labels(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Fold ids 0..k-1, every one used, at least two rows outside each."""
    while True:
        k = int(rng.integers(2, min(n, 6) + 1))
        labels = rng.integers(0, k, size=n)
        counts = np.bincount(labels, minlength=k)
        if counts.min() > 0 and n - counts.max() >= 2:
            return labels


def _folds(rng: np.random.Generator, data: Dataset, seed: int) -> FoldPlan:
    kind = rng.choice(["K", "loo", "loo", "blocks", "holdout", "groups", "column", "labels"])
    if kind == "K":
        return make_folds(str(int(rng.integers(2, min(data.n, 10) + 1))), data, seed)
    if kind == "blocks":
        return make_folds(f"blocks:{int(rng.integers(1, data.n // 2 + 1))}", data, seed)
    if kind == "holdout":
        return make_folds(f"holdout:{rng.uniform(0.15, 0.65):.2f}", data, seed)
    if kind == "labels":
        labels = data.aux["id"].astype(np.int64)
        return folds_from_labels(labels - 1 if labels.max() > 0 else labels, "holdout:some")
    return make_folds({"loo": "loo", "groups": "groups:id", "column": "column:id"}[str(kind)], data, seed)
