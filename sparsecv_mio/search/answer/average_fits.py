"""Fits for the average of near-optimal pairs: one class for squared-error loss, one for the other losses.

With squared-error loss, fits use the moments of the folds. With the other losses, every support is fitted in every
fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import AveragedPair
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.problem.beyond_floats import EXACT_WORK
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.moment_fits import coefficients_of_sets, refit_moments
from sparsecv_mio.problem.problem import SparseProblem, gamma_to_lam
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import (
    fits_of_all_rows,
    fits_without_folds,
    squared_errors_of_all_columns,
    training_moments,
)
from sparsecv_mio.search.answer.result import fitted_row
from sparsecv_mio.search.problems.smooth import SmoothProblems
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.thresholds import SMOOTH_COLUMNS
from sparsecv_mio.trees.glm_subsets import held_out_losses_at_fits
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.units import CROSSING_RTOL

Pairs = tuple[IntArray, IntArray]  # indices of gamma and of tau
IsOver = Callable[[], bool]
Model = tuple[Mapping[str, float], float]  # coefficients by name and intercept, in units of the file


class AverageFits(ABC):
    """The fits of a search that its average needs: of the folds, and of the full data.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def losses_of_single_rows(self, cells: CellTable, pairs: Pairs, wanted: IntArray, over: IsOver) -> FloatArray:
        """Return the (P, F) held-out losses of folds of one row at the supports of pairs.

        Parameters
        ----------
        cells : CellTable
            Table with a support in every fold of the pairs.
        pairs : two (P,) int arrays
            Indices of gamma and tau.
        wanted : (F,) int array
            Indices of the folds.
        over : callable
            Function that returns True to stop, with `OutOfTime`.
        """

    def losses_of_folds(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield folds with the (P, rows) weighted losses of their rows at the supports of pairs.

        A support whose losses do not sum to the stored loss of its fold is fitted from the rows.

        Parameters
        ----------
        cells, pairs, wanted
            Arguments as for `losses_of_single_rows`.
        """
        gammas = self.context.grid.gammas[pairs[0]]
        for fold, losses in self._quick_losses(cells, pairs, wanted):
            said, sums = cells.nominal[(*pairs, fold)], losses.sum(axis=1)
            for p in np.flatnonzero(~(np.abs(sums - said) <= CROSSING_RTOL * said)).tolist():
                support = cells.pool.supports[cells.support[pairs[0][p], pairs[1][p], fold]]
                losses[p] = self._losses_from_rows(fold, support, float(gammas[p]))
            yield fold, losses

    @abstractmethod
    def _quick_losses(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield the losses of `losses_of_folds` by fits that may lack digits."""

    @abstractmethod
    def _losses_from_rows(self, fold: int, support: IntArray, gamma: float) -> FloatArray:
        """Return the weighted losses of the rows of a fold by an accurate fit of a support."""

    @abstractmethod
    def losses_of_all_columns(self, is_expired: IsOver) -> FloatArray | None:
        """Return the (G, n) held-out losses of rows of the fits of all columns; None if they are omitted."""

    @abstractmethod
    def is_double_enough(self, tau: int) -> bool:
        """Return True if full-data fits of a size may be in double precision: `verify` then finds the same fit."""

    @abstractmethod
    def fits_of_all_columns(self, gammas: FloatArray) -> list[Model]:
        """Return the full-data fits of all columns."""

    @abstractmethod
    def averages_of_folds(
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], is_expired: IsOver
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the average without each fold: (K, p) coefficients and (K,) intercepts, in units of the file.

        Parameters
        ----------
        pairs : sequence of AveragedPair
            Pairs with a weight.
        supports : sequence of tuples of str
            Supports, to which the pairs refer by index.
        is_expired : callable
            Function that returns True to stop, with the result None.
        """


class SquaredAverageFits(AverageFits):
    """Fits with squared-error loss, by moments of the folds."""

    def losses_of_single_rows(self, cells: CellTable, pairs: Pairs, wanted: IntArray, over: IsOver) -> FloatArray:
        return np.asarray(cells.nominal[pairs][:, wanted])

    def _quick_losses(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        context = self.context
        data, folds, lams = context.data, context.folds, context.grid.gammas[pairs[0]] / 2.0
        numbers = cells.support[pairs]
        used = np.unique(np.concatenate([cells.pool.supports[i] for i in np.unique(numbers).tolist()]))
        narrow = data.only(used)
        tables = {i: np.searchsorted(used, cells.pool.supports[i]) for i in np.unique(numbers).tolist()}
        for fold, moments in training_moments(narrow, folds, wanted.tolist()):
            problem, rows = moments.problem(narrow, 1.0), folds.scored_rows(fold)
            supports = [tables[i] for i in numbers[:, fold].tolist()]
            V, r = problem.centre_rows(narrow, rows)
            yield fold, (r - moment_coefficients(problem, supports, lams, narrow.coefficient_bounds) @ V.T) ** 2

    def _losses_from_rows(self, fold: int, support: IntArray, gamma: float) -> FloatArray:
        data, folds = self.context.data, self.context.folds
        made = refit_squares(data, folds.train_rows(fold), support, gamma)
        return np.asarray(made.residuals(data, folds.scored_rows(fold)) ** 2)

    def losses_of_all_columns(self, is_expired: IsOver) -> FloatArray | None:
        context = self.context
        return squared_errors_of_all_columns(context.data, context.folds, context.grid.gammas, is_expired)

    def is_double_enough(self, tau: int) -> bool:
        data = self.context.data
        return data.n * data.choice.n_columns(tau) ** 2 > EXACT_WORK

    def fits_of_all_columns(self, gammas: FloatArray) -> list[Model]:
        data = self.context.data
        if not len(gammas):
            return []
        fits, every = fits_of_all_rows(data, gammas), np.arange(data.q)
        return [data.coefficients(every, beta, fits.v_mean, fits.r_mean) for beta in fits.beta]

    def averages_of_folds(
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], is_expired: IsOver
    ) -> tuple[FloatArray, FloatArray] | None:
        data, folds, largest = self.context.data, self.context.folds, int(self.context.grid.taus[-1])
        coefficients, intercepts = np.zeros((folds.k, data.dataset.p)), np.zeros(folds.k)
        column = {name: j for j, name in enumerate(data.dataset.names)}
        few, whole = ([pair for pair in pairs if (pair.tau > largest) is large] for large in (False, True))
        weights, gammas = _weights_and_gammas(few)

        def add_fit(fold: int, fit: tuple[dict[str, float], float], level: float = 0.0) -> None:
            coefficients[fold, [column[name] for name in fit[0]]] += np.array(list(fit[0].values()))
            intercepts[fold] += fit[1] - level

        used = {column[name] for pair in few for place in pair.folds for name in supports[place]}.union(data.free)
        narrow = data.only(np.searchsorted(data.columns, sorted(used)))
        for fold, moments in training_moments(narrow, folds):
            problem = moments.problem(narrow, 1.0)
            chosen = [narrow.support_of(supports[pair.folds[fold]]) for pair in few]
            beta = weights @ moment_coefficients(problem, chosen, gamma_to_lam(gammas), narrow.coefficient_bounds)
            own = problem.own or narrow
            add_fit(fold, own.coefficients(np.arange(narrow.q), beta, problem.v_mean, problem.r_mean))
        weights, gammas = _weights_and_gammas(whole)
        for fold, fits in fits_without_folds(data, folds, gammas) if whole else ():
            own = fits.own or data
            _, level = own.coefficients((), np.zeros(0), fits.v_mean, fits.r_mean)
            add_fit(fold, own.coefficients(np.arange(data.q), weights @ fits.beta, fits.v_mean, fits.r_mean), level)
        return coefficients, intercepts


class SmoothAverageFits(AverageFits):
    """Fits with a smooth loss, by Newton's method."""

    def _make_problems(self) -> SmoothProblems:
        return SmoothProblems(self.context.data, self.context.folds, self.context.grid)

    def losses_of_single_rows(self, cells: CellTable, pairs: Pairs, wanted: IntArray, over: IsOver) -> FloatArray:
        # subproblems store losses after a few steps, which differ between equal pairs: so these are losses of fits
        data, plan, losses = self.context.data, self.context.folds, np.array(cells.nominal[pairs][:, wanted])
        for here, g, t in zip(losses, *pairs, strict=True):
            gamma, numbers = float(self.context.grid.gammas[g]), cells.support[g, t][wanted]
            for number in np.unique(numbers[numbers >= 0]).tolist():
                at, support = np.flatnonzero(numbers == number), cells.pool.supports[number]
                here[at] = np.nan  # with bounds, steps from the full-data fit are not used
                if data.coefficient_bounds is None:
                    here[at] = held_out_losses_at_fits(data, plan, support, gamma, wanted[at], over, over)
                for i in at[np.isnan(here[at])].tolist():
                    if over():
                        break
                    here[i] = float(self._losses_from_rows(int(wanted[i]), support, gamma).sum())
                if over():
                    raise OutOfTime("the time limit ended before the loss of every row was computed")
        return losses

    def _quick_losses(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        folds, problems = self.context.folds, self._make_problems()
        for fold in wanted.tolist():
            losses = np.empty((len(pairs[0]), len(folds.scored_rows(fold))))
            for g in np.unique(pairs[0]).tolist():
                at = np.flatnonzero(pairs[0] == g)
                supports = [cells.pool.supports[number] for number in cells.support[g, pairs[1][at], fold].tolist()]
                losses[at] = problems.fold(fold, g).row_losses(supports)[1]
            yield fold, losses

    def _losses_from_rows(self, fold: int, support: IntArray, gamma: float) -> FloatArray:
        data, folds = self.context.data, self.context.folds
        return refit_glm(data, folds.train_rows(fold), support, gamma).losses(data, folds.scored_rows(fold))[0]

    def losses_of_all_columns(self, is_expired: IsOver) -> FloatArray | None:
        data, plan, every = self.context.data, self.context.folds, [np.arange(self.context.data.q)]
        if data.q > SMOOTH_COLUMNS:
            return None
        problems, losses = self._make_problems(), np.zeros((len(self.context.grid.gammas), data.n))
        heft = np.ones(data.n) if data.dataset.row_weights is None else data.dataset.row_weights
        for fold in range(plan.k):
            rows = plan.scored_rows(fold)
            for g in range(len(losses)):
                if is_expired():
                    return None
                losses[g, rows] += problems.fold(fold, g).row_losses(every)[1][0] / heft[rows]
        return np.asarray(losses / np.maximum(np.bincount(plan.all_scored, minlength=data.n), 1))

    def is_double_enough(self, tau: int) -> bool:
        return False  # fits in double precision would end too early for `verify`

    def fits_of_all_columns(self, gammas: FloatArray) -> list[Model]:
        data = self.context.data
        cell = BestSubset.from_bounds(data.choice.max_tau, np.arange(data.q))
        rows = (fitted_row(data, gamma, None, cell, self.context.gap) for gamma in gammas.tolist())
        return [(row.coefficients, row.intercept) for row in rows]

    def averages_of_folds(
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], is_expired: IsOver
    ) -> tuple[FloatArray, FloatArray] | None:
        data, plan, problems = self.context.data, self.context.folds, self._make_problems()
        coefficients, intercepts = np.zeros((plan.k, data.dataset.p)), np.zeros(plan.k)
        for fold in range(plan.k):
            if is_expired():
                return None
            for g, gamma in enumerate(self.context.grid.gammas.tolist()):
                here = [pair for pair in pairs if pair.gamma == gamma]
                chosen = [data.support_of(supports[pair.folds[fold]]) for pair in here]
                if here:
                    fits, weights = problems.fold(fold, g).subsets.refit(chosen), _weights_and_gammas(here)[0]
                    coefficients[fold, data.columns] += weights @ fits.coefficients
                    intercepts[fold] += float(weights @ fits.intercept)
        return coefficients, intercepts


def moment_coefficients(
    problem: SparseProblem, supports: Sequence[IntArray], lams: FloatArray,
    bounds: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:  # fmt: skip
    """(P, q) coefficients of ridge fits by moments, NaN where the moments are singular.

    Parameters
    ----------
    problem : SparseProblem
        Problem with the moments.
    supports : sequence of P int arrays
        Supports to fit.
    lams : (P,) array
        Penalties of the fits.
    bounds : two (q,) arrays, optional
        Bounds on the coefficients.
    """
    sizes, beta = np.array([len(support) for support in supports]), np.zeros((len(supports), problem.q))
    for size in np.unique(sizes[sizes > 0]).tolist():
        which = np.flatnonzero(sizes == size)
        S = np.array([supports[i] for i in which.tolist()])
        try:
            beta[which[:, None], S] = coefficients_of_sets(problem, S, lams[which, None] * problem.weight[S])
        except np.linalg.LinAlgError:
            beta[which[:, None], S] = np.nan
    if bounds is not None:
        for p, support in enumerate(supports):
            low, high = bounds[0][support], bounds[1][support]
            if not np.all((low <= beta[p, support]) & (beta[p, support] <= high)):
                within = refit_moments(problem.with_gamma(2.0 * float(lams[p])), tuple(support.tolist()), bounds)
                beta[p, list(within.support)] = within.beta
    return beta


def _weights_and_gammas(pairs: Sequence[AveragedPair]) -> tuple[FloatArray, FloatArray]:
    return np.array([pair.weight for pair in pairs]), np.array([pair.gamma for pair in pairs])


def make_average_fits(context: Context) -> AverageFits:
    """Return the fits with the loss of a search."""
    return SquaredAverageFits(context) if context.data.loss.is_quadratic else SmoothAverageFits(context)
