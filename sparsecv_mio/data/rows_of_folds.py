"""Fold-specific preprocessing: imputation and scaling by the training rows of each fold.

With such preprocessing the same row has different values in different folds. The module therefore builds an expanded
table with one copy of a row for each distinct version of its values. The module also builds the folds of the expanded
table. A fold uses the copies whose values were computed from the training rows of this fold. The rest of the package
treats the expanded table like any other table (docs/guide/folds_and_scales.md).

The penalty uses the scales in `Dataset.scales`, which has one scale of each column for each group of rows. Group 0
consists of the rows of the full data. If columns are scaled within folds, each fold is another group. The numbers in
the table are not divided by the scales, because the quotients would be rounded, and the bounds would then not hold for
the numbers of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.column_choice import drop_keyword
from sparsecv_mio.data.dataset import COPIES, Dataset, ScalesByGroup
from sparsecv_mio.data.fold_plan import MOST_ROWS, FoldPlan, plan_of_rows, row_lists
from sparsecv_mio.data.reading_options import fill_value
from sparsecv_mio.data.standard import column_moments
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Missing, Scale, Within


@dataclass(frozen=True)
class OfTrainingRows:
    """Preprocessing by the training rows of each fold: imputation (`na`) and scaling."""

    na: Within = Within.ALL
    scale: Within = Within.ALL

    def __bool__(self) -> bool:
        return Within.FOLDS in (self.na, self.scale)

    def check(self, dataset: Dataset) -> None:
        """Raise `BadInput` if imputation within folds is requested, but no imputation is allowed."""
        if self.na is Within.FOLDS and _rule(dataset) is None:
            raise BadInput(
                "na_within folds: requires na mean or median with a file or frame, because otherwise no "
                "value is imputed"
            )

    def fill(self, dataset: Dataset, rows: IntArray) -> Dataset:
        """Return all rows as a model of some rows sees them: missing cells are imputed from these rows, if requested.

        Parameters
        ----------
        dataset : Dataset
            Data of all rows.
        rows : (m,) int array
            Training rows of the model.

        Raises
        ------
        BadInput
            A column is empty in every training row.
        """
        if self.na is Within.ALL or dataset.holes is None:
            return dataset
        columns = np.flatnonzero(dataset.holes.any(axis=0))
        X, fills = dataset.X.copy(), fills_of_rows(dataset, rows, columns)
        X[:, columns] = np.where(dataset.holes[:, columns], fills, X[:, columns])
        return replace(dataset, X=X)


def _rule(dataset: Dataset) -> Missing | None:
    """Return the imputation rule, or None without imputation."""
    na = Missing.ERROR if dataset.reading is None else dataset.reading.how.na
    return na if na.uses_imputation else None


@dataclass(frozen=True, eq=False)
class Measures:
    """Scales of columns.

    Attributes
    ----------
    scale : (p,) array
        Scales; the scale of a constant column is 1.
    varies : (p,) bool array
        Mask of varying columns.
    """

    scale: FloatArray
    varies: BoolArray

    @classmethod
    def from_rows(cls, dataset: Dataset, X: FloatArray, scale: str, rows: IntArray | slice) -> Measures:
        """Return the scales of some rows; O(m p).

        Parameters
        ----------
        dataset : Dataset
            Data set.
        X : (n, p) array
            Features of the data, with missing cells imputed.
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.
        rows : (m,) int array or slice
            Rows.
        """
        moments = column_moments(X[rows], None if dataset.row_weights is None else dataset.row_weights[rows])
        varies, measure = ~moments.constant, np.ones(X.shape[1])
        if scale != Scale.NONE:
            total = dataset.row_weight_of(rows) if scale == Scale.VARIANCE else 1.0
            measure[varies] = moments.norm[varies] / np.sqrt(total)
        return cls(measure, varies)


def fills_of_folds(dataset: Dataset, folds: FoldPlan) -> FloatArray:
    """Return the (K, p) fill values of each column in each fold; NaN for columns without missing cells.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds.

    Raises
    ------
    BadInput
        A column is empty in every training row of a fold.
    """
    values = np.full((folds.k, dataset.p), np.nan)
    if _rule(dataset) is None or dataset.holes is None:
        return values
    columns = np.flatnonzero(dataset.holes.any(axis=0))
    for fold in range(folds.k):
        of_fold = f" of fold {fold + 1} of {folds.k}"
        values[fold, columns] = fills_of_rows(dataset, folds.train_rows(fold), columns, of_fold)
    return values


def fills_of_rows(dataset: Dataset, rows: IntArray, columns: IntArray, of_fold: str = "") -> FloatArray:
    """Return the (q,) fill values of columns by the imputation rule of the data, from some rows and their copies.

    Parameters
    ----------
    dataset : Dataset
        Data set whose missing cells are imputed.
    rows : (m,) int array
        Training rows.
    columns : (q,) int array
        Positions of the columns.
    of_fold : str
        Fold of the training rows, for the message.

    Raises
    ------
    BadInput
        A column is empty in every training row.
    """
    na, values, copies = _rule(dataset), np.empty(len(columns)), dataset.aux.get(COPIES)
    assert na is not None
    if copies is not None:
        rows = np.repeat(rows, copies[rows])
    there = dataset.X[np.ix_(rows, columns)]
    if dataset.holes is not None:
        there[dataset.holes[np.ix_(rows, columns)]] = np.nan
    for place, column in enumerate(columns.tolist()):
        if np.isnan(there[:, place]).all():
            name = dataset.names[column]
            raise BadInput(
                f"na_within folds: column {name!r} is empty in every training row{of_fold}; give "
                f'{drop_keyword(name)}, other folds, or na_within="all"'
            )
        values[place] = fill_value(there[:, place], na)
    return values


@dataclass(frozen=True, eq=False)
class RowsOfFolds:
    """The expanded table of fold-specific preprocessing, and its folds.

    Attributes
    ----------
    dataset : Dataset
        Expanded table; its first rows are those of the data with preprocessing over all rows.
    folds : FoldPlan
        Folds.
    """

    dataset: Dataset
    folds: FoldPlan

    @classmethod
    def from_dataset(cls, dataset: Dataset, folds: FoldPlan, within: OfTrainingRows, scale: str) -> RowsOfFolds:
        """Return the expanded table and its folds.

        Parameters
        ----------
        dataset : Dataset
            Data set.
        folds : FoldPlan
            Folds.
        within : OfTrainingRows
            Preprocessing within folds.
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.

        Raises
        ------
        BadInput
            A column is empty in every training row of a fold, or the table would be too large.

        Notes
        -----
        O(n p) for all rows, plus for each fold O(n p) with scaling, otherwise O(m p) for the m rows with missing cells.

        Examples
        --------
        >>> from sparsecv_mio.data.folds import folds_from_labels
        >>> data = Dataset.from_arrays([[0.0, 1.0], [1.0, 5.0], [2.0, 2.0], [5.0, 4.0]], [0.0, 1.0, 2.0, 3.0])
        >>> folds = folds_from_labels([0, 0, 1, 1])
        >>> both = RowsOfFolds.from_dataset(data, folds, OfTrainingRows(scale=Within.FOLDS), "length")
        >>> train = both.dataset.X[both.folds.train_rows(0)]
        >>> both.dataset.n, bool(np.allclose(np.var(train, axis=0) * 2.0, both.dataset.scales.scales[1] ** 2))
        (12, True)
        """
        base = Measures.from_rows(dataset, dataset.X, scale, slice(0, dataset.n))
        own = within.na is Within.FOLDS and dataset.holes is not None
        fills = fills_of_folds(dataset, folds) if own else np.zeros((folds.k, 0))
        if within.scale is Within.FOLDS and scale != Scale.NONE:
            return _expand_scaled_rows(dataset, folds, fills, base, scale)
        table = _expand_imputed_rows(dataset, folds, fills)
        if scale == Scale.NONE:
            return table
        scales = ScalesByGroup(np.zeros(table.dataset.n, dtype=np.int64), base.scale[None, :])
        return replace(table, dataset=replace(table.dataset, scales=scales))

    @property
    def source_rows(self) -> IntArray:
        """(n,) row of the data behind each row of the table."""
        stands_for = self.folds.stands_for
        return np.arange(self.dataset.n) if stands_for is None else stands_for


def _expand_imputed_rows(dataset: Dataset, folds: FoldPlan, fills: FloatArray) -> RowsOfFolds:
    """Return the table with one copy of a row with missing cells for each distinct imputation."""
    holes = dataset.holes if dataset.holes is not None and fills.size else np.zeros((dataset.n, 0), dtype=bool)
    holed = np.flatnonzero(holes.any(axis=1))
    _check_size(folds, dataset.n + folds.k * len(holed), dataset.p)
    at, stands_for, n = np.empty((folds.k, len(holed)), dtype=np.int64), [np.arange(dataset.n)], dataset.n
    blocks = [dataset.X]
    for place, row in enumerate(holed.tolist()):
        cells = np.flatnonzero(holes[row])
        ways, which = np.unique(np.vstack((dataset.X[row, cells], fills[:, cells])), axis=0, return_inverse=True)
        which = which.reshape(-1)
        new = np.delete(np.arange(len(ways)), which[0])
        number = np.full(len(ways), row)
        number[new] = n + np.arange(len(new))
        at[:, place], n = number[which[1:]], n + len(new)
        block = np.repeat(dataset.X[row : row + 1], len(new), axis=0)
        block[:, cells] = ways[new]
        blocks.append(block)
        stands_for.append(np.full(len(new), row))

    def locate_rows(fold: int) -> IntArray:
        places = np.arange(dataset.n)
        places[holed] = at[fold]
        return places

    return _make_table(dataset, folds, np.vstack(blocks), np.concatenate(stands_for), locate_rows)


def _expand_scaled_rows(
    dataset: Dataset, folds: FoldPlan, fills: FloatArray, base: Measures, scale: str
) -> RowsOfFolds:
    """Return the table with one copy of all rows for each fold, and the scales of its training rows."""
    n, scales = dataset.n, [base.scale]
    _check_size(folds, n * (folds.k + 1), dataset.p)
    X = np.empty((n * (folds.k + 1), dataset.p))
    X[:n] = dataset.X
    for fold in range(folds.k):
        filled = dataset.X
        if dataset.holes is not None and fills.size:
            filled = np.where(dataset.holes, fills[fold], filled)
        own = Measures.from_rows(dataset, filled, scale, folds.train_rows(fold))
        scales.append(np.where(own.varies & base.varies, own.scale, base.scale))  # a constant column keeps its scale
        X[n * (fold + 1) : n * (fold + 2)] = filled
    table = _make_table(
        dataset, folds, X, np.tile(np.arange(n), folds.k + 1), lambda fold: n * (fold + 1) + np.arange(n)
    )  # fmt: skip
    of_group = ScalesByGroup(np.repeat(np.arange(folds.k + 1), n), np.stack(scales))
    return replace(table, dataset=replace(table.dataset, scales=of_group))


def _check_size(folds: FoldPlan, rows: int, columns: int) -> None:
    listed = folds.k * rows - int((folds.n - folds.left_sizes).sum())
    if max(rows * columns, listed) > MOST_ROWS:
        raise BadInput(
            f"na_within, scale_within: {folds.k:,} folds need up to {rows:,} different rows, too many to "
            "store; give fewer folds"
        )


def _make_table(
    dataset: Dataset, folds: FoldPlan, X: FloatArray, stands_for: IntArray, seen_by: Callable[[int], IntArray]
) -> RowsOfFolds:
    """Return the table of the given features, and folds whose rows are the positions that each fold sees."""
    everywhere, scored, left_out = np.arange(len(X)), [], []
    for fold in range(folds.k):
        places = seen_by(fold)
        scored.append(np.sort(places[folds.scored_rows(fold)]))
        left_out.append(np.setdiff1d(everywhere, places[folds.train_rows(fold)], assume_unique=True))
    plan = plan_of_rows(row_lists(scored), row_lists(left_out), len(X), folds.spec, folds.seed, folds.repeats)
    without_columns = replace(dataset, X=dataset.X[:, :0], holes=None)  # the new columns are in X
    table = replace(without_columns.take(stands_for), X=np.ascontiguousarray(X), reading=None)
    return RowsOfFolds(table, replace(plan, stands_for=stands_for))
