"""Recomputation of fold-specific preprocessing (imputation and scaling) for `verify`, independent of the search.

If columns are imputed or scaled by the training rows of each fold, the folds of a record are checked on the expanded
table of :mod:`sparsecv_mio.data.rows_of_folds`. That table has a copy of a row for each distinct version of its values.
This module computes the values again from the data, with separate code, and compares the values fold by fold. This
module sums without rounding errors and computes medians by sorting.
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
from sparsecv_mio.units import ACCURATE_RTOL, ROUNDING
from sparsecv_mio.words import Missing, Scale, Within


def fold_preprocessing(record: Record) -> OfTrainingRows:
    """Return the fold-specific preprocessing of a record: imputation and scaling."""
    ask = record.request
    return OfTrainingRows(*(Within.ALL if said is None else Within.FOLDS for said in (ask.na_within, ask.scale_within)))


def adapt_to_expanded_table(record: Record) -> Record:
    """Return the record in terms of the expanded table, which states the scales of its columns."""
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
    return RowsOfFolds.from_dataset(dataset, plan, within, record.data.scale)


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
    for name in ("stability", "average"):
        if not checks.require(getattr(record, name) is None, name, "must be null with fold-specific preprocessing"):
            return None
    try:
        own = rows_of_record(record, dataset, plan)
    except BadInput as error:
        checks.require(False, place, str(error).partition(": ")[2] or str(error))
        return None
    assert own is not None
    for fold in range(plan.k):
        train, scored = plan.train_rows(fold), plan.scored_rows(fold)
        cells, scales = _cells_and_scales(record, dataset, train)
        places = own.folds.train_rows(fold)
        is_same = _are_same_rows(own, dataset, cells, train, places)
        is_same = is_same and _are_same_rows(own, dataset, cells, scored, own.folds.scored_rows(fold))
        stated = np.ones(dataset.p) if own.dataset.scales is None else own.dataset.scales.of_rows(places)
        if not checks.require(
            is_same and bool((np.abs(stated - scales) <= _slack_of_scales(dataset, cells, scales)).all()),
            place,
            f"the imputed values or scales of fold {fold + 1} differ from those of its training rows",
        ):
            return None
    checks.mark_bounded_fields("request.na_within", "request.scale_within")
    checks.end_part("missing values and scales of every fold, from its training rows")
    return own


def rows_of_outer_fold(checks: Checks, record: Record, dataset: Dataset, train: IntArray, place: str) -> Dataset | None:
    """Return all rows as a model of an outer training set sees them; None if they cannot be computed.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record with outer folds.
    dataset : Dataset
        Data set.
    train : int array
        Outer training rows.
    place : str
        Field of the outer model, for messages.
    """
    if fold_preprocessing(record).na is Within.ALL or dataset.holes is None:
        return dataset
    words = "a column is empty in all outer training rows, so its missing values cannot be imputed"
    if not checks.require(not dataset.holes[train].all(axis=0).any(), place, words):
        return None
    return replace(dataset, X=_cells_and_scales(record, dataset, train)[0])


def _are_same_rows(own: RowsOfFolds, dataset: Dataset, cells: FloatArray, rows: IntArray, places: IntArray) -> bool:
    """Return True if rows of the table, given by position, are the given rows with the given cells.

    Cells of the file are equal; filled cells may differ by the rounding of a mean.
    """
    stand_for = own.source_rows[places]
    if not np.array_equal(np.sort(stand_for), rows):
        return False
    table, wanted = own.dataset.X[places], cells[stand_for]
    size = np.abs(wanted).max(axis=0, initial=0.0)
    slack = 0.0 if dataset.holes is None else np.where(dataset.holes[stand_for], ACCURATE_RTOL * size, 0.0)
    return bool((np.abs(table - wanted) <= slack).all())


def _slack_of_scales(dataset: Dataset, cells: FloatArray, scales: FloatArray) -> FloatArray:
    """(p,): differences of scales that rounding explains; a filled cell is rounded relative to its size."""
    slack = ACCURATE_RTOL * scales
    if dataset.holes is not None:
        slack += 4.0 * ROUNDING * np.sqrt(dataset.n) * np.abs(cells).max(axis=0) * dataset.holes.any(axis=0)
    return slack


def _cells_and_scales(record: Record, dataset: Dataset, train: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return (n, p) all rows as seen by a fold with the given training rows, and the (p,) scales of the penalty."""
    X, within, everyone = dataset.X.copy(), fold_preprocessing(record), np.arange(dataset.n)
    varying, scales = set(varying_columns(dataset.X).tolist()), np.ones(dataset.p)
    for j in range(dataset.p):
        whole = dataset.X[:, j]
        if within.na is Within.FOLDS and dataset.holes is not None and dataset.holes[:, j].any():
            empty = dataset.holes[:, j]
            X[empty, j] = _filler(whole[train][~empty[train]], dataset)
        if record.data.scale != Scale.NONE and j in varying:
            by_fold = within.scale is Within.FOLDS and len(varying_columns(X[train, j : j + 1])) > 0
            column, rows = (X[:, j], train) if by_fold else (whole, everyone)
            scales[j] = _length(dataset, column, rows)
            scales[j] /= math.sqrt(dataset.row_weight_of(rows)) if record.data.scale == Scale.VARIANCE else 1.0
    return X, scales


def _filler(there: FloatArray, dataset: Dataset) -> float:
    """Return the mean or the median of the observed numbers."""
    assert dataset.reading is not None
    if dataset.reading.how.na is Missing.MEAN:
        return math.fsum(there.tolist()) / len(there)
    ranked = sorted(there.tolist())
    return 0.5 * (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2])


def _length(dataset: Dataset, column: FloatArray, rows: IntArray) -> float:
    """Return the weighted length of some rows of a column about their mean."""
    weights = np.ones(len(rows)) if dataset.row_weights is None else dataset.row_weights[rows]
    total = math.fsum(weights.tolist())
    centred = column[rows] - math.fsum((weights * column[rows]).tolist()) / total
    drift = math.fsum((weights * centred).tolist())  # the mean is rounded
    return math.sqrt(max(math.fsum((weights * centred**2).tolist()) - drift * (drift / total), 0.0))
