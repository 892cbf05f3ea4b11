"""Plain problems: normal columns, a few of which matter, and a target of each loss; the same numbers at every call."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset

Seed = int | list[int]


def _drawn(seed: Seed, n: int, p: int, beta: Mapping[int, float]) -> tuple[np.random.Generator, FloatArray, FloatArray]:
    """Return the generator, the columns, and their sum weighted by `beta`, from the first key to the last."""
    rng = np.random.default_rng(seed)
    X, signal = rng.normal(size=(n, p)), np.zeros(n)
    for j, weight in beta.items():
        signal = signal + weight * X[:, j]
    return rng, X, signal


def linear(seed: Seed, n: int, p: int, beta: Mapping[int, float], noise: float = 1.0) -> Dataset:
    """Return data whose target is linear in some columns, with normal noise of a standard deviation."""
    rng, X, signal = _drawn(seed, n, p, beta)
    return Dataset.from_arrays(X, signal + noise * rng.normal(size=n))


def classes(seed: Seed, n: int, p: int, beta: Mapping[int, float]) -> Dataset:
    """Return data of the classes 0 and 1 by the logistic model."""
    rng, X, signal = _drawn(seed, n, p, beta)
    return Dataset.from_arrays(X, (signal + rng.logistic(size=n) > 0.0).astype(float))


def counts(seed: Seed, n: int, p: int, beta: Mapping[int, float]) -> Dataset:
    """Return data of counts by the Poisson model with a log link."""
    rng, X, signal = _drawn(seed, n, p, beta)
    return Dataset.from_arrays(X, rng.poisson(np.exp(signal)).astype(float))
