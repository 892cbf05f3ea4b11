"""Fits with logistic and Poisson loss for the average of near-optimal pairs (tau, gamma).

Every support is fitted in every fold. (For squared-error loss, moments of the folds are sufficient.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import AveragedPair
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.search.answer.average_fits import AverageFits, IsOver, Model, Pairs
from sparsecv_mio.search.answer.result import all_rows_fit
from sparsecv_mio.search.problems.smooth import SmoothProblems
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.trees.glm_fits import WIDE
from sparsecv_mio.trees.smooth_rows import held_out_losses_at_fits
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.units import CROSSING_RTOL


class SmoothAverageFits(AverageFits):
    """Fits with a smooth loss, by Newton's method."""

    def _make_problems(self) -> SmoothProblems:
        return SmoothProblems(self.context.data, self.context.folds, self.context.grid)

    def losses_of_single_rows(self, cells: CellTable, pairs: Pairs, wanted: IntArray, over: IsOver) -> FloatArray:
        # subproblems store losses after a few steps, which differ between equal pairs: so these are losses of fits
        data, plan, losses = self.context.data, self.context.folds, np.array(cells.nominal[pairs][:, wanted])
        for here, g, t in zip(losses, *pairs, strict=True):
            gamma, numbers = float(self.context.grid.gammas[g]), np.asarray(cells.support[g, t])[wanted]
            for number in np.unique(numbers[numbers >= 0]).tolist():
                at, support = np.flatnonzero(numbers == number), cells.pool.supports[number]
                here[at] = held_out_losses_at_fits(data, plan, support, gamma, wanted[at], over, over)
                for i in at[np.isnan(here[at])].tolist():
                    if over():
                        break
                    fit = refit_glm(data, plan.train_rows(int(wanted[i])), support, gamma)
                    here[i] = float(fit.losses(data, plan.scored_rows(int(wanted[i])))[0].sum())
                if over():
                    raise OutOfTime("the time limit ended before the loss of every row was computed")
        return losses

    def losses_of_folds(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        context, problems = self.context, self._make_problems()
        gammas = context.grid.gammas
        for fold in wanted.tolist():
            rows = context.folds.scored_rows(fold)
            losses = np.empty((len(pairs[0]), len(rows)))
            for g in np.unique(pairs[0]).tolist():
                at = np.flatnonzero(pairs[0] == g)
                supports = [cells.pool.supports[number] for number in cells.support[g, pairs[1][at], fold].tolist()]
                losses[at] = problems.fold(fold, g).row_losses(supports)[1]
            said, sums = cells.nominal[(*pairs, fold)], losses.sum(axis=1)
            for p in np.flatnonzero(~(np.abs(sums - said) <= CROSSING_RTOL * said)).tolist():
                support, gamma = cells.pool.supports[cells.support[pairs[0][p], pairs[1][p], fold]], gammas[pairs[0][p]]
                fit = refit_glm(context.data, context.folds.train_rows(fold), support, float(gamma))
                losses[p] = fit.losses(context.data, rows)[0]
            yield fold, losses

    def losses_of_all_columns(self, expired: IsOver) -> FloatArray | None:
        data, plan, every = self.context.data, self.context.folds, [np.arange(self.context.data.q)]
        if data.q > WIDE:
            return None
        problems, losses = self._make_problems(), np.zeros((len(self.context.grid.gammas), data.n))
        heft = np.ones(data.n) if data.dataset.row_weights is None else data.dataset.row_weights
        for fold in range(plan.k):
            rows = plan.scored_rows(fold)
            for g in range(len(losses)):
                if expired():
                    return None
                losses[g, rows] += problems.fold(fold, g).row_losses(every)[1][0] / heft[rows]
        return np.asarray(losses / np.maximum(np.bincount(plan.all_scored, minlength=data.n), 1))

    def is_double_enough(self, tau: int) -> bool:
        return False  # fits in double precision would end too early for `verify`

    def fits_of_all_columns(self, gammas: FloatArray) -> list[Model]:
        data = self.context.data
        cell = BestSubset.from_bounds(data.choice.max_tau, np.arange(data.q))
        fits = (all_rows_fit(data, gamma, None, cell, self.context.gap) for gamma in gammas.tolist())
        return [(coefficients, level) for _, _, coefficients, level in fits]

    def averages_of_folds(
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], expired: IsOver
    ) -> tuple[FloatArray, FloatArray] | None:
        data, plan, problems = self.context.data, self.context.folds, self._make_problems()
        coefficients, intercepts = np.zeros((plan.k, data.dataset.p)), np.zeros(plan.k)
        for fold in range(plan.k):
            if expired():
                return None
            for g, gamma in enumerate(self.context.grid.gammas.tolist()):
                here = [pair for pair in pairs if pair.gamma == gamma]
                chosen = [data.support_of(supports[pair.folds[fold]]) for pair in here]
                if here:
                    fits, weights = (
                        problems.fold(fold, g).subsets.refit(chosen),
                        np.array([pair.weight for pair in here]),
                    )
                    coefficients[fold, data.columns] += weights @ fits.coefficients
                    intercepts[fold] += float(weights @ fits.intercept)
        return coefficients, intercepts
