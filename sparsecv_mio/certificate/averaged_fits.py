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

AVERAGE_OPERATIONS = 4e9  # operations of refits; beyond it only pairs of the average are refitted

Support = tuple[int, ...]  # positions among the columns that a support may have


class RowLosses(NamedTuple):
    """Held-out losses (n,) of rows, and a bound on the rounding error of their mean.

    If several folds score a row, its loss is the mean over these folds.
    """

    losses: FloatArray
    noise: float


def linear_predictors(model: RidgeFit | GlmModel, X: FloatArray) -> FloatArray:
    """Return the (m,) linear predictors of rows: predictions of squared-error fits, log odds, or log rates."""
    return model.predict(X) if isinstance(model, RidgeFit) else model.predictors(X)


class PairFits:
    """Fits with squared-error loss.

    Parameters
    ----------
    design : UnitColumns
        Design of all columns that may be in a support.
    plan : FoldPlan
        Folds.
    """

    def __init__(self, design: UnitColumns, plan: FoldPlan) -> None:
        self.design, self.plan, self.dataset = design, plan, design.dataset
        times, heft = np.bincount(plan.all_scored, minlength=design.dataset.n), design.dataset.row_weights
        self.times, self.heft = times, heft
        self.counts = times.astype(np.float64) if heft is None else times * heft

    def mean(self, losses: FloatArray) -> float:
        """Return the CV error of the given losses of rows."""
        return float(losses @ self.counts) / float(self.counts.sum())

    def may_fit(self, sizes: list[float]) -> bool:
        """Return True if pairs of these sizes are few enough to be fitted in every fold."""
        n = self.dataset.n
        return self.plan.k * n * sum(size * min(size, n) for size in sizes) <= AVERAGE_OPERATIONS

    def fit(self, support: Support, gamma: float, rows: IntArray | None) -> RidgeFit | GlmModel:
        """Return the fit of a support to some rows, or to all."""
        return self.design.refit(support, gamma, rows)

    def losses(self, supports: list[Support], gamma: float, tau: int) -> RowLosses:
        """Return the held-out losses of the fits of one support for each fold.

        Parameters
        ----------
        supports : list of tuple of int
            Supports by fold.
        gamma : float
            Ridge weight.
        tau : int
            Maximum number of features.
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
    """Fits with another loss.

    Parameters
    ----------
    design : UnitColumns
        Design of all columns that may be in a support.
    plan : FoldPlan
        Folds.
    glm : GlmDesign
        Design that computes the fits.
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
            losses, doubt = self.fit(support, gamma, self.plan.train_rows(fold)).compute_row_losses(
                self.dataset, rows, MARGINS_OFF
            )  # fmt: skip
            total[rows] += losses if self.heft is None else losses / self.heft[rows]
            off += float(doubt.sum())
        return RowLosses(total / np.maximum(self.times, 1), off / float(self.counts.sum()))
