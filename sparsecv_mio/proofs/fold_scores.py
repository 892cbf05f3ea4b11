"""Training objectives and held-out errors of supports in every fold: floats that propose what a proof says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.problem.accumulate import Moments, row_moments, training_moments
from sparsecv_mio.problem.problem import SparseProblem

Support = tuple[int, ...]


class FoldScores:
    """The rows and moments of all folds, and what supports are worth there at one gamma after the other.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan
    """

    def __init__(self, data: StandardData, plan: FoldPlan) -> None:
        self.data, self.plan = data, plan
        self.whole = row_moments(data, slice(0, data.n))
        self.single = bool(np.all(plan.left_sizes == 1) and plan.scores_all_left_out.all())
        self._moments: dict[int, Moments] = {}

    def moments(self, fold: int) -> Moments:
        """Return the moments of the training rows of a fold."""
        if fold not in self._moments:
            if self.single:
                return row_moments(self.data, self.plan.train_rows(fold))
            self._moments = dict(training_moments(self.data, self.plan))
        return self._moments[fold]

    def at(self, gamma: float) -> ScoresAt:
        """Return the scores at one gamma."""
        return ScoresAt(self, gamma)


@dataclass(frozen=True, eq=False)
class ScoresAt:
    """Scores at one gamma; every number in the units of the problems, not of the file."""

    folds: FoldScores
    gamma: float

    @cached_property
    def whole(self) -> SparseProblem:
        """The problem on all rows."""
        return self.folds.whole.problem(self.folds.data, self.gamma)

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        data, base = self.folds.data, self.whole
        return data.about(slice(0, data.n), base.v_mean, base.r_mean)

    def problem(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows."""
        return self.folds.moments(fold).problem(self.folds.data, self.gamma)

    def _left_out(self, columns: IntArray) -> tuple[float, FloatArray, FloatArray]:
        """Return f on all rows, and of the row of every fold its residual and leverage: folds of one row."""
        base, (V, r) = self.whole, self._rows
        order = self.folds.plan.order[: self.folds.plan.scored]
        X, c = V[np.ix_(order, columns)], base.c[columns]
        inverse = np.linalg.inv(base.M[np.ix_(columns, columns)])
        beta = inverse @ c
        share = 1.0 / base.n if self.folds.data.intercept is Intercept.FOLD else 0.0
        h = np.einsum("ij,ij->i", X @ inverse, X) + share
        return float(base.yy - c @ beta), r[order] - X @ beta, np.minimum(h, 1.0 - 1e-12)

    @cached_property
    def all_columns(self) -> tuple[float, FloatArray, FloatArray]:
        """The fit of all columns: f on all rows, residuals and leverages of folds of one row."""
        return self._left_out(np.arange(self.whole.q))

    def score(self, supports: Sequence[Support], folds: Sequence[int] | None = None) -> tuple[FloatArray, FloatArray]:
        """Return training objectives and held-out errors of L supports in K folds: arrays (L, K)."""
        chosen = np.arange(self.folds.plan.k) if folds is None else np.asarray(folds, dtype=np.int64)
        objective, error = np.empty((len(supports), len(chosen))), np.empty((len(supports), len(chosen)))
        for i, support in enumerate(supports):
            columns = np.array(support, dtype=np.int64)
            if self.folds.single:
                f, e, h = self._left_out(columns)
                objective[i], error[i] = (f - e**2 / (1.0 - h))[chosen], (e[chosen] / (1.0 - h[chosen])) ** 2
            else:
                for k, fold in enumerate(chosen.tolist()):
                    objective[i, k], error[i, k] = self._refitted(columns, fold)
        return objective, error

    def _refitted(self, columns: IntArray, fold: int) -> tuple[float, float]:
        data, problem = self.folds.data, self.problem(fold)
        beta = np.linalg.solve(problem.M[np.ix_(columns, columns)], problem.c[columns])
        V, r = data.about(self.folds.plan.scored_rows(fold), problem.v_mean, problem.r_mean)
        rest = r - V[:, columns] @ beta
        return float(problem.yy - problem.c[columns] @ beta), float(rest @ rest)
