"""The sum of the absolute changes of all squared errors when a fold is held out, computed or bounded.

Let b be the full-data model, and b^(-N) the model fitted without the rows N of a fold. Row i has target y_i, features
x_i and weight w_i. If N is held out, the sum of the absolute changes of all squared errors is
(docs/theory/instability.md)

    sum over all rows i of w_i | (y_i - x_i' b^(-N))^2 - (y_i - x_i' b)^2 |.

The two models may have different supports. The fits of one support in all folds are computed together: the moments of
each fold are subtracted from the moments of all rows. The residuals of the rows then correct the fits, and the size of
the last correction bounds the error of the predictions. A fit that is not accurate enough is computed again from the
rows, by `problem.objective.fit`.

If the best model without the fold is unknown, the change of the squared errors is bounded instead. Let r be the
residuals of the full-data model, r^(-N) those of the model without N, and T the training rows of the fold. Let u be an
upper bound on the training objective of every model that may be optimal without N. Let h_N be the squared error on the
rows N of the best model fitted without these rows. Then

    training rows    max(R_T - u, 0) <= change <= min( R_T + u, d (2 sqrt(R_T) + d) ),     R_T = ||r_T||^2
    rows of N        |h_N - R_N|     <= change <= h_N + R_N,                               R_N = ||r_N||^2

If N is a single row, its change is exactly `|h_N - R_N|`. The number d bounds `||r_T - r_T^(-N)||`, the distance on T
between the residuals of the two models. To compute d, a multiple s r_T of the vector r_T is used as a dual point of the
problem without N. If this point has the dual value D, then `||r_T^(-N) - s r_T||^2 <= u - D` (theory section 2,
residual ball). For other losses, R_T and R_N are sums of losses instead of squares, and the bounds with d are not
available.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData, find_constant_columns
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.objective import fit, ridge_weights
from sparsecv_mio.problem.problem import capped_penalty, gamma_to_lam
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import WORN, worn_means
from sparsecv_mio.units import ACCURATE_RTOL, OUTWARD, ROUNDING
from sparsecv_mio.words import Intercept

RESIDUAL_REFINEMENTS = 3
CAUTION = 64.0  # factor from the largest last correction of a prediction to the error bound of all predictions
PREDICTION_ROUNDING = 256.0 * ROUNDING
CONTRACTION = 0.01  # maximum share of the error of a fit that remains after a refinement
DOUBTED = 1e-8  # error bound, as a share of the largest residual, above which a fit is computed by the definition


@dataclass(frozen=True, eq=False)
class LossesOfRows:
    """Weighted losses of all rows, one column for each model.

    Attributes
    ----------
    values, doubt : (n, k) arrays
        Losses, and bounds on their rounding errors.
    """

    values: FloatArray
    doubt: FloatArray

    def with_doubt(self) -> tuple[FloatArray, FloatArray]:
        """Return the (n, k) losses, and bounds on their rounding errors."""
        return self.values, self.doubt

    @property
    def losses(self) -> FloatArray:
        """Losses of the first model, (n,)."""
        return self.with_doubt()[0][:, 0]

    @property
    def slip(self) -> float:
        """Bound on the rounding error of the sum of these losses."""
        return float(np.sum(self.with_doubt()[1][:, 0] + OUTWARD * self.losses))

    def changes(self, full: LossesOfRows) -> tuple[FloatArray, FloatArray]:
        """Return the (k,) changes from the one model in `full`, and bounds on their rounding errors.

        Parameters
        ----------
        full : LossesOfRows
            Losses of one model, of the same loss function.
        """
        (losses, doubt), (full_losses, full_doubt) = self.with_doubt(), full.with_doubt()
        sums = np.abs(losses - full_losses).sum(axis=0)
        return sums, np.sum(doubt + full_doubt, axis=0) + PREDICTION_ROUNDING * sums


class Residuals(LossesOfRows):
    """Residuals of all rows in standard coordinates, one column for each model.

    Attributes
    ----------
    values, doubt : (n, k) arrays
        Residuals times the square roots of the row weights, and bounds on their rounding errors; inf if the normal
        equations could not be solved.
    """

    def with_doubt(self) -> tuple[FloatArray, FloatArray]:
        """Return the (n, k) squared residuals, and bounds on their rounding errors."""
        return self.values**2, (2.0 * np.abs(self.values) + self.doubt) * self.doubt


def losses_without_rows(
    data: StandardData, support: IntArray, gamma: float, left_out: Sequence[IntArray]
) -> LossesOfRows:
    """Return the losses of one support fitted without each of some sets of rows, for logistic or Poisson loss.

    Parameters
    ----------
    data : StandardData
        Data set.
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float
        Ridge weight.
    left_out : sequence of k int arrays
        Rows removed from each fit; an empty array gives the full-data fit.
    """
    everything, chosen = np.arange(data.n), np.sort(np.asarray(support, dtype=np.int64))
    fits = (refit_glm(data, np.setdiff1d(everything, rows), chosen, gamma) for rows in left_out)
    values, doubt = zip(*(fit.losses(data, everything) for fit in fits), strict=True)
    return LossesOfRows(np.column_stack(values), np.column_stack(doubt))


def residuals_without_rows(
    data: StandardData, support: IntArray, gamma: float, left_out: Sequence[IntArray]
) -> Residuals:
    """Return the residuals of all rows for one support fitted without each of some sets of rows. O(k (n s + s^3)).

    Parameters
    ----------
    data : StandardData
        Data set.
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float
        Ridge weight.
    left_out : sequence of k int arrays
        Rows removed from each fit; an empty array gives the full-data fit.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.standard import standardize
    >>> data = standardize(Dataset.from_arrays([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> found = residuals_without_rows(data, np.array([0]), 1e-9, [np.array([2])])
    >>> (data.y_unit * found.values[:, 0]).round(6).tolist()[-1]  # off the line through the other two
    3.0
    """
    chosen = np.sort(np.asarray(support, dtype=np.int64))
    chosen_data = data.only(chosen)
    if data.coefficient_bounds is not None:
        everyone = np.arange(data.n)
        fits = (refit_squares(data, np.setdiff1d(everyone, rows), chosen, gamma) for rows in left_out)
        values, doubt = zip(*(fit.residuals_with_errors(data, everyone) for fit in fits), strict=True)
        return Residuals(np.column_stack(values).astype(float), np.column_stack(doubt).astype(float))
    V, r = chosen_data.rows(slice(0, data.n))
    penalty = capped_penalty(gamma_to_lam(gamma), chosen_data.weight)
    if data.intercept is Intercept.FOLD:
        constant = np.ones(data.n) if data.root is None else data.root
        V, penalty = np.column_stack([constant, V]), np.concatenate([[0.0], penalty])
    residuals = Residuals(*_refined_residuals(V, r, penalty, left_out))
    level = np.abs(residuals.values).max(initial=0.0, axis=0)
    sure = (residuals.doubt.max(initial=0.0, axis=0) <= DOUBTED * level) & ~needs_own_centres(chosen_data, left_out)
    for fold in np.flatnonzero(~sure).tolist():
        residual = _residuals_by_refit(chosen_data, gamma, left_out[fold])
        residuals.values[:, fold] = residual
        residuals.doubt[:, fold] = ACCURATE_RTOL * np.abs(residual).max() + PREDICTION_ROUNDING * np.abs(r).max()
    return residuals


def needs_own_centres(data: StandardData, left_out: Sequence[IntArray]) -> BoolArray:
    """Return (k,) True where, without some rows, centring on all rows costs a column or the target its accuracy.

    The criterion is that of `problem.training_moments.recentre_moments`. O(k n q), and O(n) for each column that seems
    constant.

    Parameters
    ----------
    data : StandardData
        Data set.
    left_out : sequence of k int arrays
        Rows removed from each fit.
    """
    worn = np.zeros(len(left_out), dtype=bool)
    if data.intercept is not Intercept.FOLD:
        return worn
    V, r = data.rows(slice(0, data.n))
    block, root = np.column_stack([V, r]), np.ones(data.n) if data.root is None else data.root
    trained = np.ones((len(left_out), data.n))
    for fold, rows in enumerate(left_out):
        trained[fold, rows] = 0.0
    total = (trained @ root**2)[:, None]
    with np.errstate(all="ignore"):
        mean = trained @ (block * root[:, None]) / total
        spread = np.maximum(trained @ block**2 - total * mean**2, 0.0)
    for fold in np.flatnonzero((~(np.abs(mean) <= WORN * np.sqrt(spread / total))).any(axis=1)).tolist():
        places = worn_means(mean[fold], spread[fold], float(total[fold, 0]))
        worn[fold] = len(places) > len(find_constant_columns(data, np.flatnonzero(trained[fold]), places))
    return worn


def _residuals_by_refit(data: StandardData, gamma: float, left_out: IntArray) -> FloatArray:
    """Return the residuals of all rows for the fit of all columns without some rows, in standard coordinates."""
    source, columns = data.dataset, data.columns.tolist()
    model = fit(
        source.X, source.y, columns, ridge_weights(columns, data.free, gamma), scale=data.scale,
        intercept=data.intercept, rows=np.setdiff1d(np.arange(data.n), left_out), weights=source.row_weights,
    )  # fmt: skip
    residual = model.residuals(source.X, source.y, np.arange(data.n)) * (model.coordinates.y_unit / data.y_unit)
    return residual if data.root is None else residual * data.root


def _refined_residuals(
    V: FloatArray, r: FloatArray, penalty: FloatArray, left_out: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Solve the normal equations of each fold, correct the fits by the residuals, and bound the remaining errors."""
    trained = np.ones((len(r), len(left_out)))
    for fold, rows in enumerate(left_out):
        trained[rows, fold] = 0.0
    gram = V.T @ V + np.diag(penalty)
    B = np.zeros((V.shape[1], len(left_out)))
    residual, slip = r[:, None] - V @ B, np.zeros_like(trained)
    try:
        inverse = np.linalg.inv(np.stack([gram - V[rows].T @ V[rows] for rows in left_out]))
    except np.linalg.LinAlgError:
        return residual, np.full_like(trained, np.inf)
    lost = _worn_inverses(inverse, gram, len(r))
    with np.errstate(all="ignore"):
        for _ in range(1 + RESIDUAL_REFINEMENTS):
            slope = V.T @ (residual * trained) - penalty[:, None] * B
            change = np.einsum("kij,jk->ik", inverse, slope)
            B += change
            residual, slip = r[:, None] - V @ B, V @ change
        level = np.abs(r)[:, None] + np.abs(V) @ np.abs(B)
        doubt = np.broadcast_to((CAUTION * np.abs(slip) + PREDICTION_ROUNDING * level).max(axis=0), trained.shape)
    wrong = ~np.isfinite(doubt) | ~np.isfinite(residual) | lost
    return np.where(wrong, 0.0, residual), np.where(wrong, np.inf, doubt)


def _worn_inverses(inverse: FloatArray, gram: FloatArray, n: int) -> BoolArray:
    """Return (k,) True where the rounding of the moments of all rows may be large against the moments of a fold.

    It is at most `n eps` of the diagonal, entry by entry, so in the metric of the fold at most `n q eps` times
    `sum_j inverse_jj gram_jj`. If that is small, each refinement leaves a small part of the previous error.
    """
    diagonal = np.einsum("kjj->kj", inverse)
    with np.errstate(all="ignore"):
        share = n * len(gram) * ROUNDING * (diagonal @ np.diag(gram))
    return np.asarray(~((diagonal > 0.0).all(axis=1) & (share <= CONTRACTION)))


@dataclass(frozen=True, eq=False)
class OpenFolds:
    """Bounds on the best models without each of k folds.

    Attributes
    ----------
    training : (k,) array
        Sums `R_T` of the full-data model; sums of losses for another loss.
    held : (k,) array
        Sums `R_N` over the rows that the fold scores.
    value : (k,) array
        Upper bound on the training objective of every optimum, rounding included; inf if unknown.
    lower, upper : (k,) arrays
        Bounds on the held-out sums of squares.
    single : (k,) bool array
        True if the fold scores one row.
    complete : (k,) bool array
        True if the fold scores all its held-out rows.
    distance : (k,) array
        Upper bound `d` on the distance of the residuals on the training rows; inf if unknown.
    """

    training: FloatArray
    held: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    single: BoolArray
    complete: BoolArray
    distance: FloatArray

    def changes(self) -> tuple[FloatArray, FloatArray]:
        """Return the (k,) lower and upper bounds of the changes.

        Examples
        --------
        >>> one, no, yes = np.ones(1), np.zeros(1, dtype=bool), np.ones(1, dtype=bool)
        >>> folds = OpenFolds(4 * one, one, 3 * one, 2 * one, 5 * one, no, yes, np.inf * one)
        >>> [end.round(6).tolist() for end in folds.changes()]
        [[2.0], [13.0]]
        """
        low = np.maximum(self.training - self.value, 0.0)
        with np.errstate(invalid="ignore"):
            near = self.distance * (2.0 * np.sqrt(self.training) + self.distance)
        high = np.minimum(self.training + self.value, near)
        low = low + np.maximum(np.maximum(self.lower - self.held, self.held - self.upper), 0.0)
        above = np.maximum(self.upper - self.held, self.held - self.lower)
        high = high + np.where(self.single, above, self.upper + self.held)
        high = np.where(self.complete, high, np.inf)
        return low * (1.0 - OUTWARD), high * (1.0 + OUTWARD)


def residual_distances(
    residual: FloatArray, target: FloatArray, scores: FloatArray, tau: int, value: FloatArray
) -> FloatArray:
    """Return upper bounds on the distances of the residuals of the best models of folds from those of a given model.

    Parameters
    ----------
    residual, target : (n, k) arrays
        Residuals of the given model and targets on the training rows, about their means there; 0 on held-out rows.
    scores : (q, k) array
        `(x_j' r)^2 / (lam weight_j)` of these residuals.
    tau : int
        Number of columns of a model.
    value : (k,) array
        Upper bounds on the training objective of every optimum.

    Returns
    -------
    (k,) array
        The smaller of the bounds by the dual points `r` and `s r`, with s the best factor; O(q k).
    """
    size = np.einsum("ij,ij->j", residual, residual)
    along = np.einsum("ij,ij->j", residual, target)
    tau = min(tau, len(scores))
    unchosen = len(scores) - tau
    top = np.partition(scores, unchosen, axis=0)[unchosen:].sum(axis=0) if tau else np.zeros_like(size)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.where(size + top > 0.0, np.clip(along / (size + top), 0.0, 1.0), 0.0)
    square, distances = np.einsum("ij,ij->j", target, target), np.full(len(value), np.inf)
    with np.errstate(invalid="ignore"):  # a dual point whose numbers overflow bounds nothing
        for factor in (np.ones_like(best), best):
            dual = 2.0 * factor * along - factor**2 * (size + top)
            slack = OUTWARD * (np.abs(factor * along) + factor**2 * (size + top) + square)
            ball = np.sqrt(np.maximum(value - dual + slack, 0.0))
            distances = np.fmin(distances, (ball + (1.0 - factor) * np.sqrt(size)) * (1.0 + OUTWARD))
    return distances
