"""Fits of Cox regression for `verify`; the branch and bound is that of `certificate/glm_design`.

All computations use `problem/cox_objective`, which shares no code with the search. The held-out loss of a fold is a
difference of two negative log partial likelihoods. This difference is not a sum over rows, so no row has a loss of its
own, and every fold is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.design import HeldOut, RowLosses, Support, Tell
from sparsecv_mio.certificate.glm_design import SLOPE_ROUNDING, GlmDesign
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.glm_objective import GlmModel
from sparsecv_mio.units import CROSSING_RTOL, FOLLOWS_RTOL, NEWTON_RTOL, TINY


@dataclass(frozen=True, eq=False)
class CoxDesign(GlmDesign):
    """Columns of a data set, and fits with Cox loss."""

    @property
    def has_rough_fits(self) -> bool:
        """True: fits near the minimum take less time."""
        return True

    def held_out(self, model: GlmModel, rows: IntArray, dataset: Dataset | None = None) -> tuple[float, float]:
        """Return the loss of some rows, which may be rows of other data, and a bound on its rounding error."""
        if dataset is None or dataset is self.dataset:
            return super().held_out(model, rows)
        both = self.dataset.join_rows(dataset.take(rows))
        return super().held_out(model, np.arange(self.dataset.n, both.n), both)

    def cancelled(self, model: GlmModel) -> float:
        """Return the rounding error of an objective that is due to logarithms and exponents that cancel."""
        return float(model.rounding)  # type: ignore[attr-defined]

    def rounding(self, model: GlmModel) -> float:
        """Return the rounding error of an objective: the relative one of Newton steps, and numbers that cancel.

        Columns are centred before exponents are computed, so values far from 0 cost no digits.
        """
        return NEWTON_RTOL * model.objective + self.cancelled(model) + TINY

    def coefficient_rooms(self, support: Support, gamma: float, model: object) -> FloatArray:
        """Return (s,) tolerances for the coefficients of a full-data fit.

        Coefficients may be 0, as those of columns that are constant in each stratum, and differ by the rounding of
        gradients.
        """
        fit: Any = model
        rounding = SLOPE_ROUNDING * fit.moved(self.dataset) * np.abs(fit.inverse).sum(axis=1)
        return np.asarray((FOLLOWS_RTOL * self._largest_effect(fit) + rounding) / fit.unit)

    def held_out_losses(self, supports: Sequence[Support], gamma: float, tau: int, tell: Tell) -> HeldOut:
        """Fit the support of every fold; see `Design`."""
        plan, losses, rooms = self.folds, np.zeros(self.folds.k), np.zeros(self.folds.k)
        predictors = np.full(plan.scored, np.nan)
        for fold, support in enumerate(supports):
            tell(fold, plan.k)
            model, scored = self.refit(support, gamma, plan.train_rows(fold)), plan.scored_rows(fold)
            losses[fold], rooms[fold] = self.held_out(model, scored)
            predictors[plan.starts[fold] : plan.starts[fold + 1]] = model.predictors(self.dataset.X[scored])
        mean_room = (CROSSING_RTOL * float(losses.sum()) + float(rooms.sum())) / self.scored.total + TINY
        return HeldOut(losses, losses - rooms, losses + rooms, mean_room, predictors=predictors)

    def held_out_rows(self, supports: Sequence[Support], gamma: float, tau: int) -> RowLosses:
        """Raise an error: no row has a loss of its own."""
        raise NotImplementedError("Cox loss has no losses of single rows")

    def row_losses(self, support: Support, gamma: float, train: IntArray | None) -> FloatArray:
        """Raise an error: no row has a loss of its own."""
        raise NotImplementedError("Cox loss has no losses of single rows")
