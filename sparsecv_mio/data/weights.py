"""Row weights: how much each row counts in the fits and in the errors; a row of weight 0 is ignored.

The training objective is the weighted sum `sum w_i e_i^2`. The CV error is the weighted sum over the held-out rows
divided by `sum w_i`. Means and scales of columns are weighted. A row of weight 2 is equivalent to two equal rows that
are always in one fold, and every certified bound holds for the weighted problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.cure import KEPT, fill_value, has_decimals, left_out
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import MOST_ROWS, WEIGHTED, FoldPlan, read_lines, repeated_folds
from sparsecv_mio.data.reading_options import BOTH, POINT, Marks, Way, either, parse_number, reads
from sparsecv_mio.errors import BadInput

LARGEST_WEIGHT = 1e30  # whose root leaves room for the magnitudes of columns; and the smallest, one over it
WIDEST_WEIGHTS = 1e12  # largest over smallest: beyond, the light rows would be rounding of the heavy ones
FILE = "file:"  # before the path of a file of weights, in place of a column
HOW = "give how much each row counts, a number from 0 on"


def row_weights(weights: ArrayLike, data: Dataset, name: str = "weights") -> FloatArray:
    """Return weights as floats.

    Parameters
    ----------
    weights : (n,) array_like or number
        Numbers, or text that holds numbers; a single number counts for every row.
    data : Dataset
        The n rows.
    name : str
        Of the weights, for messages.

    Raises
    ------
    BadInput
        For a weight that is no number from 0 on, weights too far apart to compute with, or all zero.

    Examples
    --------
    >>> row_weights([0.5, 0.0], Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]))
    array([0.5, 0. ])
    """
    try:
        numbers = np.asarray(weights)
        if numbers.dtype.kind not in "biuf" and numbers.ndim == 1:
            numbers = np.array([_checked_number(value) for value in numbers.tolist()])
        numbers = numbers.astype(np.float64)
        numbers = np.full(data.n, numbers) if numbers.ndim == 0 else numbers
    except (TypeError, ValueError) as error:
        for row, value in enumerate(np.atleast_1d(np.asarray(weights, dtype=object)).tolist(), 1):
            if _no_number(value):
                raise BadInput(f"{name} is {value!r} in row {row}: {HOW}") from None
        raise BadInput(f"{name} must hold numbers only: {error}".splitlines()[0]) from None
    if numbers.shape != (data.n,):
        raise BadInput(f"{name} has the shape {numbers.shape} but the data has {data.n} rows: give one per row")
    wrong = np.flatnonzero(~(numbers >= 0.0) | ~np.isfinite(numbers))
    if wrong.size:
        raise BadInput(f"{name} is {numbers[wrong[0]]:g} in row {wrong[0] + 1}: {HOW}")
    if not numbers.any():
        raise BadInput(f"{name}: the weights are all zero: {HOW}")
    least, most = float(numbers[numbers > 0.0].min()), float(numbers.max())
    if least < 1.0 / LARGEST_WEIGHT or most > LARGEST_WEIGHT:
        far = least if least < 1.0 / LARGEST_WEIGHT else most
        raise BadInput(f"{name} holds {far:g}: divide all weights by one number, they must be from 1e-30 to 1e30")
    if most > WIDEST_WEIGHTS * least:
        raise BadInput(
            f"{name} goes from {least:g} to {most:g}, too far apart to compute with: give 0 to rows that hardly count"
        )
    return numbers


def _checked_number(value: Any) -> Any:
    return parse_number(value) if isinstance(value, str) else value


def _no_number(value: object) -> bool:
    try:
        np.float64(_checked_number(value))
    except (TypeError, ValueError):
        return True
    return False


def weight_columns(name: str | None) -> tuple[str, ...]:
    """Return the columns of the data that weights need beside features and target.

    Examples
    --------
    >>> weight_columns("w"), weight_columns("file:w.csv")
    (('w',), ())
    """
    return () if name is None or name.startswith(FILE) else (name,)


def weights_of(data: Dataset, name: str) -> NDArray[Any]:
    """Return the weights that a column of the data or `file:F` holds.

    Parameters
    ----------
    data : Dataset
        With the column in `aux`.
    name : str

    Raises
    ------
    BadInput
        The file cannot be read, or does not hold one weight per row.
    """
    if not name.startswith(FILE):
        column = np.asarray(data.aux[name])
        way = POINT if data.reading is None else data.reading.how.way
        cells = column.tolist()
        written = _marks(cells, way)
        if written.doubtful(False, False) and not any(map(has_decimals, (*data.X.T, data.y))):
            raise BadInput(f"column {name!r}: {either(written.grouped, way, BOTH[way.decimal])}")
        if data.reading is None:
            return column
        return np.array([parse_number(v, *way) if isinstance(v, str) and reads(v, way) else v for v in cells])
    file = name.removeprefix(FILE)
    lines = read_lines(Path(file), data.n, "weight file", "weight")
    if len(lines[0]) > 1:
        raise BadInput(f"weight file {file!r} has {len(lines[0])} columns: give one weight a line")
    marks = [line[0] for line in lines[len(lines) - data.n :]]
    if (written := _marks(marks, POINT)).doubtful(False, False):
        text = written.grouped
        raise BadInput(f"weight file {file!r}: {text!r} may be {text.replace('.', '')} or {text}0: write it like one")
    return np.array(marks)


def _marks(cells: Iterable[Any], way: Way) -> Marks:
    """Return what the text of weights shows of how they are written."""
    marks = Marks(way)
    for text in dict.fromkeys(cell for cell in cells if isinstance(cell, str) and reads(cell, way)):
        marks.number(text)
    return marks


def weighted(
    data: Dataset,
    weights: ArrayLike,
    deal: Callable[[Dataset], FoldPlan],
    *,
    name: str,
    by_row: bool = False,
    repeat: bool = False,
) -> tuple[Dataset, FoldPlan]:
    """Give rows their weights, leave out those of weight 0, and deal the others to folds.

    Parameters
    ----------
    data : Dataset
    weights : (n,) array_like
    deal : callable
        Makes folds of the rows that count.
    name : str
        Of the weights, for the record.
    by_row : bool
        Whether `deal` makes folds of all rows instead: where they are given row by row.
    repeat : bool
        As for :func:`weighted_rows`; every copy is held out with its row.

    Returns
    -------
    data : Dataset
    folds : FoldPlan
        A fold that scores no row that counts is gone.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rows = Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0])
    >>> data, plan = weighted(rows, [0.5, 0.0, 1.0, 1.0], lambda data: make_folds("loo", data), name="w")
    >>> data.row_weights, plan
    (array([0.5, 1. , 1. ]), FoldPlan('loo weighted', k=3, n=3))
    """
    numbers = row_weights(weights, data, name)
    once = (numbers > 0.0).astype(np.int64)
    counts = _whole_weights(numbers, name) if repeat else once
    if by_row:
        plan = repeated_folds(deal(data), counts)
    else:
        plan = repeated_folds(deal(repeated(data, once)), counts[numbers > 0.0])
    return weighted_rows(data, weights, name, repeat=repeat), replace(plan, spec=plan.spec + WEIGHTED)


def by_column(data: Dataset, name: str | None) -> Dataset:
    """Give rows the weights of a column in `aux`, or of `file:F`, and leave out those of weight 0; None: none."""
    return data if name is None else weighted_rows(data, weights_of(data, name), name)


def weighted_rows(data: Dataset, weights: ArrayLike, name: str, *, repeat: bool = False) -> Dataset:
    """Give rows their weights, and leave out those of weight 0.

    Parameters
    ----------
    data : Dataset
    weights : (n,) array_like
    name : str
        Of the weights, for the record.
    repeat : bool
        Repeat the rows as often as they count instead, in whole numbers: as records of the past have them.

    Returns
    -------
    Dataset
        Without `row_weights` where every row that is left counts once.
    """
    numbers = row_weights(weights, data, name)
    if repeat:
        return replace(repeated(data, _whole_weights(numbers, name)), weights=name)
    weighted = repeated(data, (numbers > 0.0).astype(np.int64))
    weighted = replace(weighted if weighted is data else _filled_again(weighted), class_weight=None)
    numbers = numbers[numbers > 0.0]
    made = replace(weighted, weights=name, row_weights=None if np.all(numbers == 1.0) else numbers)
    return with_class_weight(made, data.class_weight)


def _filled_again(data: Dataset) -> Dataset:
    """Return the data with its empty cells filled from its own rows: rows of weight 0 enter no mean or median."""
    if data.reading is None or not data.reading.means:
        return data
    X, means = data.X.copy(), dict(data.reading.means)
    for name in means.keys() & set(data.names):
        column = data.names.index(name)
        empty = np.zeros(data.n, dtype=bool) if data.holes is None else data.holes[:, column]
        if empty.all():
            raise BadInput(f"column {name!r} is empty in every row of positive weight: give {left_out(name)}")
        means[name] = X[empty, column] = fill_value(np.where(empty, np.nan, X[:, column]), data.reading.how.na)
    return replace(data, X=X, reading=replace(data.reading, means=means))


def with_class_weight(data: Dataset, class_weight: str | None) -> Dataset:
    """Let both classes weigh the same together, and all rows as much as before.

    Row i counts `w_i W / (2 W_c)`: of W, the weight of all rows, half goes to each class c. So it is in scikit-learn.

    Parameters
    ----------
    data : Dataset
        Of two classes, as 0 and 1.
    class_weight : {"balanced"}, optional
        None leaves the data as they are, as does what they have already.

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
    """Weights as whole numbers."""
    wrong = np.flatnonzero(given != np.floor(given))
    if wrong.size or given.sum() > MOST_ROWS:
        fault = f"is {given[wrong[0]]:g} in row {wrong[0] + 1}" if wrong.size else f"makes {given.sum():g} rows"
        raise BadInput(f"{name} {fault}: the record is of rows repeated by whole numbers")
    return given.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scored:
    """Weights of the rows that folds score; their numbers where each row counts once.

    Attributes
    ----------
    by_fold : (k,) array
    total : float
        Of all folds: what the sum of their errors is divided by.
    times : float
        How often a row that is scored at all is scored, on average.
    """

    by_fold: FloatArray | IntArray
    total: float
    times: float

    @property
    def has_standard_error(self) -> bool:
        """Whether the CV error has a standard error over folds: more than one is needed to score every row once."""
        return len(self.by_fold) > self.times * (1.0 + 1e-9)

    @classmethod
    def of(cls, data: Dataset, folds: FoldPlan) -> Scored:
        """Add the weights up, fold by fold.

        Parameters
        ----------
        data : Dataset
        folds : FoldPlan

        Examples
        --------
        >>> from sparsecv_mio.data.folds import folds_from_labels
        >>> rows = weighted_rows(Dataset.from_arrays(np.eye(4), np.arange(4.0)), [2.0, 1.0, 0.5, 1.0], "w")
        >>> Scored.of(rows, folds_from_labels([0, 1, 0, 1])).by_fold.tolist()
        [2.5, 2.0]
        """
        if data.row_weights is None:
            sizes = folds.sizes
            alike = np.all(sizes == sizes[:1])  # of leave-one-out one number is enough
            return cls(np.broadcast_to(sizes[0], len(sizes)) if alike else sizes, folds.scored, folds.times_scored)
        weights = data.row_weights[folds.order[: folds.scored]]
        by_fold = np.bincount(np.repeat(np.arange(folds.k), folds.sizes), weights, folds.k)
        once = data.weight_of(folds.distinct_scored)
        return cls(by_fold, float(weights.sum()), float(weights.sum()) / once if once else 1.0)


def least_rows(data: Dataset, folds: FoldPlan | None = None) -> int:
    """Return the rows of the smallest training set, or of all; a whole weight counts as so many, another as one.

    It says how large a support the rows bear, where nobody says it.

    Parameters
    ----------
    data : Dataset
    folds : FoldPlan, optional

    Examples
    --------
    >>> rows = Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0])
    >>> [least_rows(weighted_rows(rows, weights, "w")) for weights in ([3.0, 2.0], [3.5, 2.0])]
    [5, 2]
    """
    weights = data.row_weights
    if weights is None or np.any(weights != np.floor(weights)):
        return data.n if folds is None else folds.least_training
    total = int(weights.sum())
    if folds is None:
        return total
    weights_left_out = weights[folds.order[: folds.scored] if folds.left is None else folds.left.rows]
    return total - int(np.bincount(np.repeat(np.arange(folds.k), folds.left_sizes), weights_left_out).max())


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return the data with every row as often as it counts, and no weights.

    Examples
    --------
    >>> repeated(Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]), np.array([2, 1])).X.tolist()
    [[1.0], [1.0], [2.0]]
    """
    if np.all(counts == 1):
        return data
    with_places = replace(data, aux={**data.aux, KEPT: data.places}, weights=None, row_weights=None)
    return with_places.take(np.repeat(np.arange(data.n), counts))
