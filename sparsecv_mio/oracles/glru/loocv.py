"""Leave-one-out predictions and classification errors of a model, by bounds and Newton steps, with few trainings.

**Bounds.** Let w be the coefficients of the full-data fit, alpha its dual variables, l_i the loss of row i and t_i the
linear predictor `x_i' w` (plus the intercept, if any) of row i. For the L2 penalty without an intercept, let
`u = w - X' alpha / ((n - 1) ridge)`. All bounds then follow from the three numbers `x_i' w`, `x_i' u` and `||x_i||^2`
of each row. Let `a_i = alpha_i / ((n - 1) ridge)`. The primal point that belongs to the dual point without row i is
`v_i = w - u - a_i x_i`. The ball about the midpoint of two primal points (:mod:`.regions`) then gives

    x_i' w^(-i)  in  t_i - (x_i' u + a_i ||x_i||^2) / 2  +/-  ||x_i|| sqrt(slack_i / ridge)
    slack_i = Fenchel-Young residuals of the remaining rows / (n - 1) + ridge/4 ||u + a_i x_i||^2

**Newton steps.** One Newton step from the full-data fit towards the fit without row i gives an estimate of the
prediction. Let `H = X' diag(l'') X / (n - 1) + ridge I` at the full-data fit. Without row i, the Hessian is
`H - s_i x_i x_i'` with `s_i = l_i'' / (n - 1)`, and the gradient is `(g - l_i' x_i) / (n - 1)`. Here g is
`sum_j l_j' x_j + (n - 1) ridge w`, which equals `-ridge w` if the full-data fit is exact. The formula of Sherman and
Morrison gives the step without row i from the solution of a linear system with H. This step is the approximate
leave-one-out estimate of Rad and Maleki, with which the GLRU paper compares its method in (32)-(35). The step ends at a
primal point. The duality gap at this point bounds the error of the prediction, and in most cases proves the sign of the
prediction. Steps are computed for many rows at once and cost two products with X.

**Errors of a classifier** are counted by Algorithm 2 of the paper, with one full-data fit and a bound on every
leave-one-out prediction. If the bound does not determine the sign of the prediction, one Newton step with its duality
gap follows. If the sign is still not determined, the model is trained on the other rows until its duality gap
determines the sign (Remark 3). The method `naive` trains the model once for each row, on all other rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.answers import Bracket, Estimate, Guarantee, ProgressHook
from sparsecv_mio.oracles.glru.regions import (
    INTERVAL_ROUNDING,
    IntervalMethod,
    change_rows,
    prediction_intervals,
    region_of,
)
from sparsecv_mio.oracles.glru.risk import RESIDUAL, DualFit, Problem, fewer_columns, weighted_gram
from sparsecv_mio.oracles.glru.training import DIRECT_WORK, HessianFactor, assess_with_intercept, train
from sparsecv_mio.units import ROUNDING

LEFT_OUT_AT_ONCE = 64


class GlruOracle:
    """Certified intervals for the held-out predictions of a fit.

    Parameters
    ----------
    fit : DualFit
        Fit to all rows that may be held out. The smaller its gap, the narrower the intervals.
    method : {"primal", "dual", "sharp", "best"}
        Construction of the intervals, see :mod:`.regions`.

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
    """Return rows (k, m) over the penalised columns of the problem, in the form of test rows."""
    return problem.design.rows(rows)[:, : problem.regularizer.penalised(problem.design.d)]


def leave_one_out_bounds(fit: DualFit, method: str | None = None) -> Bracket:
    """Return intervals for `x_i' w^(-i)` of every row of the problem, each left out alone.

    Parameters
    ----------
    fit : DualFit
        Fit to all rows.
    method : {"primal", "dual", "sharp", "best"}, optional
        Construction of the intervals. The default is `sharp`, the midpoint ball, which takes O(nd) in total for L2 and
        elastic net; with an intercept or without strong convexity the default is `best`. All other methods call
        :func:`prediction_intervals` row by row.

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
    plain = not regularizer.intercept and regularizer.ridge > 0.0
    if method not in (None, IntervalMethod.SHARP) or not plain:
        return _bracket_single_rows(fit, method or IntervalMethod.BEST)
    return _all_l2(fit) if regularizer.l1 == 0.0 else _all_net(fit)


def _bracket_single_rows(fit: DualFit, method: str) -> Bracket:
    rows, oracle = fit.problem.rows, GlruOracle(fit, method)
    low, high = np.empty(rows.size), np.empty(rows.size)
    for k, i in enumerate(rows.tolist()):
        bracket = oracle.leave_out(np.array([i]))
        low[k], high[k] = bracket.lower[0], bracket.upper[0]
    return Bracket(low, high)


def _left_residual(fit: DualFit) -> FloatArray:
    """Return for each row the sum of the residuals of all other rows, rounded up."""
    each = fit.table[fit.problem.rows, RESIDUAL]
    total = float(fit.table_sum[RESIDUAL])
    return np.maximum(total - each, 0.0) + 16.0 * ROUNDING * (total + fit.loss_sum)


def _all_l2(fit: DualFit) -> Bracket:
    problem, rows, ridge = fit.problem, fit.problem.rows, fit.problem.regularizer.ridge
    n = problem.n
    u = fit.w - fit.score * (n / ((n - 1) * ridge))
    a = fit.alpha[rows] / ((n - 1) * ridge)
    xu, norm_sq = problem.design.forward(u)[rows], problem.design.row_sq[rows]
    uu, cross, own = float(u @ u), 2.0 * a * xu, a * a * norm_sq
    tilt_sq = np.maximum(uu + cross + own, 0.0) + 16.0 * ROUNDING * (uu + np.abs(cross) + own)
    slack = _left_residual(fit) / (n - 1) + 0.25 * ridge * tilt_sq
    middle = fit.t[rows] - 0.5 * (xu + a * norm_sq)
    return _make_bracket(middle, np.sqrt(norm_sq), np.sqrt(slack / ridge), float(np.linalg.norm(fit.w)))


def _all_net(fit: DualFit) -> Bracket:
    problem, rows, regularizer = fit.problem, fit.problem.rows, fit.problem.regularizer
    n, ridge = problem.n, regularizer.ridge
    total, residual = fit.score * n, _left_residual(fit) / (n - 1)
    middle, slack = np.empty(rows.size), np.empty(rows.size)
    for chunk in row_chunks(rows.size, 4 * problem.design.d):
        X = problem.design.rows(rows[chunk])
        score = (total - fit.alpha[rows[chunk], None] * X) / (n - 1)
        v = regularizer.minimizer(score)
        gap = residual[chunk] + regularizer.residual(fit.w, score).sum(axis=1)
        tilt = fit.w - v
        slack[chunk] = gap - 0.25 * ridge * np.einsum("ij,ij->i", tilt, tilt) * (1.0 - 8.0 * ROUNDING)
        middle[chunk] = 0.5 * (fit.t[rows[chunk]] + np.einsum("ij,ij->i", X, v))
    slack = np.maximum(slack, 0.0) + 16.0 * ROUNDING * fit.primal
    norm = np.sqrt(problem.design.row_sq[rows])
    return _make_bracket(middle, norm, np.sqrt(slack / ridge), float(np.linalg.norm(fit.w)))


def _make_bracket(middle: FloatArray, norm: FloatArray, radius: FloatArray, size: float) -> Bracket:
    reach = norm * (radius * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * size)
    return Bracket(middle - reach, middle + reach)


class NewtonOracle:
    """Estimates of held-out predictions by one Newton step from the full-data fit.

    Parameters
    ----------
    fit : DualFit
        Fit of two rows or more. With an L1 term the step keeps the signs and the zeros of its w.

    Raises
    ------
    BadInput
        If the problem has a single row.

    Notes
    -----
    Preparation costs O(n d^2 + d^3), each row O(d^2).

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
        active = np.arange(problem.design.d)
        if regularizer.l1 > 0.0:  # the intercept, after the penalised columns, is free
            active = active[(fit.w != 0.0) | (active >= d)]
        self.fit, self.columns = fit, active
        w, penalised = fit.w[self.columns], self.columns < d
        h = problem.keep_rows(problem.loss.curvature(fit.t, problem.y))
        X = problem.design.X if active.size == problem.design.d else problem.design.X[:, self.columns]
        rows = problem.keep_rows(problem.loss.derivative(fit.t, problem.y))
        pull = np.where(penalised, regularizer.ridge * w + regularizer.l1 * np.sign(w), 0.0)
        self._gradient = np.asarray(X.T @ rows) + (n - 1) * pull
        self._second = h / (n - 1)
        H = weighted_gram(X, h) / (n - 1)
        H[np.diag_indices(active.size)] += np.where(penalised, regularizer.ridge, 0.0)
        self._solve = _inverse(H)
        self._common = self._solve(self._gradient)

    def leave_out(self, rows: IntArray) -> Estimate:
        """Return estimates of the predictions at `rows` (m,), each held out alone."""
        X, steps = self._steps(rows)
        return Estimate(self.fit.t[rows] + np.einsum("ij,ij->i", X, steps))

    def points(self, rows: IntArray) -> FloatArray:
        """Return the (m, d) points after the steps."""
        w = np.tile(self.fit.w, (len(rows), 1))
        w[:, self.columns] += self._steps(rows)[1]
        return w

    def brackets(self, rows: IntArray) -> Bracket:
        """Return intervals for the predictions at `rows`, each held out alone, from the gaps after the steps.

        The method requires L2 without an intercept, and steps on all columns. With `alpha = -l'(t)` at a point w of a
        problem, `c = X' alpha / n` and `v = c / ridge`, the residuals of the rows are zero and the optimum lies in the
        ball with diameter [w, v] (see :mod:`.regions`). The cost is O(nd) time and O(n) memory for each row.
        """
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
        reach = norm * (0.5 * tilt * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * size)
        middle = 0.5 * np.einsum("ij,ij->i", X, w + v)
        finite = np.isfinite(middle) & np.isfinite(reach)
        return Bracket(np.where(finite, middle - reach, -np.inf), np.where(finite, middle + reach, np.inf))

    def _steps(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        fit, problem, n = self.fit, self.fit.problem, self.fit.problem.n
        X = problem.design.rows(rows)[:, self.columns]
        Z = self._solve(X.T).T
        leverage = np.einsum("ij,ij->i", X, Z)
        slope = problem.loss.derivative(fit.t[rows], problem.y[rows])
        along = (Z @ self._gradient - slope * leverage) / (n - 1)
        second = self._second[rows]
        # at 1 only where H is singular, which the ridge term rules out and L1 does not
        lift = second * along / np.maximum(1.0 - second * leverage, ROUNDING) - slope / (n - 1)
        return X, -(self._common / (n - 1) + lift[:, None] * Z)


def _inverse(H: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that solves with H by Cholesky, or with its pseudo-inverse if H is singular."""
    try:
        factor = cho_factor(H, check_finite=False)
    except LinAlgError:
        inverse = pinvh(H)
        return lambda b: np.asarray(inverse @ b)
    return lambda b: np.asarray(cho_solve(factor, b, check_finite=False))


TIGHTEST = 1e-12
NEAR_ZERO = 1e-11  # of ||x_i|| ||w||: a prediction this small may owe its sign to rounding
LARGEST_FACTOR = 8000  # columns up to which a Hessian is factorised
STEPS_PER_COLUMN = 1 / 200  # open rows from which one factorisation for all costs less than their trainings


@dataclass(frozen=True, eq=False)
class LoocvResult:
    """Leave-one-out errors of a binary classifier.

    Attributes
    ----------
    errors : int
        Number of rows whose predicted sign is not their label. A prediction of exactly zero is an error, as in the
        paper.
    unknown : int
        Number of rows not reached when `stop` was set; `errors` does not count them. Zero if the run was not stopped.
    signs : (n,) array
        Predicted signs, -1, 0 or 1; NaN where unknown.
    lower, upper : (n,) arrays
        Bounds on the leave-one-out predictions from the full-data fit alone.
    open : (n,) bool array
        Rows whose sign is not determined by these bounds; Algorithm 2 trains for each of them.
    trained : (n,) bool array
        Rows that needed a training (with `approximate`, a Newton step).
    certain : (n,) bool array
        Rows whose sign is proved by a bound. For L2 and elastic net these are all rows, except for predictions that are
        zero up to rounding. For L1 and with `approximate`, no open row is certain. Without bounds, no row is certain.
    bracket : (int, int)
        Certified bounds on the number of errors from the full-data fit alone.
    guarantee : Guarantee
        `certified` if every row is certain.
    seconds : dict
        Times by phase: `prepare` (the full-data fit), `bounds`, `train` (steps and trainings), `total`.
    """

    errors: int
    unknown: int
    signs: FloatArray
    lower: FloatArray
    upper: FloatArray
    open: BoolArray
    trained: BoolArray
    certain: BoolArray
    bracket: tuple[int, int]
    guarantee: Guarantee
    seconds: dict[str, float]

    @property
    def trainings(self) -> int:
        """Number of rows that needed a training."""
        return int(np.count_nonzero(self.trained))


def loocv(
    problem: Problem,
    *,
    tol: float = 1e-6,
    bounds: bool = True,
    steps: bool = True,
    approximate: bool = False,
    progress: ProgressHook | None = None,
    stop: threading.Event | None = None,
) -> LoocvResult:
    """Return the leave-one-out errors of a linear classifier.

    Parameters
    ----------
    problem : Problem
        Problem with labels -1 and +1.
    tol : float
        Relative duality gap of every training.
    bounds : bool
        True for GLRU (Algorithm 2), False to train for every row (Algorithm 1).
    steps : bool
        True to try a certified Newton step before a training; False is Algorithm 2.
    approximate : bool
        True to replace every training by one uncertified Newton step. The result is then an estimate, the paper's
        comparator.
    progress : callable, optional
        Function called with (rows done, rows).
    stop : threading.Event, optional
        Event that ends the run after the current training, once it is set.

    Returns
    -------
    LoocvResult

    Raises
    ------
    BadInput
        If y is not -1 / +1, there are fewer than two rows, or an intercept is requested and a fold has one class only.

    Notes
    -----
    A training that reaches `tol` before its sign is decided continues, down to a relative gap of 1e-12. The naive
    method (Algorithm 1) takes the sign of the unfinished fit. `certain` marks the rows whose sign is proved.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Logistic, Regularizer, make_problem
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0], [-0.5]])
    >>> result = loocv(make_problem(X, [1, 1, -1, -1, 1], Logistic(), Regularizer(0.1)))
    >>> result.errors, result.trainings
    (1, 0)
    """
    _check_loocv(problem)
    clock = [time.perf_counter()]
    fit = train(fewer_columns(problem), tol=tol)
    problem = fit.problem
    clock.append(time.perf_counter())
    rows, y = problem.rows, problem.y[problem.rows]
    infinite = np.full(rows.size, np.inf)
    brackets = leave_one_out_bounds(fit) if bounds else Bracket(-infinite, infinite)
    clock.append(time.perf_counter())
    signs, trained = _signs(fit, rows, brackets), np.zeros(rows.size, dtype=bool)
    still_open = np.isnan(signs)
    bracket = int(np.sum(signs == -y) + np.sum(signs == 0.0)), int(np.sum(signs != y))
    if bounds and steps and not approximate and _is_factorisation_cheaper(fit, int(still_open.sum())):
        signs[still_open] = _step_signs(fit, rows[still_open])
    certain, open_rows = ~np.isnan(signs), np.flatnonzero(np.isnan(signs))
    left, open_rows = open_rows, rows[open_rows]
    answers = _newton_signs(fit, open_rows) if approximate else _trained_signs(fit, open_rows, tol, bounds)
    while left.size and not (stop is not None and stop.is_set()):
        some_signs, proved = next(answers)
        some, left = left[: some_signs.size], left[some_signs.size :]
        signs[some], certain[some], trained[some] = some_signs, proved, True
        if progress is not None:
            progress(rows.size - left.size, rows.size)
    unknown = np.isnan(signs)
    clock.append(time.perf_counter())
    spent = np.diff(clock).tolist()
    return LoocvResult(
        errors=int(np.sum(signs[~unknown] != y[~unknown])),
        unknown=int(unknown.sum()),
        signs=signs,
        lower=brackets.lower,
        upper=brackets.upper,
        open=still_open,
        trained=trained,
        certain=certain,
        bracket=bracket,
        guarantee=Guarantee.CERTIFIED if certain.all() else Guarantee.ESTIMATE,
        seconds=dict(zip(("prepare", "bounds", "train", "total"), [*spent, sum(spent)], strict=True)),
    )


def _check_loocv(problem: Problem) -> None:
    y = problem.y[problem.rows]
    if not np.all(np.abs(y) == 1.0):
        raise BadInput("leave-one-out errors need labels -1 and +1; map the two values of the target to these labels")
    if problem.n < 2:
        raise BadInput("leaving one row out needs at least two rows")
    if problem.regularizer.intercept and min(np.sum(y > 0.0), np.sum(y < 0.0)) < 2:
        raise BadInput("with an intercept each class needs at least two rows, otherwise a fold has only one class")


def _is_factorisation_cheaper(fit: DualFit, count: int) -> bool:
    problem = fit.problem
    d = problem.design.d
    return problem.regularizer.ridge > 0.0 and count > d * STEPS_PER_COLUMN and d <= LARGEST_FACTOR


def _signs(fit: DualFit, rows: IntArray, known: Bracket) -> FloatArray:
    """Return the signs that intervals prove, with room for rounding; NaN elsewhere. The sign of a row of zeros is 0."""
    margin = NEAR_ZERO * np.sqrt(fit.problem.design.row_sq[rows]) * float(np.linalg.norm(fit.w))
    return known.sign(margin)


def _step_signs(fit: DualFit, rows: IntArray) -> FloatArray:
    """Return signs that the gap at the end of one Newton step proves, NaN for the others."""
    problem, oracle, signs = fit.problem, NewtonOracle(fit), np.full(rows.size, np.nan)
    plain = problem.regularizer.l1 == 0.0 and not problem.regularizer.intercept
    for start in range(0, rows.size, LEFT_OUT_AT_ONCE):
        chunk = rows[start : start + LEFT_OUT_AT_ONCE]
        if plain:
            signs[start : start + chunk.size] = _signs(fit, chunk, oracle.brackets(chunk))
            continue
        for k, (row, w) in enumerate(zip(chunk.tolist(), oracle.points(chunk), strict=True)):
            end = assess_with_intercept(problem.without_rows([row]), w)
            signs[start + k] = _proved_sign(end, feature_rows(problem, chunk[k : k + 1])) or np.nan
    return signs


def _newton_signs(fit: DualFit, rows: IntArray) -> Iterator[tuple[FloatArray, bool]]:
    """Yield the signs of the Newton steps for some of the rows after the other, without a proof."""
    oracle = NewtonOracle(fit)
    for start in range(0, rows.size, LEFT_OUT_AT_ONCE):
        yield np.sign(oracle.leave_out(rows[start : start + LEFT_OUT_AT_ONCE]).value), False


def _trained_sign(fit: DualFit, row: int, tol: float, early: bool, factor: HessianFactor | None) -> tuple[float, bool]:
    """Train without a row, from the full-data fit; return the row's sign and whether a bound proves it."""
    x = feature_rows(fit.problem, np.array([row]))
    without, start, goal = fit.problem.without_rows([row]), fit.w, tol
    stop = (lambda new: _proved_sign(new, x) != 0.0) if early else None
    while True:
        new = train(without, tol=goal, start=start, precondition=factor, stop=stop)
        if early and (proved := _proved_sign(new, x)) != 0.0:
            return proved, True
        if not early or goal <= TIGHTEST or new.relative_gap > goal:
            return float(np.sign(new.t[row])), False
        start, goal = new.w, max(goal * 1e-2, TIGHTEST)


def shared_factor(fit: DualFit) -> HessianFactor | None:
    """Return a preconditioner for trainings near a fit; None if they do not use conjugate gradients."""
    problem = fit.problem
    d = problem.regularizer.penalised(problem.design.d)
    large = problem.design.n * float(d) ** 2 > DIRECT_WORK
    # with more than two columns for each row, applying the factor costs more than the passes over X that it saves
    usable = problem.regularizer.l1 == 0.0 and not problem.design.sparse and d <= min(LARGEST_FACTOR, 2 * problem.n)
    return HessianFactor.at(fit) if large and usable else None


def _proved_sign(fit: DualFit, x: FloatArray) -> float:
    """Return the sign of the optimum's prediction at x (1, d) if the gap of the fit proves it, else 0."""
    if fit.problem.regularizer.ridge == 0.0:
        return 0.0
    margin = NEAR_ZERO * float(np.linalg.norm(x)) * float(np.linalg.norm(fit.w))
    return float(np.nan_to_num(prediction_intervals(region_of(fit), x, "sharp").sign(margin)[0]))


def _trained_signs(fit: DualFit, rows: IntArray, tol: float, early: bool) -> Iterator[tuple[FloatArray, bool]]:
    """Yield the sign of each row by a training, and whether a bound proves it; all share one preconditioner."""
    factor = shared_factor(fit)
    for row in rows.tolist():
        sign, proved = _trained_sign(fit, row, tol, early, factor)
        yield np.array([sign]), proved
