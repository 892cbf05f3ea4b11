"""Sets that contain the optimum of a problem, also after rows or columns are added or removed.

The problem is the regularised risk of :mod:`.risk`, with primal objective P and dual objective D. Numbers in
parentheses are equations of the GLRU paper (docs/oracles/glru.md).

Let a problem have the optimum (w*, alpha*), and take a primal point w and a feasible dual point alpha with score
`c = X' alpha / n`. Let `v = drho*(c)` (the primal point that belongs to alpha), `a = -l'(X w)` (the dual point that
belongs to w) and `G = P(w) - D(alpha)`. Let the loss be mu-smooth, and the regulariser ridge-strongly convex on the
penalised columns. By strong convexity and co-coercivity at the optimum (Fenchel-Young residuals),

    P(w) - P(w*)     >= ridge/2 ||w - w*||^2 + 1/(2 n mu) ||a - alpha*||^2
    P(w*) - D(alpha) >= ridge/2 ||v - w*||^2 + 1/(2 n mu) ||alpha - alpha*||^2

The paper uses one of the four terms on the right at a time, and so obtains the radii (9) and (11). This module uses the
sum of all four terms. With midpoints, this sum is

    ridge ||w* - (w + v)/2||^2 + 1/(n mu) ||alpha* - (a + alpha)/2||^2  <=  slack
    slack = G - ridge/4 ||w - v||^2 - 1/(4 n mu) ||a - alpha||^2        in [G/2, G]

The ball about the midpoint lies inside the ball of the paper. Its radius is at most 1/sqrt(2) of the radius of the ball
of the paper, and at most 1/2 of it if w was optimal before rows were removed. Norms of w are sums over the penalised
columns, so the result also holds with an intercept. The paper states (9) only without an intercept.

After rows or columns are added or removed, the new gap is computed in the time that it takes to read those rows or
columns. `change_rows` computes equations (18) and (19) of the paper for m rows that are added or removed, in O(d m),
and `change_columns` computes equations (20) and (21) for m columns, in O(n m). Both functions return an
:class:`OptimumRegion`. In two cases the dual point is no longer feasible after the change, and the formulas of the
paper give +inf. This module then uses another dual point:

* **Intercept.** After rows are removed, the sum of alpha is no longer 0. The difference from 0 is distributed over a
  fixed set of rows, in proportion to the curvatures of their losses. The product of X' with this direction is cached,
  so the cost is still O(d).
* **L1.** After rows are removed, `|X_j' alpha| <= n l1` may no longer hold. Then alpha is multiplied by a factor below
  1. For any factor below 1, cached sums over the rows (of the Fenchel-Young residuals, their slopes and curvatures)
  bound the new residuals at a cost of O(1).

Four methods compute intervals for the coefficients and predictions of the optimum:

| method | made from |
|---|---|
| `primal` | Primal-SCB as printed: ball (9) about w, interval (15) |
| `dual` | Dual-SCB as printed, with Remark 2: ball (11), intervals (12) of the coefficients, their sum (16) |
| `sharp` | the ball of the midpoint |
| `best` | intersection of `sharp`, the dual intervals with the sharp radius, and, for L1, the level sets below |

In (16), the division by n belongs inside the argument of the derivative, contrary to the printed formula. For L1, the
level sets are `sum_j l1 |w_j*| - c_j w_j* <= G` and `l1 ||w*||_1 <= P(w)`. Each set gives the range of a linear
function in closed form.

The paper has no finite interval for an unpenalised intercept, because interval (12) is then the whole real line. This
module computes two intervals and intersects them. Let t_i be the linear predictor of row i. The first interval uses the
fact that the derivatives `l_i'(t_i*)` sum to 0. Each derivative is monotone in the intercept, and each t_i* lies in a
known interval. The second interval is computed from a few rows, the *anchors*. For an anchor i, the optimal alpha_i
lies in a known interval, and the optimal t_i lies in the subdifferential of the conjugate of the loss l_i at -alpha_i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.answers import Bracket
from sparsecv_mio.oracles.glru import risk
from sparsecv_mio.oracles.losses import ConjugateLoss
from sparsecv_mio.oracles.penalties import Regularizer
from sparsecv_mio.units import ROUNDING


@dataclass(frozen=True, eq=False)
class CommonPoint:
    """The rows of a problem relative to one common point z: their predictions and their distances to z.

    Attributes
    ----------
    point : (d,) array
        The common point z, over the penalised columns.
    t, y : (k,) arrays
        Predictions `x_i' w + b` and responses.
    distance : (k,) array
        `||x_i - z||` over the penalised columns, rounded up.
    """

    point: FloatArray
    t: FloatArray
    y: FloatArray
    distance: FloatArray


@dataclass(frozen=True, eq=False)
class Anchor:
    """A few rows of the problem with their dual variables: `rows` (k, d + 1) with the intercept's one, `y`, `alpha`."""

    rows: FloatArray
    y: FloatArray
    alpha: FloatArray


@dataclass(frozen=True, eq=False)
class OptimumRegion(ABC):
    """A set that contains the optimum of one problem; the docstring of the module states and proves it.

    The coordinates are the columns of the problem in the order of its matrix, then added columns, then an intercept.
    Values that only some intervals need are computed on demand.

    Attributes
    ----------
    fit : DualFit
        Fit of the old problem.
    n : int
        Number of rows of the new problem.
    w : (d,) array
        Primal point.
    score : (d,) array
        `c = X' alpha / n` of the dual point; zero for an intercept.
    gap : float
        `G`, plus the rounding error of its sums; +inf if the dual point is infeasible.
    primal : float
        `P(w)`, rounded up.
    w_distance_sq : float
        `||w - v||^2` over the penalised columns.
    alpha_distance_sq : float
        `||alpha - a||^2`.
    factor : float
        Factor by which the old dual point was multiplied to be feasible.
    """

    fit: risk.DualFit
    n: int
    w: FloatArray
    score: FloatArray
    gap: float
    primal: float
    w_distance_sq: float
    alpha_distance_sq: float
    factor: float

    @cached_property
    def loss(self) -> ConjugateLoss:
        """The loss of the problem."""
        return self.fit.problem.loss

    @cached_property
    def regularizer(self) -> Regularizer:
        """The regulariser of the problem."""
        return self.fit.problem.regularizer

    @property
    def d(self) -> int:
        """Number of penalised columns."""
        return self.regularizer.penalised(self.w.shape[0])

    @property
    def center(self) -> FloatArray:
        """Centre (d,) of the ball: midpoint of w and v, or w without strong convexity; its intercept is that of w."""
        if self.regularizer.ridge == 0.0:
            return self.w
        middle = 0.5 * (self.w + self.regularizer.minimizer(self.score))
        if self.regularizer.intercept:
            middle[-1] = self.w[-1]
        return middle

    @cached_property
    def slack(self) -> float:
        """The `slack` of the module docstring, in [G/2, G]: the right-hand side for both midpoint balls."""
        ridge = 0.25 * self.regularizer.ridge * self.w_distance_sq
        rows = 0.25 * self.alpha_distance_sq / (self.n * self.loss.smoothness)
        return max(self.gap - (1.0 - 8.0 * ROUNDING) * (ridge + rows), 0.0) if np.isfinite(self.gap) else np.inf

    @property
    def primal_radius(self) -> float:
        """Bound `r_P` of (9) on the distance of w* to w."""
        ridge = self.regularizer.ridge
        return float(np.sqrt(2.0 * self.gap / ridge)) if ridge > 0.0 else np.inf

    @property
    def radius(self) -> float:
        """Bound `sqrt(slack / ridge)` on the distance of w* to the midpoint."""
        ridge = self.regularizer.ridge
        return float(np.sqrt(self.slack / ridge)) if ridge > 0.0 else np.inf

    @property
    def radius_about_w(self) -> float:
        """Bound on the distance of w* to w by the triangle inequality through the midpoint; at most `primal_radius`."""
        return 0.5 * float(np.sqrt(self.w_distance_sq)) + self.radius if self.regularizer.ridge > 0.0 else np.inf

    @property
    def dual_radius(self) -> float:
        """Bound `r_D` of (11) on the distance of alpha* to alpha."""
        return float(np.sqrt(2.0 * self.n * self.loss.smoothness * self.gap))

    @property
    def dual_radius_sharp(self) -> float:
        """Bound on the distance of alpha* to alpha by the triangle inequality, via the midpoint; <= `dual_radius`."""
        return 0.5 * float(np.sqrt(self.alpha_distance_sq)) + float(np.sqrt(self.n * self.loss.smoothness * self.slack))

    @property
    @abstractmethod
    def column_sq(self) -> FloatArray:
        """Squared norms (d,) of the columns over the rows of the problem, rounded up."""

    @property
    @abstractmethod
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest `X_j' alpha` (d,) over the box of the loss's domain: (27g), (27j) of Remark 2."""

    @property
    @abstractmethod
    def common_point(self) -> CommonPoint:
        """Rows relative to one point, which bound an intercept through the sum of the dual variables."""

    @property
    @abstractmethod
    def anchor(self) -> Anchor:
        """The rows whose predictions are bounded best by their dual variables."""


ANCHORS = 8


@dataclass(frozen=True, eq=False)
class RowChange(OptimumRegion):
    """The region after the rows `gone` are removed and the rows `X_new` are added.

    The dual variables of the rows `moved[0]` became `moved[1]`, so that all of them add up to zero.
    """

    gone: IntArray
    X_gone: FloatArray
    X_new: FloatArray
    y_new: FloatArray
    t_new: FloatArray
    moved: tuple[IntArray, FloatArray]

    @cached_property
    def column_sq(self) -> FloatArray:
        old = self.fit.column_sq
        change = np.square(self.X_new).sum(axis=0) - np.square(self.X_gone).sum(axis=0)
        return np.maximum(old + change, 0.0) + 8.0 * ROUNDING * old

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        problem = self.fit.problem
        table = self.fit.box - risk.box_table(self.X_gone, problem.y[self.gone], problem.loss)
        table = table + risk.box_table(self.X_new, self.y_new, problem.loss)
        spread = 8.0 * ROUNDING * (np.abs(self.fit.box[0]) + np.abs(self.fit.box[2]))
        return _box_ends(table, spread)

    @cached_property
    def common_point(self) -> CommonPoint:
        fit, remaining = self.fit, self._remaining_rows
        z = fit.common_point
        far = np.square(self.X_new[:, :-1] - z).sum(axis=1) * (1.0 + 8.0 * ROUNDING)
        distance = np.sqrt(np.concatenate([fit.distance_sq[remaining], far]))
        t, y = np.concatenate([fit.t[remaining], self.t_new]), np.concatenate([fit.problem.y[remaining], self.y_new])
        return CommonPoint(z, t, y, distance)

    @cached_property
    def anchor(self) -> Anchor:
        fit, problem, (moved_rows, moved_alpha) = self.fit, self.fit.problem, self.moved
        chosen = self._remaining_rows[
            _steepest(problem.loss.curvature(fit.t[self._remaining_rows], problem.y[self._remaining_rows]))
        ]
        alpha = fit.alpha[chosen].copy()
        _, here, there = np.intersect1d(chosen, moved_rows, assume_unique=True, return_indices=True)
        alpha[here] = moved_alpha[there]
        return Anchor(problem.design.rows(chosen), problem.y[chosen], self.factor * alpha)

    @cached_property
    def _remaining_rows(self) -> IntArray:
        return self.fit.problem.without_rows(self.gone).rows


@dataclass(frozen=True, eq=False)
class ColumnChange(OptimumRegion):
    """The region after the columns `gone` are removed and `X_new` added.

    The penalised columns `kept` and the intercept `tail`, if any, are unchanged.
    """

    kept: IntArray
    tail: IntArray
    X_gone: FloatArray
    gone: IntArray
    X_new: FloatArray
    t: FloatArray

    @cached_property
    def column_sq(self) -> FloatArray:
        old, rows = self.fit.column_sq, self.fit.problem.rows
        new = np.square(self.X_new[rows]).sum(axis=0) * (1.0 + 8.0 * ROUNDING)
        return np.concatenate([old[self.kept], new, old[self.tail]])

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        problem = self.fit.problem
        old = self.fit.box
        new = risk.box_table(self.X_new[problem.rows], problem.y[problem.rows], problem.loss)
        table = np.concatenate([old[:, self.kept], new, old[:, self.tail]], axis=1)
        return _box_ends(table, 8.0 * ROUNDING * (np.abs(table[0]) + np.abs(table[2])))

    @cached_property
    def common_point(self) -> CommonPoint:
        fit, rows = self.fit, self.fit.problem.rows
        z_new = fit.steepness @ self.X_new / float(fit.steepness.sum())
        lost = np.square(self.X_gone - fit.common_point[self.gone]).sum(axis=1)
        added = np.square(self.X_new - z_new).sum(axis=1)
        squares = np.maximum(fit.distance_sq - lost + added, 0.0) + 8.0 * ROUNDING * (fit.distance_sq + added)
        z = np.concatenate([fit.common_point[self.kept], z_new])
        return CommonPoint(z, self.t[rows], fit.problem.y[rows], np.sqrt(squares[rows]))

    @cached_property
    def anchor(self) -> Anchor:
        fit, problem = self.fit, self.fit.problem
        rows = problem.rows
        chosen = rows[_steepest(problem.loss.curvature(fit.t[rows], problem.y[rows]))]
        block = problem.design.rows(chosen)
        parts = [block[:, self.kept], self.X_new[chosen], block[:, self.tail]]
        return Anchor(np.hstack(parts), problem.y[chosen], self.factor * fit.alpha[chosen])


def region_of(fit: risk.DualFit) -> OptimumRegion:
    """Return a set that contains the optimum of the fit's own problem. O(d)."""
    return change_rows(fit)


def change_rows(fit: risk.DualFit, remove: Any = None, add: tuple[Any, Any] | None = None) -> OptimumRegion:
    """Return a set that contains the optimum after rows are removed or added.

    Parameters
    ----------
    fit : DualFit
        Fit of the old problem, at any primal and dual point. The nearer to its optimum, the smaller the region.
    remove : sequence of int, optional
        Rows of the old problem, by their position in its matrix.
    add : pair of (k, m) array and (k,) array, optional
        New rows, over the m penalised columns of the problem, and their responses.

    Returns
    -------
    OptimumRegion
        Region with the paper's (18) or (19) as `gap`. The cost is O(d dn) once the sums of the fit are cached.

    Raises
    ------
    BadInput
        If a row to remove is not in the problem or given twice, no row is left, or a new row does not fit.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem
    >>> problem = make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0))
    >>> round(change_rows(assess(problem, np.array([1.0])), remove=[2]).gap, 12)
    0.5
    """
    problem, loss, regularizer = fit.problem, fit.problem.loss, fit.problem.regularizer
    gone = _known_positions(remove, problem.keep_rows(np.ones(problem.design.n)) > 0.0, "row")
    X_new, y_new = _new_rows(fit, add)
    n = problem.n - gone.size + y_new.size
    if n < 1:
        raise BadInput("no row is left after the removal; keep at least one row")
    w, X_gone = fit.w, problem.design.rows(gone)
    t_new = X_new @ w
    alpha_new = -loss.derivative(t_new, y_new)
    total = fit.score * problem.n - fit.alpha[gone] @ X_gone + alpha_new @ X_new
    table = fit.table_sum - fit.table[gone].sum(axis=0) + risk.row_table(t_new, alpha_new, y_new, loss).sum(axis=0)
    moved: tuple[IntArray, FloatArray] | None = np.zeros(0, dtype=np.int64), np.zeros(0)
    if regularizer.intercept:
        total, table, moved = _rebalance(fit, gone, alpha_new, total, table)
    score = total / n
    if regularizer.intercept:
        score[-1] = 0.0
    residual, tilt, factor = float(table[risk.RESIDUAL]), float(table[risk.DISTANCE_SQ]), 1.0
    feasible = moved is not None and bool(np.isfinite(fit.gap))
    if regularizer.ridge == 0.0 and feasible and np.isfinite(residual):
        residual, tilt, factor = _along_ray(table, score, regularizer)
        score = factor * score
    loss_sum = fit.loss_sum + float(loss.value(t_new, y_new).sum())
    loss_left = loss_sum - float(loss.value(fit.t[gone], problem.y[gone]).sum())
    primal = (loss_left + 8.0 * ROUNDING * loss_sum) / n + regularizer.value(w)
    w_distance = primal_distance(regularizer, w, score)
    rounding = (loss_sum + float(fit.table_sum[risk.RESIDUAL]) + w_distance * float(np.linalg.norm(total))) / n + primal
    gap = max(residual, 0.0) / n + float(regularizer.residual(w, score).sum()) + 16.0 * ROUNDING * rounding
    finite = feasible and bool(np.isfinite(gap))
    return RowChange(
        fit, n, w, score, gap if finite else np.inf, primal, w_distance**2, max(tilt, 0.0) if finite else 0.0, factor,
        gone=gone, X_gone=X_gone, X_new=X_new, y_new=y_new, t_new=t_new,
        moved=(gone[:0], t_new[:0]) if moved is None else moved,
    )  # fmt: skip


def change_columns(fit: risk.DualFit, remove: Any = None, add: Any = None) -> OptimumRegion:
    """Return a set that contains the optimum after columns are removed or added.

    Parameters
    ----------
    fit : DualFit
        Fit of the old problem, at any primal and dual point.
    remove : sequence of int, optional
        Columns of the old problem, by their position in its matrix; not the intercept.
    add : (n, k) array, optional
        New penalised columns for every row of the matrix.

    Returns
    -------
    OptimumRegion
        Region with the paper's (20) or (21) as `gap`; added columns follow the old ones. The cost is O(n dd) plus a
        copy of the remaining w.

    Raises
    ------
    BadInput
        If a column to remove is not in the problem, is the intercept or is given twice, no penalised column is left,
        or the new columns do not fit.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem
    >>> problem = make_problem([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0], Squared(1.0), Regularizer(0.5))
    >>> round(change_columns(assess(problem, np.array([1.5, 0.0])), remove=[0]).gap, 12)
    0.5625
    """
    problem, loss, regularizer = fit.problem, fit.problem.loss, fit.problem.regularizer
    gone = _known_positions(remove, np.ones(regularizer.penalised(problem.design.d), dtype=bool), "penalised column")
    X_new = _new_columns(fit, add)
    columns = np.delete(np.arange(problem.design.d), gone)
    penalised = regularizer.penalised(columns.size)
    head, tail = columns[:penalised], columns[penalised:]
    if penalised + X_new.shape[1] == 0:
        raise BadInput("no penalised column is left after the removal; keep at least one column")
    score_new = fit.alpha @ X_new / problem.n
    w_new = Regularizer(regularizer.ridge, regularizer.l1).minimizer(score_new)
    X_gone = problem.design.columns(gone)
    t = fit.t - X_gone @ fit.w[gone] + X_new @ w_new
    w = np.concatenate([fit.w[head], w_new, fit.w[tail]])
    score = np.concatenate([fit.score[head], score_new, fit.score[tail]])
    if regularizer.intercept:
        # any primal point is valid; this intercept makes up for the mean change of the predictions
        lift = float(fit.steepness @ (fit.t - t)) / float(fit.steepness.sum())
        t, w[-1] = t + lift, w[-1] + lift
    factor = _shrink(score, regularizer) if regularizer.ridge == 0.0 else 1.0
    score, alpha = factor * score, factor * fit.alpha
    residual = problem.keep_rows(loss.residual(t, alpha, problem.y))
    tilt = problem.keep_rows(np.square(alpha + loss.derivative(t, problem.y)))
    primal = problem.primal(w, t) * (1.0 + 8.0 * ROUNDING)
    w_distance = primal_distance(regularizer, w, score)
    rounding = primal + fit.primal + w_distance * float(np.linalg.norm(score))
    gap = float(residual.sum()) / problem.n + float(regularizer.residual(w, score).sum()) + 16.0 * ROUNDING * rounding
    return ColumnChange(
        fit, problem.n, w, score, gap if np.isfinite(fit.gap) else np.inf, primal, w_distance**2, float(tilt.sum()),
        factor, kept=head, tail=tail, X_gone=X_gone, gone=gone, X_new=X_new, t=t,
    )  # fmt: skip


def primal_distance(regularizer: Regularizer, w: FloatArray, score: FloatArray) -> float:
    """Return `||w - v||` with v the primal point that belongs to a dual point.

    Parameters
    ----------
    regularizer : Regularizer
        Penalty of the problem; without strong convexity the result is 0.
    w : (d,) array
        Primal point.
    score : (d,) array
        `X' alpha / n` of the dual point.

    Returns
    -------
    float
        Distance over the penalised columns.
    """
    if regularizer.ridge == 0.0:
        return 0.0
    d = regularizer.penalised(w.shape[0])
    return float(np.linalg.norm(w[:d] - regularizer.minimizer(score)[:d]))


def _rebalance(
    fit: risk.DualFit, gone: IntArray, alpha_new: FloatArray, total: FloatArray, table: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[IntArray, FloatArray] | None]:
    """Restore `sum alpha = 0` by the balancing rows, which come last; return None if their intervals have no room."""
    problem = fit.problem
    amount = float(fit.alpha[gone].sum() - alpha_new.sum())
    rows, weight = fit.balancing_rows
    lost = np.isin(rows, gone)
    all_weight, lost_rows, lost_weight = weight.sum(), rows[lost], weight[lost]
    rows, weight = rows[~lost], weight[~lost]
    low, high = problem.loss.dual_range(problem.y[rows])
    before = fit.alpha[rows]
    after = risk.shift(before, weight, low, high, amount) if rows.size else None
    if after is None:
        return total, table, None
    straight = np.clip(before + amount * weight / weight.sum(), low, high)
    if np.array_equal(after, straight):
        direction = fit.balancing_direction * all_weight
        direction = direction - lost_weight @ problem.design.rows(lost_rows)
        step = direction * (amount / weight.sum())
    else:
        step = (after - before) @ problem.design.rows(rows)
    new = risk.row_table(fit.t[rows], after, problem.y[rows], problem.loss)
    return total + step, table - fit.table[rows].sum(axis=0) + new.sum(axis=0), (rows, after)


def _shrink(score: FloatArray, regularizer: Regularizer) -> float:
    """Return the factor that brings every score into the domain of an L1 conjugate, rounded down."""
    largest = float(np.abs(score[: regularizer.penalised(score.shape[0])]).max(initial=0.0))
    return 1.0 if largest <= regularizer.l1 else regularizer.l1 / largest * (1.0 - 2.0 * ROUNDING)


def _along_ray(table: FloatArray, score: FloatArray, regularizer: Regularizer) -> tuple[float, float, float]:
    """Return an upper bound on the residuals, `||alpha - a||^2` and the factor, after the dual point is scaled."""
    factor = _shrink(score, regularizer)
    back = 1.0 - factor
    residual = (
        table[risk.RESIDUAL] - back * table[risk.RAY_SLOPE] + 0.5 * back * back / factor * table[risk.RAY_CURVATURE]
    )
    rounding = 16.0 * ROUNDING * back * (abs(table[risk.RAY_SLOPE]) + table[risk.RAY_CURVATURE])
    tilt = table[risk.DISTANCE_SQ] - 2.0 * back * table[risk.ALPHA_DISTANCE] + back * back * table[risk.ALPHA_SQ]
    return float(residual + rounding), float(tilt), factor


def _known_positions(remove: Any, allowed: BoolArray, what: str) -> IntArray:
    """Return the positions to remove; raise if one is not allowed or is repeated."""
    gone = np.asarray([] if remove is None else remove, dtype=np.int64).ravel()
    seen = set[int]()
    for position in gone.tolist():
        if not (0 <= position < allowed.size and allowed[position]):
            raise BadInput(
                f"remove: {what} {position} is not in the problem; give positions from 0 to {allowed.size - 1}"
            )
        if position in seen:
            raise BadInput(f"remove: {what} {position} is given twice; give each {what} once")
        seen.add(position)
    return gone


def _new_rows(fit: risk.DualFit, add: tuple[Any, Any] | None) -> tuple[FloatArray, FloatArray]:
    regularizer, size = fit.problem.regularizer, fit.problem.design.d
    if add is None:
        return np.zeros((0, size)), np.zeros(0)
    matrix = add[0].toarray() if hasattr(add[0], "toarray") else add[0]
    X, y = np.atleast_2d(np.asarray(matrix, dtype=np.float64)), np.asarray(add[1], dtype=np.float64).ravel()
    if X.shape != (y.size, regularizer.penalised(size)):
        raise BadInput(
            f"add: new rows of shape {X.shape} must have {regularizer.penalised(size)} columns, and one response each"
        )
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        row = int(np.argmin(np.isfinite(X).all(axis=1) & np.isfinite(y)))
        raise BadInput(f"add: new row {row} has a number that is not finite; correct it or leave the row out")
    fit.problem.loss.check(y)
    return (np.hstack([X, np.ones((y.size, 1))]) if regularizer.intercept else X), y


def _new_columns(fit: risk.DualFit, add: Any) -> FloatArray:
    n = fit.problem.design.n
    if add is None:
        return np.zeros((n, 0))
    X = np.asarray(add.toarray() if hasattr(add, "toarray") else add, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or X.shape[0] != n or not np.isfinite(X).all():
        raise BadInput(f"new columns of shape {X.shape} must be finite and have one value for each of the {n} rows")
    return X


def _steepest(curvature: FloatArray) -> IntArray:
    """Return the rows of largest curvature, where an interval of the dual variable bounds the prediction best."""
    count = min(ANCHORS, curvature.size)
    return np.argpartition(-curvature, count - 1)[:count]


def _box_ends(table: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    low = np.where(table[1] > 0.5, -np.inf, table[0] - spread)
    high = np.where(table[3] > 0.5, np.inf, table[2] + spread)
    return low, high


INTERVAL_ROUNDING = 32.0 * ROUNDING


class IntervalMethod(StrEnum):
    """Construction of an interval; the table of the module explains the names."""

    PRIMAL = "primal"
    DUAL = "dual"
    SHARP = "sharp"
    BEST = "best"


def coefficient_intervals(region: OptimumRegion, method: str = "best") -> Bracket:
    """Return intervals of the optimal coefficients.

    Parameters
    ----------
    region : OptimumRegion
        A set that contains the optimum.
    method : {"primal", "dual", "sharp", "best"}
        Construction of the intervals. `primal` and `sharp` give infinite intervals without strong convexity.

    Returns
    -------
    Bracket
        Bounds (d,) in the coordinates of the region; the entry of an intercept is last and computed by
        :func:`prediction_intervals`.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem, region_of
    >>> problem = make_problem([[1.0], [1.0]], [2.0, 2.0], Squared(1.0), Regularizer(1.0))
    >>> box = coefficient_intervals(region_of(assess(problem, np.array([0.5]))))
    >>> bool(box.lower[0] <= 1.0 <= box.upper[0])
    True
    """
    units, which = np.eye(region.d), IntervalMethod(method)
    if not region.regularizer.intercept:
        return prediction_intervals(region, units, method)
    low, high = _linear(region, which)(units) if np.isfinite(region.gap) else (units[0] - np.inf, units[0] + np.inf)
    level = prediction_intervals(region, units[:1] - units[:1], method)
    return Bracket(np.append(low, level.lower), np.append(high, level.upper))


def prediction_intervals(region: OptimumRegion, X: FloatArray, method: str = "best") -> Bracket:
    """Return intervals of the optimal predictions `x' w*`, including an intercept.

    Parameters
    ----------
    region : OptimumRegion
        A set that contains the optimum.
    X : (m, d) array
        Test rows over the penalised columns, in the region's order.
    method : {"primal", "dual", "sharp", "best"}
        Construction of the intervals, see the table of the module.

    Returns
    -------
    Bracket
        Bounds (m,). The cost is O(md), with an intercept O(md + n).

    Raises
    ------
    BadInput
        If X has another number of columns.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem, change_rows
    >>> problem = make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0))
    >>> region = change_rows(assess(problem, np.array([1.0])), remove=[2])
    >>> [round(float(prediction_intervals(region, np.ones((1, 1)), m).upper[0]), 6) for m in IntervalMethod]
    [2.0, 1.0, 1.0, 0.5]
    """
    if X.ndim != 2 or X.shape[1] != region.d:
        raise BadInput(
            f"X: has the shape {X.shape}, but the problem has {region.d} penalised columns; give one column for each"
        )
    which = IntervalMethod(method)
    if not np.isfinite(region.gap):
        return Bracket(np.full(X.shape[0], -np.inf), np.full(X.shape[0], np.inf))
    linear = _linear(region, which)
    if region.regularizer.intercept:
        return _with_intercept(region, X, linear, which)
    return Bracket(*linear(X))


Linear = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def _linear(region: OptimumRegion, method: IntervalMethod) -> Linear:
    """Return a function of rows V (m, d): the bounds of `V w*` over the penalised part of the region."""
    ridge = region.regularizer.ridge > 0.0
    parts: list[Linear] = []
    if ridge and method is IntervalMethod.PRIMAL:
        parts.append(_ball(region.w[: region.d], region.primal_radius))
    if ridge and method in (IntervalMethod.SHARP, IntervalMethod.BEST):
        parts.append(_ball(region.center[: region.d], region.radius))
    if method in (IntervalMethod.DUAL, IntervalMethod.BEST):
        parts.append(_box(*_dual_box(region, sharp=method is IntervalMethod.BEST)))
    if not ridge and method is IntervalMethod.BEST:
        parts += [_l1_gap(region), _l1_size(region)]

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.full(V.shape[0], -np.inf), np.full(V.shape[0], np.inf)
        for ends_of in parts:
            least, most = ends_of(V)
            low, high = np.maximum(low, least), np.minimum(high, most)
        return _order_bounds(low, high)

    return ends


def _ball(center: FloatArray, radius: float) -> Linear:
    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        norm = np.sqrt(np.einsum("ij,ij->i", V, V))
        reach = norm * (radius * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * float(np.linalg.norm(center)))
        middle = V @ center
        return middle - reach, middle + reach

    return ends


def _box(low: FloatArray, high: FloatArray) -> Linear:
    """Return the MinLin and MaxLin of the paper as one function."""
    finite = np.isfinite(low) & np.isfinite(high)
    middle = np.where(finite, 0.5 * (np.where(finite, low, 0.0) + np.where(finite, high, 0.0)), 0.0)
    half = np.where(finite, 0.5 * (np.where(finite, high, 0.0) - np.where(finite, low, 0.0)), 0.0)
    half = half * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * np.abs(middle)
    open_ = np.flatnonzero(~finite)

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        mid, reach = V @ middle, np.abs(V) @ half
        least, most = mid - reach, mid + reach
        if open_.size:
            columns = V[:, open_]
            below = np.where(columns > 0.0, low[open_], high[open_])
            above = np.where(columns > 0.0, high[open_], low[open_])
            least = least + np.multiply(columns, below, where=columns != 0.0, out=np.zeros_like(columns)).sum(axis=1)
            most = most + np.multiply(columns, above, where=columns != 0.0, out=np.zeros_like(columns)).sum(axis=1)
        return least, most

    return ends


def _l1_gap(region: OptimumRegion) -> Linear:
    """Return the range over `sum_j l1 |w_j| - c_j w_j <= G`, from `G v_j / (l1 - c_j)` and `-G v_j / (l1 + c_j)`."""
    l1, c = region.regularizer.l1, region.score[: region.d]
    room_up, room_down = (np.maximum(l1 - s * c, 0.0) * (1.0 - INTERVAL_ROUNDING) for s in (1.0, -1.0))
    with np.errstate(divide="ignore"):
        up, down = region.gap / room_up, region.gap / room_down

    def max_product(V: FloatArray) -> FloatArray:
        rise = np.multiply(V, up, where=V > 0.0, out=np.zeros_like(V))
        fall = np.multiply(-V, down, where=V < 0.0, out=np.zeros_like(V))
        return np.maximum(rise, fall).max(axis=1, initial=0.0)

    return lambda V: (-max_product(-V), max_product(V))


def _l1_size(region: OptimumRegion) -> Linear:
    """Return the range over `l1 ||w||_1 <= P(w)`."""
    size = region.primal / region.regularizer.l1 * (1.0 + INTERVAL_ROUNDING)

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        reach = size * np.abs(V).max(axis=1, initial=0.0)
        return -reach, reach

    return ends


def _dual_box(region: OptimumRegion, sharp: bool) -> tuple[FloatArray, FloatArray]:
    """Return the intervals (12) of the penalised coefficients with the domain-tightened F of (27)."""
    radius = region.dual_radius_sharp if sharp else region.dual_radius
    total = region.n * region.score
    reach = radius * np.sqrt(region.column_sq) * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * np.abs(total)
    box_low, box_high = region.box
    low, high = np.maximum(total - reach, box_low) / region.n, np.minimum(total + reach, box_high) / region.n
    # widened first: a coefficient is zero for certain only if its score is certainly inside of the L1 threshold
    spread = INTERVAL_ROUNDING * (np.abs(low) + np.abs(high) + region.regularizer.l1)
    spread = np.where(np.isfinite(spread), spread, 0.0)
    domain_low, domain_high = region.regularizer.score_range(region.w.shape[0])
    low, high = np.maximum(low - spread, domain_low), np.minimum(high + spread, domain_high)
    low, high = region.regularizer.conjugate_ends(low, high)
    return low[: region.d], high[: region.d]


def _order_bounds(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds, swapped where rounding made them cross (both are within their allowances of one number)."""
    return np.minimum(low, high), np.maximum(low, high)


def _with_intercept(region: OptimumRegion, X: FloatArray, linear: Linear, method: IntervalMethod) -> Bracket:
    low, high = _bound_by_anchors(region, X, linear)
    if region.regularizer.ridge > 0.0:
        least, most = _bound_by_common_point(region, X, linear, method)
        low, high = np.maximum(low, least), np.minimum(high, most)
    return Bracket(*_order_bounds(low, high))


def _bound_by_anchors(region: OptimumRegion, X: FloatArray, linear: Linear) -> tuple[FloatArray, FloatArray]:
    """Return bounds by `x' w* + b* = t_k* + (x - x_k)' w*` with `t_k*` in `dl*(-alpha_k*)`, for a few rows k."""
    anchor, loss, radius = region.anchor, region.loss, region.dual_radius_sharp * (1.0 + INTERVAL_ROUNDING)
    box_low, box_high = loss.dual_range(anchor.y)
    least, _ = loss.conjugate_ends(-np.minimum(anchor.alpha + radius, box_high), anchor.y)
    _, most = loss.conjugate_ends(-np.maximum(anchor.alpha - radius, box_low), anchor.y)
    low, high = np.full(X.shape[0], -np.inf), np.full(X.shape[0], np.inf)
    for k in range(anchor.y.size):
        a, b = linear(X - anchor.rows[k, :-1])
        below, above = least[k] - INTERVAL_ROUNDING * abs(least[k]), most[k] + INTERVAL_ROUNDING * abs(most[k])
        low, high = np.maximum(low, a + below), np.minimum(high, b + above)
    return low, high


def _bound_by_common_point(
    region: OptimumRegion, X: FloatArray, linear: Linear, method: IntervalMethod
) -> tuple[FloatArray, FloatArray]:
    """Bound by `(x - z)' w* + b'`, b' between the roots of `sum_i l_i'(t_i + shift -/+ radius ||x_i - z||) = 0`."""
    common = region.common_point
    radius = region.primal_radius if method in (IntervalMethod.PRIMAL, IntervalMethod.DUAL) else region.radius_about_w
    reach = radius * common.distance * (1.0 + INTERVAL_ROUNDING)
    reach = reach + INTERVAL_ROUNDING * (np.abs(common.t) + common.distance * float(np.linalg.norm(region.w)))

    def slope(shift: float, side: float) -> float:
        return float(region.loss.derivative(common.t + (shift + side * reach), common.y).sum())

    step = float(reach.max(initial=0.0)) + ROUNDING
    least = -_first_rise(lambda s: slope(-s, 1.0) < 0.0, step)
    most = _first_rise(lambda s: slope(s, -1.0) > 0.0, step)
    level = float(region.w[-1]) + float(common.point @ region.w[: region.d])
    size = float(np.abs(common.point) @ np.abs(region.w[: region.d])) + abs(float(region.w[-1]))
    a, b = linear(X - common.point)
    return a + (level + least - INTERVAL_ROUNDING * size), b + (level + most + INTERVAL_ROUNDING * size)


def _first_rise(beyond: Callable[[float], bool], step: float) -> float:
    """Return an s >= 0 at which `beyond` holds, as small as bisection makes it; +inf if none is found."""
    high = step
    for _ in range(60):
        if beyond(high):
            break
        high *= 2.0
    else:
        return np.inf
    low = 0.0
    for _ in range(24):
        half = 0.5 * (low + high)
        if beyond(half):
            high = half
        else:
            low = half
    return high
