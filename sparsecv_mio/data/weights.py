"""Row weights, which multiply the loss of each row in fits and errors; rows of weight 0 are ignored.

The training objective is the weighted sum `sum w_i e_i^2`, with w_i the weight and e_i the residual of row i. The CV
error is the weighted sum over the held-out rows divided by `sum w_i`. Means and scales of columns are weighted, but the
means and medians that fill missing cells are not. If no missing cell is filled, a row of weight 2 is equivalent to two
equal rows that are always in one fold. All certified bounds hold for the weighted problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.column_choice import drop_keyword
from sparsecv_mio.data.dataset import KEPT, MULTIPLICITY, Dataset
from sparsecv_mio.data.fold_plan import MOST_ROWS, WEIGHTED, FoldPlan, read_lines, repeated_folds
from sparsecv_mio.data.number_format import (
    POINT,
    Evidence,
    NumberFormat,
    check_ambiguous,
    describe_ambiguous,
    parse_cells,
)
from sparsecv_mio.data.reading_options import STRICT, Applied, fill_value, indicator_name, with_weights_in_notes
from sparsecv_mio.errors import BadInput

LARGEST_WEIGHT = 1e30  # maximum weight, whose root leaves room for large columns; the minimum is its reciprocal
WIDEST_WEIGHTS = 1e12  # maximum ratio of weights: beyond it, light rows are below the rounding of heavy ones
FILE = "file:"  # prefix of the path of a file with weights
HOW = "; give a weight of at least 0 for each row; weight 0 excludes a row"


def read_numbers(
    cells: ArrayLike, number_format: NumberFormat, name: str, advice: str, places: IntArray | None = None
) -> FloatArray:
    """Return cells as numbers; raise `BadInput` with the name and the advice for the first cell that is not a number.

    Parameters
    ----------
    cells : (n,) array_like or number
        Numbers, or text that holds numbers.
    number_format : NumberFormat
        Format of the text.
    name, advice : str
        Name of the cells, and advice with the mark before it, for messages.
    places : (n,) int array, optional
        Positions of the cells in the input, from 0, if rows were left out.

    Examples
    --------
    >>> read_numbers(["1,5", 2], NumberFormat(",", None), "w", "; correct it")
    array([1.5, 2. ])
    """
    try:
        array = np.asarray(cells)
        values = [] if array.dtype.kind in "biuf" or array.ndim != 1 else parse_cells(array.tolist(), number_format)[0]
        for row, value in enumerate(values):
            if not isinstance(value, Real | Decimal | None):
                shown = repr(value) if not isinstance(value, str) or value.strip() else "empty"
                place = row if places is None else places[row]
                raise BadInput(f"{name} is {shown} in row {place + 1}{advice}")
        return (np.array(values) if values else array).astype(np.float64)
    except BadInput:
        raise
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} must hold numbers only: {error}".splitlines()[0]) from None


def check_row_values(values: FloatArray, are_valid: BoolArray, who: str, remedy: str, places: IntArray) -> None:
    """Raise `BadInput` that names the first row with an invalid value, by its position in the input."""
    wrong = np.flatnonzero(~are_valid)
    if wrong.size:
        raise BadInput(f"{who} is {values[wrong[0]]:.12g} in row {places[wrong[0]] + 1}{remedy}")


REMOVE_ROW = 'or remove the row (skip_lines="N" skips line N of a file)'  # end of advice on a row


def check_stored_column(dataset: Dataset, option: str, name: str, subject: str) -> None:
    """Raise `BadInput` if the column of an option is the target or a feature, or is not stored.

    Parameters
    ----------
    dataset : Dataset
        Data with columns of options in `aux`.
    option, name : str
        Name of the option, and the column that it names.
    subject : str
        Meaning of the column, for the message.
    """
    if name in (*dataset.names, dataset.target):
        fault = "the target" if name == dataset.target else "a feature"
        raise BadInput(
            f"{option}: {name!r} is {fault}; {subject} cannot be a feature or the target (exclude it with --drop)"
        )
    if name not in dataset.aux:
        raise BadInput(f"{option}: {name!r} is not stored with these data; read the data with aux=({name!r},)")


def read_option_column(dataset: Dataset, option: str, name: str, kind: str) -> FloatArray:
    """Return the numbers of the column of an option.

    Parameters
    ----------
    dataset : Dataset
        Data with the column in `aux`.
    option, name : str
        Name of the option, and the column that it names.
    kind : str
        Meaning of the numbers, for the message.
    """
    advice = f"; give {kind}, {REMOVE_ROW}"
    return read_numbers(weights_of(dataset, name), POINT, f"{option}: column {name!r}", advice, dataset.places)


def row_weights(weights: ArrayLike, data: Dataset, name: str = "weights") -> FloatArray:
    """Return checked weights as floats.

    Parameters
    ----------
    weights : (n,) array_like or number
        Numbers, or text that holds numbers; a single number applies to every row.
    data : Dataset
        Data of the n rows.
    name : str
        Name of the weights in messages.

    Raises
    ------
    BadInput
        If a weight is negative or not a number, the ratio of weights is too large, or all weights are zero.

    Examples
    --------
    >>> row_weights([0.5, 0.0], Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]))
    array([0.5, 0. ])
    """
    places = data.places if name in data.aux else np.arange(data.n)  # other weights are given row by row
    numbers = read_numbers(weights, POINT, name, HOW, places)
    numbers = np.full(data.n, numbers) if numbers.ndim == 0 else numbers
    if numbers.shape != (data.n,):
        raise BadInput(f"{name} has the shape {numbers.shape} but the data have {data.n} rows; give one weight per row")
    check_row_values(numbers, (numbers >= 0.0) & np.isfinite(numbers), name, HOW, places)
    if not numbers.any():
        raise BadInput(f"{name}: the weights are all zero{HOW}")
    least, most = float(numbers[numbers > 0.0].min()), float(numbers.max())
    if least < 1.0 / LARGEST_WEIGHT or most > LARGEST_WEIGHT:
        far = least if least < 1.0 / LARGEST_WEIGHT else most
        raise BadInput(
            f"{name} holds {far:g}: weights must be from 1e-30 to 1e30; divide all weights by the same number"
        )
    if most > WIDEST_WEIGHTS * least:
        raise BadInput(
            f"{name} goes from {least:g} to {most:g}, a range too wide for exact computation; give weight 0 to rows "
            "that hardly count"
        )
    return numbers


def weight_columns(name: str | None) -> tuple[str, ...]:
    """Return the columns that weights need in addition to the features and the target.

    Examples
    --------
    >>> weight_columns("w"), weight_columns("file:w.csv")
    (('w',), ())
    """
    return () if name is None or name.startswith(FILE) else (name,)


def weights_of(data: Dataset, name: str) -> NDArray[Any]:
    """Return the weights in a column of the data or in `file:F`.

    Parameters
    ----------
    data : Dataset
        Data with the column in `aux`.
    name : str
        Name.

    Raises
    ------
    BadInput
        If the file cannot be read, or does not have one weight for each row.
    """
    data = data.split_into_cases()[0]
    if not name.startswith(FILE):
        column = np.asarray(data.aux[name])
        number_format = POINT if data.reading is None else data.reading.how.number_format
        numbers, evidence = parse_cells(column.tolist(), number_format)
        if evidence.text:
            evidence = evidence._replace(row=int(data.places[evidence.row - 1]) + 1)
        other_columns = Evidence(is_settled=bool(np.any(data.X % 1.0) or np.any(data.y % 1.0)))
        check_ambiguous(describe_ambiguous({name: evidence, "": other_columns}, number_format, are_new=True))
        return column if data.reading is None else np.array(numbers, dtype=object)
    file = name.removeprefix(FILE)
    lines = read_lines(Path(file), data.n, "weight file", "weight")
    if len(lines[0]) > 1:
        raise BadInput(f"weight file {file!r} has {len(lines[0])} columns; give one weight per line")
    weights = [line[0] for line in lines[len(lines) - data.n :]]
    evidence = parse_cells(weights, POINT)[1]
    if describe_ambiguous({file: evidence}, POINT, are_new=True):
        text = evidence.text
        raise BadInput(
            f"weight file {file!r}: {text!r} may be {text.replace('.', '')} or {text}0; write it as one of the two"
        )
    return np.array(weights)


def weighted(
    data: Dataset,
    weights: ArrayLike,
    deal: Callable[[Dataset], FoldPlan],
    *,
    name: str,
    by_row: bool = False,
    repeat: bool = False,
) -> tuple[Dataset, FoldPlan]:
    """Return data with row weights, without rows of weight 0, and the folds of the remaining rows.

    Parameters
    ----------
    data : Dataset
    weights : (n,) array_like
        Row weights.
    deal : callable
        Function that builds the folds of the remaining rows.
    name : str
        Name of the weights for the record.
    by_row : bool
        True if `deal` builds the folds of all rows, because they are given row by row.
    repeat : bool
        True to repeat rows as in :func:`weighted_rows`; all copies of a row are held out together.

    Returns
    -------
    data : Dataset
    folds : FoldPlan
        Folds without a row of positive weight are dropped.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rows = Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0])
    >>> data, plan = weighted(rows, [0.5, 0.0, 1.0, 1.0], lambda data: make_folds("loo", data), name="w")
    >>> data.row_weights, plan
    (array([0.5, 1. , 1. ]), FoldPlan('loo weighted', k=3, n=3))
    """
    numbers = _weights_of_rows(weights, data, name)
    once = (numbers > 0.0).astype(np.int64)
    counts = _whole_weights(numbers, name) if repeat else once
    if by_row:
        plan = repeated_folds(deal(data), counts)
    else:
        plan = repeated_folds(deal(repeated(data, once)), counts[numbers > 0.0])
    return weighted_rows(data, weights, name, repeat=repeat), replace(plan, spec=plan.spec + WEIGHTED)


def apply_weight_column(data: Dataset, name: str | None) -> Dataset:
    """Return data with row weights from a column in `aux` or `file:F`, without rows of weight 0."""
    return data if name is None else note_rows_of_weight_0(data, weighted_rows(data, weights_of(data, name), name))


def note_rows_of_weight_0(data: Dataset, weighted: Dataset) -> Dataset:
    """Return weighted data with a note on the number of rows that were dropped because their weight is 0.

    Parameters
    ----------
    data : Dataset
        The data with the rows of weight 0.
    weighted : Dataset
        The data without them.

    Examples
    --------
    >>> rows = Dataset.from_arrays([[1.0], [2.0], [3.0]], [0.0, 1.0, 1.0])
    >>> note_rows_of_weight_0(rows, weighted_rows(rows, [1.0, 0.0, 2.0], "w")).reading.notes
    ("1 of 3 rows with weight 0 in 'w' dropped",)
    """
    n_dropped = data.n - weighted.n
    if n_dropped <= 0:
        return weighted
    note = f"{n_dropped:,} of {data.n:,} rows with weight 0 in {weighted.weights!r} dropped"
    reading = weighted.reading or Applied(STRICT, weighted.names)
    return replace(weighted, reading=replace(reading, notes=(note, *reading.notes)))


def weighted_rows(data: Dataset, weights: ArrayLike, name: str, *, repeat: bool = False) -> Dataset:
    """Return data with row weights, without rows of weight 0.

    Parameters
    ----------
    data : Dataset
        Data set.
    weights : (n,) array_like
        Row weights.
    name : str
        Name of the weights for the record.
    repeat : bool
        True to repeat each row by its integer weight instead, as older records do.

    Returns
    -------
    Dataset
        The data; `row_weights` is None if every remaining row has weight 1.
    """
    numbers = _weights_of_rows(weights, data, name)
    if repeat:
        return replace(repeated(data, _whole_weights(numbers, name)), weights=name)
    weighted = repeated(data, (numbers > 0.0).astype(np.int64))
    weighted = replace(weighted if weighted is data else _filled_again(weighted), class_weight=None)
    numbers = numbers[numbers > 0.0]
    if weighted.reading is not None and data.holes is not None:
        holes = np.zeros((0, data.p)) if weighted.holes is None else weighted.holes
        counts = dict(zip(data.names, holes.sum(axis=0).astype(int).tolist(), strict=True))
        weighted = replace(weighted, reading=with_weights_in_notes(weighted.reading, counts))
    numbers = numbers * weighted.aux.get(MULTIPLICITY, 1.0)
    made = replace(weighted, weights=name, row_weights=None if np.all(numbers == 1.0) else numbers)
    return with_class_weight(made, data.class_weight)


def _weights_of_rows(weights: ArrayLike, data: Dataset, name: str) -> FloatArray:
    """Return the checked weights of rows; those of cases with trials apply to both outcomes."""
    cases, counts = data.split_into_cases()
    return np.repeat(row_weights(weights, cases, name), counts)


def _filled_again(data: Dataset) -> Dataset:
    """Return the data with missing cells imputed from its own rows; rows of weight 0 enter no mean or median."""
    if data.reading is None or not (data.reading.means or data.reading.absent):
        return data
    X, means = data.X.copy(), dict(data.reading.means)
    counts = data.split_into_cases()[1]
    first = np.cumsum(counts) - counts
    levels = {name: indicator_name(name) for name in data.reading.absent or ()}
    absent = {name: int(X[first, data.names.index(level)].sum()) for name, level in levels.items()}
    for name in means.keys() & set(data.names):
        column = data.names.index(name)
        empty = np.zeros(data.n, dtype=bool) if data.holes is None else data.holes[:, column]
        if empty.all():
            raise BadInput(f"column {name!r} is empty in every row of positive weight; give {drop_keyword(name)}")
        cells = np.where(empty, np.nan, X[:, column])[first]
        means[name] = X[empty, column] = fill_value(cells, data.reading.how.na)
    return replace(data, X=X, reading=replace(data.reading, means=means, absent=absent))


def with_class_weight(data: Dataset, class_weight: str | None) -> Dataset:
    """Return data in which both classes have the same total weight, and all rows the same as before.

    With W the weight of all rows and W_c that of class c, row i has the weight `w_i W / (2 W_c)`, as in scikit-learn.

    Parameters
    ----------
    data : Dataset
        Data with a two-class target of 0 and 1.
    class_weight : {"balanced"}, optional
        Class weights; with None, or if the data have them already, the data are returned unchanged.

    Examples
    --------
    >>> rows = Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 1.0, 1.0])
    >>> with_class_weight(rows, "balanced").row_weights.round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    """
    if class_weight is None or data.class_weight is not None:
        return data
    row_numbers = np.ones(data.n) if data.row_weights is None else data.row_weights
    positive = data.y > 0.0
    of_class = np.where(positive, row_numbers[positive].sum(), row_numbers[~positive].sum())
    weights = row_numbers * (row_numbers.sum() / (2.0 * of_class))
    alike = bool(np.all(weights == 1.0))
    return replace(data, row_weights=None if alike else weights, class_weight=str(class_weight))


def _whole_weights(given: FloatArray, name: str) -> IntArray:
    """Return weights as integers; raise `BadInput` otherwise."""
    wrong = np.flatnonzero(given != np.floor(given))
    if wrong.size or given.sum() > MOST_ROWS:
        copies = "but in this record a weight is a number of copies of a row"
        if wrong.size:
            raise BadInput(f"{name} is {given[wrong[0]]:g} in row {wrong[0] + 1}, {copies}; give whole numbers")
        raise BadInput(
            f"{name} has the sum {given.sum():g}, {copies}, and at most {MOST_ROWS:g} rows are possible; give smaller "
            "weights"
        )
    return given.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scored:
    """Total weights of the rows that folds score; without weights, the numbers of these rows.

    Attributes
    ----------
    by_fold : (k,) array
        Weights by fold.
    total : float
        Total over all folds, by which the sum of their errors is divided.
    times : float
        Average number of times that a scored row is scored.
    """

    by_fold: FloatArray | IntArray
    total: float
    times: float

    @property
    def has_standard_error(self) -> bool:
        """True if more than one fold is needed to score every row once, so a standard error exists."""
        return len(self.by_fold) > self.times * (1.0 + 1e-9)

    @classmethod
    def of(cls, data: Dataset, folds: FoldPlan) -> Scored:
        """Return the weights summed fold by fold.

        Parameters
        ----------
        data : Dataset
            Data set.
        folds : FoldPlan
            Folds.

        Examples
        --------
        >>> from sparsecv_mio.data.folds import folds_from_labels
        >>> rows = weighted_rows(Dataset.from_arrays(np.eye(4), np.arange(4.0)), [2.0, 1.0, 0.5, 1.0], "w")
        >>> Scored.of(rows, folds_from_labels([0, 1, 0, 1])).by_fold.tolist()
        [2.5, 2.0]
        """
        row_weights = data.scoring_weights
        if row_weights is None:
            sizes = folds.sizes
            alike = np.all(sizes == sizes[:1])  # for leave-one-out one number is enough
            return cls(np.broadcast_to(sizes[0], len(sizes)) if alike else sizes, folds.scored, folds.times_scored)
        weights = row_weights[folds.order[: folds.scored]]
        by_fold = np.bincount(np.repeat(np.arange(folds.k), folds.sizes), weights, folds.k)
        once = data.weight_of(folds.distinct_scored)
        return cls(by_fold, float(weights.sum()), float(weights.sum()) / once if once else 1.0)


def least_rows(data: Dataset, folds: FoldPlan | None = None, only_events: bool = False) -> int:
    """Return the number of rows of the smallest training set; an integer weight counts as repeated rows.

    Any other weight counts as one row. The default support sizes depend on this number.

    Parameters
    ----------
    data : Dataset
        The data.
    folds : FoldPlan, optional
        The folds; without folds, all rows are counted.
    only_events : bool
        True to count only the events of survival times. Data without survival times have no other rows.

    Examples
    --------
    >>> rows = Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0])
    >>> [least_rows(weighted_rows(rows, weights, "w")) for weights in ([3.0, 2.0], [3.5, 2.0])]
    [5, 2]
    """
    weights = data.row_weights
    if weights is not None and np.any(weights != np.floor(weights)):
        weights = None
    if only_events and data.survival is not None:
        weights = data.survival.weigh_events(weights)
    if weights is None:
        return data.n if folds is None else folds.least_training
    total = int(weights.sum())
    if folds is None:
        return total
    weights_left_out = weights[folds.order[: folds.scored] if folds.left is None else folds.left.rows]
    return total - int(np.bincount(np.repeat(np.arange(folds.k), folds.left_sizes), weights_left_out).max())


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return the data with each row repeated by its count, without weights.

    Examples
    --------
    >>> repeated(Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]), np.array([2, 1])).X.tolist()
    [[1.0], [1.0], [2.0]]
    """
    if np.all(counts == 1):
        return data
    with_places = replace(data, aux={**data.aux, KEPT: data.places}, weights=None, row_weights=None)
    return with_places.take(np.repeat(np.arange(data.n), counts))
