"""Problems that several tests of the bounds draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from exact import ExactProblem
from plain_ridge import ridge

from sparsecv_mio.bounds.fold import FoldCell
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


@dataclass(frozen=True, eq=False)
class HardFold:
    """Training and held-out rows of one fold, lam = 1, that cost many digits: large means, exact fits, huge rows.

    `root` has the square roots of the weights of the held-out rows, by which these are multiplied. `exact` gives the
    objective and the mean held-out error of a support, for weights of 1.
    """

    A: np.ndarray
    y: np.ndarray
    v_mean: np.ndarray
    r_mean: float
    V_test: np.ndarray
    r_test: np.ndarray
    root: float
    exact: ExactProblem

    @classmethod
    def draw(cls, seed: int) -> HardFold:
        rng, n, q, kind = np.random.default_rng(seed), 6, 3, seed % 4
        held, root = 1 + seed % 2, 10.0 ** rng.integers(0, 4)
        V, mean = rng.standard_normal((n + held, q)), 10.0 ** rng.uniform(-2, 5)
        noise = 10.0 ** rng.uniform(-9, 1)
        if kind in (0, 3):  # means of a target whose held-out residuals are small and heavy
            V, root, mean = 0.01 * V, 1e6, 1e5
        elif kind == 1:  # one huge held-out number, whose prediction cancels the target
            V[:n] = np.linalg.qr(V[:n] - V[:n].mean(axis=0))[0]
            V[n:, 1] *= 10.0 ** rng.integers(0, 9)
        else:
            V *= 10.0 ** rng.integers(-2, 3, size=q)
            V[:, 1] += rng.choice([0.0, 30.0]) * V[:, 0]
            V[n:] *= 10.0 ** rng.integers(0, 9)
        r = V @ rng.standard_normal(q) + noise * rng.standard_normal(n + held)
        if kind == 2:
            r[n:] *= 10.0 ** rng.integers(0, 9)
        if kind == 3:
            r[:n] = r[0]
        V, r = V + mean * rng.standard_normal(q), r + mean
        v_mean, r_mean = V[:n].mean(axis=0), float(r[:n].mean())
        A, y = V[:n] - v_mean, r[:n] - r_mean
        if kind == 1:
            S = [1] if seed % 8 == 1 else [0, 1]
            r[n:] = r_mean + (V[n:] - v_mean)[:, S] @ np.linalg.solve(
                A[:, S].T @ A[:, S] + np.eye(len(S)), A[:, S].T @ y
            )
        elif kind == 3:  # without the rounding of the mean of equal numbers
            y[:] = 0.0
        exact = ExactProblem.of(
            V.tolist(), r.tolist(), None, [(range(n), range(n, n + held))], ("none", "fold"), range(q)
        )  # fmt: skip
        return cls(A, y, v_mean, r_mean, V[n:] * root, r[n:] * root, root, exact)

    def problem(self, forced: Iterable[int] = ()) -> SparseProblem:
        A, y, n, q = self.A, self.y, *self.A.shape
        positions = np.array(list(forced), dtype=np.int64)
        return SparseProblem(
            A.T @ A, A.T @ y, float(y @ y), np.ones(q), 1.0, n, self.v_mean, self.r_mean, forced=positions
        )  # fmt: skip

    def excesses(self, cells: list[FoldCell], forced: Iterable[int] = ()) -> Iterator[Fraction]:
        """By how much the bounds of each size miss the exact optimum, as shares of the sizes of these numbers."""
        for cell in cells:
            supports = [s for s in combinations(range(3), cell.tau) if set(forced) <= set(s)]
            value, error = min(self.exact.of_support(2.0, s) for s in supports)
            error *= len(self.r_test) * Fraction(self.root) ** 2
            yield (Fraction(cell.objective_lower) - value) / (value or 1)
            yield (Fraction(cell.lower) - error) / error
            if np.isfinite(cell.objective_upper):
                yield (value - Fraction(cell.objective_upper)) / (value or 1)
            if np.isfinite(cell.upper):
                yield (error - Fraction(cell.upper)) / error
