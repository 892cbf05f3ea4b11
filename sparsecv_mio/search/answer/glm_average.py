"""Logistic and Poisson losses of rows, and fits without each fold, for the average of near-optimal pairs (tau, gamma).

With squared-error loss, both are computed from moments of the folds (:mod:`sparsecv_mio.search.answer.average`). For
logistic and Poisson loss, every support is fitted in every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import AveragedPair
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.search.problems.smooth import SmoothProblems
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.trees.glm_fits import WIDE
from sparsecv_mio.trees.smooth_rows import held_out_losses_at_fits
from sparsecv_mio.units import CROSSING_RTOL


def losses_of_pairs(
    context: Context, cells: CellTable, pairs: tuple[IntArray, IntArray], wanted: IntArray
) -> Iterator[tuple[int, FloatArray]]:
    """Yield folds with the (P, rows) losses of their rows, weighted, at the supports of cells.

    Parameters
    ----------
    context : Context
    cells : CellTable
    pairs : two (P,) int arrays
        Indices of gamma and of tau.
    wanted : int array
        Folds.
    """
    folds, gammas = SmoothProblems(context.data, context.folds, context.grid), context.grid.gammas
    for fold in wanted.tolist():
        rows = context.folds.scored_rows(fold)
        losses = np.empty((len(pairs[0]), len(rows)))
        for g in np.unique(pairs[0]).tolist():
            at = np.flatnonzero(pairs[0] == g)
            supports = [cells.pool.supports[number] for number in cells.support[g, pairs[1][at], fold].tolist()]
            losses[at] = folds.fold(fold, g).row_losses(supports)[1]
        said, sums = cells.nominal[(*pairs, fold)], losses.sum(axis=1)
        for p in np.flatnonzero(~(np.abs(sums - said) <= CROSSING_RTOL * said)).tolist():
            support, gamma = cells.pool.supports[cells.support[pairs[0][p], pairs[1][p], fold]], gammas[pairs[0][p]]
            fit = refit_glm(context.data, context.folds.train_rows(fold), support, float(gamma))
            losses[p] = fit.losses(context.data, rows)[0]
        yield fold, losses


def losses_of_single_rows(
    context: Context, cells: CellTable, pairs: tuple[IntArray, IntArray], wanted: IntArray, over: Callable[[], bool]
) -> FloatArray:
    """(P, F) held-out losses of folds of one row, at fits: cells show a few steps to these, which part equal pairs.

    Parameters
    ----------
    context : Context
    cells : CellTable
    pairs : two (P,) int arrays
        Indices of gamma and of tau.
    wanted : int array
        Folds.
    over : callable
        True ends it.

    Raises
    ------
    OutOfTime
        If it was ended.
    """
    data, plan, losses = context.data, context.folds, np.array(cells.nominal[pairs][:, wanted])
    for here, g, t in zip(losses, *pairs, strict=True):
        gamma, numbers = float(context.grid.gammas[g]), np.asarray(cells.support[g, t])[wanted]
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


def losses_of_all_columns(context: Context, expired: Callable[[], bool]) -> FloatArray | None:
    """(G, n) held-out losses of rows at fits of all columns; None where these are many, or time ran out.

    Parameters
    ----------
    context : Context
    expired : callable
    """
    data, plan, every = context.data, context.folds, [np.arange(context.data.q)]
    if data.q > WIDE:
        return None
    folds, losses = (
        SmoothProblems(context.data, context.folds, context.grid),
        np.zeros((len(context.grid.gammas), data.n)),
    )
    heft = np.ones(data.n) if data.dataset.row_weights is None else data.dataset.row_weights
    for fold in range(plan.k):
        rows = plan.scored_rows(fold)
        for g in range(len(losses)):
            if expired():
                return None
            losses[g, rows] += folds.fold(fold, g).row_losses(every)[1][0] / heft[rows]
    return np.asarray(losses / np.maximum(np.bincount(plan.all_scored, minlength=data.n), 1))


def averages_of_folds(
    context: Context, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]], expired: Callable[[], bool]
) -> tuple[FloatArray, FloatArray] | None:
    """(K, p) coefficients and (K,) intercepts of the average without each fold, in units of the file.

    Parameters
    ----------
    context : Context
    pairs : sequence of AveragedPair
        Those with a weight.
    supports : sequence of tuples of str
        What the pairs name by place.
    expired : callable
        True ends it with nothing.
    """
    data, plan, folds = context.data, context.folds, SmoothProblems(context.data, context.folds, context.grid)
    coefficients, intercepts = np.zeros((plan.k, data.dataset.p)), np.zeros(plan.k)
    for fold in range(plan.k):
        if expired():
            return None
        for g, gamma in enumerate(context.grid.gammas.tolist()):
            here = [pair for pair in pairs if pair.gamma == gamma]
            chosen = [data.support_of(supports[pair.folds[fold]]) for pair in here]
            if here:
                fits, weights = folds.fold(fold, g).subsets.refit(chosen), np.array([pair.weight for pair in here])
                coefficients[fold, data.columns] += weights @ fits.coefficients
                intercepts[fold] += float(weights @ fits.intercept)
    return coefficients, intercepts
