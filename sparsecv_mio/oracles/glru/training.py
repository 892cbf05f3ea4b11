"""Functions that train one regularised model until its relative duality gap is small; the gap certifies the result.

For an L2 penalty, the method is Newton's method, with exact steps if the Hessian is small and otherwise with
preconditioned conjugate gradients. For an elastic net or L1 penalty, the method is the proximal Newton method:
coordinate descent finds the signs of the coefficients, and a linear system gives their values. If the model has an
intercept, each step begins by minimising over the intercept alone, so that the dual point is feasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru.risk import DualFit, Problem, assess, weighted_gram
from sparsecv_mio.thresholds import CUBIC_COLUMNS
from sparsecv_mio.units import ROUNDING

DIRECT_WORK = 5e8  # multiply-adds of an exact Hessian, about 20 ms: below, conjugate gradients save nothing
TRAINING_STEPS = 200
ATTEMPTS = 3
LONG_STEP = 0.2
TRAINING_ROUNDS = 12
TRAINING_SWEEPS = 20
SWEEP_SHARE = 1e-3  # sweeps end at this share of the decrease of the model in the first sweep
FLOOR = 1e-6  # minimum curvature of a row, as a share of the smoothness, if no ridge term bounds the step

TrainingStop = Callable[[DualFit], bool]
"""Function called after every step; it returns True to end training, if enough is known of the optimum (Remark 3)."""

Solve = Callable[[FloatArray], FloatArray]
"""An approximate inverse Hessian, which maps a gradient (d,) to a step (d,)."""


@dataclass(frozen=True, eq=False)
class HessianFactor:
    """Cholesky factor of `X' diag(h) X / n + ridge I` at one fit, used as the preconditioner of similar fits.

    It is built in O(n d^2) and applied in O(d^2), with d the number of penalised columns.
    """

    factor: tuple[FloatArray, bool]

    @classmethod
    def at(cls, fit: DualFit) -> HessianFactor:
        """Return the factor at the weights of a fit."""
        return cls(cho_factor(_hessian(fit.problem, _weights(fit.problem, fit.t)), lower=True, check_finite=False))

    def __call__(self, g: FloatArray) -> FloatArray:
        """Return the solution of the system for a gradient."""
        return np.asarray(cho_solve(self.factor, g, check_finite=False))


def train(
    problem: Problem,
    *,
    tol: float = 1e-6,
    start: FloatArray | None = None,
    precondition: Solve | None = None,
    stop: TrainingStop | None = None,
    max_steps: int = TRAINING_STEPS,
) -> DualFit:
    """Return a fit that minimises `P(w)` until `(P - D) / P <= tol`.

    Parameters
    ----------
    problem : Problem
        Rows, columns, loss and regulariser.
    tol : float
        Relative duality gap, > 0.
    start : (d,) array, optional
        Start; zero by default.
    precondition : callable, optional
        Approximate inverse Hessian for conjugate gradients, on the penalised columns; used for L2. See
        :class:`HessianFactor`.
    stop : callable, optional
        Function of the fit after a step; training ends early if it returns True.
    max_steps : int
        Maximum number of Newton steps.

    Returns
    -------
    DualFit
        Fit, with `relative_gap` above `tol` if `stop`, a limit or rounding ended training.

    Raises
    ------
    BadInput
        If tol is not positive, or an unpenalised intercept has no finite optimum (one class only).

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Logistic, Regularizer, make_problem
    >>> fit = train(make_problem([[1.0], [-2.0]], [1, -1], Logistic(), Regularizer(1.0)), tol=1e-12)
    >>> bool(fit.relative_gap <= 1e-12), round(float(fit.w[0]), 4)
    (True, 0.4721)
    """
    if not tol > 0.0:
        raise BadInput(f"the tolerance must be a positive number, not {tol!r}")
    w = np.zeros(problem.design.d) if start is None else np.array(start, dtype=np.float64)
    fit, stalled = assess_with_intercept(problem, w), 0
    for step in range(1, max_steps + 1):
        if fit.gap <= tol * fit.primal or (step > 1 and stop is not None and stop(fit)):
            break
        moved = _training_step(fit, tol, precondition)
        if moved is None:
            break
        new = assess_with_intercept(problem, *moved, step)
        stalled = stalled + 1 if new.gap > 0.5 * fit.gap and new.primal >= fit.primal * (1.0 - 1e-13) else 0
        fit = new if new.gap <= fit.gap or new.primal < fit.primal else fit
        if stalled >= 3:
            break
    return fit


def assess_with_intercept(problem: Problem, w: FloatArray, t: FloatArray | None = None, iterations: int = 0) -> DualFit:
    """Return :func:`assess` with the intercept, if there is one, at its optimum for the other coefficients. O(nd).

    Parameters
    ----------
    problem : Problem
        Rows, columns, loss and regulariser.
    w : (d,) array
        Primal point; its intercept is replaced.
    t : (n,) array, optional
        `X w`, if known.
    iterations : int
        Number of training steps so far, stored in the fit.

    Returns
    -------
    DualFit
    """
    t = problem.design.forward(w) if t is None else t
    if problem.regularizer.intercept:
        shift = intercept_shift(problem, t)
        w = w.copy()
        w[-1] += shift
        t = t + shift
    return assess(problem, w, t, iterations)


def intercept_shift(problem: Problem, t: FloatArray) -> float:
    """Return the shift s with `sum_i l_i'(t_i + s) = 0` over the rows of the problem. O(n) for each step.

    Raises
    ------
    BadInput
        If no shift exists, because all labels are equal and the loss falls with every larger intercept.
    """
    rows = problem.rows
    t, y, loss = t[rows], problem.y[rows], problem.loss
    if not loss.attained and np.all(y == y[0]):
        raise BadInput(
            "an unpenalised intercept has no finite optimum with rows of one class only; give rows of both classes"
        )

    def slope(s: float) -> float:
        return float(loss.derivative(t + s, y).sum())

    at = slope(0.0)
    size = ROUNDING * (1.0 + float(np.abs(t).max()))
    step = 1e-8 + size
    if abs(at) <= ROUNDING * float(np.abs(loss.derivative(t, y)).sum()):
        return 0.0
    side = -1.0 if at > 0.0 else 1.0
    for _ in range(200):
        if side * slope(side * step) >= 0.0:
            break
        step *= 4.0
    return float(brentq(slope, 0.0, side * step, xtol=size, rtol=4.0 * ROUNDING))


def _weights(problem: Problem, t: FloatArray) -> FloatArray:
    return problem.keep_rows(problem.loss.curvature(t, problem.y)) / problem.n


def _hessian(problem: Problem, h: FloatArray) -> FloatArray:
    """Return the Hessian (d, d) of P over the penalised columns, with the intercept profiled out."""
    d = problem.regularizer.penalised(problem.design.d)
    X = problem.design.X[:, :d]
    H = weighted_gram(X, h)
    if problem.regularizer.intercept and h.any():
        mean = X.T @ h
        H -= np.outer(mean, mean) / h.sum()
    H[np.diag_indices(d)] += problem.regularizer.ridge
    return H


def _training_step(fit: DualFit, tol: float, precondition: Solve | None) -> tuple[FloatArray, FloatArray] | None:
    """Return (w, t) after one step of Newton's method, or None if P cannot be lowered.

    If the derivative of the loss has kinks, the curvature along a step may exceed that at its start. After a short
    step, the curvature beyond its end is included and the step is repeated. The best step is returned.
    """
    problem = fit.problem
    h = _weights(problem, fit.t)
    best, lowest = None, fit.primal + 4.0 * ROUNDING * fit.primal
    for _ in range(ATTEMPTS):
        sparse = problem.regularizer.l1 > 0.0
        p = proximal_target(fit, h) - fit.w if sparse else _newton(fit, h, tol, precondition)
        x = problem.design.forward(p)
        size = _line_search(fit, p, x)
        w, t = fit.w + size * p, fit.t + size * x
        value = problem.primal(w, t)
        if value <= lowest and size > 0.0:
            best, lowest = (w, t), value
        if size >= LONG_STEP:
            break
        h = np.maximum(h, _weights(problem, fit.t + 2.0 * size * x))
    return best


def _newton(fit: DualFit, h: FloatArray, tol: float, precondition: Solve | None) -> FloatArray:
    problem = fit.problem
    d = problem.regularizer.penalised(problem.design.d)
    g = (problem.regularizer.ridge * fit.w - fit.score)[:d]
    if problem.design.n * float(d) ** 2 <= DIRECT_WORK:
        try:
            p = -cho_solve(cho_factor(_hessian(problem, h), check_finite=False), g, check_finite=False)
        except LinAlgError:
            p = -g / problem.regularizer.ridge
    else:
        aim = 0.5 * np.sqrt(tol * fit.primal / fit.gap)
        p = -_conjugate_gradients(problem, h, g, float(np.clip(aim, 1e-4, 0.1)), precondition)
    return np.append(p, _level_step(problem, h, p)) if problem.regularizer.intercept else p


def _level_step(problem: Problem, h: FloatArray, p: FloatArray) -> float:
    """Return the intercept's part of a Newton step, given that of the other columns."""
    total = float(h.sum())
    return -float(h @ problem.design.forward(np.append(p, 0.0))) / total if total > 0.0 else 0.0


def _conjugate_gradients(
    problem: Problem, h: FloatArray, g: FloatArray, tol: float, precondition: Solve | None
) -> FloatArray:
    """Solve `H p = g` to a relative residual."""
    intercept, design = problem.regularizer.intercept, problem.design
    d, total = g.shape[0], float(h.sum())

    def hessian(v: FloatArray) -> FloatArray:
        x = design.forward(np.append(v, 0.0) if intercept else v)
        if intercept and total > 0.0:
            x = x - float(h @ x) / total
        return design.adjoint(h * x)[:d] + problem.regularizer.ridge * v

    if precondition is None:
        scale = problem.regularizer.ridge + total / problem.n * design.column_sq[:d]
        solve: Solve = lambda r: r / scale  # noqa: E731
    else:
        solve = precondition
    system, inverse = (LinearOperator((d, d), matvec=step, dtype=np.float64) for step in (hessian, solve))
    return np.asarray(cg(system, g, rtol=tol, maxiter=max(50, 2 * min(d, problem.n)), M=inverse)[0])


def _line_search(fit: DualFit, p: FloatArray, x: FloatArray) -> float:
    """Return approximately the minimiser of P along p, `x = X p`; 1 if that is good enough, which keeps exact zeros."""
    problem, regularizer = fit.problem, fit.problem.regularizer
    d = regularizer.penalised(p.shape[0])
    w, q = fit.w[:d], p[:d]

    def slope(size: float) -> float:
        rows = problem.keep_rows(problem.loss.derivative(fit.t + size * x, problem.y))
        v = w + size * q
        return float(rows @ x) / problem.n + float((regularizer.ridge * v + regularizer.l1 * np.sign(v)) @ q)

    def is_sufficient_decrease(size: float) -> bool:
        goal = fit.primal - 1e-4 * size * first + 4.0 * ROUNDING * fit.primal
        return problem.primal(fit.w + size * p, fit.t + size * x) <= goal

    first, last = abs(slope(0.0)), slope(1.0)
    if first == 0.0 or (abs(last) <= 0.5 * first and is_sufficient_decrease(1.0)):
        return 1.0
    low, high = 0.0, 1.0
    while last < 0.0 and high < 1e6:
        low, high = high, 4.0 * high
        last = slope(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        value = slope(middle)
        if abs(value) <= 0.02 * first and is_sufficient_decrease(middle):
            return middle
        low, high = (low, middle) if value > 0.0 else (middle, high)
    return low


def proximal_target(fit: DualFit, h: FloatArray) -> FloatArray:
    """Return the minimiser (d,) of the second-order model of P at a fit, or a point near it.

    Parameters
    ----------
    fit : DualFit
        Fit with its intercept, if any, at the optimum.
    h : (n,) array
        Curvatures of the rows, divided by n; zero for rows outside of the problem.

    Notes
    -----
    Each round has two parts: coordinate descent finds the signs, then an active-set method on the support finds the
    values. Rounds end when the first sweep of one changes nothing.
    """
    problem, regularizer = fit.problem, fit.problem.regularizer
    if regularizer.ridge == 0.0:
        h = np.maximum(h, problem.keep_rows(np.full_like(h, FLOOR * problem.loss.smoothness / problem.n)))
    a = problem.keep_rows(-problem.loss.derivative(fit.t, problem.y)) / problem.n
    u, v, top = fit.w.copy(), np.zeros(problem.design.n), 0.0
    descend = _descent(fit, h, a)
    for _ in range(TRAINING_ROUNDS):
        drop = descend(u, v)
        top = max(top, drop)
        if drop <= 1e-10 * top:
            break
        u = _on_support(fit, h, a, u)
        v = problem.design.forward(u - fit.w)
    return u


def _descent(fit: DualFit, h: FloatArray, a: FloatArray) -> Callable[[FloatArray, FloatArray], float]:
    """Return a function that descends from (u, v) in place and returns the decrease of the model in its first sweep."""
    from sparsecv_mio.kernels.glru_descent import ColumnsOfX, DescentModel, descend

    design, regularizer = fit.problem.design, fit.problem.regularizer
    X = design.by_columns
    free = design.d - 1 if regularizer.intercept else -1
    model = DescentModel(h, a, design.weighted_column_sq(h), regularizer.ridge, regularizer.l1, free)
    if design.sparse:
        by_columns = ColumnsOfX(X.data, X.indices, X.indptr)
    else:
        by_columns = ColumnsOfX(np.ravel(X, order="F"), np.zeros(0, dtype=np.int64), np.arange(design.d) * design.n)
    return lambda u, v: descend(by_columns, model, u, v, TRAINING_SWEEPS, SWEEP_SHARE)


def _on_support(fit: DualFit, h: FloatArray, a: FloatArray, u: FloatArray) -> FloatArray:
    """Minimise the model over the support of u with the signs of u; an entry that would change its sign becomes zero.

    Every move lowers the model, because it leads from a point with these signs towards the minimiser over the support.
    """
    problem, regularizer = fit.problem, fit.problem.regularizer
    d = regularizer.penalised(problem.design.d)
    support = np.flatnonzero(u[:d])
    if support.size == 0 or support.size > CUBIC_COLUMNS:
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
