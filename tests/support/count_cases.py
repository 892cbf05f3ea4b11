"""Small hostile tables of counts for searches, and the truth of every pair by an enumeration with its own Newton."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from logistic_truth import least, long_losses

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.counts import as_counts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.objective import scales
from sparsecv_mio.problem.row_losses import PoissonLoss
from sparsecv_mio.search.api import cross_validate

TIED = 1e-10  # of an objective


@dataclass(frozen=True, eq=False)
class CountCase:
    """Data, folds, a grid, and the options of a search."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    how: dict[str, Any]

    def solved(self, **more: Any) -> Record:
        """Search the grid."""
        asked = {"loss": "poisson", "exposure": self.data.exposure, "threads": 1, **self.how, **more}
        return cross_validate(self.data, self.folds, gammas=self.gammas, taus=self.taus, **asked)

    def problem(self, rows: IntArray, gamma: float) -> GlmProblem:
        """Return the problem of some rows, by its definition."""
        data = self.data
        w = np.ones(data.n) if data.row_weights is None else data.row_weights
        e = np.ones(data.n) if data.row_exposure is None else data.row_exposure
        weight = scales(data.X, self.how["scale"], data.row_weights) ** 2
        y, v, intercept = (data.y / e)[rows], (w * e)[rows], self.how["intercept"] != "none"
        return GlmProblem(data.X[rows], y, v, weight, gamma, intercept, PoissonLoss())

    def truth(self, gamma: float, tau: int) -> tuple[float, float]:
        """Ends of the CV error over all supports that are optimal in a fold."""
        low = high = 0.0
        for fold in range(self.folds.k):
            rows, out = self.folds.train_rows(fold), self.folds.scored_rows(fold)
            problem, outside = self.problem(rows, gamma), self.problem(out, gamma) if self._some(out) else None
            supports = [S for size in range(min(tau, problem.p) + 1) for S in combinations(range(problem.p), size)]
            truths = {S: least(problem.select_columns(np.array(S, dtype=np.int64))) for S in supports}
            best, ends = min(one.value for one in truths.values()), []
            y, v = self._outside(out) if outside is None else (outside.y, outside.v)
            for S, one in truths.items():
                if one.value <= best * (1.0 + TIED) + 1e-300:
                    columns = np.array(S, dtype=np.int64)
                    X = self.data.X[np.ix_(out, columns)]
                    ends.append([float(v @ part) for part in long_losses(problem.select_columns(columns), one, X, y)])
            low, high = low + min(end[0] for end in ends), high + max(end[1] for end in ends)
        total = sum(self.data.weight_of(self.folds.scored_rows(fold)) for fold in range(self.folds.k))
        return low / total, high / total

    def _some(self, rows: IntArray) -> bool:
        return bool(self.data.y[rows].any())

    def _outside(self, rows: IntArray) -> tuple[Any, Any]:
        data = self.data
        w = np.ones(data.n) if data.row_weights is None else data.row_weights
        e = np.ones(data.n) if data.row_exposure is None else data.row_exposure
        return (data.y / e)[rows], (w * e)[rows]


def count_case(seed: int, most: int = 5) -> CountCase:
    """Zeros mostly, exposures over four decades, counts of 1e4, near copies, weights, gamma from 1e-4 to 1e3."""
    rng = np.random.default_rng(seed)
    n, p, kind = int(rng.integers(12, 31)), int(rng.integers(1, most + 1)), seed % 8
    X = rng.normal(size=(n, p))
    if kind == 1 and p > 1:
        X[:, 0] = X[:, 1] + 10.0 ** rng.uniform(-5, -1) * X[:, 0]
    if kind == 2:
        X = (X > 0.3).astype(float) + 1e-3 * (rng.random((n, p)) < 0.1)
    level = {3: -2.0, 4: np.log(1e4)}.get(kind, rng.uniform(-0.5, 2.0))
    exposure = 10.0 ** rng.uniform(-2, 2, n) if kind == 5 else rng.uniform(0.5, 2.0, n) if kind == 6 else np.ones(n)
    score = level + X @ (rng.normal(size=p) * rng.choice([0.0, 0.3, 0.8]))
    counts = rng.poisson(np.minimum(exposure * np.exp(score), 1e7)).astype(float)
    counts[rng.choice(n, 3, replace=False)] += 1.0
    data = Dataset.from_arrays(X, counts, aux={"e": exposure})
    data = as_counts(data, "e" if kind in (5, 6) else None)
    if kind == 7:
        data = weighted_rows(data, rng.choice([0.1, 1.0, 7.0], size=n), "w")
    folds = make_folds(str(rng.choice(["2", "3", "4", "loo" if n < 16 else "5"])), data, int(rng.integers(100)))
    gammas = sorted({float(f"{10.0 ** rng.uniform(-4, 3):.3g}") for _ in range(2)})
    taus = sorted({int(tau) for tau in rng.integers(0, p + 1, 2)})
    scale, intercept = str(rng.choice(["length", "none"])), "none" if rng.random() < 0.15 else "fold"
    return CountCase(data, folds, gammas, taus, {"scale": scale, "intercept": intercept, "gap": 0.0})
