"""Fits of the pairs that enter an average, and the held-out losses of their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS
from sparsecv_mio.certificate.enumeration import UnitColumns, held_out_errors
from sparsecv_mio.certificate.glm_records import GlmDesign
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.glm_objective import GlmModel
from sparsecv_mio.problem.objective import RidgeFit
from sparsecv_mio.units import MARGINS_OFF

AVERAGE_OPERATIONS = 4e9  # elementary operations of the refits of all pairs; beyond, of those of the average alone

Support = tuple[int, ...]  # positions among the columns that may be in one


class RowLosses(NamedTuple):
    """(n,) held-out losses of rows, the mean where several folds score one; what rounding is worth in their mean."""

    losses: FloatArray
    noise: float


def predictors_of(model: RidgeFit | GlmModel, X: FloatArray) -> FloatArray:
    """(m,) linear predictors of rows by a fit: what squares predict, log odds, or log rates."""
    return model.predict(X) if isinstance(model, RidgeFit) else model.predictors(X)


class PairFits:
    """Fits of squares.

    Parameters
    ----------
    design : UnitColumns
        All columns that may be in a support.
    plan : FoldPlan
    """

    def __init__(self, design: UnitColumns, plan: FoldPlan) -> None:
        self.design, self.plan, self.dataset = design, plan, design.dataset
        times, heft = np.bincount(plan.all_scored, minlength=design.dataset.n), design.dataset.row_weights
        self.times, self.heft = times, heft
        self.counts = times.astype(np.float64) if heft is None else times * heft

    def mean(self, losses: FloatArray) -> float:
        """Return the CV error that losses of rows make."""
        return float(losses @ self.counts) / float(self.counts.sum())

    def may_fit(self, sizes: list[float]) -> bool:
        """Whether pairs of so many features are few enough to fit them in every fold."""
        n = self.dataset.n
        return self.plan.k * n * sum(size * min(size, n) for size in sizes) <= AVERAGE_OPERATIONS

    def fit(self, support: Support, gamma: float, rows: IntArray | None) -> RidgeFit | GlmModel:
        """Fit a support on some rows, or on all."""
        return self.design.refit(support, gamma, rows)

    def losses(self, supports: list[Support], gamma: float, tau: int) -> RowLosses:
        """Fit a support without each fold, and score the rows of the folds.

        Parameters
        ----------
        supports : list of tuple of int
            By fold.
        gamma : float
        tau : int
            Features that they may have.
        """
        dataset, plan, squares = self.dataset, self.plan, np.zeros(self.dataset.n)
        if (plan.sizes == 1).all():
            fold_errors, _, _ = held_out_errors(self.design, plan, supports, gamma)
            rows = plan.order[: plan.scored]
            np.add.at(squares, rows, fold_errors if self.heft is None else fold_errors / self.heft[rows])
        else:
            for fold, support in enumerate(supports):
                model, rows = self.design.refit(support, gamma, plan.train_rows(fold)), plan.scored_rows(fold)
                squares[rows] += (model.residuals(dataset.X, dataset.y, rows) * model.coordinates.y_unit) ** 2
        squares /= np.maximum(self.times, 1)
        return RowLosses(squares, self.design.slack(self.mean(squares), gamma, tau, 0.0))


class GlmPairFits(PairFits):
    """Fits by another loss.

    Parameters
    ----------
    design : UnitColumns
        All columns that may be in a support.
    plan : FoldPlan
    glm : GlmDesign
        What fits.
    """

    def __init__(self, design: UnitColumns, plan: FoldPlan, glm: GlmDesign) -> None:
        super().__init__(design, plan)
        self.glm = glm

    def may_fit(self, sizes: list[float]) -> bool:
        """See `PairFits`."""
        return self.plan.k * len(sizes) <= MOST_FITS and super().may_fit(sizes)

    def fit(self, support: Support, gamma: float, rows: IntArray | None) -> GlmModel:
        """See `PairFits`."""
        return self.glm.fit(tuple(self.design.columns[list(support)].tolist()), gamma, rows)

    def losses(self, supports: list[Support], gamma: float, tau: int) -> RowLosses:
        """See `PairFits`."""
        total, off = np.zeros(self.dataset.n), 0.0
        for fold, support in enumerate(supports):
            rows = self.plan.scored_rows(fold)
            losses, doubt = self.fit(support, gamma, self.plan.train_rows(fold)).of_rows(
                self.dataset, rows, MARGINS_OFF
            )  # fmt: skip
            total[rows] += losses if self.heft is None else losses / self.heft[rows]
            off += float(doubt.sum())
        return RowLosses(total / np.maximum(self.times, 1), off / float(self.counts.sum()))
