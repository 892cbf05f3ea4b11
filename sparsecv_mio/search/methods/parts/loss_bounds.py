"""The training-loss bound of every cell, kept in step with what is known of all rows."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.stored import within
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
        showed when they were last refitted; inf where they were not.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
        self._refitted = np.full(run.context.shape, -1, dtype=np.int32)  # the numbers of these supports

    def apply(self, lower: FloatArray | None = None, gammas: IntArray | slice = slice(None)) -> None:
        """Raise the lower ends of all held-out intervals to what the lower bounds on all rows say.

        Cells that show no support yet are offered the best one on all rows.

        Parameters
        ----------
        lower : (G, T) array, optional
            Certified lower bounds of the optimum on all rows, rounding included, beyond those known already; 0 where
            there is none.
        gammas : int array or slice
            Indices of those at which supports may be refitted; all by default.
        """
        self._refit(gammas)
        state = self.run.state
        if lower is not None:
            state.all_rows.raise_lower_bounds(lower)
        bound = training_loss_bound(state.all_rows.lower_bounds()[:, :, None], self.values)
        bound = np.where(self.run.context.folds.scores_all_left_out, bound, 0.0)
        state.cells.narrow(np.s_[:, :, :], bound, np.inf)

    def _refit(self, gammas: IntArray | slice) -> None:
        """Refit in every fold the supports that its cells have come to show. O(G T (s^3 + rows s)) a fold."""
        context, cells = self.run.context, self.run.state.cells
        taus, best = context.grid.taus.tolist(), self.run.state.all_rows.best
        on_all_rows = np.array([[cells.pool.number(one.cells[tau].support) for tau in taus] for one in best])
        with cells.lock:
            shown = np.where(np.isfinite(cells.nominal), cells.support, on_all_rows[:, :, None])
        new = np.zeros(context.shape, dtype=bool)
        new[gammas] = shown[gammas] != self._refitted[gammas]

        def refit(fold: int, moments: Moments) -> None:
            self._refit_fold(FoldProblem.of(context.data, context.folds, fold, moments), shown, new)

        folds = np.flatnonzero(new.any(axis=(0, 1))).tolist()
        for _ in run_folds(self.run.accelerators.training_moments(folds), refit, context.threads) if folds else ():
            if context.deadline.expired():
                break
        self.values = np.minimum.accumulate(self.values, axis=1)  # what is feasible for tau is so for a larger one

    def _refit_fold(self, here: FoldProblem, shown: IntArray, new: BoolArray) -> None:
        """Refit some supports of a fold, by their numbers (G, T, K), and offer them to its cells."""
        for g, gamma in enumerate(self.run.context.grid.gammas.tolist()):
            which = np.flatnonzero(new[g, :, here.fold])
            if self.run.context.deadline.expired() or not len(which):
                continue
            numbers, at = np.unique(shown[g, which, here.fold], return_inverse=True)
            fits = here.with_gamma(gamma).refit([self.run.state.cells.pool.supports[i] for i in numbers.tolist()])
            at = at.reshape(-1)
            part = (g, which, here.fold)
            self.run.state.cells.offer(part, numbers[at].astype(np.int32), fits.held_out[at], fits.value[at])
            values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
            values = np.where(np.isfinite(values), values, np.inf)[at]
            self.values[part] = np.minimum(self.values[part], values)
            self._refitted[part] = shown[part]

    def archive(self) -> Archive:
        """Return what is known: training objectives by cell, of which supports, and lower bounds on all rows."""
        lower = np.zeros(self.values.shape[:2])
        for known, one in zip(lower, self.run.state.all_rows.best, strict=False):  # none before the first steps
            known[:] = [one.cells[tau].lower for tau in self.run.context.grid.taus.tolist()]
        return {"loss_values": self.values, "loss_refitted": self._refitted, "loss_lower": lower}

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` for numbers that cannot be such."""
        within(stored, "loss_values", 0.0, np.inf)
        within(stored, "loss_lower", 0.0, np.finfo(np.float64).max)

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived, once all rows have a support of every size."""
        self.values, self._refitted = stored["loss_values"].copy(), stored["loss_refitted"].copy()
        self.run.state.all_rows.raise_lower_bounds(stored["loss_lower"])
