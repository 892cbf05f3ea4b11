"""The proximal Newton step of elastic net and L1: coordinate descent for the signs, a linear system for the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.oracles.glru.fit import Fit

SUPPORT_LIMIT = 1500
ROUNDS = 12
SWEEPS = 20
SHARE = 1e-3  # of what the first sweep lowered the model by, at which sweeps end
FLOOR = 1e-6  # of the smoothness: curvature that a flat row is given where no ridge term bounds the step


def proximal_target(fit: Fit, h: FloatArray) -> FloatArray:
    """Return the minimiser of the second-order model of P at a fit, or a point near it; (d,).

    Parameters
    ----------
    fit : Fit
        With an intercept at its optimum.
    h : (n,) array
        Curvature of the rows over n, zero for rows that are out.

    Notes
    -----
    Rounds of coordinate descent, which finds the signs, and of an active-set method on the support it found, which
    finds the values; the last round is the one whose first sweep changes nothing.
    """
    problem, regularizer = fit.problem, fit.problem.regularizer
    if regularizer.ridge == 0.0:
        h = np.maximum(h, problem.keep_rows(np.full_like(h, FLOOR * problem.loss.smoothness / problem.n)))
    a = problem.keep_rows(-problem.loss.derivative(fit.t, problem.y)) / problem.n
    u, v, top = fit.w.copy(), np.zeros(problem.design.n), 0.0
    descend = _descent(fit, h, a)
    for _ in range(ROUNDS):
        drop = descend(u, v)
        top = max(top, drop)
        if drop <= 1e-10 * top:
            break
        u = _on_support(fit, h, a, u)
        v = problem.design.forward(u - fit.w)
    return u


def _descent(fit: Fit, h: FloatArray, a: FloatArray) -> Callable[[FloatArray, FloatArray], float]:
    """Return a function that descends from (u, v) in place and returns how much its first sweep lowered the model."""
    from sparsecv_mio.kernels.glru_descent import Columns, Model, descend_dense, descend_sparse

    design, regularizer = fit.problem.design, fit.problem.regularizer
    columns, X = fit.problem.columns.astype(np.int64), design.by_columns
    free = design.d - 1 if regularizer.intercept else -1
    model = Model(h, a, design.weighted_column_sq(h), regularizer.ridge, regularizer.l1, free)
    if design.sparse:
        by_columns = Columns(X.data, X.indices, X.indptr)
        return lambda u, v: descend_sparse(by_columns, columns, model, u, v, SWEEPS, SHARE)
    return lambda u, v: descend_dense(X.T, columns, model, u, v, SWEEPS, SHARE)


def _on_support(fit: Fit, h: FloatArray, a: FloatArray, u: FloatArray) -> FloatArray:
    """Minimise the model over the support of u with the signs of u; an entry that would change its sign becomes zero.

    Every move lowers the model: it leads from a point with these signs towards the minimiser over the support.
    """
    problem, regularizer = fit.problem, fit.problem.regularizer
    d = regularizer.penalised(problem.design.d)
    support = np.flatnonzero(u[:d])
    if support.size == 0 or support.size > SUPPORT_LIMIT:
        return u
    everything = np.append(support, d) if regularizer.intercept else support
    X = problem.design.columns(everything)
    weight = np.where(everything < d, 1.0, 0.0)
    H = X.T @ (h[:, None] * X)
    H[np.diag_indices(everything.size)] += weight * regularizer.ridge
    sign = weight * np.sign(u[everything])
    right = X.T @ (a + h * fit.t) - regularizer.l1 * sign
    values, live = u[everything].copy(), np.ones(everything.size, dtype=bool)
    for _ in range(support.size):
        try:
            factor = cho_factor(H[np.ix_(live, live)], check_finite=False)
        except LinAlgError:
            break
        goal = cho_solve(factor, right[live], check_finite=False)
        now = values[live]
        crossing = (sign[live] != 0.0) & (goal * sign[live] < 0.0)
        if not crossing.any():
            values[live] = goal
            break
        size = np.where(crossing, now / np.where(crossing, now - goal, 1.0), np.inf)
        step = float(size.min())
        moved = now + step * (goal - now)
        moved[size <= step] = 0.0
        values[live] = moved
        live[np.flatnonzero(live)[size <= step]] = False
    solved = np.zeros_like(u)
    solved[everything] = values
    return solved
