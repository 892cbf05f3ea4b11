"""The models of the folds of a record, which are fitted again to predict the held-out rows.

The predictions of the held-out rows give the mean absolute error of a record, and measures such as the AUC. This module
calls no kernel, so that the thread that waits for a search can call `with_mae` without loading kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.accuracy import class_quality
from sparsecv_mio.certificate.own_rows import adapt_to_expanded_table, rows_of_record
from sparsecv_mio.certificate.predicting import INVERSE_LINKS
from sparsecv_mio.certificate.read_back import adapt_to_record_loss, rows_and_folds_of_record
from sparsecv_mio.certificate.records import Classes, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns, restrictions_of_fits
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds, make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.thresholds import FOLDS_ONE_BY_ONE, QUICK_WORK
from sparsecv_mio.units import CROSSING_RTOL


def held_out_predictions(record: Record, data: Any, folds: AnyFolds | None = None) -> FloatArray:
    """Predict every row by the model of the reported pair that was fitted without the fold of the row.

    Parameters
    ----------
    record : Record
        Record of the search.
    data : path, frame or Dataset
        Data of the record; row weights may be in a column of a table or in `aux` of a `Dataset`.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds of the record, if it does not describe them.

    Returns
    -------
    (n,) array
        Predictions in units of the target: the mean if several folds score a row; NaN if no fold does. Rows of weight
        0 and rows that `na="drop"` leaves out have no entry.

    Raises
    ------
    BadInput
        If data or folds are not those of the record.

    Examples
    --------
    >>> from sparsecv_mio.search.api import solve
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = solve(data, folds="loo", gammas=0.1, taus=1)
    >>> error = data.y - held_out_predictions(record, data, "loo")
    >>> bool(np.isclose(np.mean(error**2), record.cv_error))
    True
    """
    dataset, plan = rows_and_folds_of_record(record, data, folds)
    return mean_predictions(*predictions_by_fold(record, dataset, plan), dataset.n)[0]


def with_mae(record: Record, data: StandardData | None, plan: FoldPlan, seconds: float = math.inf) -> Record:
    """Return the record with the mean absolute error of held-out rows, if that takes little time.

    For logistic loss, the record has the quality of the probabilities too.

    Parameters
    ----------
    record : Record
        Record of the search.
    data : StandardData or None
        Data of the record in the coordinates of its search; None if the search ended before.
    plan : FoldPlan
        Folds of the record.
    seconds : float
        Time in seconds for fitting logistic models again, each by Newton's method.
    """
    if data is not None and record.classes is not None and np.isfinite(record.cv_error):
        return _with_class_quality(record, record.classes, data, plan, seconds)
    if data is None or record.data.weights is not None or not np.isfinite(record.cv_error):
        return record
    if not record.loss.is_quadratic:
        return record
    errors = record.chosen_folds.error
    if (plan.sizes == 1).all():
        return replace(record, mae=float(np.mean(np.sqrt(errors))))
    if plan.k > FOLDS_ONE_BY_ONE or plan.k * data.dataset.X.size > QUICK_WORK:
        return record
    used, supports = used_columns(record, data)
    missed = np.empty(plan.scored)
    # not from predictions, which have offsets
    for fold, problem, support, beta in fit_fold_models(record, used, supports, plan):
        V, r = problem.centre_rows(used, plan.scored_rows(fold))
        missed[plan.starts[fold] : plan.starts[fold + 1]] = used.y_unit * (r - V[:, list(support)] @ beta)
    mean = float(errors.sum()) / plan.scored
    exact = abs(float(np.mean(missed**2)) - mean) <= CROSSING_RTOL * mean  # False if residuals lost their digits
    return replace(record, mae=float(np.mean(np.abs(missed)))) if exact else record


def _with_class_quality(record: Record, classes: Classes, data: StandardData, plan: FoldPlan, seconds: float) -> Record:
    """Return the record with accuracy, AUC and Brier score of held-out rows, if that takes little time."""
    if plan.k > FOLDS_ONE_BY_ONE or plan.k * data.n > QUICK_WORK / 10:
        return record
    try:
        rows, predicted = _predictions(record, data, plan, time.monotonic() + seconds)
    except OutOfTime:
        return record
    weights = data.dataset.row_weights
    quality = class_quality(data.dataset.y[rows], predicted, None if weights is None else weights[rows])
    auc = None if math.isnan(quality.auc) else quality.auc
    return replace(record, classes=replace(classes, accuracy=quality.accuracy, auc=auc, brier=quality.brier))


def mean_predictions(rows: IntArray, predicted: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
    """Return the (n,) mean prediction of every row, NaN if there is none, and the number of predictions.

    Parameters
    ----------
    rows : (m,) int array
        Indices of rows.
    predicted : (m,) array
        Predictions of these rows.
    n : int
        Number of rows in all.

    Examples
    --------
    >>> mean_predictions(np.array([0, 0, 2]), np.array([1.0, 2.0, 5.0]), 3)
    (array([1.5, nan, 5. ]), array([2, 0, 1]))
    """
    times = np.bincount(rows, minlength=n)
    return np.divide(np.bincount(rows, predicted, n), times, out=np.full(n, np.nan), where=times > 0), times


def predictions_by_fold(record: Record, dataset: Dataset, folds: AnyFolds) -> tuple[IntArray, FloatArray]:
    """Predict the rows that each fold scores by its model; :func:`held_out_predictions` takes the means.

    Parameters
    ----------
    record : Record
        Record of the search.
    dataset : Dataset
        Data of the record.
    folds : str, int, splitter, labels, pairs or FoldPlan
        Folds of the record.

    Returns
    -------
    rows : (m,) int array
        Ascending indices of rows, each repeated for every fold that scores it.
    predicted : (m,) array
        Predictions of these rows.
    """
    record, data, plan, source = _prepare_fold_models(record, dataset, folds)
    rows, predicted = _predictions(record, data, plan)
    if source is None:
        return rows, predicted
    order = np.argsort(source[rows], kind="stable")
    return source[rows][order], predicted[order]


def _prepare_fold_models(
    record: Record, dataset: Dataset, folds: AnyFolds
) -> tuple[Record, StandardData, FoldPlan, IntArray | None]:
    """Return record, data and folds for fits, and with fold-specific preprocessing the row that each row is made of."""
    dataset = adapt_to_record_loss(record, dataset)
    plan = make_folds(folds, dataset, record.folds.seed or 0)
    check_of_record(record, dataset, plan)
    own, source = rows_of_record(record, dataset, plan), None
    if own is not None:
        record, dataset, plan, source = adapt_to_expanded_table(record), own.dataset, own.folds, own.source_rows
    how = record.data.scale, record.data.intercept, restrictions_of_fits(record)
    return record, standardize(dataset, *how, loss=record.loss), plan, source


def predictors_by_fold(
    record: Record, dataset: Dataset, folds: AnyFolds
) -> tuple[Dataset, IntArray, Iterator[tuple[IntArray, IntArray, FloatArray]]]:
    """Return the fitted rows, their rows of the data, and for each fold training rows, scored rows and predictors.

    The (n,) linear predictors of a fold are those of all fitted rows.

    Parameters
    ----------
    record : Record
        Record of a search whose loss is not quadratic.
    dataset : Dataset
        Data of the record.
    folds : str, int, splitter, labels, pairs or FoldPlan
        Folds of the record.
    """
    record, data, plan, source = _prepare_fold_models(record, dataset, folds)
    used, supports = used_columns(record, data)

    def predict_folds() -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        for fold in range(plan.k):
            train, columns = plan.train_rows(fold), np.array(supports[record.chosen_folds.which[fold]], dtype=np.int64)
            fit = refit_rows(used, train, columns, record.gamma)
            yield train, plan.scored_rows(fold), fit.predictors(used, np.arange(used.n))

    return data.dataset, np.arange(data.n) if source is None else source, predict_folds()


def check_of_record(record: Record, dataset: Dataset, plan: FoldPlan) -> None:
    """Raise `BadInput` if data or folds are not those of a record."""
    if dataset.fingerprint != record.data.fingerprint:
        raise BadInput(
            "these are not the data of the record (their fingerprints differ); give the data that the record was made "
            "from"
        )
    if plan.digest != record.folds.digest:
        raise BadInput(
            "these are not the folds of the record (their digests differ); give the folds that the record was made with"
        )


def used_columns(record: Record, everything: StandardData) -> tuple[StandardData, list[tuple[int, ...]]]:
    """Return the data in the columns that the models of the folds use, and these models' supports in them."""
    used = {*adjustment_columns(record), *(name for support in record.chosen_folds.supports for name in support)}
    data = everything.only(np.flatnonzero([name in used for name in everything.names]))
    return data, [tuple(data.support_of(names).tolist()) for names in record.chosen_folds.supports]


def fit_fold_models(
    record: Record, data: StandardData, supports: list[tuple[int, ...]], plan: FoldPlan
) -> Iterator[tuple[int, SparseProblem, tuple[int, ...], FloatArray]]:
    """Yield folds with their problem, the support of their model and its coefficients."""
    for fold, moments in training_moments(data, plan):
        problem, support = moments.problem(data, record.gamma), supports[record.chosen_folds.which[fold]]
        yield fold, problem, support, refit_moments(problem, support, data.coefficient_bounds).beta


def _predictions(
    record: Record, everything: StandardData, plan: FoldPlan, until: float = math.inf
) -> tuple[IntArray, FloatArray]:
    """Return the result of :func:`predictions_by_fold`; raise `OutOfTime` after a time of `time.monotonic`."""
    data, supports = used_columns(record, everything)
    if data.loss.is_quadratic:
        predicted = _predict_by_moments(record, data, supports, plan)
    else:
        predicted = _predict_by_rows(record, data, supports, plan, until)
    order = np.argsort(plan.order[: plan.scored], kind="stable")
    return plan.all_scored, predicted[order]


def _predict_by_moments(
    record: Record, data: StandardData, supports: list[tuple[int, ...]], plan: FoldPlan
) -> FloatArray:
    """Return the predictions of the rows that each fold scores, fold by fold, by the model of the fold."""
    predicted = np.empty(plan.scored)
    for fold, problem, support, beta in fit_fold_models(record, data, supports, plan):
        rows = plan.scored_rows(fold)
        V, root = problem.centre_rows(data, rows)[0][:, list(support)], data.root_of(rows)
        fitted, y_center = V @ beta, (problem.own or data).y_center
        predicted[plan.starts[fold] : plan.starts[fold + 1]] = y_center + data.y_unit * (
            data.r_rest + problem.r_mean + (fitted if root is None else fitted / root)
        )
    return predicted


def _predict_by_rows(
    record: Record, data: StandardData, supports: list[tuple[int, ...]], plan: FoldPlan, until: float
) -> FloatArray:
    """Return the probabilities, or expected counts, of the rows that each fold scores, by the model of the fold."""
    predicted, begun = np.empty(plan.scored), time.monotonic()
    for fold in range(plan.k):
        spent = time.monotonic() - begun  # for the folds so far; the other folds would take about as long each
        if begun + spent * plan.k / max(fold, 1) > until:
            raise OutOfTime(f"{plan.k - fold} fold models were not refitted in time")
        columns = np.array(supports[record.chosen_folds.which[fold]], dtype=np.int64)
        fit = refit_rows(data, plan.train_rows(fold), columns, record.gamma)
        of_fold = slice(plan.starts[fold], plan.starts[fold + 1])
        rows = plan.scored_rows(fold)
        predictors = fit.predictors(data, rows) + data.dataset.row_offsets(rows)
        predicted[of_fold] = INVERSE_LINKS[data.loss.target.link](predictors)
    return predicted
