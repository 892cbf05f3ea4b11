"""Stepwise elimination and addition of columns by the number of validation errors, with few trainings.

A candidate is a model with one column more or one column less than the current model. Each step trains candidates in
the order of the lower bounds on their error counts. The step ends when the next lower bound is at least the smallest
error count found (Algorithm 4 of the GLRU paper, docs/oracles/glru.md). Algorithm 5 of the paper bounds the error count
of every fit with one column more or less than the current fit.

The module extends the method of the GLRU paper in three ways. A candidate is not trained if the lower and the upper
bound on its error count are equal. A training ends as soon as the error count of its model is known, or is known to be
at least the smallest count found. Columns can also be added.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles.answers import ProgressHook
from sparsecv_mio.oracles.glru.loocv import shared_factor
from sparsecv_mio.oracles.glru.regions import (
    INTERVAL_ROUNDING,
    change_columns,
    prediction_intervals,
    primal_distance,
    region_of,
)
from sparsecv_mio.oracles.glru.risk import DesignMatrix, DualFit, Problem
from sparsecv_mio.oracles.glru.training import HessianFactor, Solve, train
from sparsecv_mio.units import ROUNDING

Direction = Literal["backward", "forward"]
Ties = Literal["any", "first"]


@dataclass(frozen=True)
class StepwiseOptions:
    """Options of stepwise selection.

    Parameters
    ----------
    direction : {"backward", "forward"}
        Direction of the search: `backward` removes columns from all, `forward` adds columns to none.
    tol : float
        Relative duality gap of every training.
    bounds : bool
        True for GLRU (Algorithms 4 and 5), False to train every candidate (Algorithm 3).
    ties : {"any", "first"}
        Choice among candidates with equally few errors. `any` takes the one found first, as in Algorithm 4. `first`
        takes the first column; the result is then the same as with training of every candidate.
    max_steps : int, optional
        Maximum number of columns removed or added; no limit by default.

    Raises
    ------
    BadInput
        If `direction` or `ties` is not one of these words.
    """

    direction: Direction = "backward"
    tol: float = 1e-6
    bounds: bool = True
    ties: Ties = "any"
    max_steps: int | None = None

    def __post_init__(self) -> None:
        match_keyword(self.direction, ("backward", "forward"), "direction")
        match_keyword(self.ties, ("any", "first"), "ties")


@dataclass(frozen=True, eq=False)
class SelectionStep:
    """One step of stepwise selection, which removes or adds at most one column.

    Attributes
    ----------
    column : int or None
        Column removed or added; None for the last step, in which no candidate lowered the errors.
    errors : int
        Validation errors after the step.
    candidates : (k,) int array
        Columns that could be removed or added.
    lower, upper : (k,) int arrays
        Bounds on each candidate's errors before any training.
    found : dict of int to int
        Errors of the candidates that were decided, or a lower bound if it excluded the candidate.
    trainings : int
        Number of candidates that were trained.
    """

    column: int | None
    errors: int
    candidates: IntArray
    lower: IntArray
    upper: IntArray
    found: dict[int, int]
    trainings: int


@dataclass(frozen=True, eq=False)
class StepwiseResult:
    """The result of stepwise selection.

    Attributes
    ----------
    selected : (k,) int array
        Columns of the last model, ascending.
    errors : int
        Number of validation errors of the last model.
    start_errors : int
        Number of validation errors before the first step.
    steps : tuple of SelectionStep
        The steps in their order.
    w : (d,) array
        Coefficients of all columns, zero for columns that are not selected; an intercept is last.
    seconds : float
        Wall time in seconds.
    """

    selected: IntArray
    errors: int
    start_errors: int
    steps: tuple[SelectionStep, ...]
    w: FloatArray
    seconds: float

    @property
    def trainings(self) -> int:
        """Number of trainings of candidates in all steps."""
        return sum(step.trainings for step in self.steps)

    @property
    def candidates(self) -> int:
        """Number of candidates of all steps, each of which the naive method trains."""
        return sum(step.candidates.size for step in self.steps)


def stepwise(
    problem: Problem,
    X_validation: Any,
    y_validation: Any,
    options: StepwiseOptions | None = None,
    *,
    progress: ProgressHook | None = None,
    stop: threading.Event | None = None,
) -> StepwiseResult:
    """Return the columns selected by removing or adding one column at a time while the validation errors fall.

    Parameters
    ----------
    problem : Problem
        Training rows over all columns, with labels -1 and +1.
    X_validation : (m, p) array or sparse matrix
        Validation rows over the penalised columns.
    y_validation : (m,) array
        Labels of the validation rows.
    options : StepwiseOptions, optional
        Direction, bounds and limits; the defaults are those of :class:`StepwiseOptions`.
    progress : callable, optional
        Function called with (candidates decided, candidates so far), both over all steps.
    stop : threading.Event, optional
        Event that ends the search after the current training, without the current step, once it is set.

    Returns
    -------
    StepwiseResult

    Raises
    ------
    BadInput
        If labels are not -1 / +1 or the validation rows do not fit.

    Notes
    -----
    The errors of a fit trained to `tol` are those of its signs, as in the paper; the bounds hold for the exact optimum.
    The two can differ only for validation rows whose prediction is so near zero that the gap does not determine its
    sign.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Logistic, Regularizer, make_problem
    >>> X = np.array([[1.0, 3.0], [2.0, -3.0], [-1.0, -3.0], [-2.0, 3.0]])
    >>> problem = make_problem(X, [1, 1, -1, -1], Logistic(), Regularizer(0.1))
    >>> result = stepwise(problem, [[1.0, -9.0], [-1.0, 9.0]], [1, -1], StepwiseOptions(direction="forward"))
    >>> result.selected.tolist(), result.errors
    ([0], 0)
    """
    begin = time.perf_counter()
    settings = options or StepwiseOptions()
    adding = settings.direction == "forward"
    validation, y = _check_validation(problem, X_validation, y_validation)
    d = problem.regularizer.penalised(problem.design.d)
    everything = np.arange(d, dtype=np.int64)
    selected = everything[:0] if adding else everything
    search = ColumnSearch(problem, validation, y, settings, progress, stop)
    view = ColumnView.from_problem(problem, selected)
    fit = train(view.problem, tol=settings.tol)
    errors = start_errors = search.errors(view, fit)
    steps: list[SelectionStep] = []
    while settings.max_steps is None or len(steps) < settings.max_steps:
        candidates = np.setdiff1d(everything, selected) if adding else selected
        if candidates.size == 0:
            break
        step = search.step(view, fit, selected, candidates, errors)
        if step is None:
            break
        steps.append(step)
        if step.column is None:
            break
        errors, chosen = step.errors, np.array([step.column])
        selected = np.union1d(selected, chosen) if adding else np.setdiff1d(selected, chosen)
        old, view = view.widen(fit.w, problem.design.d), ColumnView.from_problem(problem, selected)
        fit = train(view.problem, tol=settings.tol, start=view.narrow(old))
    w = view.widen(fit.w, problem.design.d)
    return StepwiseResult(selected, errors, start_errors, tuple(steps), w, time.perf_counter() - begin)


def _check_validation(problem: Problem, X: Any, y: Any) -> tuple[DesignMatrix, FloatArray]:
    labels = np.asarray(y, dtype=np.float64).ravel()
    validation = DesignMatrix(X, problem.regularizer.intercept)
    if validation.d != problem.design.d or labels.shape != (validation.n,):
        raise BadInput(
            f"the validation data have {validation.n} rows, {validation.d} columns and {labels.size} labels; give the "
            f"{problem.design.d} columns of the training data and one label a row"
        )
    if not (np.all(np.abs(labels) == 1.0) and np.all(np.abs(problem.y) == 1.0)):
        raise BadInput("stepwise selection needs labels -1 and +1; map the two values of the target to these labels")
    return validation, labels


@dataclass(eq=False)
class ColumnSearch:
    """The rows, options and counts that all steps of the selection share."""

    whole: Problem
    validation: DesignMatrix
    y: FloatArray
    options: StepwiseOptions
    progress: ProgressHook | None = None
    stop: threading.Event | None = None
    done: int = 0
    seen: int = 0
    factor: HessianFactor | None = None

    def step(
        self, view: ColumnView, fit: DualFit, selected: IntArray, candidates: IntArray, errors: int
    ) -> SelectionStep | None:
        """Return the step with the best candidate; None if `stop` is set.

        Parameters
        ----------
        view : ColumnView
            Problem on the present columns.
        fit : DualFit
            Fit on the present columns.
        selected, candidates : int arrays
            Present columns, and columns that may be removed or added.
        errors : int
            Validation errors of the fit.
        """
        lower, upper = self.candidate_errors(view, fit, candidates)
        self.seen += candidates.size
        self.factor = None if self.is_forward else shared_factor(fit)
        best, column, errors_of, trainings = errors, None, dict[int, int](), 0
        wide = view.widen(fit.w, self.whole.design.d)
        for k in np.lexsort((candidates, lower)).tolist():
            j, low, high = int(candidates[k]), int(lower[k]), int(upper[k])
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.seen)
            if self.stop is not None and self.stop.is_set():
                return None
            if self.options.bounds and not self._may_win(j, low, best, column):
                continue
            if low < high:
                low, high = self._train(selected, wide, j, best)
                trainings += 1
            errors_of[j] = low
            if low == high and self._may_win(j, low, best, column):
                best, column = low, j
        return SelectionStep(column, best, candidates, lower, upper, errors_of, trainings)

    def errors(self, view: ColumnView, fit: DualFit) -> int:
        """Return the number of validation errors of a fit."""
        t = self.validation.forward(view.widen(fit.w, self.whole.design.d))
        return int(np.sum(np.sign(t) != self.y))

    @property
    def is_forward(self) -> bool:
        """True if the search adds columns, False if it removes them."""
        return self.options.direction == "forward"

    def _may_win(self, j: int, low: int, best: int, column: int | None) -> bool:
        first = self.options.ties == "first" and column is not None and j < column
        return low < best or (first and low == best)

    def _train(self, selected: IntArray, wide: FloatArray, j: int, best: int) -> tuple[int, int]:
        columns = np.union1d(selected, np.array([j])) if self.is_forward else selected[selected != j]
        view, tol = ColumnView.from_problem(self.whole, columns), self.options.tol
        enough = best + 1 if self.options.ties == "first" else best

        def stop(fit: DualFit) -> bool:
            low, high = self.fit_errors(view, fit)
            return low == high or low >= enough

        early = stop if self.options.bounds and self.whole.regularizer.ridge > 0.0 else None
        solve = None if self.factor is None else _restrict_factor(self.factor, selected != j)
        fit = train(view.problem, tol=tol, start=view.narrow(wide), precondition=solve, stop=early)
        if early is not None and fit.relative_gap > tol and stop(fit):
            return self.fit_errors(view, fit)
        return (self.errors(view, fit),) * 2

    def fit_errors(self, view: ColumnView, fit: DualFit) -> tuple[int, int]:
        """Return bounds, from the gap of a fit, on the validation errors of the optimum of its problem."""
        method = "sharp" if fit.problem.regularizer.ridge > 0.0 else "best"
        bracket = prediction_intervals(region_of(fit), self._features(view), method)
        return count_errors(bracket.lower, bracket.upper, self.y)

    def candidate_errors(self, view: ColumnView, fit: DualFit, candidates: IntArray) -> tuple[IntArray, IntArray]:
        """Return bounds on the validation errors after each candidate column alone is removed or added.

        Parameters
        ----------
        view : ColumnView
            Problem on the present columns.
        fit : DualFit
            Fit on the present columns.
        candidates : (k,) int array
            Columns of the whole problem: present ones to remove, or absent ones to add.

        Returns
        -------
        (k,), (k,) int arrays
            Least and largest numbers of errors, by the midpoint ball. The cost is O((n + m) k). With an intercept or
            without strong convexity, candidates are treated one by one, which costs O(k (n + m d)).
        """
        lower, upper = np.zeros(candidates.size, dtype=np.int64), np.full(candidates.size, self.y.size, dtype=np.int64)
        if not self.options.bounds:
            return lower, upper
        plain = self.whole.regularizer.ridge > 0.0 and not self.whole.regularizer.intercept
        step = max(1, 2_000_000 // max(self.whole.design.n, self.validation.n)) if plain else 1
        for start in range(0, candidates.size, step):
            chunk = candidates[start : start + step]
            least, most = self._block(view, fit, chunk) if plain else self._single(view, fit, chunk)
            for k in range(least.shape[1]):
                lower[start + k], upper[start + k] = count_errors(least[:, k], most[:, k], self.y)
        return lower, upper

    def _block(self, view: ColumnView, fit: DualFit, J: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds (m, k) on the validation predictions for a block of candidates."""
        whole, validation = self.whole, self.validation
        problem, loss, regularizer = fit.problem, fit.problem.loss, fit.problem.regularizer
        n, X, V = problem.n, whole.design.columns(J), validation.columns(J)
        w, v = view.widen(fit.w, whole.design.d), view.widen(fit.center, whole.design.d)
        middle = 0.5 * (w + v)
        norm_sq = np.square(self._features(view)).sum(axis=1)
        distance_sq, residual = primal_distance(regularizer, fit.w, fit.score) ** 2, float(fit.column_residual.sum())
        if self.is_forward:
            move = regularizer.minimizer(fit.alpha @ X / n)
            shift, norms = move, norm_sq[:, None] + np.square(V)
            distance_left, residual_left = np.full(J.size, distance_sq), np.full(J.size, residual)
        else:
            move, shift = -w[J], -middle[J]
            norms = np.maximum(norm_sq[:, None] - np.square(V), 0.0) + 8.0 * ROUNDING * norm_sq[:, None]
            own = view.widen(fit.column_residual, whole.design.d)[J]
            distance_left = np.maximum(distance_sq - np.square(w[J] - v[J]), 0.0)
            residual_left = np.maximum(residual - own, 0.0)
        t, y, alpha = fit.t[:, None] + X * move, problem.y[:, None], fit.alpha[:, None]
        rows, off_sq = loss.residual(t, alpha, y), np.square(alpha + loss.derivative(t, y))
        if problem.row_mask is not None:
            rows[~problem.row_mask], off_sq[~problem.row_mask] = 0.0, 0.0
        gap = rows.sum(axis=0) / n + residual_left + 16.0 * ROUNDING * (fit.primal + rows.sum(axis=0) / n)
        less = 0.25 * regularizer.ridge * distance_left + 0.25 * off_sq.sum(axis=0) / (n * loss.smoothness)
        radius = np.sqrt(np.maximum(gap - (1.0 - 8.0 * ROUNDING) * less, 0.0) / regularizer.ridge)
        center = validation.forward(middle)[:, None] + V * shift
        size = float(np.linalg.norm(w)) + np.abs(move)
        reach = np.sqrt(norms) * (radius * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * size)
        return center - reach, center + reach

    def _single(self, view: ColumnView, fit: DualFit, J: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds (m, 1) on the validation predictions for one candidate."""
        rows = self._features(view)
        if self.is_forward:
            region = change_columns(fit, add=self.whole.design.columns(J))
            rows = np.hstack([rows, self.validation.columns(J)])
        else:
            if self._features(view).shape[1] == 1:
                return np.full((rows.shape[0], 1), -np.inf), np.full((rows.shape[0], 1), np.inf)
            local = np.flatnonzero(view.positions == J[0])
            region = change_columns(fit, remove=local)
            rows = np.delete(rows, local, axis=1)
        bracket = prediction_intervals(region, rows)
        return bracket.lower[:, None], bracket.upper[:, None]

    def _features(self, view: ColumnView) -> FloatArray:
        """Return validation rows (m, k) over the penalised columns of the problem."""
        return self.validation.columns(view.positions[: view.problem.regularizer.penalised(view.positions.size)])


def _restrict_factor(factor: HessianFactor, kept: BoolArray) -> Solve:
    """Return the preconditioner of a fit without one of its columns: a restriction, which stays positive definite."""

    def solve(g: FloatArray) -> FloatArray:
        padded = np.zeros(kept.size)
        padded[kept] = g
        return factor(padded)[kept]

    return solve


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A problem on some of the columns of a wider matrix.

    Attributes
    ----------
    problem : Problem
        Problem on the selected columns.
    positions : (m,) int array
        Position in the wider matrix of each column of the problem's matrix.
    """

    problem: Problem
    positions: IntArray

    @classmethod
    def from_problem(cls, whole: Problem, selected: IntArray) -> ColumnView:
        """Return the problem on the selected penalised columns (ascending) and the intercept, if there is one."""
        d, regularizer = whole.design.d, whole.regularizer
        inside = np.append(selected, d - 1) if regularizer.intercept else selected
        return cls(replace(whole, design=whole.design.part(inside)), inside)

    def narrow(self, wide: FloatArray) -> FloatArray:
        """Return the entries of a vector over the wider matrix's columns that belong to the problem's."""
        return wide[self.positions]

    def widen(self, w: FloatArray, d: int) -> FloatArray:
        """Return a vector over the wider matrix's d columns: the given entries, zero elsewhere."""
        wide = np.zeros(d)
        wide[self.positions] = w
        return wide


def count_errors(lower: FloatArray, upper: FloatArray, y: FloatArray) -> tuple[int, int]:
    """Return the least and largest number of errors `sign(t_i) != y_i` over `lower_i <= t_i <= upper_i`.

    A prediction of zero is an error.

    Parameters
    ----------
    lower, upper : (m,) arrays
        Intervals of the predictions.
    y : (m,) array
        Labels -1 / +1.

    Returns
    -------
    int, int
        Least and largest number of errors.
    """
    wrong = np.where(y > 0.0, upper <= 0.0, lower >= 0.0)
    right = np.where(y > 0.0, lower > 0.0, upper < 0.0)
    return int(wrong.sum()), int(y.size - right.sum())
