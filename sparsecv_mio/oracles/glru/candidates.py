"""Bounds on the validation errors of every fit that is one column away (the paper's Algorithm 5, either direction)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.oracles.glru.fit import EPS, Fit
from sparsecv_mio.oracles.glru.gap import change_columns, primal_distance, region_of
from sparsecv_mio.oracles.glru.intervals import ROUNDING, prediction_intervals
from sparsecv_mio.oracles.glru.problem import Design, Problem

COMPACT = 0.5
"""Share of the columns below which the selected ones are copied: passes over all columns would cost more."""


@dataclass(frozen=True, eq=False)
class ErrorRange:
    """Bounds on numbers of errors: `lower` (k,) int array, `upper` (k,) int array."""

    lower: IntArray
    upper: IntArray


@dataclass(frozen=True, eq=False)
class View:
    """A problem on some of the columns of a wider matrix.

    Attributes
    ----------
    problem : Problem
        On the selected columns.
    positions : (m,) int array
        Position in the wider matrix of each column of the problem's matrix.
    """

    problem: Problem
    positions: IntArray

    @classmethod
    def of(cls, whole: Problem, selected: IntArray) -> View:
        """Return the problem on the selected penalised columns (ascending), an intercept added where there is one."""
        d, regularizer = whole.design.d, whole.regularizer
        inside = np.append(selected, d - 1) if regularizer.intercept else selected
        if selected.size > COMPACT * d or selected.size == 0:
            mask = np.zeros(d, dtype=bool)
            mask[inside] = True
            return cls(
                Problem(whole.design, whole.y, whole.loss, regularizer, whole.row_mask, mask),
                np.arange(d, dtype=np.int64),
            )
        X = whole.design.X[:, selected]
        design = Design(X, regularizer.intercept)
        return cls(Problem(design, whole.y, whole.loss, regularizer, whole.row_mask), inside)

    def narrow(self, wide: FloatArray) -> FloatArray:
        """Return the entries of a vector over the wider matrix's columns that belong to the problem's."""
        return wide[self.positions]

    def widen(self, w: FloatArray, d: int) -> FloatArray:
        """Return a vector over the wider matrix's d columns: the given entries, zero elsewhere."""
        wide = np.zeros(d)
        wide[self.positions] = w
        return wide


def count_errors(lower: FloatArray, upper: FloatArray, y: FloatArray) -> tuple[int, int]:
    """Return the least and largest number of errors `sign(t_i) != y_i` over `lower_i <= t_i <= upper_i`.

    A prediction of zero is an error.

    Parameters
    ----------
    lower, upper : (m,) arrays
        Intervals of the predictions.
    y : (m,) array
        Labels -1 / +1.

    Returns
    -------
    int, int
    """
    wrong = np.where(y > 0.0, upper <= 0.0, lower >= 0.0)
    right = np.where(y > 0.0, lower > 0.0, upper < 0.0)
    return int(wrong.sum()), int(y.size - right.sum())


def fit_errors(view: View, fit: Fit, validation: Design, y: FloatArray) -> tuple[int, int]:
    """Return bounds on the validation errors of the optimum of a fit's problem, from its own gap.

    Parameters
    ----------
    view : View
        The present columns.
    fit : Fit
        On them.
    validation : Design
        Validation rows over all columns.
    y : (m,) array
        Their labels.

    Returns
    -------
    int, int
        Least and largest number of errors.
    """
    X = _features(validation, view, view.problem)
    bracket = prediction_intervals(region_of(fit), X, "sharp" if fit.problem.regularizer.ridge > 0.0 else "best")
    return count_errors(bracket.lower, bracket.upper, y)


def candidate_errors(
    whole: Problem, view: View, fit: Fit, validation: Design, y: FloatArray, candidates: IntArray, adding: bool
) -> ErrorRange:
    """Return bounds on the validation errors after each candidate column alone is removed, or added.

    Parameters
    ----------
    whole : Problem
        On every column.
    view : View
        The present columns.
    fit : Fit
        On them.
    validation : Design
        Validation rows over the columns of `whole`.
    y : (m,) array
        Their labels.
    candidates : (k,) int array
        Columns of `whole`: present ones to remove, or absent ones to add.
    adding : bool
        Add the candidates, else remove them.

    Returns
    -------
    ErrorRange
        By the midpoint ball. O((n + m) k); one by one, O(k (n + m d)), with an intercept or without strong convexity.
    """
    lower, upper = np.empty(candidates.size, dtype=np.int64), np.empty(candidates.size, dtype=np.int64)
    plain = whole.regularizer.ridge > 0.0 and not whole.regularizer.intercept
    step = max(1, 2_000_000 // max(whole.design.n, validation.n)) if plain else 1
    for start in range(0, candidates.size, step):
        part = slice(start, start + step)
        if plain:
            least, most = _block(whole, view, fit, validation, candidates[part], adding)
        else:
            least, most = _single(whole, view, fit, validation, int(candidates[start]), adding)
        for k in range(least.shape[1]):
            lower[start + k], upper[start + k] = count_errors(least[:, k], most[:, k], y)
    return ErrorRange(lower, upper)


def _block(
    whole: Problem, view: View, fit: Fit, validation: Design, J: IntArray, adding: bool
) -> tuple[FloatArray, FloatArray]:
    """(m, k) ends of the validation predictions for a block of candidates."""
    problem, loss, regularizer = fit.problem, fit.problem.loss, fit.problem.regularizer
    n, X, V = problem.n, whole.design.columns(J), validation.columns(J)
    w, v = view.widen(fit.w, whole.design.d), view.widen(fit.center, whole.design.d)
    middle = 0.5 * (w + v)
    norm_sq = np.square(_features(validation, view, problem)).sum(axis=1)
    distance_sq, residual = primal_distance(regularizer, fit.w, fit.score) ** 2, float(fit.column_residual.sum())
    if adding:
        move = regularizer.minimizer(fit.alpha @ X / n)
        shift, norms = move, norm_sq[:, None] + np.square(V)
        distance_left, residual_left = np.full(J.size, distance_sq), np.full(J.size, residual)
    else:
        move, shift = -w[J], -middle[J]
        norms = np.maximum(norm_sq[:, None] - np.square(V), 0.0) + 8.0 * EPS * norm_sq[:, None]
        own = view.widen(fit.column_residual, whole.design.d)[J]
        distance_left = np.maximum(distance_sq - np.square(w[J] - v[J]), 0.0)
        residual_left = np.maximum(residual - own, 0.0)
    t, y, alpha = fit.t[:, None] + X * move, problem.y[:, None], fit.alpha[:, None]
    rows, off_sq = loss.residual(t, alpha, y), np.square(alpha + loss.derivative(t, y))
    if problem.row_mask is not None:
        rows[~problem.row_mask], off_sq[~problem.row_mask] = 0.0, 0.0
    gap = rows.sum(axis=0) / n + residual_left + 16.0 * EPS * (fit.primal + rows.sum(axis=0) / n)
    less = 0.25 * regularizer.ridge * distance_left + 0.25 * off_sq.sum(axis=0) / (n * loss.smoothness)
    radius = np.sqrt(np.maximum(gap - (1.0 - 8.0 * EPS) * less, 0.0) / regularizer.ridge)
    center = validation.forward(middle)[:, None] + V * shift
    size = float(np.linalg.norm(w)) + np.abs(move)
    reach = np.sqrt(norms) * (radius * (1.0 + ROUNDING) + ROUNDING * size)
    return center - reach, center + reach


def _single(
    whole: Problem, view: View, fit: Fit, validation: Design, j: int, adding: bool
) -> tuple[FloatArray, FloatArray]:
    rows = _features(validation, view, view.problem)
    if adding:
        region = change_columns(fit, add=whole.design.columns(np.array([j])))
        rows = np.hstack([rows, validation.columns(np.array([j]))])
    else:
        local = int(np.flatnonzero(view.positions == j)[0])
        columns = fit.problem.columns
        if fit.problem.regularizer.penalised(columns.size) == 1:
            return np.full((validation.n, 1), -np.inf), np.full((validation.n, 1), np.inf)
        region = change_columns(fit, remove=[local])
        rows = np.delete(rows, int(np.flatnonzero(columns == local)[0]), axis=1)
    bracket = prediction_intervals(region, rows)
    return bracket.lower[:, None], bracket.upper[:, None]


def _features(validation: Design, view: View, problem: Problem) -> FloatArray:
    """(m, k) validation rows over the penalised columns of the problem."""
    inside = problem.columns[: problem.regularizer.penalised(problem.columns.size)]
    return validation.columns(view.positions[inside])
