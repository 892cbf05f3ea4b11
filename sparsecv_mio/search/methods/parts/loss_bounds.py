"""The training-loss bound of every cell, kept in step with what is known of all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.run import Run
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
        showed when they were last refitted; inf where there was none.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
        self._refitted = np.full(run.context.shape, -1, dtype=np.int32)  # the numbers of these supports

    def apply(self, lower: FloatArray | None = None) -> None:
        """Raise the lower ends of all held-out intervals to what the lower bounds on all rows say.

        Parameters
        ----------
        lower : (G, T) array, optional
            Certified lower bounds of the optimum on all rows, rounding included, beyond those known already; 0 where
            there is none.
        """
        self._refit()
        state = self.run.state
        if lower is not None:
            state.all_rows.raise_lower_bounds(lower)
        bound = training_loss_bound(state.all_rows.lower_bounds()[:, :, None], self.values)
        state.cells.narrow(np.s_[:, :, :], bound, np.inf)

    def _refit(self) -> None:
        """Refit in every fold the supports that its cells have come to show. O(G T (s^3 + rows s)) a fold."""
        context, cells = self.run.context, self.run.state.cells
        with cells.lock:
            shown = np.where(np.isfinite(cells.nominal), cells.support, -1)
        new = shown != self._refitted

        def refit(fold: int, moments: Moments) -> None:
            self._refit_fold(FoldProblem.of(context.data, context.folds, fold, moments), shown, new)

        folds = np.flatnonzero(new.any(axis=(0, 1))).tolist()
        for _ in run_folds(self.run.accelerators.training_moments(folds), refit, context.threads) if folds else ():
            if context.deadline.expired():
                break
        self.values = np.minimum.accumulate(self.values, axis=1)  # what is feasible for tau is so for a larger one

    def _refit_fold(self, here: FoldProblem, shown: NDArray[np.int32], new: BoolArray) -> None:
        """Refit some supports of a fold, by their numbers (G, T, K)."""
        for g, gamma in enumerate(self.run.context.grid.gammas.tolist()):
            which = np.flatnonzero(new[g, :, here.fold])
            if self.run.context.deadline.expired() or not len(which):
                continue
            numbers, at = np.unique(shown[g, which, here.fold], return_inverse=True)
            fits = here.with_gamma(gamma).refit([self.run.state.cells.pool.supports[i] for i in numbers.tolist()])
            values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
            values = np.where(np.isfinite(values), values, np.inf)[at.reshape(-1)]
            self.values[g, which, here.fold] = np.minimum(self.values[g, which, here.fold], values)
            self._refitted[g, which, here.fold] = shown[g, which, here.fold]
