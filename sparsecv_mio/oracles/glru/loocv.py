"""Leave-one-out classification errors with as few trainings as the bounds allow (the paper's Algorithm 2).

One fit on all rows and a bound on every leave-one-out prediction; where the bound leaves the sign open, one Newton step
from the full fit, whose own gap mostly decides it; where that fails too, a training, which stops as soon as its gap
decides the sign (Remark 3). The naive way trains for every row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Bracket, Guarantee, ProgressHook
from sparsecv_mio.oracles.glru.changes import region_of
from sparsecv_mio.oracles.glru.fit import DualFit
from sparsecv_mio.oracles.glru.intervals import prediction_intervals
from sparsecv_mio.oracles.glru.leave_one_out import BATCH, NewtonOracle, feature_rows, leave_one_out_bounds
from sparsecv_mio.oracles.glru.problem import Problem, reduce
from sparsecv_mio.oracles.glru.training import DIRECT_WORK, HessianFactor, assess_with_intercept, train

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
        Rows whose predicted sign is not their label; a prediction of exactly zero is an error, as in the paper.
    unknown : int
        Rows not reached when `stop` was set: their errors are not counted. Zero for a run that was not stopped.
    signs : (n,) array
        Predicted signs, -1, 0 or 1; NaN where unknown.
    lower, upper : (n,) arrays
        Bounds on the leave-one-out predictions from the full fit alone.
    open : (n,) bool array
        Rows whose sign those bounds leave open: the trainings of Algorithm 2.
    trained : (n,) bool array
        Rows that needed a training (with `approximate`, a Newton step).
    certain : (n,) bool array
        Rows whose sign a bound proves. For L2 and elastic net all of them, except predictions within rounding of
        zero; for L1 and with `approximate` none of the open rows; without bounds none at all.
    bracket : (int, int)
        Certified bounds on the number of errors from the full fit alone.
    guarantee : Guarantee
        `certified` when every row is certain.
    seconds : dict
        `prepare` (the fit on all rows), `bounds`, `train` (steps and trainings), `total`.
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
    """Count the leave-one-out errors of a linear classifier.

    Parameters
    ----------
    problem : Problem
        With labels -1 / +1.
    tol : float
        Relative duality gap of every training.
    bounds : bool
        Use GLRU (Algorithm 2) or train for every row (Algorithm 1).
    steps : bool
        Try a certified Newton step before a training; False is Algorithm 2.
    approximate : bool
        Replace every training by one Newton step that nothing certifies: the comparator, an estimate.
    progress : callable, optional
        Called with (rows done, rows).
    stop : threading.Event, optional
        Once set, the run ends after the current training.

    Returns
    -------
    LoocvResult

    Raises
    ------
    BadInput
        If y is not -1 / +1, there are fewer than two rows, or an intercept is asked for where a fold has one class.

    Notes
    -----
    A training that reaches `tol` before its sign is decided continues, down to a relative gap of 1e-12; the naive way
    takes the sign of the unfinished fit. `certain` marks the rows whose sign is proved.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Logistic, Regularizer, make_problem
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0], [-0.5]])
    >>> result = loocv(make_problem(X, [1, 1, -1, -1, 1], Logistic(), Regularizer(0.1)))
    >>> result.errors, result.trainings
    (1, 0)
    """
    _check(problem)
    clock = [time.perf_counter()]
    fit = train(reduce(problem), tol=tol)
    problem = fit.problem
    clock.append(time.perf_counter())
    rows, y = problem.rows, problem.y[problem.rows]
    known = leave_one_out_bounds(fit) if bounds else _unbounded(rows.size)
    clock.append(time.perf_counter())
    signs, trained = _signs(fit, rows, known), np.zeros(rows.size, dtype=bool)
    still_open = np.isnan(signs)
    bracket = int(np.sum(signs == -y) + np.sum(signs == 0.0)), int(np.sum(signs != y))
    if bounds and steps and not approximate and _steps_pay(fit, int(still_open.sum())):
        signs[still_open] = _step_signs(fit, rows[still_open])
    certain, left = ~np.isnan(signs), np.flatnonzero(np.isnan(signs))
    done = _Progress(progress, stop, rows.size - left.size, rows.size)
    if approximate:
        signs[left] = _newton_signs(fit, rows[left], done)
    else:
        signs[left], certain[left] = _trained_signs(fit, rows[left], tol, bounds, done)
    trained[left] = ~np.isnan(signs[left])
    unknown = np.isnan(signs)
    clock.append(time.perf_counter())
    spent = np.diff(clock).tolist()
    return LoocvResult(
        errors=int(np.sum(signs[~unknown] != y[~unknown])),
        unknown=int(unknown.sum()),
        signs=signs,
        lower=known.lower,
        upper=known.upper,
        open=still_open,
        trained=trained,
        certain=certain,
        bracket=bracket,
        guarantee=Guarantee.CERTIFIED if certain.all() else Guarantee.ESTIMATE,
        seconds=dict(zip(("prepare", "bounds", "train", "total"), [*spent, sum(spent)], strict=True)),
    )


@dataclass
class _Progress:
    hook: ProgressHook | None
    stop: threading.Event | None
    done: int
    total: int

    def advance(self, count: int) -> None:
        self.done += count
        if self.hook is not None:
            self.hook(self.done, self.total)

    @property
    def stopped(self) -> bool:
        return self.stop is not None and self.stop.is_set()


def _check(problem: Problem) -> None:
    y = problem.y[problem.rows]
    if not np.all(np.abs(y) == 1.0):
        raise BadInput("leave-one-out errors need labels -1 and +1: map the two values of the target to them")
    if problem.n < 2:
        raise BadInput("leaving one row out needs at least two rows")
    if problem.regularizer.intercept and min(np.sum(y > 0.0), np.sum(y < 0.0)) < 2:
        raise BadInput("with an intercept each class needs two rows or more: else a fold has one class only")


def _unbounded(size: int) -> Bracket:
    return Bracket(np.full(size, -np.inf), np.full(size, np.inf))


def _steps_pay(fit: DualFit, count: int) -> bool:
    problem = fit.problem
    d = problem.columns.size
    return problem.regularizer.ridge > 0.0 and count > d * STEPS_PER_COLUMN and d <= LARGEST_FACTOR


def _signs(fit: DualFit, rows: IntArray, known: Bracket) -> FloatArray:
    """Return signs that intervals prove with room for rounding, NaN elsewhere; at a row of zeros the sign is 0."""
    margin = NEAR_ZERO * np.sqrt(fit.problem.design.row_sq[rows]) * float(np.linalg.norm(fit.w))
    signs = np.select([known.lower > margin, known.upper < -margin], [1.0, -1.0], default=np.nan)
    return np.where((known.lower == 0.0) & (known.upper == 0.0), 0.0, signs)


def _step_signs(fit: DualFit, rows: IntArray) -> FloatArray:
    """Return signs that the gap at the end of one Newton step proves, NaN for the others."""
    problem, oracle = fit.problem, NewtonOracle(fit)
    regularizer = problem.regularizer
    if regularizer.l1 == 0.0 and not regularizer.intercept and problem.column_mask is None:
        return _signs(fit, rows, oracle.brackets(rows))
    signs = np.full(rows.size, np.nan)
    for start in range(0, rows.size, BATCH):
        part = rows[start : start + BATCH]
        for k, (row, w) in enumerate(zip(part.tolist(), oracle.points(part), strict=True)):
            end = assess_with_intercept(problem.without_rows([row]), w)
            sign = _decided(end, feature_rows(problem, part[k : k + 1]))
            signs[start + k] = sign if sign != 0.0 else np.nan
    return signs


def _newton_signs(fit: DualFit, rows: IntArray, done: _Progress) -> FloatArray:
    """Return the signs of the Newton steps, without a proof."""
    if rows.size == 0:
        return np.zeros(0)
    oracle, signs = NewtonOracle(fit), np.full(rows.size, np.nan)
    for start in range(0, rows.size, BATCH):
        if done.stopped:
            break
        part = slice(start, start + BATCH)
        signs[part] = np.sign(oracle.leave_out(rows[part]).value)
        done.advance(signs[part].size)
    return signs


Sign = Callable[[int], tuple[float, bool]]
"""Row to its leave-one-out sign and whether a bound proves it."""


def _trained_sign(fit: DualFit, tol: float, early: bool) -> Sign:
    """Return a function that trains without a row, from the fit on all rows, with one preconditioner for all rows."""
    problem = fit.problem
    shared: list[HessianFactor | None] = []

    def sign(row: int) -> tuple[float, bool]:
        if not shared:
            shared.append(shared_factor(fit))
        x = feature_rows(problem, np.array([row]))
        without, start, goal = problem.without_rows([row]), fit.w, tol
        while True:
            stop = (lambda new: _decided(new, x) != 0.0) if early else None
            new = train(without, tol=goal, start=start, precondition=shared[0], stop=stop)
            proved = _decided(new, x) if early else 0.0
            if proved != 0.0 or not early or goal <= TIGHTEST or new.relative_gap > goal:
                return (proved, True) if proved != 0.0 else (float(np.sign(new.t[row])), False)
            start, goal = new.w, max(goal * 1e-2, TIGHTEST)

    return sign


def shared_factor(fit: DualFit) -> HessianFactor | None:
    """Return a preconditioner for trainings near a fit; None where they take no conjugate gradients."""
    problem = fit.problem
    d = problem.regularizer.penalised(problem.design.d)
    large = problem.design.n * float(d) ** 2 > DIRECT_WORK
    # with more than two columns for each row, applying the factor costs more than the passes over X that it saves
    usable = problem.regularizer.l1 == 0.0 and not problem.design.sparse and d <= min(LARGEST_FACTOR, 2 * problem.n)
    return HessianFactor.at(fit) if large and usable else None


def _decided(fit: DualFit, x: FloatArray) -> float:
    """Return the sign of the optimum's prediction at x (1, d) where the fit's own gap proves it, else 0."""
    if fit.problem.regularizer.ridge == 0.0:
        return 0.0
    bracket = prediction_intervals(region_of(fit), x, "sharp")
    margin = NEAR_ZERO * float(np.linalg.norm(x)) * float(np.linalg.norm(fit.w))
    if bracket.lower[0] > margin:
        return 1.0
    return -1.0 if bracket.upper[0] < -margin else 0.0


def _trained_signs(
    fit: DualFit, rows: IntArray, tol: float, early: bool, done: _Progress
) -> tuple[FloatArray, BoolArray]:
    solve, signs = _trained_sign(fit, tol, early), np.full(rows.size, np.nan)
    proved = np.zeros(rows.size, dtype=bool)
    for k, row in enumerate(rows.tolist()):
        if done.stopped:
            break
        signs[k], proved[k] = solve(row)
        done.advance(1)
    return signs, proved
