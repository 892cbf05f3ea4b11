"""The training-loss bound of every cell, kept in step with what is known of all rows."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.parallel import run_folds
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
from sparsecv_mio.units import TIE_RTOL


class LossBounds:
    """A better bound on all rows raises the lower bounds of all folds of a pair at once.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included: that of the supports that the cells
        showed when they were refitted; inf where there was none.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
        self._refitted = False

    def apply(self) -> None:
        """Raise the lower bounds of all cells to what all rows say; the first time the folds are refitted."""
        if not self._refitted:
            self._refit()
        state = self.run.state
        bound = training_loss_bound(state.all_rows.lower_bounds()[:, :, None], self.values)
        state.cells.narrow(np.s_[:, :, :], bound, np.inf)

    def _refit(self) -> None:
        """Refit in every fold the supports that its cells show. O(G T (s^3 + rows s)) a fold."""
        context, deadline = self.run.context, self.run.context.deadline
        for _ in run_folds(self.run.accelerators.training_moments(), self._refit_fold, context.threads):
            if deadline.expired():
                break
        self.values = np.minimum.accumulate(self.values, axis=1)  # what is feasible for tau is so for a larger one
        self._refitted = True

    def _refit_fold(self, fold: int, moments: Moments) -> None:
        context, cells = self.run.context, self.run.state.cells
        made = FoldProblem.of(context.data, context.folds, fold, moments)
        for g, gamma in enumerate(context.grid.gammas.tolist()):
            shown = np.flatnonzero(np.isfinite(cells.nominal[g, :, fold]))
            if context.deadline.expired() or not len(shown):
                continue
            numbers, which = np.unique(cells.support[g, shown, fold], return_inverse=True)
            fits = made.with_gamma(gamma).refit([cells.pool.supports[number] for number in numbers.tolist()])
            values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
            self.values[g, shown, fold] = np.where(np.isfinite(values), values, np.inf)[which.reshape(-1)]
