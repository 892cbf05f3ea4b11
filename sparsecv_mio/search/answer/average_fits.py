"""Fits for the average of near-optimal pairs: one class for squared-error loss, one for the other losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import AveragedPair
from sparsecv_mio.problem.exact_fit import EXACT_WORK
from sparsecv_mio.problem.moment_fits import coefficients_of_sets
from sparsecv_mio.problem.problem import SparseProblem, gamma_to_lam
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import (
    fits_of_all_rows,
    fits_without_folds,
    squared_errors_of_all_columns,
    training_moments,
)
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.units import CROSSING_RTOL

Pairs = tuple[IntArray, IntArray]  # indices of gamma and of tau
IsOver = Callable[[], bool]
Model = tuple[dict[str, float], float]  # coefficients by name and intercept, in units of the file


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

    @abstractmethod
    def losses_of_folds(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield folds with the (P, rows) weighted losses of their rows at the supports of pairs.

        Parameters
        ----------
        cells, pairs, wanted
            Arguments as for `losses_of_single_rows`.
        """

    @abstractmethod
    def losses_of_all_columns(self, expired: IsOver) -> FloatArray | None:
        """Return the (G, n) held-out losses of rows of the fits of all columns; None if they are omitted."""

    @abstractmethod
    def is_double_enough(self, tau: int) -> bool:
        """Return True if full-data fits of a size may be in double precision: `verify` then finds the same fit."""

    @abstractmethod
    def fits_of_all_columns(self, gammas: FloatArray) -> list[Model]:
        """Return the full-data fits of all columns."""

    @abstractmethod
    def averages_of_folds(
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], expired: IsOver
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the average without each fold: (K, p) coefficients and (K,) intercepts, in units of the file.

        Parameters
        ----------
        pairs : sequence of AveragedPair
            Pairs with a weight.
        supports : sequence of tuples of str
            Supports, to which the pairs refer by index.
        expired : callable
            Function that returns True to stop, with the result None.
        """


class SquaredAverageFits(AverageFits):
    """Fits with squared-error loss, by moments of the folds."""

    def losses_of_single_rows(self, cells: CellTable, pairs: Pairs, wanted: IntArray, over: IsOver) -> FloatArray:
        return np.asarray(cells.nominal[pairs][:, wanted])

    def losses_of_folds(self, cells: CellTable, pairs: Pairs, wanted: IntArray) -> Iterator[tuple[int, FloatArray]]:
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
            squares = (r - moment_coefficients(problem, supports, lams) @ V.T) ** 2
            said, sums = cells.nominal[(*pairs, fold)], squares.sum(axis=1)
            wrong = ~(np.abs(sums - said) <= CROSSING_RTOL * said)
            for p in np.flatnonzero(wrong).tolist():
                fit = refit_squares(narrow, folds.train_rows(fold), supports[p], 2.0 * float(lams[p]))
                squares[p] = fit.residuals(narrow, rows) ** 2
            yield fold, squares

    def losses_of_all_columns(self, expired: IsOver) -> FloatArray | None:
        context = self.context
        return squared_errors_of_all_columns(context.data, context.folds, context.grid.gammas, expired)

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
        self, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], expired: IsOver
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
            beta = weights @ moment_coefficients(problem, chosen, gamma_to_lam(gammas))
            own = problem.own or narrow
            add_fit(fold, own.coefficients(np.arange(narrow.q), beta, problem.v_mean, problem.r_mean))
        weights, gammas = _weights_and_gammas(whole)
        for fold, fits in fits_without_folds(data, folds, gammas) if whole else ():
            own = fits.own or data
            _, level = own.coefficients((), np.zeros(0), fits.v_mean, fits.r_mean)
            add_fit(fold, own.coefficients(np.arange(data.q), weights @ fits.beta, fits.v_mean, fits.r_mean), level)
        return coefficients, intercepts


def moment_coefficients(problem: SparseProblem, supports: Sequence[IntArray], lams: FloatArray) -> FloatArray:
    """(P, q) coefficients of ridge fits by moments, NaN where the moments are singular.

    Parameters
    ----------
    problem : SparseProblem
        Problem with the moments.
    supports : sequence of P int arrays
        Supports to fit.
    lams : (P,) array
        Penalties of the fits.
    """
    sizes, beta = np.array([len(support) for support in supports]), np.zeros((len(supports), problem.q))
    for size in np.unique(sizes[sizes > 0]).tolist():
        which = np.flatnonzero(sizes == size)
        S = np.array([supports[i] for i in which.tolist()])
        try:
            beta[which[:, None], S] = coefficients_of_sets(problem, S, lams[which, None] * problem.weight[S])
        except np.linalg.LinAlgError:
            beta[which[:, None], S] = np.nan
    return beta


def _weights_and_gammas(pairs: Sequence[AveragedPair]) -> tuple[FloatArray, FloatArray]:
    return np.array([pair.weight for pair in pairs]), np.array([pair.gamma for pair in pairs])
