"""The duality gap after rows or columns are added or removed, at the cost of reading those rows or columns.

`change_rows` gives the paper's (18) and (19) in O(d dn), `change_columns` its (20) and (21) in O(n dd), both as the
:class:`Region` that follows from the gap. Two repairs keep the old dual point feasible where the paper's formulas give
+inf:

* **Intercept.** After rows are removed, `sum alpha` is no longer 0. The difference is spread over a fixed set of
  balancing rows, in proportion to their curvature; `X' u` of that direction is cached, so the cost stays O(d).
* **L1.** After rows are removed, `|X_j' alpha| <= n l1` no longer holds. alpha is scaled back into its domain; the
  Fenchel-Young residuals along the ray are bounded by cached sums (value, slope, curvature) in O(1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru.changes import ColumnChange, RowChange, without
from sparsecv_mio.oracles.glru.fit import (
    ALPHA_DISTANCE,
    ALPHA_SQ,
    DISTANCE_SQ,
    EPS,
    RAY_CURVATURE,
    RAY_SLOPE,
    RESIDUAL,
    Fit,
    row_table,
    shift,
)
from sparsecv_mio.oracles.glru.region import Region
from sparsecv_mio.oracles.glru.regularizers import Regularizer


def region_of(fit: Fit) -> Region:
    """Return a set that contains the optimum of the fit's own problem. O(d)."""
    return change_rows(fit)


def change_rows(fit: Fit, remove: Any = None, add: tuple[Any, Any] | None = None) -> Region:
    """Return a set that contains the optimum after rows are removed or added.

    Parameters
    ----------
    fit : Fit
        Any primal and dual point of the old problem; the nearer to its optimum, the smaller the region.
    remove : sequence of int, optional
        Rows of the old problem, by their position in its matrix.
    add : pair of (k, m) array and (k,) array, optional
        New rows, over the m penalised columns of the problem, and their responses.

    Returns
    -------
    Region
        The paper's (18) / (19) as `gap`. O(d dn) once the fit's cached sums are there.

    Raises
    ------
    BadInput
        If a row to remove is not in the problem or given twice, no row is left, or a new row does not fit.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem
    >>> problem = make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(), Regularizer(1.0))
    >>> round(change_rows(assess(problem, np.array([1.0])), remove=[2]).gap, 12)
    0.5
    """
    problem, loss = fit.problem, fit.problem.loss
    columns: Any = slice(None) if problem.column_mask is None else problem.columns
    gone = _known_rows(fit, remove)
    X_new, y_new = _new_rows(fit, add)
    n = problem.n - gone.size + y_new.size
    if n < 1:
        raise BadInput("no row is left after the removal: keep at least one")
    w = fit.w[columns]
    X_gone = problem.design.rows(gone)[:, columns] if gone.size else np.zeros((0, w.shape[0]))
    t_new = X_new @ w
    alpha_new = -loss.derivative(t_new, y_new)
    total = fit.score[columns] * problem.n - fit.alpha[gone] @ X_gone + alpha_new @ X_new
    table = fit.table_sum - fit.table[gone].sum(axis=0) + row_table(t_new, alpha_new, y_new, loss).sum(axis=0)
    change = RowChange(fit, columns, gone, X_gone, X_new, y_new, t_new, alpha_new)
    moved = _rebalance(change, total, table) if problem.regularizer.intercept else (total, table)
    if moved is None or not np.isfinite(fit.gap):
        moved = total, np.full_like(table, np.inf)
    return _row_region(change, n, w, *moved)


def _row_region(change: RowChange, n: int, w: FloatArray, total: FloatArray, table: FloatArray) -> Region:
    fit, loss, regularizer = change.fit, change.fit.problem.loss, change.fit.problem.regularizer
    score = total / n
    if regularizer.intercept:
        score[-1] = 0.0
    residual, tilt = float(table[RESIDUAL]), float(table[DISTANCE_SQ])
    if regularizer.ridge == 0.0 and np.isfinite(residual):
        residual, tilt, change.factor = _along_ray(table, score, regularizer)
        score = change.factor * score
    loss_sum = fit.loss_sum + float(loss.value(change.t_new, change.y_new).sum())
    loss_left = loss_sum - float(loss.value(fit.t[change.gone], fit.problem.y[change.gone]).sum())
    primal = (loss_left + 8.0 * EPS * loss_sum) / n + regularizer.value(w)
    w_distance = primal_distance(regularizer, w, score)
    rounding = (loss_sum + float(fit.table_sum[RESIDUAL]) + w_distance * float(np.linalg.norm(total))) / n + primal
    gap = max(residual, 0.0) / n + float(regularizer.residual(w, score).sum()) + 16.0 * EPS * rounding
    finite = bool(np.isfinite(gap))
    return Region(
        loss=loss,
        regularizer=regularizer,
        n=n,
        w=w,
        score=score,
        gap=gap if finite else np.inf,
        primal=primal,
        w_distance_sq=w_distance**2,
        alpha_distance_sq=max(tilt, 0.0) if finite else 0.0,
        change=change,
    )


def change_columns(fit: Fit, remove: Any = None, add: Any = None) -> Region:
    """Return a set that contains the optimum after columns are removed or added.

    Parameters
    ----------
    fit : Fit
        Any primal and dual point of the old problem.
    remove : sequence of int, optional
        Columns of the old problem, by their position in its matrix; not the intercept.
    add : (n, k) array, optional
        New penalised columns for every row of the matrix.

    Returns
    -------
    Region
        The paper's (20) / (21) as `gap`; in its coordinates the added columns follow the old ones. O(n dd), and a copy
        of what is left of w.

    Raises
    ------
    BadInput
        If a column to remove is not in the problem, is the intercept or is given twice, no penalised column is left,
        or the new columns do not fit.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem
    >>> problem = make_problem([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0], Squared(), Regularizer(0.5))
    >>> round(change_columns(assess(problem, np.array([1.5, 0.0])), remove=[0]).gap, 12)
    0.5625
    """
    problem, regularizer = fit.problem, fit.problem.regularizer
    gone = _known_columns(fit, remove)
    X_new = _new_columns(fit, add)
    kept = without(problem.columns, gone, problem.design.d)
    penalised = regularizer.penalised(kept.size)
    if penalised + X_new.shape[1] == 0:
        raise BadInput("no penalised column is left after the removal: keep at least one")
    score_new = fit.alpha @ X_new / problem.n
    w_new = Regularizer(regularizer.ridge, regularizer.l1).minimizer(score_new)
    X_gone = problem.design.columns(gone)
    t = fit.t - X_gone @ fit.w[gone] + X_new @ w_new
    w = np.concatenate([fit.w[kept[:penalised]], w_new, fit.w[kept[penalised:]]])
    score = np.concatenate([fit.score[kept[:penalised]], score_new, fit.score[kept[penalised:]]])
    if regularizer.intercept:
        # any primal point is valid; this intercept makes up for the mean change of the predictions
        lift = _weighted_mean(fit, fit.t - t)
        t, w[-1] = t + lift, w[-1] + lift
    change = ColumnChange(fit, kept[:penalised], kept[penalised:], X_gone, gone, X_new, t)
    if regularizer.ridge == 0.0:
        change.factor = _shrink(score, regularizer)
        score = change.factor * score
    return _column_region(change, w, score)


def _column_region(change: ColumnChange, w: FloatArray, score: FloatArray) -> Region:
    fit, problem = change.fit, change.fit.problem
    loss, regularizer, alpha = problem.loss, problem.regularizer, change.factor * fit.alpha
    residual = problem.keep_rows(loss.residual(change.t, alpha, problem.y))
    tilt = problem.keep_rows(np.square(alpha + loss.derivative(change.t, problem.y)))
    primal = problem.primal(w, change.t) * (1.0 + 8.0 * EPS)
    w_distance = primal_distance(regularizer, w, score)
    rounding = primal + fit.primal + w_distance * float(np.linalg.norm(score))
    gap = float(residual.sum()) / problem.n + float(regularizer.residual(w, score).sum()) + 16.0 * EPS * rounding
    return Region(
        loss=loss,
        regularizer=regularizer,
        n=problem.n,
        w=w,
        score=score,
        gap=gap if np.isfinite(fit.gap) else np.inf,
        primal=primal,
        w_distance_sq=w_distance**2,
        alpha_distance_sq=float(tilt.sum()),
        change=change,
    )


def primal_distance(regularizer: Regularizer, w: FloatArray, score: FloatArray) -> float:
    """Return `||w - v||`, v the primal point that belongs to a dual point.

    Parameters
    ----------
    regularizer : Regularizer
        Without strong convexity the distance is returned as 0.
    w : (d,) array
        Primal point.
    score : (d,) array
        `X' alpha / n` of the dual point.

    Returns
    -------
    float
        Over the penalised columns.
    """
    if regularizer.ridge == 0.0:
        return 0.0
    d = regularizer.penalised(w.shape[0])
    return float(np.linalg.norm(w[:d] - regularizer.minimizer(score)[:d]))


def _rebalance(change: RowChange, total: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Restore `sum alpha = 0` by the balancing rows; None where their intervals leave no room for it."""
    fit, problem = change.fit, change.fit.problem
    amount = float(fit.alpha[change.gone].sum() - change.alpha_new.sum())
    rows, weight = fit.balancing_rows
    lost = np.isin(rows, change.gone)
    all_weight, lost_rows, lost_weight = weight.sum(), rows[lost], weight[lost]
    rows, weight = rows[~lost], weight[~lost]
    if rows.size == 0:
        return None
    low, high = problem.loss.dual_range(problem.y[rows])
    before = fit.alpha[rows]
    after = shift(before, weight, low, high, amount)
    if after is None:
        return None
    straight = np.clip(before + amount * weight / weight.sum(), low, high)
    if np.array_equal(after, straight):
        part = fit.balancing_direction[change.columns] * all_weight
        part = part - lost_weight @ problem.design.rows(lost_rows)[:, change.columns]
        step = part * (amount / weight.sum())
    else:
        step = (after - before) @ problem.design.rows(rows)[:, change.columns]
    change.moved_rows, change.moved_alpha = rows, after
    new = row_table(fit.t[rows], after, problem.y[rows], problem.loss)
    return total + step, table - fit.table[rows].sum(axis=0) + new.sum(axis=0)


def _shrink(score: FloatArray, regularizer: Regularizer) -> float:
    """Return the factor that brings every score into the domain of an L1 conjugate, rounded down."""
    largest = float(np.abs(score[: regularizer.penalised(score.shape[0])]).max(initial=0.0))
    return 1.0 if largest <= regularizer.l1 else regularizer.l1 / largest * (1.0 - 2.0 * EPS)


def _along_ray(table: FloatArray, score: FloatArray, regularizer: Regularizer) -> tuple[float, float, float]:
    """Return an upper bound on the residuals, `||alpha - a||^2` and the factor, once the dual point is scaled."""
    factor = _shrink(score, regularizer)
    back = 1.0 - factor
    residual = table[RESIDUAL] - back * table[RAY_SLOPE] + 0.5 * back * back / factor * table[RAY_CURVATURE]
    rounding = 16.0 * EPS * back * (abs(table[RAY_SLOPE]) + table[RAY_CURVATURE])
    tilt = table[DISTANCE_SQ] - 2.0 * back * table[ALPHA_DISTANCE] + back * back * table[ALPHA_SQ]
    return float(residual + rounding), float(tilt), factor


def _weighted_mean(fit: Fit, values: FloatArray) -> float:
    problem = fit.problem
    weight = problem.keep_rows(problem.loss.curvature(fit.t, problem.y))
    total = float(weight.sum())
    return float(weight @ values) / total if total > 0.0 else 0.0


def _known_rows(fit: Fit, remove: Any) -> IntArray:
    gone = np.asarray([] if remove is None else remove, dtype=np.int64).ravel()
    n, mask = fit.problem.design.n, fit.problem.row_mask
    if gone.size == 0:
        return gone
    if gone.min() < 0 or gone.max() >= n or (mask is not None and not mask[gone].all()):
        raise BadInput(f"a row to remove is not in the problem: use positions 0 .. {n - 1} of rows that are in it")
    if gone.size > 1 and np.unique(gone).size != gone.size:
        raise BadInput("a row to remove is given twice")
    return gone


def _known_columns(fit: Fit, remove: Any) -> IntArray:
    gone = np.asarray([] if remove is None else remove, dtype=np.int64).ravel()
    columns = fit.problem.columns
    allowed = columns[: fit.problem.regularizer.penalised(columns.size)]
    if gone.size and not np.isin(gone, allowed).all():
        raise BadInput("a column to remove is not a penalised column of the problem: check its position")
    if np.unique(gone).size != gone.size:
        raise BadInput("a column to remove is given twice")
    return gone


def _new_rows(fit: Fit, add: tuple[Any, Any] | None) -> tuple[FloatArray, FloatArray]:
    regularizer, size = fit.problem.regularizer, fit.problem.columns.size
    if add is None:
        return np.zeros((0, size)), np.zeros(0)
    given = add[0].toarray() if hasattr(add[0], "toarray") else add[0]
    X, y = np.atleast_2d(np.asarray(given, dtype=np.float64)), np.asarray(add[1], dtype=np.float64).ravel()
    if X.shape != (y.size, regularizer.penalised(size)):
        raise BadInput(
            f"new rows of shape {X.shape} must have {regularizer.penalised(size)} columns, one response each"
        )
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise BadInput("a new row holds a number that is not finite")
    fit.problem.loss.check(y)
    return (np.hstack([X, np.ones((y.size, 1))]) if regularizer.intercept else X), y


def _new_columns(fit: Fit, add: Any) -> FloatArray:
    n = fit.problem.design.n
    if add is None:
        return np.zeros((n, 0))
    X = np.asarray(add.toarray() if hasattr(add, "toarray") else add, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or X.shape[0] != n or not np.isfinite(X).all():
        raise BadInput(f"new columns of shape {X.shape} must be finite and have one value for each of the {n} rows")
    return X
