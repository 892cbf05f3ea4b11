"""Bounds on every leave-one-out prediction of one fit.

For L2 without an intercept all bounds follow from three numbers per row (`x_i' w`, `x_i' u`, `||x_i||^2`): with
`u = w - X' alpha / ((n - 1) ridge)` and `a_i = alpha_i / ((n - 1) ridge)` the new dual point's primal point is
`v_i = w - u - a_i x_i`, and the midpoint ball of :mod:`.region` gives

    x_i' w^(-i)  in  t_i - (x_i' u + a_i ||x_i||^2) / 2  +/-  ||x_i|| sqrt(slack_i / ridge)
    slack_i = residuals of the rows left / (n - 1) + ridge/4 ||u + a_i x_i||^2
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import row_chunks
from sparsecv_mio.oracles.base import Bracket, Guarantee
from sparsecv_mio.oracles.glru.fit import EPS, RESIDUAL, Fit
from sparsecv_mio.oracles.glru.gap import change_rows
from sparsecv_mio.oracles.glru.intervals import ROUNDING, Method, prediction_intervals
from sparsecv_mio.oracles.glru.problem import Problem


class GlruOracle:
    """A fit as a :class:`~sparsecv_mio.oracles.base.CertifiedOracle`.

    Parameters
    ----------
    fit : Fit
        Trained on every row that may be left out; the smaller its gap, the narrower the intervals.
    method : {"primal", "dual", "sharp", "best"}
        See :mod:`.intervals`.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem, train
    >>> fit = train(make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(), Regularizer(1.0)))
    >>> bracket = GlruOracle(fit).leave_out(np.array([2]))
    >>> bool(bracket.lower[0] <= 0.5 <= bracket.upper[0])
    True
    """

    guarantee = Guarantee.CERTIFIED

    def __init__(self, fit: Fit, method: str = "best") -> None:
        self.fit, self.method = fit, Method(method)

    def leave_out(self, rows: IntArray) -> Bracket:
        """Return intervals for the predictions at `rows` of the fit to all other rows. O(d dn)."""
        return prediction_intervals(change_rows(self.fit, rows), feature_rows(self.fit.problem, rows), self.method)


def feature_rows(problem: Problem, rows: IntArray) -> FloatArray:
    """Return (k, m) rows over the penalised columns of the problem, as the intervals take their test rows."""
    block = problem.design.rows(rows)
    columns = problem.columns[: problem.regularizer.penalised(problem.columns.size)]
    return block[:, : columns.size] if problem.column_mask is None else block[:, columns]


def leave_one_out_bounds(fit: Fit, method: str | None = None) -> Bracket:
    """Return intervals for `x_i' w^(-i)` of every row of the problem, each left out alone.

    Parameters
    ----------
    fit : Fit
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
    >>> fit = train(make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(), Regularizer(1.0)))
    >>> leave_one_out_bounds(fit).upper.round(6).tolist()
    [1.5, 1.5, 1.0]
    """
    regularizer = fit.problem.regularizer
    plain = not regularizer.intercept and regularizer.ridge > 0.0 and fit.problem.column_mask is None
    if method not in (None, Method.SHARP) or not plain:
        return _one_by_one(fit, method or Method.BEST)
    return _all_l2(fit) if regularizer.l1 == 0.0 else _all_net(fit)


def _one_by_one(fit: Fit, method: str) -> Bracket:
    rows, oracle = fit.problem.rows, GlruOracle(fit, method)
    low, high = np.empty(rows.size), np.empty(rows.size)
    for k, i in enumerate(rows.tolist()):
        bracket = oracle.leave_out(np.array([i]))
        low[k], high[k] = bracket.lower[0], bracket.upper[0]
    return Bracket(low, high)


def _left_residual(fit: Fit) -> FloatArray:
    """Return for each row the sum of the residuals of all others, rounded up."""
    each = fit.table[fit.problem.rows, RESIDUAL]
    total = float(fit.table_sum[RESIDUAL])
    return np.maximum(total - each, 0.0) + 16.0 * EPS * (total + fit.loss_sum)


def _all_l2(fit: Fit) -> Bracket:
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


def _all_net(fit: Fit) -> Bracket:
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
