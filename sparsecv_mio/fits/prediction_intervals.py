"""Prediction intervals for new rows by the method CV+ (Barber and others 2021), from the models of the folds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.own_rows import adapt_to_expanded_table, fold_preprocessing, rows_of_record
from sparsecv_mio.certificate.predicting import predict_valid_rows, read_columns, read_new_dataset
from sparsecv_mio.certificate.read_back import data_of, folds_again
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of_fits
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.data.rows_of_folds import RowsOfFolds, fills_of_rows
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, parse_keyword
from sparsecv_mio.search.answer.fold_models import check_of_record, fit_fold_models, used_columns
from sparsecv_mio.targets import NO_TARGET_COLUMNS
from sparsecv_mio.units import ACCURATE_RTOL
from sparsecv_mio.words import InvalidRows, Within


def with_fold_models(record: Any) -> Record:
    """Return the record; raise `BadInput` if it has no models of folds, or its predictions have no intervals."""
    why = ""
    if not isinstance(record, Record):
        why = "this record does not have a model for each fold; give a record of `solve` with criterion folds"
    elif record.classes is not None:
        why = "not supported for classes; `predict` gives probabilities"
    elif record.counts is not None:
        why = "not supported for counts; `predict` gives expected counts"
    elif record.data.weights is not None:
        why = "not supported with weights, because coverage needs rows with equal weight; solve again without weights"
    elif record.average is not None:
        how = '--model pair (model="pair" in Python)'
        why = f"not supported with the averaged model, which has no fold models; solve again with {how}"
    if why:
        raise BadInput(f"interval: {why}")
    return cast("Record", record)


@dataclass(frozen=True, eq=False)
class FoldModels:
    """A linear model for each fold, fitted without it, and the absolute error of each row by the model of its fold.

    Attributes
    ----------
    record : Record
        Record of the search.
    names : tuple of q str
        Columns in at least one of the models.
    coefficients, intercepts : (K, q) array, (K,) array
        Coefficients and intercepts in units of the data.
    fold : (n,) int array
        Index of the fold that holds out each row.
    missed : (n,) array
        Absolute errors `|y_i - prediction of row i without its fold|`.
    fills : (K, q) array or None
        Values by which each fold imputes missing cells; None if all folds impute the same values.
    """

    record: Record
    names: tuple[str, ...]
    coefficients: FloatArray
    intercepts: FloatArray
    fold: IntArray
    missed: FloatArray
    fills: FloatArray | None = None

    @classmethod
    def from_record(cls, record: Record, dataset: Dataset, folds: FoldPlan) -> FoldModels:
        """Fit the supports of the record again.

        Parameters
        ----------
        record : Record
            Record of the search.
        dataset : Dataset
            Data of the record.
        folds : FoldPlan
            Folds of the record.

        Raises
        ------
        BadInput
            If `with_fold_models` refuses the record, if data or folds are not those of the record, or if the folds do
            not hold out every row once.
        """
        with_fold_models(record)
        check_of_record(record, dataset, folds)
        if not folds.is_partition or folds.scored < folds.n:
            raise BadInput(
                f"interval: folds {folds.spec!r} do not hold out every row exactly once; solve with K folds, or loo"
            )
        table, fitted, plan = rows_of_record(record, dataset, folds), record, folds
        table = table or RowsOfFolds(dataset, folds)
        if table.dataset is not dataset:
            fitted, plan = adapt_to_expanded_table(record), table.folds
        how = fitted.data.scale, fitted.data.intercept, restrictions_of_fits(fitted)
        data, supports = used_columns(fitted, standardize(table.dataset, *how))
        place = {name: j for j, name in enumerate(data.names)}
        coefficients, intercepts, missed = np.zeros((folds.k, data.q)), np.zeros(folds.k), np.zeros(folds.n)
        X, y, source_rows = table.dataset.X[:, data.columns], table.dataset.y, table.source_rows
        for fold, problem, support, beta in fit_fold_models(fitted, data, supports, plan):
            own = problem.own or data
            in_units, intercepts[fold] = own.coefficients(sorted(support), beta, problem.v_mean, problem.r_mean)
            for name, value in in_units.items():
                coefficients[fold, place[name]] = value
            rows = plan.scored_rows(fold)
            missed[source_rows[rows]] = np.abs(y[rows] - X[rows] @ coefficients[fold] - intercepts[fold])
        fills = None
        if fold_preprocessing(record).na is Within.FOLDS:
            trains = map(folds.train_rows, range(folds.k))
            fills = np.stack([fills_of_rows(dataset, train, data.columns) for train in trains])
        return cls(record, tuple(data.names), coefficients, intercepts, folds.labels, missed, fills)

    def interval(self, X: Any, level: float, holes: BoolArray | None = None) -> FloatArray:
        """(m, 2) bounds of the prediction intervals of new rows.

        For each row i, take the prediction of x by the model without the fold of row i, minus and plus `missed_i`. With
        `alpha = 1 - level`, the lower bound is the `floor(alpha (n + 1))`-th smallest of the n differences. The upper
        bound is the `ceil((1 - alpha) (n + 1))`-th smallest of the n sums.

        Parameters
        ----------
        X : frame, Dataset or (m, p) array_like
            New rows, as for the `predict` of a record.
        level : float
            Level of the intervals, between 0 and 1.
        holes : (m, p) bool array, optional
            Mask of the imputed cells of an array `X`.

        Notes
        -----
        O(m (K q + n)).
        """
        n = len(self.missed)
        low = check_level(level, n)
        rows, is_imputed = self._read_rows(X, holes)
        ends, step = np.empty((len(rows), 2)), max(1, BLOCK_NUMBERS // n)
        for block in (slice(i, i + step) for i in range(0, len(rows), step)):
            by_fold = rows[block] @ self.coefficients.T + self.intercepts
            if self.fills is not None and is_imputed is not None:
                by_fold += is_imputed[block] @ (self.fills * self.coefficients).T
            predicted = by_fold[:, self.fold]
            ends[block, 0] = np.partition(predicted - self.missed, low - 1, axis=1)[:, low - 1]
            ends[block, 1] = np.partition(predicted + self.missed, n - low, axis=1)[:, n - low]
        return ends

    def _read_rows(self, X: Any, holes: BoolArray | None) -> tuple[FloatArray, BoolArray | None]:
        """Return new rows, and the mask of the cells that each fold imputes, which are then 0."""
        names, header = list(self.names), self.record.data.names
        if self.fills is not None:
            X = read_new_dataset(self.record.data, X, names)
        if isinstance(X, Dataset):
            holes, header = X.holes, X.names
        rows = read_columns(self.record.data, X, names)
        if self.fills is None or holes is None:
            return rows, None
        holes = holes[:, [header.index(name) for name in names]]
        return np.where(holes, 0.0, rows), holes


def check_level(level: float, n: int) -> int:
    """Return the rank of the lower bound of an interval among n sorted numbers; the upper bound is as far from the end.

    Parameters
    ----------
    level : float
        Level of the interval.
    n : int
        Number of rows of the data.

    Raises
    ------
    BadInput
        If the level is not between 0 and 1, or too large for the number of rows.
    """
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise BadInput(f"interval: {level} is out of range; give a level between 0 and 1, for example 0.9")
    rank = math.floor((1.0 - level) * (n + 1) + ACCURATE_RTOL)
    if rank < 1:
        least = math.ceil(1.0 / (1.0 - level) - 1.0 - ACCURATE_RTOL)
        raise BadInput(
            f"interval: a level of {level:g} needs {least:,} rows, and the model was fitted to {n:,}; give a lower "
            "level"
        )
    return rank


def predict_interval(
    record: Record, X: Any, level: float, data: Any, folds: AnyFolds | None, invalid_rows: str = "error"
) -> FloatArray:
    """Return prediction intervals of new rows; this is the method of a record.

    Parameters
    ----------
    record : Record
        Record of the search.
    X, level, data, folds, invalid_rows
        Parameters of the method.
    """
    with_fold_models(record)
    if data is None or not isinstance(level, Real):
        raise BadInput(
            f"data: predict_interval(X, {level if isinstance(level, Real) else 0.9}) needs the data of the record, to "
            "fit the models of the folds again; add data=..., the data given to solve"
        )
    data = data_of(record, data)
    plan = folds_again(record.folds, data, folds)
    models = FoldModels.from_record(record, data, plan)
    if parse_keyword(InvalidRows, invalid_rows, "invalid_rows") is InvalidRows.ERROR:
        return models.interval(X, level)
    predict = partial(models.interval, level=level)
    return predict_valid_rows(record.data, X, list(models.names), NO_TARGET_COLUMNS, predict)
