"""Small hostile problems of two classes and of counts: how they are asked, and the referee of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from glm_claims import Truth
from runs import new_run

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss

FEWEST = 26  # rows where every row is a fold, or one of some pairs of rows


@dataclass(frozen=True, eq=False)
class GlmCase:
    """A problem, and how it is asked."""

    loss: str
    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    how: dict[str, Any]

    @property
    def standard(self) -> StandardData:
        """The data in standard coordinates."""
        return standardize(self.data, self.how["scale"], self.how["intercept"], loss=Loss(self.loss))

    def new_run(self, seconds: float | None = None, **more: Any) -> Any:
        """Return its search, not begun."""
        grid = Grid.of(self.gammas, self.taus, self.data.p)
        asked = {"loss": self.loss, "method": "auto"} | more
        return new_run(self.standard, self.folds, grid, seconds, **asked)

    def solved(self, **more: Any) -> Record:
        """Return the record of its search."""
        of_target = {"exposure": self.data.exposure, "offset": self.data.offset}
        given = {"threads": 1, "loss": self.loss} | of_target | self.how | more
        return cross_validate(self.data, self.folds, gammas=self.gammas, taus=self.taus, **given)

    @cached_property
    def truth(self) -> Truth:
        """All supports, fitted in long doubles."""
        return Truth.from_data(self.data, self.folds, self.loss, self.how)


def two_class_case(seed: int) -> GlmCase:
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
    return GlmCase("logistic", data, folds, gammas, taus, how)


def count_case(seed: int, most: int = 5) -> GlmCase:
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
    return GlmCase("poisson", data, folds, gammas, taus, {"scale": scale, "intercept": intercept, "gap": 0.0})


@lru_cache(4)
def many_folds_case(seed: int, most: int = 4) -> GlmCase:
    """Draw a case: separable classes, a rare one, near copies, dummies, weights; leave-one-out or folds of two rows.

    Parameters
    ----------
    seed : int
    most : int
        Columns.
    """
    rng = np.random.default_rng(seed)
    pairs = bool(seed % 2)
    n, p = int(rng.integers(FEWEST, 46)) * (1 + pairs), int(rng.integers(2, most + 1))
    X, kind = rng.normal(size=(n, p)), int(rng.integers(0, 6))
    if kind == 1:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-5.0, -1.0) * X[:, 1]
    if kind == 2:
        X = (X > 0.3).astype(float)
    if kind == 3:
        X[:, 1] = X[:, 0] * rng.choice([-1.0, 1.0])
    margins = X @ (rng.normal(size=p) * rng.choice([0.3, 1.0, 3.0])) + 0.5 * rng.normal()
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-margins))
    if kind == 4:
        y = margins > np.median(margins)
    if kind == 5 or not 3 <= y.sum() <= n - 3:
        y = np.zeros(n, dtype=bool)
        y[rng.choice(n, 3, replace=False)] = True
    if rng.random() < 0.2:
        X = X * 10.0 ** rng.uniform(-4.0, 4.0, size=p) + rng.choice([0.0, 1e3])
    data = as_two_classes(Dataset.from_arrays(X, y.astype(float)))
    if rng.random() < 0.3:
        weights = rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
        weights[rng.random(n) < 0.1 * (kind != 5)] = 0.0
        data = weighted_rows(data, weights, "w")
    gammas = sorted((10.0 ** rng.uniform(-4.0, 2.0, size=int(rng.integers(1, 3)))).tolist())
    how = {
        "scale": str(rng.choice(["length", "none"])), "intercept": str(rng.choice(["fold", "fold", "fold", "none"])),
        "gap": float(rng.choice([0.0, 1e-4, 1e-2])),
    }  # fmt: skip
    folds = make_folds(str(n // 2) if pairs else "loo", data, seed)
    return GlmCase("logistic", data, folds, gammas, list(range(p + 1)), how)
