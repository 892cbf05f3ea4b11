"""The regularised empirical risk on some rows and columns, with primal and dual points and the gap between them.

Row i has features x_i, target y_i, loss l and dual variable alpha_i; coefficient w_j has penalty rho_j; a star marks a
convex conjugate. The primal objective P and the dual objective D are

    P(w)     =  (1/n) sum_i l_{y_i}(x_i' w)       +  sum_j rho_j(w_j)
    D(alpha) = -(1/n) sum_i l*_{y_i}(-alpha_i)    -  sum_j rho_j*(x_j' alpha / n)

Rows outside of the problem stay in the matrix with `alpha_i = 0`. These rows add nothing to D, because `l*(0) = 0`.
Therefore no fold needs a copy of X.

The gap is computed as a sum of Fenchel-Young residuals, each of them at least 0 (theory section 2, general form):

    P(w) - D(alpha) = (1/n) sum_i [l_i(t_i) + l_i*(-alpha_i) + alpha_i t_i] + sum_j [rho_j(w_j) + rho_j*(c_j) - w_j c_j]

with `t = X w` and `c = X' alpha / n`. No two large numbers are subtracted, so a gap of 1e-14 has as many accurate
digits as a gap of 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.losses import ConjugateLoss
from sparsecv_mio.oracles.penalties import Regularizer
from sparsecv_mio.units import ROUNDING

WIDE_RATIO = 1.5
"""Minimum ratio of columns to rows at which the smaller problem in the rows saves more time than `X X'` takes."""


class DesignMatrix:
    """A matrix (n, d), dense or sparse, with its products, single rows and columns, and squared norms.

    Parameters
    ----------
    X : (n, d) array or scipy sparse matrix
        Features. A dense float64 C-contiguous array is used without a copy; sparse input is stored by rows and, once
        a column is needed, also by columns.
    intercept : bool
        True to append a column of ones.

    Raises
    ------
    BadInput
        If X is not a matrix of finite numbers with at least one row and one column.

    Examples
    --------
    >>> design = DesignMatrix([[3.0, 4.0], [0.0, 1.0]], intercept=True)
    >>> design.d, design.row_sq.tolist(), design.forward(np.array([1.0, 0.0, 2.0])).tolist()
    (3, [26.0, 2.0], [5.0, 2.0])
    """

    def __init__(self, X: Any, intercept: bool = False) -> None:
        self.sparse = hasattr(X, "tocsr")
        if self.sparse:
            import scipy.sparse as sp

            self.X: Any = sp.csr_array(X, dtype=np.float64)
            if intercept:
                ones = sp.csr_array(np.ones((self.X.shape[0], 1)))
                self.X = sp.csr_array(sp.hstack([self.X, ones]))
            values = self.X.data
        else:
            self.X = np.ascontiguousarray(X, dtype=np.float64)
            if self.X.ndim == 2 and intercept:
                self.X = np.hstack([self.X, np.ones((self.X.shape[0], 1))])
            values = self.X
        if self.X.ndim != 2 or min(self.X.shape) == 0:
            raise BadInput(f"X of shape {self.X.shape} must be a matrix with at least one row and one column")
        if not np.isfinite(values).all():
            raise BadInput("X has a number that is not finite; remove or fill it first")

    @property
    def n(self) -> int:
        """Number of rows of the matrix."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of columns of the matrix, including that of an intercept."""
        return int(self.X.shape[1])

    @cached_property
    def row_sq(self) -> FloatArray:
        """Squared norms (n,) of the rows over all columns."""
        if self.sparse:
            return np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    @cached_property
    def column_sq(self) -> FloatArray:
        """Squared norms (d,) of the columns over all rows."""
        return self.weighted_column_sq(np.ones(self.n))

    def weighted_column_sq(self, h: FloatArray) -> FloatArray:
        """Return `sum_i h_i x_ij^2` (d,), computed in blocks of rows."""
        if self.sparse:
            return np.asarray(self.X.multiply(self.X).T @ h).ravel()
        out = np.zeros(self.d)
        for rows in row_chunks(self.n, self.d):
            out += h[rows] @ np.square(self.X[rows])
        return out

    @cached_property
    def by_columns(self) -> Any:
        """A copy of the matrix with contiguous columns."""
        return self.X.tocsc() if self.sparse else np.asfortranarray(self.X)

    def forward(self, w: FloatArray) -> FloatArray:
        """Return `X w`, (n,) or (n, k)."""
        return np.asarray(self.X @ w)

    def adjoint(self, a: FloatArray) -> FloatArray:
        """Return `X' a`, (d,)."""
        return np.asarray(self.X.T @ a)

    def part(self, columns: IntArray) -> DesignMatrix:
        """Return a design matrix with copies of some of the columns, or of none."""
        narrow = DesignMatrix.__new__(DesignMatrix)
        narrow.sparse = self.sparse
        narrow.X = self.X[:, columns] if self.sparse else np.take(self.X, columns, axis=1)
        return narrow

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some of the rows as a dense (k, d) array."""
        block = self.X[index]
        return np.asarray(block.toarray() if self.sparse else block)

    def columns(self, index: IntArray | slice) -> FloatArray:
        """Return some of the columns as a dense (n, k) array."""
        return np.asarray(self.by_columns[:, index].toarray() if self.sparse else self.X[:, index])


@dataclass(frozen=True, eq=False)
class Problem:
    """`min_w P(w)` over some rows of a :class:`DesignMatrix`.

    Parameters
    ----------
    design : DesignMatrix
        Features; with `regularizer.intercept`, the last column is the column of ones.
    y : (n,) array
        Responses; -1 or +1 for a loss of labels.
    loss : ConjugateLoss
        Loss of a prediction, given the response.
    regularizer : Regularizer
        Penalty on the coefficients.
    row_mask : (n,) bool array, optional
        Rows in the problem; all by default.

    Raises
    ------
    BadInput
        If shapes differ, no row is left, or y is outside of the loss's domain.

    Examples
    --------
    >>> from sparsecv_mio.oracles.losses import Squared
    >>> problem = Problem(DesignMatrix([[1.0], [2.0]]), np.array([1.0, 0.0]), Squared(1.0), Regularizer(1.0))
    >>> problem.primal(np.array([1.0]), np.array([1.0, 2.0])), problem.without_rows([1]).n
    (1.5, 1)
    """

    design: DesignMatrix
    y: FloatArray
    loss: ConjugateLoss
    regularizer: Regularizer
    row_mask: BoolArray | None = None

    def __post_init__(self) -> None:
        if self.y.shape != (self.design.n,):
            raise BadInput(f"y of shape {self.y.shape} must have one response for each of the {self.design.n} rows")
        if not np.isfinite(self.y).all():
            raise BadInput("y has a number that is not finite; remove or fill it first")
        if self.n == 0:
            raise BadInput("no row is left to fit; keep at least one row")
        self.loss.check(self.y)

    @cached_property
    def n(self) -> int:
        """Number of rows in the problem: the n of `P`."""
        return self.design.n if self.row_mask is None else int(np.count_nonzero(self.row_mask))

    @cached_property
    def rows(self) -> IntArray:
        """Positions of the rows in the problem."""
        return np.arange(self.design.n) if self.row_mask is None else np.flatnonzero(self.row_mask)

    def keep_rows(self, values: FloatArray) -> FloatArray:
        """Return the values (n,) with zeros for rows outside of the problem."""
        return values if self.row_mask is None else np.where(self.row_mask, values, 0.0)

    def without_rows(self, rows: Any) -> Problem:
        """Return the problem without some of its rows."""
        mask = np.ones(self.design.n, dtype=bool) if self.row_mask is None else self.row_mask.copy()
        mask[rows] = False
        return replace(self, row_mask=mask)

    def primal(self, w: FloatArray, t: FloatArray) -> float:
        """`P(w)` given `t = X w`. O(n + d)."""
        return float(self.keep_rows(self.loss.value(t, self.y)).sum()) / self.n + self.regularizer.value(w)


def weighted_gram(X: Any, h: FloatArray) -> FloatArray:
    """Return `X' diag(h) X` of a dense or sparse matrix. O(n d^2)."""
    if hasattr(X, "multiply"):
        return np.asarray((X.multiply(h[:, None]).T @ X).toarray())
    root = np.sqrt(h)[:, None] * X
    return np.asarray(root.T @ root)


def make_problem(X: Any, y: Any, loss: ConjugateLoss, regularizer: Regularizer) -> Problem:
    """Return the problem on all rows and columns of X; the regulariser's intercept appends a column of ones.

    Parameters
    ----------
    X : (n, d) array_like or scipy sparse matrix
        Features, used without scaling.
    y : (n,) array_like
        Responses; -1 or +1 for a loss of labels.
    loss : ConjugateLoss
        Loss of a prediction, given the response.
    regularizer : Regularizer
        Penalty on the coefficients.

    Returns
    -------
    Problem

    Raises
    ------
    BadInput
        If :class:`DesignMatrix` or :class:`Problem` raises it.

    Examples
    --------
    >>> from sparsecv_mio.oracles.losses import Logistic
    >>> make_problem([[0.0], [1.0]], [-1, 1], Logistic(), Regularizer(1.0, intercept=True)).design.d
    2
    """
    response = np.array(y, dtype=np.float64).ravel()
    return Problem(DesignMatrix(X, regularizer.intercept), response, loss, regularizer)


def fewer_columns(problem: Problem) -> Problem:
    """Return a problem with n columns and the same predictions, or the problem itself if that saves nothing.

    The reduction is for L2 and more columns than rows. With `X X' = L L'` the rows of L have the inner products of the
    rows of X. So every problem on some of the rows has the same predictions, objective, gap and bounds in L as in X,
    and w is `X' (L')^{-1} v` (the kernel trick). One product costs O(n^2 d); each later pass costs O(n^2) instead of
    O(nd).

    Parameters
    ----------
    problem : Problem
        The problem to reduce. A problem that is sparse, has an L1 term, or has fewer than `WIDE_RATIO` columns for
        each row is returned unchanged.

    Returns
    -------
    Problem
        Problem with the same rows, responses and mask; the column of an intercept stays last.

    Notes
    -----
    Inner products have an error of about n eps relative to the largest squared row norm.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem
    >>> wide = make_problem([[3.0, 0.0, 4.0, 0.0]], [1.0], Squared(1.0), Regularizer(1.0))
    >>> fewer_columns(wide).design.X.tolist()
    [[5.0]]
    """
    design, regularizer = problem.design, problem.regularizer
    d = regularizer.penalised(design.d)
    if design.sparse or regularizer.l1 > 0.0 or d < WIDE_RATIO * design.n:
        return problem
    return replace(problem, design=DesignMatrix(_factor_of_rows(design.X[:, :d]), regularizer.intercept))


def _factor_of_rows(X: FloatArray) -> FloatArray:
    K = X @ X.T
    try:
        return np.ascontiguousarray(cholesky(K, lower=True, check_finite=False))
    except LinAlgError:
        values, vectors = eigh(K, check_finite=False)
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))


RESIDUAL, DISTANCE_SQ, RAY_SLOPE, RAY_CURVATURE, ALPHA_DISTANCE, ALPHA_SQ = range(6)
"""Columns of :func:`row_table`."""


def row_table(t: FloatArray, alpha: FloatArray, y: FloatArray, loss: ConjugateLoss) -> FloatArray:
    """Return the contribution of each row to the sums that change when rows are added or removed.

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
    """Return alpha with `amount` added in total, in proportion to the weights; None if the box has no room.

    Parameters
    ----------
    alpha, weight, low, high : (k,) arrays
        Entries, their weights >= 0, and the box: `low <= alpha <= high`.
    amount : float
        Total change of the entries; may be negative.

    Returns
    -------
    (k,) array or None

    Examples
    --------
    >>> shift(np.zeros(2), np.array([3.0, 1.0]), np.full(2, -1.0), np.ones(2), 0.4).round(12).tolist()
    [0.3, 0.1]
    """
    moved, to_move = alpha, amount
    for _ in range(30):
        if abs(to_move) <= 8.0 * ROUNDING * (float(np.abs(moved).sum()) + abs(amount)):
            return np.clip(moved, low, high)
        room = np.maximum(high - moved if to_move > 0.0 else moved - low, 0.0)
        share = np.where(room > 0.0, weight, 0.0)
        total = float(share.sum())
        if total <= 0.0:
            return None
        step = np.minimum(share * (abs(to_move) / total), room)
        moved = moved + np.copysign(step, to_move)
        to_move = amount - float((moved - alpha).sum())
    return None


def box_table(X: Any, y: FloatArray, loss: ConjugateLoss) -> FloatArray:
    """Return the least and largest `sum_i x_ij alpha_i` over the box (25) of the loss's domain.

    Parameters
    ----------
    X : (k, d) array or sparse array
        Rows.
    y : (k,) array
        Responses of the rows.
    loss : ConjugateLoss
        Loss whose domain is the box.

    Returns
    -------
    (4, d) array
        Sum of the finite terms of the least value, number of its infinite terms, and both for the largest value.
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
    """A primal and a dual point of one problem, optimal or not.

    Attributes
    ----------
    problem : Problem
        The problem.
    w : (d,) array
        Primal point.
    t : (n,) array
        `X w` for every row of the matrix, also for rows outside of the problem.
    alpha : (n,) array
        Dual point, feasible unless `gap` is infinite; zero for rows outside of the problem.
    score : (d,) array
        `c = X' alpha / n`; exactly zero for an intercept.
    column_residual : (d,) array
        Fenchel-Young residuals of the columns.
    gap : float
        Upper bound on `P(w) - P(w*)`: the duality gap.
    iterations : int
        Number of training steps.
    """

    problem: Problem
    w: FloatArray
    t: FloatArray
    alpha: FloatArray
    score: FloatArray
    column_residual: FloatArray
    gap: float
    iterations: int = 0

    @cached_property
    def primal(self) -> float:
        """The objective `P(w)`."""
        return self.loss_sum / self.problem.n + self.problem.regularizer.value(self.w)

    @property
    def relative_gap(self) -> float:
        """The relative gap `(P - D) / P`, the training criterion of the paper."""
        return self.gap / max(self.primal, np.finfo(float).tiny)

    @cached_property
    def table(self) -> FloatArray:
        """The table (n, 6) of :func:`row_table`, zero for rows outside of the problem."""
        problem = self.problem
        table = row_table(self.t, self.alpha, problem.y, problem.loss)
        if problem.row_mask is not None:
            table[~problem.row_mask] = 0.0
        return table

    @cached_property
    def table_sum(self) -> FloatArray:
        """Column sums (6,) of the table."""
        return self.table.sum(axis=0)

    @cached_property
    def center(self) -> FloatArray:
        """Primal point `drho*(c)` (d,) that belongs to the dual point."""
        return self.problem.regularizer.minimizer(self.score)

    @cached_property
    def column_sq(self) -> FloatArray:
        """Squared norms (d,) of the columns over the rows of the problem."""
        problem = self.problem
        if problem.row_mask is None:
            return problem.design.column_sq
        return problem.design.weighted_column_sq(problem.row_mask.astype(np.float64))

    @cached_property
    def loss_sum(self) -> float:
        """The sum `sum_i l_i(t_i)` over the rows of the problem."""
        return float(self.problem.keep_rows(self.problem.loss.value(self.t, self.problem.y)).sum())

    @cached_property
    def box(self) -> FloatArray:
        """The :func:`box_table` (4, d) of the rows of the problem."""
        problem = self.problem
        X = problem.design.X if problem.row_mask is None else problem.design.X[problem.rows]
        return box_table(X, problem.y[problem.rows], problem.loss)

    @cached_property
    def steepness(self) -> FloatArray:
        """Curvatures (n,) of the rows, zero outside of the problem; if all are zero, 1 for each row of the problem."""
        weight = self.problem.keep_rows(self.problem.loss.curvature(self.t, self.problem.y))
        return weight if weight.any() else self.problem.keep_rows(np.ones_like(weight))

    @cached_property
    def balancing_direction(self) -> FloatArray:
        """The vector `X_B' u` (d,), with B the balancing rows and u their weights, scaled to sum 1."""
        rows, weight = self.balancing_rows
        spread = np.zeros(self.problem.design.n)
        spread[rows] = weight / weight.sum()
        return self.problem.design.adjoint(spread)

    @cached_property
    def balancing_rows(self) -> tuple[IntArray, FloatArray]:
        """Rows whose dual variables are moved to restore `sum alpha = 0` after a change, and their weights.

        They are the rows of largest curvature, on which a change of alpha costs least. There are as many of them as
        columns, but at least 64, so that moving them costs no more than reading one row of X.
        """
        problem, weight = self.problem, self.steepness
        count = min(problem.n, max(64, problem.design.d))
        chosen = np.argpartition(-weight, count - 1)[:count]
        chosen = np.sort(chosen[weight[chosen] > 0.0])
        return chosen, weight[chosen]

    @cached_property
    def common_point(self) -> FloatArray:
        """(d - 1,) mean of the rows, weighted by curvature, over the penalised columns; used to bound an intercept."""
        return (self.problem.design.adjoint(self.steepness) / self.steepness.sum())[:-1]

    @cached_property
    def distance_sq(self) -> FloatArray:
        """(n,) squared distances of the rows to `common_point`, over the penalised columns."""
        design, z = self.problem.design, self.common_point
        product = design.forward(np.append(z, 0.0))
        norm_sq = design.row_sq - 1.0
        zz = float(z @ z)
        return np.maximum(norm_sq - 2.0 * product + zz, 0.0) + 8.0 * ROUNDING * (design.row_sq + zz)


def assess(problem: Problem, w: FloatArray, t: FloatArray | None = None, iterations: int = 0) -> DualFit:
    """Return the dual point that belongs to a primal one, made feasible, and the duality gap between them.

    Parameters
    ----------
    problem : Problem
        Rows, columns, loss and regulariser.
    w : (d,) array
        Primal point.
    t : (n,) array, optional
        `X w`, if known.
    iterations : int
        Number of training steps so far, stored in the fit.

    Returns
    -------
    DualFit
        Fit with `alpha = -l'(t)` (KKT). With an intercept, alpha is then moved to `sum alpha = 0` in proportion to the
        curvature of the rows. Without strong convexity, it is then scaled to `|X_j' alpha| <= n l1`.

    Notes
    -----
    The call makes one pass over X for t and one for c: O(nd).

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem
    >>> fit = assess(make_problem([[1.0], [1.0]], [2.0, 2.0], Squared(1.0), Regularizer(1.0)), np.ones(1))
    >>> fit.gap, assess(fit.problem, np.zeros(1)).gap
    (0.0, 2.0)
    """
    loss, regularizer, y = problem.loss, problem.regularizer, problem.y
    t = problem.design.forward(w) if t is None else t
    alpha = problem.keep_rows(-loss.derivative(t, y))
    feasible = True
    if regularizer.intercept:
        level = _balance_dual(problem, t, alpha)
        feasible, alpha = level is not None, alpha if level is None else level
    score = problem.design.adjoint(alpha) / problem.n
    if regularizer.intercept:
        score[-1] = 0.0
    if regularizer.ridge == 0.0:
        penalised = regularizer.penalised(score.shape[0])
        # a sum in another order must not find a score outside its domain
        longest = float(problem.design.column_sq[:penalised].max(initial=0.0)) ** 0.5
        rounding = (8.0 + problem.n**0.5) * ROUNDING * longest * float(np.linalg.norm(alpha)) / problem.n
        largest = float(np.abs(score[:penalised]).max(initial=0.0)) + rounding
        if largest > regularizer.l1:
            factor = regularizer.l1 / largest
            alpha, score = factor * alpha, factor * score
    rows = problem.keep_rows(loss.residual(t, alpha, y))
    columns = regularizer.residual(w, score)
    gap = float(rows.sum()) / problem.n + float(columns.sum()) if feasible else np.inf
    return DualFit(problem, w, t, alpha, score, columns, gap, iterations)


def _balance_dual(problem: Problem, t: FloatArray, alpha: FloatArray) -> FloatArray | None:
    """Return alpha moved to `sum alpha = 0` in proportion to curvature or, without room for that, evenly; else None."""
    low, high = problem.loss.dual_range(problem.y)
    for weight in (problem.loss.curvature(t, problem.y), np.ones_like(t)):
        level = shift(alpha, problem.keep_rows(weight), low, high, -float(alpha.sum()))
        if level is not None:
            return level
    return None
