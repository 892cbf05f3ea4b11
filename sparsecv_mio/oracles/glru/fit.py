"""A primal and a dual point of one problem, the duality gap between them, and sums that later changes reuse.

The gap is computed as the sum of its Fenchel-Young residuals, all of them >= 0 (theory section 2, general form):

    P(w) - D(alpha) = (1/n) sum_i [l_i(t_i) + l_i*(-alpha_i) + alpha_i t_i] + sum_j [rho_j(w_j) + rho_j*(c_j) - w_j c_j]

with `t = X w` and `c = X' alpha / n`. No two large numbers are subtracted: a gap of 1e-14 is as accurate as one of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.oracles.glru.problem import Problem
from sparsecv_mio.oracles.losses import ConjugateLoss

RESIDUAL, DISTANCE_SQ, RAY_SLOPE, RAY_CURVATURE, ALPHA_DISTANCE, ALPHA_SQ = range(6)
"""Columns of :func:`row_table`."""

EPS = float(np.finfo(float).eps)


def row_table(t: FloatArray, alpha: FloatArray, y: FloatArray, loss: ConjugateLoss) -> FloatArray:
    """Return what each row contributes to the sums that change when rows are added or removed.

    Parameters
    ----------
    t, alpha, y : (k,) arrays
        Predictions, dual variables and responses of the rows.
    loss : ConjugateLoss
        The loss of the problem.

    Returns
    -------
    (k, 6) array
        Fenchel-Young residual; squared distance of alpha to `-l'(t)`; slope at s = 1 of the residual along
        `s alpha`; bound on that function's second derivative times s; `alpha (alpha + l'(t))`; `alpha^2`.
    """
    off = alpha + loss.derivative(t, y)
    slope, curvature = loss.ray(alpha, y)
    columns = (loss.residual(t, alpha, y), off * off, slope + alpha * t, curvature, alpha * off, alpha * alpha)
    return np.stack(columns, axis=1)


def shift(alpha: FloatArray, weight: FloatArray, low: FloatArray, high: FloatArray, amount: float) -> FloatArray | None:
    """Add `amount` in total to alpha, in proportion to the weights, inside the box; None where it has no room.

    Parameters
    ----------
    alpha, weight, low, high : (k,) arrays
        `low <= alpha <= high`, weights >= 0.
    amount : float
        What the entries are to grow by in total; may be negative.

    Returns
    -------
    (k,) array or None

    Examples
    --------
    >>> shift(np.zeros(2), np.array([3.0, 1.0]), np.full(2, -1.0), np.ones(2), 0.4).round(12).tolist()
    [0.3, 0.1]
    """
    moved, left = alpha, amount
    for _ in range(30):
        if abs(left) <= 8.0 * EPS * (float(np.abs(moved).sum()) + abs(amount)):
            return np.clip(moved, low, high)
        room = np.maximum(high - moved if left > 0.0 else moved - low, 0.0)
        share = np.where(room > 0.0, weight, 0.0)
        total = float(share.sum())
        if total <= 0.0:
            return None
        step = np.minimum(share * (abs(left) / total), room)
        moved = moved + np.copysign(step, left)
        left = amount - float((moved - alpha).sum())
    return None


def box_table(X: Any, y: FloatArray, loss: ConjugateLoss) -> FloatArray:
    """Return the least and largest `sum_i x_ij alpha_i` over the box (25) of the loss's domain.

    Parameters
    ----------
    X : (k, d) array or sparse array
        Rows.
    y : (k,) array
        Their responses.
    loss : ConjugateLoss
        Its domain is the box.

    Returns
    -------
    (4, d) array
        For the least value the sum of its finite terms and the number of its infinite ones, the same for the largest.
    """
    low, high = loss.dual_range(y)
    out = np.zeros((4, X.shape[1]))
    parts = [(0, high, low), (2, low, high)]  # (row of the result, end that negative entries take, positive entries)
    for rows in row_chunks(X.shape[0], X.shape[1]):
        block = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
        plus, minus = np.maximum(block, 0.0), np.minimum(block, 0.0)
        for k, at_minus, at_plus in parts:
            out[k] += np.where(np.isfinite(at_plus[rows]), at_plus[rows], 0.0) @ plus
            out[k] += np.where(np.isfinite(at_minus[rows]), at_minus[rows], 0.0) @ minus
            out[k + 1] += np.isinf(at_plus[rows]).astype(np.float64) @ (plus > 0.0)
            out[k + 1] += np.isinf(at_minus[rows]).astype(np.float64) @ (minus < 0.0)
    return out


@dataclass(frozen=True, eq=False)
class DualFit:
    """A primal and a dual point of one problem; what is stated below holds for any of them, optimal or not.

    Attributes
    ----------
    problem : Problem
    w : (d,) array
        Primal point, zero on the columns that are out.
    t : (n,) array
        `X w` for every row of the matrix, in the problem or out of it.
    alpha : (n,) array
        Dual point, feasible unless `gap` is infinite; zero on the rows that are out.
    score : (d,) array
        `c = X' alpha / n` on the columns that are in; exactly zero for an intercept.
    row_residual, column_residual : (n,), (d,) arrays
        Fenchel-Young residuals of rows and columns.
    gap : float
        Upper bound on `P(w) - P(w*)`: the duality gap.
    iterations : int
        Steps that training took.
    """

    problem: Problem
    w: FloatArray
    t: FloatArray
    alpha: FloatArray
    score: FloatArray
    row_residual: FloatArray
    column_residual: FloatArray
    gap: float
    iterations: int = 0

    @cached_property
    def primal(self) -> float:
        """`P(w)`."""
        return self.loss_sum / self.problem.n + self.problem.regularizer.value(self.w)

    @property
    def relative_gap(self) -> float:
        """`(P - D) / P`: the training criterion of the paper."""
        return self.gap / max(self.primal, np.finfo(float).tiny)

    @cached_property
    def table(self) -> FloatArray:
        """(n, 6) table of the rows, zero for rows that are out."""
        problem = self.problem
        table = row_table(self.t, self.alpha, problem.y, problem.loss)
        if problem.row_mask is not None:
            table[~problem.row_mask] = 0.0
        return table

    @cached_property
    def table_sum(self) -> FloatArray:
        """(6,) column sums of the table."""
        return self.table.sum(axis=0)

    @cached_property
    def center(self) -> FloatArray:
        """(d,) primal point `drho*(c)` that belongs to the dual point."""
        return self.problem.keep_columns(self.problem.regularizer.minimizer(self.score))

    @cached_property
    def column_sq(self) -> FloatArray:
        """(d,) squared norms of the columns over the rows of the problem."""
        problem = self.problem
        if problem.row_mask is None:
            return problem.design.column_sq
        return problem.design.weighted_column_sq(problem.row_mask.astype(np.float64))

    @cached_property
    def loss_sum(self) -> float:
        """`sum_i l_i(t_i)` over the rows of the problem."""
        return float(self.problem.keep_rows(self.problem.loss.value(self.t, self.problem.y)).sum())

    @cached_property
    def box(self) -> FloatArray:
        """(4, d) :func:`box_table` of the rows of the problem."""
        problem = self.problem
        X = problem.design.X if problem.row_mask is None else problem.design.X[problem.rows]
        return box_table(X, problem.y[problem.rows], problem.loss)

    @cached_property
    def balancing_direction(self) -> FloatArray:
        """(d,) `X_B' u`, B the balancing rows and u their weights scaled to sum 1."""
        rows, weight = self.balancing_rows
        spread = np.zeros(self.problem.design.n)
        spread[rows] = weight / weight.sum()
        return self.problem.keep_columns(self.problem.design.adjoint(spread))

    @cached_property
    def balancing_rows(self) -> tuple[IntArray, FloatArray]:
        """Rows whose dual variables are moved to restore `sum alpha = 0` after a change, and their weights.

        They are those of largest curvature, where moving alpha costs least; as many as there are columns (64 at least),
        so that moving them costs no more than reading one row of X.
        """
        problem = self.problem
        weight = problem.keep_rows(problem.loss.curvature(self.t, problem.y))
        count = min(problem.n, max(64, problem.design.d))
        if not weight.any():
            weight = problem.keep_rows(np.ones(problem.design.n))
        chosen = np.argpartition(-weight, count - 1)[:count]
        chosen = np.sort(chosen[weight[chosen] > 0.0])
        return chosen, weight[chosen]

    @cached_property
    def common_point(self) -> FloatArray:
        """(d - 1,) mean of the rows, weighted by curvature, over the penalised columns; used to bound an intercept."""
        problem = self.problem
        weight = problem.keep_rows(problem.loss.curvature(self.t, problem.y))
        if not weight.any():
            weight = problem.keep_rows(np.ones(problem.design.n))
        return problem.keep_columns(problem.design.adjoint(weight) / weight.sum())[:-1]

    @cached_property
    def distance_sq(self) -> FloatArray:
        """(n,) squared distances of the rows to `common_point`, over the penalised columns of the problem."""
        design, z = self.problem.design, self.common_point
        product = design.forward(np.append(z, 0.0))
        norm_sq = design.row_sq - 1.0
        if self.problem.column_mask is not None:
            out = np.flatnonzero(~self.problem.column_mask)
            norm_sq = norm_sq - np.square(design.columns(out)).sum(axis=1)
        zz = float(z @ z)
        return np.maximum(norm_sq - 2.0 * product + zz, 0.0) + 8.0 * EPS * (design.row_sq + zz)


def assess(problem: Problem, w: FloatArray, t: FloatArray | None = None, iterations: int = 0) -> DualFit:
    """Return the dual point that belongs to a primal one, made feasible, and the duality gap between them.

    Parameters
    ----------
    problem : Problem
        Rows, columns, loss and regulariser.
    w : (d,) array
        Primal point.
    t : (n,) array, optional
        `X w` where it is known.
    iterations : int
        Steps of training so far, stored in the fit.

    Returns
    -------
    DualFit
        With `alpha = -l'(t)` (KKT); then, with an intercept, moved to `sum alpha = 0` in proportion to the rows'
        curvature; then, without strong convexity, scaled to `|X_j' alpha| <= n l1`.

    Notes
    -----
    One pass over X for t, one for c: O(nd).

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem
    >>> fit = assess(make_problem([[1.0], [1.0]], [2.0, 2.0], Squared(1.0), Regularizer(1.0)), np.ones(1))
    >>> fit.gap, assess(fit.problem, np.zeros(1)).gap
    (0.0, 2.0)
    """
    loss, regularizer, y = problem.loss, problem.regularizer, problem.y
    w = problem.keep_columns(w)
    t = problem.design.forward(w) if t is None else t
    alpha = problem.keep_rows(-loss.derivative(t, y))
    feasible = True
    if regularizer.intercept:
        level = _balanced(problem, t, alpha)
        feasible, alpha = level is not None, alpha if level is None else level
    score = problem.keep_columns(problem.design.adjoint(alpha) / problem.n)
    if regularizer.intercept:
        score[-1] = 0.0
    if regularizer.ridge == 0.0:
        penalised = regularizer.penalised(score.shape[0])
        # a sum in another order must not find a score outside its domain
        longest = float(problem.design.column_sq[:penalised].max(initial=0.0)) ** 0.5
        rounding = (8.0 + problem.n**0.5) * EPS * longest * float(np.linalg.norm(alpha)) / problem.n
        largest = float(np.abs(score[:penalised]).max(initial=0.0)) + rounding
        if largest > regularizer.l1:
            factor = regularizer.l1 / largest
            alpha, score = factor * alpha, factor * score
    rows = problem.keep_rows(loss.residual(t, alpha, y))
    columns = problem.keep_columns(regularizer.residual(w, score))
    gap = float(rows.sum()) / problem.n + float(columns.sum()) if feasible else np.inf
    return DualFit(problem, w, t, alpha, score, rows, columns, gap, iterations)


def _balanced(problem: Problem, t: FloatArray, alpha: FloatArray) -> FloatArray | None:
    """Return alpha moved to `sum alpha = 0`: in proportion to curvature, else wherever its box leaves room."""
    low, high = problem.loss.dual_range(problem.y)
    for weight in (problem.loss.curvature(t, problem.y), np.ones_like(t)):
        level = shift(alpha, problem.keep_rows(weight), low, high, -float(alpha.sum()))
        if level is not None:
            return level
    return None
