"""The definition of the problem for logistic and Poisson loss, in plain numpy and in the original units of the data.

    F(S) = min over a, b   sum_{i in T} w_i l_i(a + x_i'b)  +  (gamma / 2) sum_{j in S} (s_j b_j)^2

Here T are the training rows, w_i is the weight of row i and l_i its loss as a function of the linear predictor. For
logistic loss `l_i(t) = log(1 + exp(-y_i t))` with y_i = -1 or 1 (0 and 1 in the data). The coefficients b are 0 outside
of S, the intercept `a` is free (`fold`) or 0 (`none`), and s_j is the scale of column j as in `problem.objective`. The
held-out error of a fold is the sum of `w_i l_i(m_i)` over its rows, with m_i the linear predictor of row i at the fit
without the fold. The CV error h is the sum of the held-out errors of all folds divided by the sum of the weights.
With bounds on coefficients, each b_j of S is within its bounds. A fit within bounds finds the coefficients at their
bounds by active sets, each with a fit of the other coefficients.

Tests compare every other computation for these losses with this module, and `sparsecv verify` uses no other definition.
Each Newton step is computed by an orthogonal factorisation of the rows, from a gradient in long precision. The module
`problem.objective` has the definition for squared-error loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.cox_objective import find_null_losses, fit_cox, null_loss_of_times
from sparsecv_mio.problem.objective import r_squared, scales, standard_error
from sparsecv_mio.problem.row_losses import FAR_OFF, HALVINGS, NEWTON_STEPS, RowLoss, encode_dataset_targets, row_loss
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import ROUNDING, WRITTEN

# Of a fit by the definition. Of separated rows a step moves margins by 1, about, and a fit has margins of -log gamma:
# 690 at the least gamma. A search, which has a clock, begins with margins nearer to these.
MOST_STEPS = 10 * NEWTON_STEPS
FIT_SETTLED = 1e-30  # share of the objective, below which a squared decrement is rounding
RISES = 5  # increases of the decrement near the minimum, after which it is taken for rounding
NEAR_MINIMUM = 1e-9  # share of the objective, below which a squared decrement is near the minimum
SHORT_MOVE = 0.6  # maximum move of a margin in the ball: F then exceeds its minimum by at most the square (glm.md, 2)
OBJECTIVE_RTOL = 1e-11  # relative rounding error of an objective in double precision
WELL_KNOWN = 1e-9  # ratio of eigenvalues of a Hessian, from which double precision is enough
LEAST_CURVATURE = 1e-12  # share of the largest weight, used instead of smaller ones so that none is 0


@dataclass(frozen=True, eq=False)
class GlmModel:
    """The minimiser behind F(S): the predictor of a row x is `intercept + x_S'beta`.

    Attributes
    ----------
    support : tuple of int
        Columns of X.
    beta : (s,) array
        Coefficients.
    intercept : float
        Intercept.
    objective : float
        F(S), without a bound on its rounding.
    center, unit : (s,) arrays
        Coordinates of the fit: columns minus their centres, divided by their units.
    theta : array
        Fit in these coordinates, the intercept first if there is one.
    decrement : float
        Newton decrement at the end: the objective exceeds its minimum by about half its square.
    inverse : (k, k) array
        Inverse of the Hessian in these coordinates.
    penalty : (k,) array
        Factors of the squares of theta.
    loss : RowLoss
        Row loss.
    """

    support: tuple[int, ...]
    beta: FloatArray
    intercept: float
    objective: float
    center: FloatArray
    unit: FloatArray
    theta: FloatArray
    decrement: float
    inverse: FloatArray
    penalty: FloatArray
    loss: RowLoss

    def predictors(self, X: FloatArray) -> FloatArray:
        """Return the (m,) linear predictors of rows (m, p)."""
        return np.asarray(self.rows(X) @ self.theta)

    def losses(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the (m,) weighted losses of rows with targets of the file."""
        return self._losses(X, *self.loss.encode_targets(y, weights))

    def _losses(self, X: FloatArray, targets: FloatArray, w: FloatArray) -> FloatArray:
        return np.asarray(w * self.loss.losses(self.loss.signs(targets) * self.predictors(X), targets))

    def compute_row_losses(
        self, dataset: Dataset, rows: IntArray | slice, predictors_off: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the (m,) weighted losses of some rows of the data and estimates of their errors.

        In addition to rounding, an error `predictors_off` of the predictors counts if the loss is not flat (the
        relative change of a log loss is smaller than this error).
        """
        X, (targets, w) = dataset.X[rows], encode_dataset_targets(self.loss, dataset, rows)
        doubt = self.doubt(X)
        if self.loss.steepest > 1.0:
            doubt = self.loss.rises(self.loss.signs(targets) * self.predictors(X), targets, doubt + predictors_off)
        return self._losses(X, targets, w), w * doubt

    def held_out(self, dataset: Dataset, rows: IntArray, predictors_off: float = 0.0) -> tuple[float, float]:
        """Return the loss of some rows of the data and an estimate of its error.

        Parameters
        ----------
        dataset : Dataset
            Data set.
        rows : (m,) int array
            Rows.
        predictors_off : float
            Error of the predictors, as for `of_rows`.
        """
        losses, doubt = self.compute_row_losses(dataset, rows, predictors_off)
        return float(losses.sum()), float(doubt.sum())

    def doubt(self, X: FloatArray) -> FloatArray:
        """Return (m,) estimates of the errors of predictors, from the last Newton decrement."""
        Z = self.rows(X)
        level = np.abs(Z) @ np.abs(self.theta)
        return np.asarray(
            4.0 * self.decrement * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", Z, self.inverse, Z), 0.0))
            + 64.0 * ROUNDING * (1.0 + level)
        )

    def rows(self, X: FloatArray) -> FloatArray:
        """Return (m, k) rows in the coordinates of theta, after a column of ones for the intercept."""
        columns = (X[:, list(self.support)] - self.center) / self.unit
        return np.column_stack([np.ones((len(columns), len(self.theta) - columns.shape[1])), columns])


def fit_of_data(
    dataset: Dataset, loss: Loss, support: Sequence[int], gamma: float | FloatArray, **how: Any
) -> GlmModel:
    """Return the fit of one support of the data.

    Parameters
    ----------
    dataset : Dataset
        Data with two classes, 0 and 1, or with counts.
    loss : Loss
        Loss of the fits.
    support : sequence of int
        Columns of the support.
    gamma : float or (s,) array
        Ridge weight > 0; 0 for adjustment columns.
    **how
        Options `scale` ("length", "variance", "none") and `intercept` ("fold", "none"). `rows` are the training rows,
        all by default; scales always use all rows. `near` requests only a point near the minimum, whose objective
        exceeds the minimum by at most the square of its decrement. `start` is a model of the same rows from which to
        start. `ends` are (2, s) lower and upper bounds of the coefficients, in units of the file.

    Examples
    --------
    >>> data = Dataset.from_arrays([[-1.0], [0.0], [0.0], [1.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model = fit_of_data(data, Loss.LOGISTIC, [0], 1.0, scale="none", intercept="fold")
    >>> round(float(model.beta[0]), 6), round(abs(model.intercept), 6), round(model.objective, 6)
    (0.674832, 0.0, 2.437209)
    """
    if loss.target.has_times:
        ridge: Any = gamma / 2.0 * scales(dataset.X[:, list(support)], how["scale"], dataset.row_weights) ** 2
        fitted: Any = fit_cox(dataset, support, ridge, how.get("rows"), bool(how.get("near")), how.get("start"))
        return fitted  # a model with the same attributes
    by_row, columns, rows = row_loss(loss), np.array(list(support), dtype=np.int64), how.get("rows")
    train = np.arange(dataset.n) if rows is None else np.asarray(rows)
    root = np.sqrt(gamma / 2.0) * scales(dataset.X[:, columns], how["scale"], dataset.row_weights)
    training, first = dataset.X[np.ix_(train, columns)], int(how["intercept"] != "none")
    y, w = encode_dataset_targets(by_row, dataset, train)
    center = w @ training / w.sum() if first else np.zeros(len(columns))
    if first:  # a mean is rounded, which matters if the spread is far smaller than the mean
        center = center + w @ (training - center) / w.sum()
    about = training - center
    if first:  # with an intercept, the coefficient of a column that is constant in these rows is 0
        about[:, np.ptp(training, axis=0) <= WRITTEN * np.abs(training).max(axis=0, initial=0.0)] = 0.0
    unit = np.abs(about).max(axis=0, initial=0.0)
    unit[unit == 0.0] = 1.0
    Z = np.column_stack([np.ones((len(train), first)), about / unit])
    ridge = np.concatenate([np.zeros(first), root / unit])
    theta, start = np.zeros(Z.shape[1]), how.get("start")
    if first:
        theta[0] = by_row.origin(y, w)
    begin, ends = theta if start is None else _begin(start, columns, unit), how.get("ends")
    minimise: Callable[..., Minimum | None] = partial(_minimise, Z, y, w, ridge, by_row)
    if ends is not None:
        in_units = np.column_stack([np.full((2, first), [[-np.inf], [np.inf]]), np.asarray(ends) * unit])
        minimise = partial(_minimise_within, Z, y, w, ridge, by_row, ends=in_units)
    close = minimise(theta=begin, quick=True) if first else None
    minimum = close if how.get("near") else None
    minimum = minimum or minimise(theta=theta if close is None else close[0], quick=False)
    assert minimum is not None  # always true unless `quick`
    theta, objective, decrement, inverse = minimum
    beta = theta[first:] / unit if ends is None else np.clip(theta[first:] / unit, *ends)
    level = float(theta[0]) if first else 0.0
    return GlmModel(
        tuple(columns.tolist()), beta, level - float(center @ beta), objective, center, unit, theta, decrement,
        inverse, ridge * ridge, by_row,
    )  # fmt: skip


Minimum = tuple[FloatArray, float, float, FloatArray]  # point, objective, decrement and inverse Hessian


def _begin(start: GlmModel, columns: IntArray, unit: FloatArray) -> FloatArray:
    """Return the initial point for some columns from a model of the same rows with an intercept."""
    slopes = dict(zip(start.support, start.beta.tolist(), strict=True))
    return np.array([start.theta[0], *(slopes.get(j, 0.0) * size for j, size in zip(columns, unit, strict=True))])


Evaluated = tuple[Any, Any, float]  # a point in the precision of the method, its margins and its value


def _search_along_step(
    objective: Callable[[FloatArray], Evaluated], theta: FloatArray, value: float, step: FloatArray, decrement: float
) -> tuple[FloatArray, Evaluated] | None:
    """Return a point along a Newton step with a smaller value; None if there is none up to rounding.

    The step is halved until the value falls, or doubled as long as the value falls and the minimum is far.
    """
    share = 1.0
    for _ in range(HALVINGS):
        ahead = theta + share * step
        evaluated = objective(ahead)
        there = evaluated[2]
        if there < value or (there <= value * (1.0 + 1e-14) and share == 1.0 and decrement**2 < 1e-8 * value):
            break
        share /= 2.0
    else:
        return None
    while share >= 1.0 and decrement**2 > FAR_OFF * value:
        share *= 2.0
        farther = theta + share * step
        farther_evaluated = objective(farther)
        if not farther_evaluated[2] < evaluated[2]:
            break
        ahead, evaluated = farther, farther_evaluated
    return ahead, evaluated


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _minimise(
    Z: FloatArray, y: FloatArray, w: FloatArray, ridge: FloatArray, loss: RowLoss, theta: FloatArray, quick: bool,
    moves: Sequence[int] | slice = slice(None),
) -> Minimum | None:  # fmt: skip
    """Return the minimum over the coefficients at the positions `moves` by Newton's method with step halving.

    With `quick`, the method stops at `NEAR_MINIMUM` and returns None if the result is uncertain; it uses double
    precision and needs an intercept. Otherwise the gradient is summed in long precision: without an intercept, columns
    that are far from 0 relative to their spread would lose its digits.
    """
    signs, precision = loss.signs(y), np.dtype(np.float64 if quick else np.longdouble)

    def objective(at: FloatArray) -> Evaluated:
        fine = at.astype(precision)
        margins, shrunk = signs * (Z @ fine), ridge * fine
        return fine, margins, float(w @ loss.losses(margins, y) + shrunk @ shrunk)

    size, columns = len(ridge[moves]), Z[:, moves]
    (fine, margins, value), decrement, rises, inverse = objective(theta), 0.0, 0, np.zeros((size, size))
    for _ in range(MOST_STEPS if size else 0):
        slope = 2.0 * ridge * ridge * fine - loss.negative_gradient(margins, y, w * signs) @ Z
        bent = np.sqrt(loss.curvatures(margins, y, w)).astype(np.float64)
        back = (_quick_root if quick else _root)(columns, bent, ridge[moves])
        if back is None:
            return None
        inverse, along = back @ back.T, back.T @ slope[moves].astype(np.float64)
        before, step, decrement = decrement, np.zeros(len(theta)), float(np.linalg.norm(along))
        step[moves] = -back @ along
        near = quick and decrement * decrement <= NEAR_MINIMUM * value
        if near and decrement * np.linalg.norm(columns @ back, axis=1).max() <= SHORT_MOVE:
            off = loss.roundings(margins, y, 4.0 * ROUNDING * (np.abs(Z) @ np.abs(theta)), ROUNDING)
            return (theta, value, decrement, inverse) if w @ off <= OBJECTIVE_RTOL * value else None
        descent = _search_along_step(objective, theta, value, step, decrement)
        if descent is None:
            break
        theta, (fine, margins, value) = descent
        rises += before <= decrement and decrement * decrement <= NEAR_MINIMUM * value
        if rises == RISES or decrement * decrement <= FIT_SETTLED * value:
            break
    return None if quick else (theta, value, decrement, inverse)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _minimise_within(
    Z: FloatArray, y: FloatArray, w: FloatArray, ridge: FloatArray, loss: RowLoss, theta: FloatArray, quick: bool,
    ends: FloatArray,
) -> Minimum | None:  # fmt: skip
    """Return the minimum within bounds, by `_minimise` on faces of the box.

    At first, all coefficients that leave the box are set to their bounds, while this lowers the objective. Then a step
    to the minimum of a face ends at the first bound, and the coefficient that its bound keeps most from lowering the
    objective is released. Entries of the gradient that bounds outweigh do not count in the decrement.
    """

    def objective(at: FloatArray) -> float:
        fine = at.astype(np.longdouble)
        return float(w @ loss.losses(signs * (Z @ fine), y) + (ridge * fine) @ (ridge * fine))

    (low, high), signs, is_first = ends, loss.signs(y), True
    theta, is_fixed = np.clip(theta, low, high), low == high
    for _ in range(MOST_STEPS):
        minimum = _minimise(Z, y, w, ridge, loss, theta, quick, np.flatnonzero(~is_fixed).tolist())
        if minimum is None:
            return None
        target = np.where(is_fixed, theta, minimum[0])
        is_outside = (target < low) | (target > high)
        if is_outside.any():
            end = np.where(target < low, low, high)
            shares = np.where(is_outside, (end - theta) / np.where(is_outside, target - theta, 1.0), 1.0)
            is_first = is_first and objective(np.clip(target, low, high)) <= objective(theta)
            stops = is_outside & (is_first | (shares <= shares.min()))
            ahead = target if is_first else theta + shares.min() * (target - theta)
            theta, is_fixed = np.where(stops, end, np.clip(ahead, low, high)), is_fixed | stops
            continue
        theta, is_first, fine = target, False, target.astype(np.longdouble)
        margins = signs * (Z @ fine)
        slope = (2.0 * ridge * ridge * fine - loss.negative_gradient(margins, y, w * signs) @ Z).astype(np.float64)
        inward = np.where(is_fixed & (low < high), np.where(theta <= low, -slope, slope), 0.0)
        inward -= 4.0 * ROUNDING * (np.abs(Z).T @ loss.gradient_scale(margins, y, w).astype(np.float64))
        if not np.any(inward > 0.0):
            break
        is_fixed[int(np.argmax(inward))] = False
    back = _root(Z, np.sqrt(loss.curvatures(margins, y, w)).astype(np.float64), ridge)
    slope = np.where(((theta <= low) & (slope >= 0.0)) | ((theta >= high) & (slope <= 0.0)), 0.0, slope)
    return theta, objective(theta), float(np.linalg.norm(back.T @ slope)), back @ back.T


def _root(Z: FloatArray, bent: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return (k, k) B with `B B'` the inverse Hessian, by a QR factorisation of rows times roots of curvatures."""
    A = np.vstack([bent[:, None] * Z, np.sqrt(2.0) * np.diag(ridge)])
    length = np.linalg.norm(A, axis=0)
    length[length == 0.0] = 1.0
    R = np.linalg.qr(A / length, mode="r")
    try:
        return np.asarray(np.linalg.inv(R) / length[:, None])
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(R) / length[:, None])


def _quick_root(Z: FloatArray, bent: FloatArray, ridge: FloatArray) -> FloatArray | None:
    """Return the same from a factorisation of the Hessian, or None if it has too few digits."""
    A = bent[:, None] * Z
    hessian = A.T @ A + np.diag(2.0 * ridge * ridge)
    length = np.sqrt(np.diag(hessian))
    if not (np.isfinite(hessian).all() and length.all()):
        return None
    sizes, ways = np.linalg.eigh(hessian / length / length[:, None])
    return None if sizes[0] < WELL_KNOWN * sizes[-1] else ways / np.sqrt(sizes) / length[:, None]


def encode_all_targets(dataset: Dataset, loss: RowLoss) -> tuple[FloatArray, FloatArray]:
    """Return the targets and weights of all rows in the form of the loss."""
    return encode_dataset_targets(loss, dataset, slice(0, dataset.n))


def weighted_losses(dataset: Dataset, loss: Loss, predictors: FloatArray) -> FloatArray:
    """Return (n,) weighted losses of the rows at linear predictors.

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0])
    >>> weighted_losses(data, Loss.SQUARED, np.array([0.5, 3.0])).tolist()
    [0.25, 4.0]
    >>> weighted_losses(data, Loss.LOGISTIC, np.zeros(2)).round(6).tolist()
    [0.693147, 0.693147]
    """
    by_row = row_loss(loss)
    y, v = encode_all_targets(dataset, by_row)
    return np.asarray(v * by_row.losses(by_row.signs(y) * predictors, y))


def approximate_by_squares(dataset: Dataset, loss: Loss, predictors: FloatArray) -> Dataset:
    """Return data whose target is a linear predictor and whose weighted squared errors approximate a loss near it.

    Near t, a loss rises by approximately `l''(t) / 2` times the squared distance. This factor times the weight of a row
    is its new weight; with squared-error loss the factor is 1. Rows with negligible curvature keep `LEAST_CURVATURE` of
    the largest weight.

    Parameters
    ----------
    dataset : Dataset
        The data.
    loss : Loss
        The loss.
    predictors : (n,) array
        Linear predictors.

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0])
    >>> approximate_by_squares(data, Loss.LOGISTIC, np.zeros(2)).row_weights.tolist()
    [0.125, 0.125]
    """
    plain = replace(dataset, y=predictors, classes=None, class_weight=None, counts=False, exposure=None, offset=None,
                    row_exposure=None, trials=None)  # fmt: skip
    if loss.is_quadratic:
        return plain
    by_row = row_loss(loss)
    y, v = encode_all_targets(dataset, by_row)
    weights = 0.5 * by_row.curvatures(by_row.signs(y) * predictors, y, v)
    return replace(plain, row_weights=np.maximum(weights, LEAST_CURVATURE * float(weights.max())))


def null_loss(dataset: Dataset, loss: Loss, scored_rows: IntArray) -> float:
    """Return the loss per scored row of the best constant: the mean, the class frequencies, or the mean rate.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of the loss.
    loss : Loss
        Loss of the fits.
    scored_rows : (m,) int array
        Rows that some fold scores, repeated as often as a fold scores them.

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0])
    >>> round(null_loss(data, Loss.LOGISTIC, np.array([0, 1])), 6)
    0.693147
    """
    by_row = row_loss(loss)
    y, v = encode_dataset_targets(by_row, dataset, scored_rows)
    with np.errstate(divide="ignore"):
        margins = by_row.signs(y) * by_row.origin(y, v)
    return float(v @ by_row.losses(margins, y)) / dataset.weight_of(scored_rows)


def null_error_of_folds(dataset: Dataset, loss: Loss, plan: FoldPlan | None) -> float | None:
    """Return the CV error of the model without features; None with squared-error loss.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of the loss.
    loss : Loss
        Loss of the fits.
    plan : FoldPlan or None
        Folds; with None, the result is the mean loss in all rows.
    """
    if loss.is_quadratic:
        return None
    if loss.target.has_times:
        return null_loss_of_times(dataset, plan)
    return null_loss(dataset, loss, np.arange(dataset.n) if plan is None else plan.all_scored)


def compare_with_null_model(
    dataset: Dataset, loss: Loss, plan: FoldPlan, errors: FloatArray, folds: Sequence[int] | None = None
) -> tuple[float | None, float | None]:
    """Return the CV error of the model without features in some folds, and the standard error of the gain over it.

    The standard error is that of the differences of the folds; None if it is undefined. It needs no loss of a row. Both
    numbers are None with a loss that is a sum over rows: its CV errors are comparable without the model.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of the loss.
    loss : Loss
        Loss of the fits.
    plan : FoldPlan
        Folds.
    errors : array
        Held-out losses of a model by fold.
    folds : sequence of int, optional
        Folds of the plan; all by default.
    """
    if loss.target.is_sum_over_rows:
        return None, None
    folds = range(plan.k) if folds is None else folds
    scored = [plan.scored_rows(fold) for fold in folds]
    sizes, losses = np.array([dataset.weight_of(rows) for rows in scored]), find_null_losses(dataset, plan, folds)
    times = sum(map(len, scored)) / len(np.unique(np.concatenate(scored)))
    known = len(folds) > times * (1.0 + 1e-9) and bool(np.isfinite(errors).all())
    return float(losses.sum() / sizes.sum()), standard_error(losses - errors, sizes, times) if known else None


def explained_share(dataset: Dataset, plan: FoldPlan, cv_error: float, null: float | None) -> float:
    """Return the share of the error of the best constant that a CV error explains; 0 if that error is 0.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of the loss.
    plan : FoldPlan
        Folds.
    cv_error : float
        CV error.
    null : float or None
        Error of the best constant; None with squared-error loss.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import folds_from_labels
    >>> data = Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0.0, 2.0, 0.0, 2.0])
    >>> explained_share(data, folds_from_labels([0, 0, 1, 1]), 0.25, None)
    0.75
    """
    if null is None:  # computed in a unit in which squares neither overflow nor underflow
        return r_squared(dataset.y, plan.all_scored, cv_error, dataset.row_weights)
    return 1.0 - cv_error / null if null > 0.0 else 0.0
