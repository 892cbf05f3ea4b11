"""Independent recomputation of fold-specific preprocessing for `verify`.

If columns are imputed or scaled by the training rows of each fold, the folds of a record are checked on the expanded
table of :mod:`sparsecv_mio.data.rows_of_folds`. This module computes the values of that table again from the data, with
separate code, and compares the values fold by fold. Its sums have no rounding errors, and its medians are those of
sorted numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.rows_of_folds import OfTrainingRows, RowsOfFolds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.units import ACCURATE_RTOL
from sparsecv_mio.words import Missing, Scale, Within


def fold_preprocessing(record: Record) -> OfTrainingRows:
    """Return the fold-specific preprocessing of a record: imputation and scaling."""
    ask = record.request
    return OfTrainingRows(*(Within.ALL if said is None else Within.FOLDS for said in (ask.na_within, ask.scale_within)))


def adapt_to_expanded_table(record: Record) -> Record:
    """Return the record in terms of the expanded table, whose columns are already scaled."""
    return replace(record, data=replace(record.data, scale=str(Scale.NONE)))


def rows_of_record(record: Record, dataset: Dataset, plan: FoldPlan) -> RowsOfFolds | None:
    """Return the expanded table of a record; None if all folds see the rows of the data.

    Parameters
    ----------
    record : Record
        Record of a search.
    dataset : Dataset
        Data set.
    plan : FoldPlan
        Folds.

    Raises
    ------
    BadInput
        If the data have no imputed cells, or a column is missing in every training row of a fold.
    """
    within = fold_preprocessing(record)
    if not within:
        return None
    within.check(dataset)
    return RowsOfFolds.from_dataset(dataset, plan, within, record.data.scale, record.data.intercept)


def checked_rows(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> RowsOfFolds | None:
    """Return the expanded table of a record, compared with the definition; None if they differ.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record with fold-specific preprocessing.
    dataset : Dataset
        Data set.
    plan : FoldPlan
        Folds.
    """
    place = "request.na_within" if record.request.na_within else "request.scale_within"
    for name in ("stability", "average", "nested"):
        if not checks.require(getattr(record, name) is None, name, "must be null with fold-specific preprocessing"):
            return None
    try:
        own = rows_of_record(record, dataset, plan)
    except BadInput as error:
        checks.require(False, place, str(error))
        return None
    assert own is not None
    for fold in range(plan.k):
        train, scored = plan.train_rows(fold), plan.scored_rows(fold)
        cells = _cells(record, dataset, train)
        seen = (train, own.folds.train_rows(fold)), (scored, own.folds.scored_rows(fold))
        if not checks.require(
            all(_are_same_rows(own, cells, *rows) for rows in seen),
            place,
            f"the values of fold {fold + 1} differ from the values that its training rows give",
        ):
            return None
    checks.mark_bounded_fields("request.na_within", "request.scale_within")
    checks.end_part("missing values and scales of every fold, from its training rows")
    return own


def _are_same_rows(own: RowsOfFolds, cells: FloatArray, rows: IntArray, places: IntArray) -> bool:
    """Return True if rows of the table, given by position, are the given rows with the given cells."""
    stand_for = own.source_rows[places]
    spread = 1.0 + np.abs(cells).max(axis=0, initial=0.0)
    off = np.abs(own.dataset.X[places] - cells[stand_for]) <= ACCURATE_RTOL * spread
    return np.array_equal(np.sort(stand_for), rows) and bool(off.all())


def _cells(record: Record, dataset: Dataset, train: IntArray) -> FloatArray:
    """Return (n, p) all rows as seen by a fold with the given training rows."""
    X, within, everyone = dataset.X.copy(), fold_preprocessing(record), np.arange(dataset.n)
    varying = set(varying_columns(dataset.X).tolist())
    for j in range(dataset.p):
        whole = dataset.X[:, j]
        if within.na is Within.FOLDS and dataset.holes is not None and dataset.holes[:, j].any():
            empty = dataset.holes[:, j]
            X[empty, j] = _filler(whole[train][~empty[train]], dataset)
        about, unit = _moments(dataset, whole, everyone)[0], 1.0
        if record.data.scale != Scale.NONE and j in varying:
            by_fold = within.scale is Within.FOLDS and len(varying_columns(X[train, j : j + 1])) > 0
            column, rows = (X[:, j], train) if by_fold else (whole, everyone)
            unit = _moments(dataset, column, rows)[1]
            unit /= math.sqrt(dataset.weight_of(rows)) if record.data.scale == Scale.VARIANCE else 1.0
        X[:, j] = (X[:, j] - (0.0 if record.data.intercept == "none" else about)) / unit
    return X


def _filler(there: FloatArray, dataset: Dataset) -> float:
    """Return the mean or the median of the observed numbers."""
    assert dataset.reading is not None
    if dataset.reading.how.na is Missing.MEAN:
        return math.fsum(there.tolist()) / len(there)
    ranked = sorted(there.tolist())
    return 0.5 * (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2])


def _moments(dataset: Dataset, column: FloatArray, rows: IntArray) -> tuple[float, float]:
    """Return the weighted mean of some rows of a column, and their length about it."""
    weights = np.ones(len(rows)) if dataset.row_weights is None else dataset.row_weights[rows]
    mean = math.fsum((weights * column[rows]).tolist()) / math.fsum(weights.tolist())
    return mean, math.sqrt(math.fsum((weights * (column[rows] - mean) ** 2).tolist()))
