"""A small problem, its training sets and what lists supports of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.search.every_gamma.gamma_fits import TrainingSets
from sparsecv_mio.search.every_gamma.gamma_lists import Lister
from sparsecv_mio.words import Intercept, Scale


@dataclass(frozen=True, eq=False)
class IntervalProblem:
    """Data in standard coordinates and their folds."""

    data: StandardData
    folds: FoldPlan
    sets: TrainingSets

    def lister(self) -> Lister:
        """Return a lister without a limit."""
        return Lister(self.sets, self.data, self.folds, lambda: False)


def interval_problem(seed: int, spec: str, n: int = 24, p: int = 6) -> IntervalProblem:
    """Draw correlated columns and a noisy target."""
    rng = np.random.default_rng([17, seed])
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.6)) + rng.normal(size=n)
    data = Dataset.from_arrays(X, y)
    standard, folds = standardize(data, Scale.LENGTH, Intercept.FOLD), make_folds(spec, data, seed)
    return IntervalProblem(standard, folds, TrainingSets.from_folds(standard, folds))
