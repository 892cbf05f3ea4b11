"""Models chosen without the rows of an outer fold, their errors on these rows, and summaries over all outer folds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.accuracy import class_quality
from sparsecv_mio.certificate.parts import NESTED_WARNING, OuterModel, TriedWeight
from sparsecv_mio.certificate.predicting import INVERSE_LINKS, expand_coefficients
from sparsecv_mio.certificate.records import Nested, NestedClasses, NestedFold, PathRow, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.problem.glm_objective import compare_with_null_model, weighted_losses
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.answer.result import fold_info
from sparsecv_mio.search.deadline import GRACE, Deadline
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import OUTWARD

STABILITY_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

Done = TypeVar("Done")


class ScoredOutside(NamedTuple):
    """The mean loss of rows that a model has not seen, an interval that is certain to hold it, and their predictions.

    The interval of `score_model` is the error itself. With logistic loss the predictions are probabilities.
    """

    error: float
    lower: float
    upper: float
    predicted: FloatArray


OuterFold = tuple[NestedFold, ScoredOutside]


def scored_outside(
    training: Dataset, test: Dataset, support: Sequence[str], gamma: float, options: SearchOptions
) -> ScoredOutside:
    """Return the mean loss of other rows for a support that is fitted on training rows, in their units.

    Parameters
    ----------
    training, test : Dataset
        Training rows, and the rows to score.
    support : sequence of str
        Names of the features.
    gamma : float
        Ridge weight.
    options : SearchOptions
        Options with loss, scale and intercept.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    >>> data = Dataset.from_arrays(X, y)
    >>> options = SearchOptions(loss="logistic", scale="none")
    >>> scored = scored_outside(data.take(np.arange(4)), data.take(np.array([4])), ["x0"], 1.0, options)
    >>> round(scored.error, 6), bool(scored.upper - scored.lower < 1e-12)
    (0.411608, True)
    """
    options = options.by_names(training)
    data = standardize(training, options.scale, options.intercept, options.restrictions, options.loss)
    model = refit_rows(data, slice(0, data.n), data.support_of(support), gamma)
    rows, weights = np.arange(test.n), test.row_weights
    outside = replace(data, dataset=test, root=None if weights is None else np.sqrt(weights))
    loss, slip = model.held_out(outside, rows)
    mean = data.loss_unit / test.weight_of(rows)
    predicted = INVERSE_LINKS[options.loss.target.link](model.predictors(outside, rows) + test.row_offsets(rows))
    return ScoredOutside(loss * mean, max(loss - slip, 0.0) * mean, (loss + slip) * mean, predicted)


def score_model(model: Record | PathRow, test: Dataset, loss: Loss) -> ScoredOutside:
    """Return the mean loss of rows for the coefficients of a model.

    Parameters
    ----------
    model : Record or PathRow
        Model with coefficients in units of the file.
    test : Dataset
        Rows to score.
    loss : Loss
        Loss of the model.

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0], [3.0]], [1.0, 4.0])
    >>> score_model(PathRow(1.0, 1, ("x0",), {"x0": 1.0}, 0.0, 1.0, 1.0, 1.0, True), data, Loss.SQUARED).error
    0.5
    """
    predictors = test.X @ expand_coefficients(model.coefficients, test.names) + model.intercept
    rows = slice(0, test.n)
    error = float(weighted_losses(test, loss, predictors).sum()) / test.weight_of(rows)
    return ScoredOutside(error, error, error, INVERSE_LINKS[loss.target.link](predictors + test.row_offsets(rows)))


def solve_outer_folds(
    outer: FoldPlan, deadline: Deadline, until: float, model: Callable[[int, Deadline], Done], done: list[Done]
) -> None:
    """Append the models without each outer fold to `done`, as long as there is time for the next one.

    Parameters
    ----------
    outer : FoldPlan
        Outer folds.
    deadline : Deadline
        Deadline of the whole run.
    until : float
        End of the outer folds on the clock of `time.monotonic`; remaining folds share the time; inf for no end.
    model : callable
        Function of the outer fold and its deadline that returns the model.
    done : list
        List of models to append to.
    """
    for fold in range(outer.k):
        seconds = until - time.monotonic()
        if seconds < GRACE or deadline.stop.is_set():
            break
        with suppress(OutOfTime):
            made = model(fold, deadline.next_part(None if seconds == math.inf else seconds / (outer.k - fold)))
            if made and not deadline.stop.is_set():  # a stopped search may choose another model than the procedure
                done.append(made)
        if len(done) <= fold:
            break


def tried_weights(done: list[list[OuterModel]], row_weights: list[float]) -> tuple[TriedWeight, ...]:
    """Return the error of each weight of the instability over the outer folds that are done.

    Parameters
    ----------
    done : list of lists of OuterModel
        Models by outer fold, one for each of `STABILITY_WEIGHTS`.
    row_weights : list of float
        Total weights of the rows of these folds.
    """
    return tuple(
        TriedWeight(weight, float(np.average([made.error for made in models], weights=row_weights)), models)
        for weight, models in zip(STABILITY_WEIGHTS, zip(*done, strict=True), strict=True)
    ) if done else ()  # fmt: skip


def summarise_outer_folds(record: Record, outer: FoldPlan, done: list[OuterFold], dataset: Dataset) -> Nested:
    """Return the error of the procedure over the outer folds that are done.

    Parameters
    ----------
    record : Record
        Record of all rows.
    outer : FoldPlan
        Outer folds.
    done : list of (NestedFold, ScoredOutside)
        Models and scores of the outer folds that are done.
    dataset : Dataset
        Data of all rows.
    """
    models = tuple(model for model, _ in done)
    weights = np.array([dataset.weight_of(outer.scored_rows(model.fold)) for model in models])
    errors = np.array([model.error for model in models])
    error = float(np.average(errors, weights=weights))
    chosen, is_comparable = record.cv_error, record.loss.target.is_sum_over_rows
    folds = [model.fold for model in models]
    null, gain_error = compare_with_null_model(dataset, record.loss, outer, errors * weights, folds)
    return Nested(
        outer=fold_info(outer),
        error=error,
        standard_error=standard_error(errors * weights, weights) if len(done) > 1 else None,
        optimism=100.0 * (error / chosen - 1.0) if is_comparable and 0.0 < chosen < math.inf else None,
        folds=models,
        classes=None if record.classes is None else _outer_classes(dataset, outer, done, weights),
        null_error=null,
        gain_error=gain_error,
    )


def describe_missing_outer_folds(done: int, k: int, is_stopped: bool) -> str:
    """Return a warning on outer folds of nested cross-validation that the run did not search.

    Parameters
    ----------
    done, k : int
        Number of outer folds that are done, and of all outer folds.
    is_stopped : bool
        True if the run was interrupted, False if its time limit ended.

    Examples
    --------
    >>> describe_missing_outer_folds(2, 5, True)
    'nested: the run was interrupted after 2 of 5 outer folds, so the nested CV error covers only these'
    """
    cause, remedy = "the time limit ended", "; give a longer time limit"
    if is_stopped:
        cause, remedy = "the run was interrupted", ""
    words = f"before the first of {k} outer folds was done, so the nested CV error is unknown"
    if done:
        words = f"after {done} of {k} outer folds, so the nested CV error covers only these"
    return f"{NESTED_WARNING}{cause} {words}{remedy}"


def _outer_classes(dataset: Dataset, outer: FoldPlan, done: list[OuterFold], weights: FloatArray) -> NestedClasses:
    """Return the quality of the probabilities of the rows of outer folds, each by the model without that fold."""
    rows = np.concatenate([outer.scored_rows(model.fold) for model, _ in done])
    row_weights = None if dataset.row_weights is None else dataset.row_weights[rows]
    quality = class_quality(dataset.y[rows], np.concatenate([scored.predicted for _, scored in done]), row_weights)
    lower, upper = (float(np.average([scored[end] for _, scored in done], weights=weights)) for end in (1, 2))
    auc = None if math.isnan(quality.auc) else quality.auc
    return NestedClasses(lower * (1.0 - OUTWARD), upper * (1.0 + OUTWARD), quality.accuracy, auc, quality.brier)
