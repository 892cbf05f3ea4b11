"""Small hostile problems of two classes: near copies, dummies, separation, rare classes, offsets, scales, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.search.api import cross_validate


@dataclass(frozen=True, eq=False)
class TwoClassCase:
    """A problem, and how it is asked."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    how: dict[str, Any]

    def solved(self, **more: Any) -> Record:
        """Return the record of its search."""
        given = self.how | {"threads": 1, "loss": "logistic"} | more
        return cross_validate(self.data, self.folds, gammas=self.gammas, taus=self.taus, **given)


def two_class_case(seed: int) -> TwoClassCase:
    """Draw a case; raises `BadInput` where it has one class alone.

    Parameters
    ----------
    seed : int
    """
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 61)), int(rng.integers(1, 8))
    X, kind = rng.normal(size=(n, p)), int(rng.integers(0, 6))
    if kind == 1 and p > 1:
        X[:, 1] = X[:, 0] + rng.choice([0.0, 1e-9, 1e-6, 1e-3]) * rng.normal(size=n)
    if kind == 2:
        X = np.round(X)
    if kind == 3:
        X[:, 0] = 0.0
        X[:3, 0] = 1.0
    if kind == 4:
        X = (X > 0.0).astype(float)
    margins = X @ (rng.normal(size=p) * rng.choice([0.1, 1.0, 5.0, 30.0])) + 0.5 * rng.normal()
    drawn = rng.random(n) < 1.0 / (1.0 + np.exp(-margins))
    y = drawn if rng.random() < 0.7 else margins > np.median(margins)
    if rng.random() < 0.2:
        y = np.zeros(n, dtype=bool)
        y[rng.choice(n, 3, replace=False)] = True
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-6.0, 6.0, size=p)
    if rng.random() < 0.3:
        X = X + rng.choice([0.0, 1e3, 1e6]) * X.std(axis=0)
    data = as_two_classes(Dataset.from_arrays(X, y.astype(float)))
    if rng.random() < 0.3:
        data = weighted_rows(data, rng.choice([0.5, 1.0, 2.0, 3.7], size=n), "w")
    gammas = sorted((10.0 ** rng.uniform(-6.0, 3.0, size=int(rng.integers(1, 4)))).tolist())
    taus = sorted(set(rng.integers(0, p + 1, size=3).tolist()))
    folds = make_folds(str(rng.choice(["2", "3", "5", "blocks:6", "loo", "2x3"])), data, seed)
    how = {
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "fold", "none"])),
        "gap": float(rng.choice([0.0, 1e-4])),
    }
    return TwoClassCase(data, folds, gammas, taus, how)
