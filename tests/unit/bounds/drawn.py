"""Problems that several tests of the bounds draw."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from plain_ridge import ridge

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.problem import SparseProblem


def random_problem(
    seed: int, n: int = 30, q: int = 8, lam: float = 0.3, rho: float = 0.6
) -> tuple[SparseProblem, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.standard_normal((n, q)) + np.sqrt(rho) * rng.standard_normal((n, 1))
    X /= np.linalg.norm(X, axis=0)
    y = X @ rng.standard_normal(q) + 0.3 * rng.standard_normal(n)
    weight = rng.uniform(0.5, 2.0, q)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), weight, lam, n, np.zeros(q), 0.0), X


def best_support(problem: SparseProblem, tau: int) -> tuple[float, np.ndarray]:
    """The optimum over all supports of a size."""
    every = (np.array(s) for s in combinations(range(problem.q), tau))
    return min(((ridge(problem, s)[1], s) for s in every), key=lambda found: found[0])


def random_data(seed: int = 0, n: int = 40, p: int = 6) -> Dataset:
    """A file with columns of very different lengths."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 5.0
    y = 100.0 * (X - X.mean(0)) @ (rng.standard_normal(p) / X.std(0)) + 50.0 * rng.standard_normal(n)
    return Dataset.from_arrays(X, y)
