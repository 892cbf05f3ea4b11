"""Every leave-one-out prediction of one fit: bounds, and Newton steps.

For L2 without an intercept all bounds follow from three numbers per row (`x_i' w`, `x_i' u`, `||x_i||^2`): with
`u = w - X' alpha / ((n - 1) ridge)` and `a_i = alpha_i / ((n - 1) ridge)` the new dual point's primal point is
`v_i = w - u - a_i x_i`, and the midpoint ball of :mod:`.region` gives

    x_i' w^(-i)  in  t_i - (x_i' u + a_i ||x_i||^2) / 2  +/-  ||x_i|| sqrt(slack_i / ridge)
    slack_i = residuals of the rows left / (n - 1) + ridge/4 ||u + a_i x_i||^2

One Newton step from the full fit towards each leave-one-out fit is an estimate, or a prediction with a proof. With
`H = X' diag(l'') X / (n - 1) + ridge I` of the full fit, the Hessian without row i is `H - s_i x_i x_i'`,
`s_i = l_i'' / (n - 1)`, and the gradient there is `(g - l_i' x_i) / (n - 1)`, g near `-ridge w`. Sherman-Morrison gives
the step from one solve with H: the approximate leave-one-out of Rad and Maleki, the paper's comparator (32)-(35). The
end of a step is a primal point like any other: its own gap bounds its error, and mostly decides the sign. That costs
two products with X, made for many rows at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Bracket, Estimate, Guarantee
from sparsecv_mio.oracles.glru.changes import change_rows
from sparsecv_mio.oracles.glru.fit import EPS, RESIDUAL, DualFit
from sparsecv_mio.oracles.glru.intervals import ROUNDING, IntervalMethod, prediction_intervals
from sparsecv_mio.oracles.glru.problem import Problem, weighted_gram

BATCH = 64


class GlruOracle:
    """A fit as a :class:`~sparsecv_mio.oracles.base.LeaveOutOracle`.

    Parameters
    ----------
    fit : DualFit
        Trained on every row that may be left out; the smaller its gap, the narrower the intervals.
    method : {"primal", "dual", "sharp", "best"}
        See :mod:`.intervals`.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem, train
    >>> fit = train(make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0)))
    >>> bracket = GlruOracle(fit).leave_out(np.array([2]))
    >>> bool(bracket.lower[0] <= 0.5 <= bracket.upper[0])
    True
    """

    guarantee = Guarantee.CERTIFIED

    def __init__(self, fit: DualFit, method: str = "best") -> None:
        self.fit, self.method = fit, IntervalMethod(method)

    def leave_out(self, rows: IntArray) -> Bracket:
        """Return intervals for the predictions at `rows` of the fit to all other rows. O(d dn)."""
        return prediction_intervals(change_rows(self.fit, rows), feature_rows(self.fit.problem, rows), self.method)


def feature_rows(problem: Problem, rows: IntArray) -> FloatArray:
    """Return (k, m) rows over the penalised columns of the problem, as the intervals take their test rows."""
    block = problem.design.rows(rows)
    columns = problem.columns[: problem.regularizer.penalised(problem.columns.size)]
    return block[:, : columns.size] if problem.column_mask is None else block[:, columns]


def leave_one_out_bounds(fit: DualFit, method: str | None = None) -> Bracket:
    """Return intervals for `x_i' w^(-i)` of every row of the problem, each left out alone.

    Parameters
    ----------
    fit : DualFit
        On all rows.
    method : {"primal", "dual", "sharp", "best"}, optional
        By default `sharp`, the midpoint ball, which takes O(nd) in all for L2 and elastic net; with an intercept or
        without strong convexity `best`. All other methods call :func:`prediction_intervals` row by row.

    Returns
    -------
    Bracket
        One entry for each of the problem's rows, in their order.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem, train
    >>> fit = train(make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0)))
    >>> leave_one_out_bounds(fit).upper.round(6).tolist()
    [1.5, 1.5, 1.0]
    """
    regularizer = fit.problem.regularizer
    plain = not regularizer.intercept and regularizer.ridge > 0.0 and fit.problem.column_mask is None
    if method not in (None, IntervalMethod.SHARP) or not plain:
        return _one_by_one(fit, method or IntervalMethod.BEST)
    return _all_l2(fit) if regularizer.l1 == 0.0 else _all_net(fit)


def _one_by_one(fit: DualFit, method: str) -> Bracket:
    rows, oracle = fit.problem.rows, GlruOracle(fit, method)
    low, high = np.empty(rows.size), np.empty(rows.size)
    for k, i in enumerate(rows.tolist()):
        bracket = oracle.leave_out(np.array([i]))
        low[k], high[k] = bracket.lower[0], bracket.upper[0]
    return Bracket(low, high)


def _left_residual(fit: DualFit) -> FloatArray:
    """Return for each row the sum of the residuals of all others, rounded up."""
    each = fit.table[fit.problem.rows, RESIDUAL]
    total = float(fit.table_sum[RESIDUAL])
    return np.maximum(total - each, 0.0) + 16.0 * EPS * (total + fit.loss_sum)


def _all_l2(fit: DualFit) -> Bracket:
    problem, rows, ridge = fit.problem, fit.problem.rows, fit.problem.regularizer.ridge
    n = problem.n
    u = fit.w - fit.score * (n / ((n - 1) * ridge))
    a = fit.alpha[rows] / ((n - 1) * ridge)
    xu, norm_sq = problem.design.forward(u)[rows], problem.design.row_sq[rows]
    uu, cross, own = float(u @ u), 2.0 * a * xu, a * a * norm_sq
    tilt_sq = np.maximum(uu + cross + own, 0.0) + 16.0 * EPS * (uu + np.abs(cross) + own)
    slack = _left_residual(fit) / (n - 1) + 0.25 * ridge * tilt_sq
    middle = fit.t[rows] - 0.5 * (xu + a * norm_sq)
    return _bracket(middle, np.sqrt(norm_sq), np.sqrt(slack / ridge), float(np.linalg.norm(fit.w)))


def _all_net(fit: DualFit) -> Bracket:
    problem, rows, regularizer = fit.problem, fit.problem.rows, fit.problem.regularizer
    n, ridge = problem.n, regularizer.ridge
    total, rest = fit.score * n, _left_residual(fit) / (n - 1)
    middle, slack = np.empty(rows.size), np.empty(rows.size)
    for part in row_chunks(rows.size, 4 * problem.design.d):
        X = problem.design.rows(rows[part])
        score = (total - fit.alpha[rows[part], None] * X) / (n - 1)
        v = regularizer.minimizer(score)
        gap = rest[part] + regularizer.residual(fit.w, score).sum(axis=1)
        tilt = fit.w - v
        slack[part] = gap - 0.25 * ridge * np.einsum("ij,ij->i", tilt, tilt) * (1.0 - 8.0 * EPS)
        middle[part] = 0.5 * (fit.t[rows[part]] + np.einsum("ij,ij->i", X, v))
    slack = np.maximum(slack, 0.0) + 16.0 * EPS * fit.primal
    norm = np.sqrt(problem.design.row_sq[rows])
    return _bracket(middle, norm, np.sqrt(slack / ridge), float(np.linalg.norm(fit.w)))


def _bracket(middle: FloatArray, norm: FloatArray, radius: FloatArray, size: float) -> Bracket:
    reach = norm * (radius * (1.0 + ROUNDING) + ROUNDING * size)
    return Bracket(middle - reach, middle + reach)


class NewtonOracle:
    """One Newton step from the full fit, as an :class:`~sparsecv_mio.oracles.base.LeaveOutOracle` that estimates.

    Parameters
    ----------
    fit : DualFit
        Of two rows or more. With an L1 term the step keeps the signs and the zeros of its w.

    Raises
    ------
    BadInput
        If the problem has a single row.

    Notes
    -----
    Preparation O(n d^2 + d^3) once, then O(d^2) for each row.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem, train
    >>> fit = train(make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0)))
    >>> NewtonOracle(fit).leave_out(np.array([2])).value.round(12).tolist()
    [0.5]
    """

    guarantee = Guarantee.ESTIMATE

    def __init__(self, fit: DualFit) -> None:
        problem, regularizer = fit.problem, fit.problem.regularizer
        n, d = problem.n, regularizer.penalised(problem.design.d)
        if n < 2:
            raise BadInput("leaving one row out needs at least two rows")
        kept = problem.columns if regularizer.l1 == 0.0 else np.union1d(np.flatnonzero(fit.w[:d]), _free(problem))
        self.fit, self.columns = fit, kept.astype(np.int64)
        w, penalised = fit.w[self.columns], self.columns < d
        h = problem.keep_rows(problem.loss.curvature(fit.t, problem.y))
        X = problem.design.X if kept.size == problem.design.d else problem.design.X[:, self.columns]
        rows = problem.keep_rows(problem.loss.derivative(fit.t, problem.y))
        pull = np.where(penalised, regularizer.ridge * w + regularizer.l1 * np.sign(w), 0.0)
        self._gradient = np.asarray(X.T @ rows) + (n - 1) * pull
        self._second = h / (n - 1)
        H = weighted_gram(X, h) / (n - 1)
        H[np.diag_indices(kept.size)] += np.where(penalised, regularizer.ridge, 0.0)
        self._solve = _inverse(H)
        self._common = self._solve(self._gradient)

    def leave_out(self, rows: IntArray) -> Estimate:
        """Return estimates of the predictions at `rows` (m,) when each of them is left out alone."""
        X, steps = self._steps(rows)
        return Estimate(self.fit.t[rows] + np.einsum("ij,ij->i", X, steps))

    def points(self, rows: IntArray) -> FloatArray:
        """Return the (m, d) ends of the steps."""
        w = np.tile(self.fit.w, (len(rows), 1))
        w[:, self.columns] += self._steps(rows)[1]
        return w

    def brackets(self, rows: IntArray) -> Bracket:
        """Return intervals for the predictions at `rows` when each is left out alone, from the gaps at the steps' ends.

        For L2 without an intercept on all columns. With `alpha = -l'(t)` at a point w of a problem, `c = X' alpha / n`
        and `v = c / ridge`, the residuals of the rows are zero and the optimum lies in the ball with diameter [w, v]
        (see :mod:`.region`). O(nd) for each row, in batches.
        """
        parts = [self._batch(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
        low = np.concatenate([part.lower for part in parts]) if parts else np.zeros(0)
        return Bracket(low, np.concatenate([part.upper for part in parts]) if parts else np.zeros(0))

    def _steps(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        fit, problem, n = self.fit, self.fit.problem, self.fit.problem.n
        X = problem.design.rows(rows)[:, self.columns]
        Z = self._solve(X.T).T
        leverage = np.einsum("ij,ij->i", X, Z)
        slope = problem.loss.derivative(fit.t[rows], problem.y[rows])
        along = (Z @ self._gradient - slope * leverage) / (n - 1)
        second = self._second[rows]
        # at 1 only where H is singular, which the ridge term rules out and L1 does not
        lift = second * along / np.maximum(1.0 - second * leverage, EPS) - slope / (n - 1)
        return X, -(self._common / (n - 1) + lift[:, None] * Z)

    def _batch(self, rows: IntArray) -> Bracket:
        fit, problem, ridge = self.fit, self.fit.problem, self.fit.problem.regularizer.ridge
        X, steps = self._steps(rows)
        w = fit.w + steps
        t = fit.t[:, None] + problem.design.forward(steps.T)
        alpha = -problem.loss.derivative(t, problem.y[:, None])
        if problem.row_mask is not None:
            alpha[~problem.row_mask] = 0.0
        alpha[rows, np.arange(len(rows))] = 0.0
        v = np.asarray(problem.design.adjoint(alpha).T) / ((problem.n - 1) * ridge)
        norm = np.sqrt(np.einsum("ij,ij->i", X, X))
        tilt, size = np.linalg.norm(w - v, axis=1), np.linalg.norm(w, axis=1) + np.linalg.norm(v, axis=1)
        reach = norm * (0.5 * tilt * (1.0 + ROUNDING) + ROUNDING * size)
        middle = 0.5 * np.einsum("ij,ij->i", X, w + v)
        known = np.isfinite(middle) & np.isfinite(reach)
        return Bracket(np.where(known, middle - reach, -np.inf), np.where(known, middle + reach, np.inf))


def _inverse(H: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solve with H by Cholesky, with its pseudo-inverse where it is singular."""
    try:
        factor = cho_factor(H, check_finite=False)
    except LinAlgError:
        inverse = pinvh(H)
        return lambda b: np.asarray(inverse @ b)
    return lambda b: np.asarray(cho_solve(factor, b, check_finite=False))


def _free(problem: Problem) -> IntArray:
    return np.array([problem.design.d - 1] if problem.regularizer.intercept else [], dtype=np.int64)
