"""How much a model changes where a fold is left out of its training: sums over all rows, and bounds of them.

With b the model of all rows and b^(-N) that of all rows but N, the change that N makes is (theory, stability)

    sum over all rows i of w_i | (y_i - x_i' b^(-N))^2 - (y_i - x_i' b)^2 |.

Both models may have supports of their own. All of a support's folds are fitted at once, from the moments of all rows
less those of the fold, and refined by the residuals of the rows themselves; the last correction says how accurate the
predictions are. Fits that this leaves in doubt are made by the definition, `problem.objective.fit`, one by one.

Where the best model without the fold is not known, the change is bounded. With r the residuals of the model of all
rows, T the training rows of fold N, u at least the training objective of every model that may be optimal without N, and
h_N in [lower, upper]:

    training rows    |R_T - u|^+ <= change <= min( R_T + u, d (2 sqrt(R_T) + d) ),     R_T = ||r_T||^2
    rows of N        |h_N - R_N| <= change <= h_N + R_N                (one row: change = |h_N - R_N|)

where `d >= ||r_T - r_T^(-N)||` comes from any dual point s r_T: the residual ball of theory section 2,
`||r_T^(-N) - s r_T||^2 <= u - D(s r_T)`. With another loss those of rows stand in place of squares, R_T and R_N are
their sums, and no d is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData, constant_in
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.objective import fit, ridge_weights
from sparsecv_mio.problem.problem import lam_of, penalty_of
from sparsecv_mio.problem.training_moments import WORN, worn_means
from sparsecv_mio.units import ACCURATE_RTOL, OUTWARD
from sparsecv_mio.words import Intercept

RESIDUAL_REFINEMENTS = 3
CAUTION = 64.0  # largest last correction of a prediction, times this: what every one may still be wrong by
ROUNDING = 256.0 * float(np.finfo(float).eps)
CONTRACTION = 0.01  # of the error of a fit, that a refinement may leave
DOUBTED = 1e-8  # of the largest residual: more doubt than that, and the definition decides


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of all rows in standard coordinates, by column: of one model each.

    Attributes
    ----------
    values, doubt : (n, k) arrays
        Residuals, times the roots of the weights of their rows, and bounds on their rounding errors; inf where the
        normal equations could not be solved.
    """

    values: FloatArray
    doubt: FloatArray

    @property
    def losses(self) -> FloatArray:
        """(n,) squares of the first model."""
        return np.asarray(self.values[:, 0] ** 2)

    @property
    def slip(self) -> float:
        """By how much sums of these may be off."""
        doubt = self.doubt[:, 0]
        return float(np.sum((2.0 * np.abs(self.values[:, 0]) + doubt) * doubt + OUTWARD * self.losses))

    def changes(self, full: Residuals) -> tuple[FloatArray, FloatArray]:
        """Return the (k,) changes against the one model in `full`, and bounds on their rounding errors.

        Parameters
        ----------
        full : Residuals
            Of one model.
        """
        sums = np.abs(self.values**2 - full.values**2).sum(axis=0)
        slip = sum((2.0 * np.abs(residuals.values) + residuals.doubt) * residuals.doubt for residuals in (self, full))
        return sums, np.asarray(np.sum(slip, axis=0)) + ROUNDING * sums


@dataclass(frozen=True, eq=False)
class LossesOfRows:
    """Losses of all rows, by column: of one model each, weighted.

    Attributes
    ----------
    values, doubt : (n, k) arrays
        Losses, and bounds on their rounding errors.
    """

    values: FloatArray
    doubt: FloatArray

    @property
    def losses(self) -> FloatArray:
        """(n,) losses of the first model."""
        return self.values[:, 0]

    @property
    def slip(self) -> float:
        """By how much sums of these may be off."""
        return float(np.sum(self.doubt[:, 0] + OUTWARD * self.losses))

    def changes(self, full: LossesOfRows) -> tuple[FloatArray, FloatArray]:
        """Return the (k,) changes against the one model in `full`, and bounds on their rounding errors.

        Parameters
        ----------
        full : LossesOfRows
            Of one model.
        """
        sums = np.abs(self.values - full.values).sum(axis=0)
        return sums, np.sum(self.doubt + full.doubt, axis=0) + ROUNDING * sums


def losses_without(data: StandardData, support: IntArray, gamma: float, left_out: Sequence[IntArray]) -> LossesOfRows:
    """Fit one support of another loss than the squared one without each of some sets of rows.

    Parameters
    ----------
    data, support, gamma, left_out
        As for :func:`residuals_without`.
    """
    everything, chosen = np.arange(data.n), np.sort(np.asarray(support, dtype=np.int64))
    fits = (refit_glm(data, np.setdiff1d(everything, rows), chosen, gamma) for rows in left_out)
    values, doubt = zip(*(fit.losses(data, everything) for fit in fits), strict=True)
    return LossesOfRows(np.column_stack(values), np.column_stack(doubt))


def residuals_without(data: StandardData, support: IntArray, gamma: float, left_out: Sequence[IntArray]) -> Residuals:
    """Fit one support without each of some sets of rows, and return the residuals of all rows. O(k (n s + s^3)).

    Parameters
    ----------
    data : StandardData
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float
    left_out : sequence of k int arrays
        Rows left out of each fit; an empty one for the fit on all rows.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.standard import standardize
    >>> data = standardize(Dataset.from_arrays([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> found = residuals_without(data, np.array([0]), 1e-9, [np.array([2])])
    >>> (data.y_unit * found.values[:, 0]).round(6).tolist()[-1]  # off the line through the other two
    3.0
    """
    chosen = np.sort(np.asarray(support, dtype=np.int64))
    chosen_data = data.only(chosen)
    V, r = chosen_data.rows(slice(0, data.n))
    penalty = penalty_of(lam_of(gamma), chosen_data.weight)
    if data.intercept is Intercept.FOLD:
        constant = np.ones(data.n) if data.root is None else data.root
        V, penalty = np.column_stack([constant, V]), np.concatenate([[0.0], penalty])
    residuals = Residuals(*_refined_residuals(V, r, penalty, left_out))
    level = np.abs(residuals.values).max(initial=0.0, axis=0)
    sure = (residuals.doubt.max(initial=0.0, axis=0) <= DOUBTED * level) & ~worn_without(chosen_data, left_out)
    for fold in np.flatnonzero(~sure).tolist():
        residual = _by_definition(chosen_data, gamma, left_out[fold])
        residuals.values[:, fold] = residual
        residuals.doubt[:, fold] = ACCURATE_RTOL * np.abs(residual).max() + ROUNDING * np.abs(r).max()
    return residuals


def worn_without(data: StandardData, left_out: Sequence[IntArray]) -> BoolArray:
    """(k,) whether, without some rows, the centre of all rows costs a column or the target its digits.

    As `problem.training_moments.in_own_digits` has it. O(k n q), and O(n) for each column that seems constant.

    Parameters
    ----------
    data : StandardData
    left_out : sequence of k int arrays
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
        worn[fold] = len(places) > len(constant_in(data, np.flatnonzero(trained[fold]), places))
    return worn


def _by_definition(data: StandardData, gamma: float, left_out: IntArray) -> FloatArray:
    """Return the residuals of all rows of the fit of all columns without some rows, in standard coordinates."""
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
    """Solve the normal equations of each fold, correct them by the residuals, and bound what is left."""
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
        doubt = np.broadcast_to((CAUTION * np.abs(slip) + ROUNDING * level).max(axis=0), trained.shape)
    wrong = ~np.isfinite(doubt) | ~np.isfinite(residual) | lost
    return np.where(wrong, 0.0, residual), np.where(wrong, np.inf, doubt)


def _worn_inverses(inverse: FloatArray, gram: FloatArray, n: int) -> BoolArray:
    """(k,) whether rounding of the moments of all rows may be much of what is left of them in a fold.

    It is at most `n eps` of the diagonal, entry by entry, so in the metric of the fold at most `n q eps` times
    `sum_j inverse_jj gram_jj`. Where that is small each refinement leaves a small part of the error of the last one.
    """
    diagonal = np.einsum("kjj->kj", inverse)
    with np.errstate(all="ignore"):
        share = n * len(gram) * float(np.finfo(float).eps) * (diagonal @ np.diag(gram))
    return np.asarray(~((diagonal > 0.0).all(axis=1) & (share <= CONTRACTION)))


@dataclass(frozen=True, eq=False)
class OpenFolds:
    """What is known of the best models without each of some folds.

    Attributes
    ----------
    training : (k,) array
        `R_T`, of the model of all rows; of another loss, as below, its sums.
    held : (k,) array
        `R_N` over the rows that the fold scores.
    value : (k,) array
        At least the training objective of every optimum, rounding included; inf where nothing is known.
    lower, upper : (k,) arrays
        Around the held-out sums of squares.
    single : (k,) bool array
        Whether the fold scores one row.
    complete : (k,) bool array
        Whether it scores all rows that it leaves out.
    distance : (k,) array
        `d`, at least the distance of the residuals on the training rows; inf where nothing is known.
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
    """Bound how far the residuals of the best models without some folds are from those of a given model.

    Parameters
    ----------
    residual, target : (n, k) arrays
        Residuals of the given model and targets on the training rows, about their means there; 0 on rows left out.
    scores : (q, k) array
        `(x_j' r)^2 / (lam weight_j)` of these residuals.
    tau : int
    value : (k,) array
        At least the training objective of every optimum.

    Returns
    -------
    (k,) array
        The smaller of what the dual points `r` and `s r` say, with s the best factor; O(q k).
    """
    size = np.einsum("ij,ij->j", residual, residual)
    along = np.einsum("ij,ij->j", residual, target)
    tau = min(tau, len(scores))
    unchosen = len(scores) - tau
    top = np.partition(scores, unchosen, axis=0)[unchosen:].sum(axis=0) if tau else np.zeros_like(size)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.where(size + top > 0.0, np.clip(along / (size + top), 0.0, 1.0), 0.0)
    distances = np.full(len(value), np.inf)
    for factor in (np.ones_like(best), best):
        dual = 2.0 * factor * along - factor**2 * (size + top)
        slack = OUTWARD * (np.abs(factor * along) + factor**2 * (size + top) + np.einsum("ij,ij->j", target, target))
        ball = np.sqrt(np.maximum(value - dual + slack, 0.0))
        distances = np.minimum(distances, (ball + (1.0 - factor) * np.sqrt(size)) * (1.0 + OUTWARD))
    return distances
