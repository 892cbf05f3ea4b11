"""Small hostile tables of two classes and of counts with columns to adjust for; the truth of pairs by long Newton."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from glm_cases import count_case, two_class_case
from logistic_truth import has_least, least, long_losses

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.objective import scales, varying_columns
from sparsecv_mio.problem.row_losses import encode_dataset_targets, row_loss
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss

TIED = 1e-10  # of an objective
KINDS = ("plain", "near copy", "copy", "apart in a fold", "binary", "constant in a fold", "dependent", "far away")


@dataclass(frozen=True, eq=False)
class AdjustedCase:
    """Data, folds, a grid, the options of a search, and the columns that are adjusted for."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    how: dict[str, Any]
    adjusted: list[int]

    @property
    def names(self) -> list[str]:
        """Of what is adjusted for."""
        return [self.data.names[j] for j in self.adjusted]

    def solved(self, **more: Any) -> Record:
        """Search the grid."""
        asked = {"threads": 1, "adjust": self.names, "exposure": self.data.exposure, **self.how, **more}
        return cross_validate(self.data, self.folds, gammas=self.gammas, taus=self.taus, **asked)

    def problem(self, rows: IntArray, gamma: float) -> GlmProblem:
        """Return the problem of some rows, by its definition."""
        data, loss = self.data, row_loss(Loss(self.how["loss"]))
        weight = scales(data.X, self.how["scale"], data.row_weights) ** 2
        weight[self.adjusted] = 0.0
        y, v = encode_dataset_targets(loss, data, rows)
        return GlmProblem(data.X[rows], y, v, weight, gamma, self.how["intercept"] != "none", loss)

    def has_least(self) -> bool:
        """Whether what is adjusted for has a best fit on all rows, and on the training rows of every fold."""
        every = [np.arange(self.data.n), *(self.folds.train_rows(fold) for fold in range(self.folds.k))]
        return all(has_least(self.problem(rows, 1.0), tuple(self.adjusted)) for rows in every)

    def truth(self, gamma: float, tau: int) -> tuple[float, float]:
        """Ends of the CV error over all supports that are optimal in a fold."""
        low = high = 0.0
        others = [j for j in varying_columns(self.data.X).tolist() if j not in self.adjusted]
        supports = [tuple(sorted((*self.adjusted, *S))) for size in range(tau + 1) for S in combinations(others, size)]
        loss = row_loss(Loss(self.how["loss"]))
        for fold in range(self.folds.k):
            rows, out = self.folds.train_rows(fold), self.folds.scored_rows(fold)
            problem, (y, v) = self.problem(rows, gamma), encode_dataset_targets(loss, self.data, out)
            truths = {S: least(problem.select_columns(np.array(S, dtype=np.int64))) for S in supports}
            best, ends = min(one.value for one in truths.values()), []
            for S, one in truths.items():
                if one.value <= best * (1.0 + TIED) + 1e-300:
                    columns = np.array(S, dtype=np.int64)
                    X = self.data.X[np.ix_(out, columns)]
                    ends.append([float(v @ part) for part in long_losses(problem.select_columns(columns), one, X, y)])
            low, high = low + min(end[0] for end in ends), high + max(end[1] for end in ends)
        total = sum(self.data.weight_of(self.folds.scored_rows(fold)) for fold in range(self.folds.k))
        return low / total, high / total


def adjusted_case(seed: int) -> AdjustedCase | None:
    """Draw a case; None where it has too few columns or rows to choose and adjust by.

    Parameters
    ----------
    seed : int
    """
    rng, logistic = np.random.default_rng(seed), seed % 2 == 0
    base = two_class_case(seed // 2) if logistic else count_case(seed // 2)
    data, p = base.data, min(base.data.p, 5)
    if p < 2 or (base.folds.k > 12 and base.data.n > 20):
        return None
    adjusted = sorted(rng.choice(p, size=1 + int(p > 2 and rng.random() < 0.4), replace=False).tolist())
    others = [j for j in range(p) if j not in adjusted]
    X, kind, last = data.X[:, :p].copy(), KINDS[int(rng.integers(len(KINDS)))], adjusted[-1]
    train = base.folds.train_rows(0)
    if kind in ("near copy", "copy"):  # a feature of a column that is adjusted for
        noise = 0.0 if kind == "copy" else 10.0 ** rng.uniform(-6, -1)
        X[:, others[0]] = -X[:, last] + noise * X[:, last].std() * rng.normal(size=data.n)
    if kind == "apart in a fold":
        X[train, last] = (data.y[train] > 0.0) * (rng.random(len(train)) < 0.5)
    if kind == "binary":
        X[:, last] = rng.random(data.n) < 0.4
    if kind == "constant in a fold":
        X[train, last] = 1.0
    if kind == "dependent" and len(adjusted) > 1:
        X[:, last] = 2.0 * X[:, adjusted[0]] + 1.0
    if kind == "far away":
        X[:, last] = X[:, last] * 10.0 ** rng.uniform(-4, 4) + 1e5 * X[:, last].std()
    taus = sorted({min(tau, p - len(adjusted)) for tau in base.taus})
    how = {**base.how, "loss": "logistic" if logistic else "poisson"}
    return AdjustedCase(replace(data, X=X, names=data.names[:p]), base.folds, base.gammas, taus, how, adjusted)
