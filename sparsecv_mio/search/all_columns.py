"""Ridge fits of all columns: the pairs (gamma, p), which need no search (theory section 15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.objective import ALIKE
from sparsecv_mio.problem.training_moments import CentredRows, TrainingMoments, row_moments, training_moments


@dataclass(frozen=True, eq=False)
class RidgeFits:
    """Fits of all columns on some rows, in standard coordinates: `r_mean + (v - v_mean)' beta` predicts a row v.

    Attributes
    ----------
    beta : (G, q) array
        By gamma; NaN where the system is singular to rounding.
    v_mean, r_mean : (q,) array, float
    """

    beta: FloatArray
    v_mean: FloatArray
    r_mean: float


def _of_few_rows(data: StandardData, rows: IntArray | slice, gammas: FloatArray) -> RidgeFits:
    """Fit on fewer rows than columns: O(n^2 (q + n))."""
    part = CentredRows.of(data, rows)
    wide = part.V / data.weight
    values, U = np.linalg.eigh(wide @ part.V.T)
    dual = (U.T @ part.r) / (np.maximum(values, 0.0) + gammas[:, None] / 2.0) @ U.T
    return RidgeFits(dual @ wide, part.v_mean, part.r_mean)


def _of_moments(data: StandardData, moments: TrainingMoments, gammas: FloatArray) -> RidgeFits:
    """Fit on the rows of some moments: O(q^3 G)."""
    problem, beta = moments.problem(data, 1.0), np.full((len(gammas), data.q), np.nan)
    for i, gamma in enumerate(gammas.tolist()):
        M = problem.with_gamma(gamma).M
        unit = 1.0 / np.sqrt(np.diag(M))  # a penalty weight may span hundreds of orders of magnitude
        with suppress(np.linalg.LinAlgError):
            beta[i] = unit * np.linalg.solve(M * unit[:, None] * unit, unit * problem.c)
    return RidgeFits(beta, problem.v_mean, problem.r_mean)


def _alike(data: StandardData) -> bool:
    """Whether penalties of columns are alike, so that products of rows keep the digits of all."""
    return bool(data.weight.max() <= ALIKE**2 * data.weight.min())


def fits_of_all_rows(data: StandardData, gammas: FloatArray) -> RidgeFits:
    """Fit all columns on all rows.

    Parameters
    ----------
    data : StandardData
    gammas : (G,) array
    """
    every = slice(0, data.n)
    few = data.n < data.q and _alike(data)
    return _of_few_rows(data, every, gammas) if few else _of_moments(data, row_moments(data, every), gammas)


def fits_without_folds(data: StandardData, folds: FoldPlan, gammas: FloatArray) -> Iterator[tuple[int, RidgeFits]]:
    """Yield folds, in any order, with the fits of all columns on their training rows.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    gammas : (G,) array
    """
    few = (folds.n - folds.left_sizes < data.q) & _alike(data)
    for fold in np.flatnonzero(few).tolist():
        yield fold, _of_few_rows(data, folds.train_rows(fold), gammas)
    for fold, moments in () if few.all() else training_moments(data, folds, np.flatnonzero(~few).tolist()):
        yield fold, _of_moments(data, moments, gammas)


def squared_errors_of_all_columns(
    data: StandardData, folds: FoldPlan, gammas: FloatArray, expired: Callable[[], bool]
) -> FloatArray | None:
    """(G, n) squared held-out errors of rows, in standard units, as of other pairs; None where time ran out.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    gammas : (G,) array
    expired : callable
    """
    errors, weights = np.zeros((len(gammas), data.n)), data.dataset.row_weights
    for fold, fits in fits_without_folds(data, folds, gammas):
        if expired():
            return None
        rows = folds.scored_rows(fold)
        V, r = data.about(rows, fits.v_mean, fits.r_mean)
        errors[:, rows] += (r - fits.beta @ V.T) ** 2 / (1.0 if weights is None else weights[rows])
    return np.asarray(errors / np.maximum(np.bincount(folds.all_scored, minlength=data.n), 1))
