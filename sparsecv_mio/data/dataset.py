"""The class `Dataset`: the numeric table of a file, with its column names and a fingerprint of its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsecv_mio.arrays import (
    CACHED_NUMBERS,
    ArrowTable,
    BoolArray,
    FloatArray,
    IntArray,
    prepend_ones,
    row_chunks,
    unmask,
)
from sparsecv_mio.data.reading_options import Applied
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.implementations import find_implementation

if TYPE_CHECKING:
    import pandas as pd

KEPT = "(row)"  # auxiliary column with the input positions of the rows that are not dropped
MULTIPLICITY = "(trials)"  # auxiliary column with the number of trials that a row represents
COPIES = "(copies)"  # auxiliary column with the number of copies of a row in a draw
INTERCEPT = "(intercept)"  # name of the intercept among the coefficients
MAX_EXPOSURE = 1e12  # maximum exposure; the minimum is its reciprocal
NUMPY_TEXT = re.compile(r"np\.(?:str|bytes)_\((.*)\)")  # how numpy 2 writes a text value


def find_values_out_of_range(option: str, values: FloatArray) -> IntArray:
    """Return the positions of the exposures, or of the offsets, that are out of range or not numbers."""
    end = float(np.log(MAX_EXPOSURE))
    low, high = (1.0 / MAX_EXPOSURE, MAX_EXPOSURE) if option == "exposure" else (-end, end)
    return np.flatnonzero(~((values >= low) & (values <= high)))


def describe_value_out_of_range(option: str, values: FloatArray, places: IntArray | None = None) -> str:
    """Return the first exposure or offset that is out of range, as text with its row; empty if there is none.

    Parameters
    ----------
    option : {"exposure", "offset"}
        Kind of the values.
    values : (n,) array
        Values of the rows.
    places : (n,) int array, optional
        Positions of the rows in the input, from 0, if rows were left out.

    Examples
    --------
    >>> describe_value_out_of_range("offset", np.array([0.0, 30.0]))
    'is 30 in row 2; give numbers from -27.6 to 27.6'
    """
    wrong = find_values_out_of_range(option, values)
    if not wrong.size:
        return ""
    numbers = "from 1e-12 to 1e12" if option == "exposure" else "from -27.6 to 27.6"
    row = wrong[0] if places is None else places[wrong[0]]
    return f"is {values[wrong[0]]:.12g} in row {row + 1}; give numbers {numbers}"


@dataclass(frozen=True, eq=False)
class ScalesByGroup:
    """Scales of columns that differ between groups of rows; a fit to some rows takes the scales of their group.

    Attributes
    ----------
    group : (n,) int array
        Group of each row. Group 0 has the scales of the full data.
    scales : (G, p) array
        Scales of the columns in each group, positive.
    """

    group: IntArray
    scales: FloatArray

    def of_rows(self, rows: slice | IntArray | None) -> FloatArray:
        """Return the (p,) scales for a fit to rows of one group; all rows, a slice or None, take those of group 0."""
        is_group = rows is not None and not isinstance(rows, slice) and len(rows) > 0
        return self.scales[int(self.group[rows[0]]) if is_group else 0]  # type: ignore[index]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and target in the units of the file; the arrays are read-only.

    Build one with :func:`sparsecv_mio.data.readers.read_dataset`, :meth:`from_arrays` or :meth:`from_frame`; these
    check everything. The constructor trusts its arguments and makes no copy.

    Parameters
    ----------
    X : (n, p) float64 array, C-contiguous, or as `store_by_columns` leaves them
        Features, finite.
    y : (n,) float64 array
        Target, finite.
    names : tuple of p str
        Feature names, distinct and different from `target`.
    target : str
        Name of the target.
    aux : mapping of str to (n,) array
        Group and fold columns, numbers or text; never features.
    weights : str, optional
        Column, or name, of the row weights (:mod:`sparsecv_mio.data.weights`).
    row_weights : (n,) array, optional
        Positive row weights, used in the fits and in the errors. None: each row counts once.
    reading : Applied, optional
        Preprocessing of a file that is not a plain table of numbers.
    classes : tuple of two str, optional
        Names of the two classes if the target was converted to 0 and 1 (:mod:`sparsecv_mio.data.loss_targets`).
    class_weight : {"balanced"}, optional
        Class weights, which `row_weights` include.
    counts : bool
        True if the target consists of counts, to which a rate is fitted (:mod:`sparsecv_mio.data.loss_targets`).
    exposure, offset : str, optional
        Columns of the exposures and of the offsets.
    row_exposure : (n,) array, optional
        Positive exposures of the rows, the exponentials of their offsets. Each multiplies the rate of the counts, or
        the odds of the positive class.
    trials : str, optional
        Column of the numbers of trials, if the rows are outcomes of cases (:mod:`sparsecv_mio.data.loss_targets`).
    holes : (n, p) bool array, optional
        Cells that were empty in the file and were imputed as `reading` describes. None: no such cells.
    scales : ScalesByGroup, optional
        Scales of the columns in the penalty, given by group of rows instead of computed from all rows
        (:mod:`sparsecv_mio.data.rows_of_folds`).
    are_classes_swapped : bool
        True if the class that is 0 comes after the other one in the default order; stratified folds are made from the
        default order.
    survival : Survival, optional
        Events, entry times and strata of the rows, if the target is a time (:mod:`sparsecv_mio.data.survival`).
    event, entry, strata : str, optional
        Columns of events (or `COLUMN=VALUE`), of entry times and of strata.

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0]], [1.0, 2.0, 3.0], names=["a", "b"])
    >>> data.n, data.p, data.names, data.target
    (3, 2, ('a', 'b'), 'y')
    >>> data
    Dataset(n=3, p=2, target='y')
    """

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    target: str
    aux: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    weights: str | None = None
    row_weights: FloatArray | None = None
    reading: Applied | None = None
    classes: tuple[str, str] | None = None
    class_weight: str | None = None
    counts: bool = False
    exposure: str | None = None
    offset: str | None = None
    row_exposure: FloatArray | None = None
    trials: str | None = None
    holes: BoolArray | None = None
    scales: ScalesByGroup | None = None
    are_classes_swapped: bool = False
    survival: Survival | None = None
    event: str | None = None
    entry: str | None = None
    strata: str | None = None

    def __repr__(self) -> str:
        return f"Dataset(n={self.n}, p={self.p}, target={self.target!r})"

    def __post_init__(self) -> None:
        self.X.setflags(write=False)
        self.y.setflags(write=False)
        for of_rows in (self.row_weights, self.row_exposure):
            if of_rows is not None:
                of_rows.setflags(write=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_dropped_rows(self) -> int:
        """Number of rows that were dropped in reading because a cell is empty or invalid."""
        return 0 if self.reading is None else self.reading.left_out

    @property
    def places(self) -> IntArray:
        """(n,) positions of the rows in the input, from 0; dropped rows and rows of weight 0 are missing.

        Examples
        --------
        >>> import pandas as pd
        >>> Dataset.from_frame(pd.DataFrame({"a": [1.0, None, 3.0], "y": [0.0, 1.0, 2.0]}), "y", na="drop").places
        array([0, 2])
        """
        return np.asarray(self.aux[KEPT] if KEPT in self.aux else np.arange(self.n))

    @property
    def has_scales_of_folds(self) -> bool:
        """True if the penalty differs between folds, so that a fit to all rows gives no bound for a fold."""
        return self.scales is not None and len(self.scales.scales) > 1

    @property
    def has_stratified_folds(self) -> bool:
        """True if random folds are stratified by default."""
        return self.classes is not None or self.survival is not None

    @property
    def stratifying_target(self) -> FloatArray:
        """(n,) numbers by which stratified folds are balanced."""
        if self.survival is not None:
            return self.survival.weigh_events(None)
        return 1.0 - self.y if self.are_classes_swapped else self.y

    @property
    def target_words(self) -> tuple[str, ...]:
        """Text values of the target in the file for the numbers 0, 1, ...; empty for a numeric target."""
        return () if self.reading is None else tuple(self.reading.levels.get(self.target, ()))

    @property
    def first_outcomes(self) -> IntArray:
        """Positions of the first outcome of each row of the file, for data with trials."""
        return np.flatnonzero(np.diff(self.places, prepend=-1))

    @property
    def scoring_weights(self) -> FloatArray | None:
        """(n,) weights of the rows in means of losses; None if each row counts once."""
        return self.row_weights if self.survival is None else self.survival.weigh_events(self.row_weights)

    @property
    def ties(self) -> str | None:
        """Method for tied events; None if the target is no time."""
        return None if self.survival is None else str(self.survival.ties)

    @property
    def n_events(self) -> int | None:
        """Number of rows with an event; None if the target is no time."""
        return None if self.survival is None else int(self.survival.is_event.sum())

    @property
    def has_matched_sets(self) -> bool:
        """True if the strata of survival times are the matched sets of cases and controls."""
        return self.survival is not None and self.survival.are_matched_sets(self.y)

    def weight_of(self, rows: slice | IntArray) -> float:
        """Return the total weight of some rows in means of losses; without weights, their number."""
        return self._sum_weights(self.scoring_weights, rows)

    def row_weight_of(self, rows: slice | IntArray) -> float:
        """Return the total weight of some rows in scales of columns; without weights, their number."""
        return self._sum_weights(self.row_weights, rows)

    def _sum_weights(self, weights: FloatArray | None, rows: slice | IntArray) -> float:
        if weights is not None:
            return float(weights[rows].sum())
        return len(range(self.n)[rows]) if isinstance(rows, slice) else len(rows)

    def row_offsets(self, rows: slice | IntArray) -> FloatArray | float:
        """Return the offsets of some rows; 0 for data without offsets."""
        return 0.0 if self.row_exposure is None else np.asarray(np.log(self.row_exposure[rows]))

    def split_into_cases(self) -> tuple[Dataset, IntArray]:
        """Return one row for each case, with its share of successes as target, and the number of rows of each case.

        Without trials, every row is a case and the data are returned unchanged.
        """
        if self.trials is None:
            return self, np.ones(self.n, dtype=np.int64)
        first = self.first_outcomes
        successes, trials = (np.add.reduceat(self.aux[MULTIPLICITY] * of, first) for of in (self.y, np.ones(self.n)))
        cases = replace(self.take(first), y=successes / trials, classes=None, trials=None)
        return cases, np.diff(first, append=self.n)

    def store_by_columns(self) -> None:
        """Store X in column-major order, as logistic and Poisson fits read it, so that fits need no copy.

        A small X is left unchanged: copying it takes no time.
        """
        if self.X.size > CACHED_NUMBERS and self.X.flags.c_contiguous:
            X = prepend_ones(self.X, np.arange(self.p))[1:].T
            X.setflags(write=False)
            object.__setattr__(self, "X", X)

    def take(self, rows: IntArray) -> Dataset:
        """Return a data set of some rows, in the given order."""
        aux = {name: column[rows] for name, column in self.aux.items()}
        weights, exposures = self.weights_and_exposures(rows)
        holes = None if self.holes is None else self.holes[rows]
        return replace(
            self, X=self.X[rows], y=self.y[rows], aux=aux, row_weights=weights, row_exposure=exposures, holes=holes,
            survival=None if self.survival is None else self.survival.take(rows),
        )  # fmt: skip

    def join_rows(self, other: Dataset) -> Dataset:
        """Return these rows and then those of another part of the same data, without columns of options."""
        both = [part.weights_and_exposures(slice(None)) for part in (self, other)]
        weights, exposures = (None if a is None or b is None else np.append(a, b) for a, b in zip(*both, strict=True))
        return replace(
            self, X=np.vstack([self.X, other.X]), y=np.append(self.y, other.y), aux={}, holes=None,
            row_weights=weights, row_exposure=exposures,
            survival=None if self.survival is None or other.survival is None else self.survival.join(other.survival),
        )  # fmt: skip

    def weights_and_exposures(self, rows: slice | IntArray) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the weights and the exposures of some rows; None if the data have none."""
        weights, exposures = self.row_weights, self.row_exposure
        return None if weights is None else weights[rows], None if exposures is None else exposures[rows]

    @cached_property
    def fingerprint(self) -> str:
        """`"sha256:<hex>"` of names, target, X and y, read a megabyte at a time.

        Equal numbers give equal fingerprints in every file format: the bytes are little-endian float64 in row order,
        and -0 counts as 0. Weights and exposures, if any, come last. Group and fold columns are not included; the
        digest of the folds covers them.
        """
        digest = hashlib.sha256()
        head = {"n": self.n, "p": self.p, "names": list(self.names), "target": self.target}
        digest.update(json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        for rows in row_chunks(self.n, 8 * self.p):
            digest.update(np.add(self.X[rows], 0.0, order="C").astype("<f8", copy=False).data)
        digest.update((self.y + 0.0).astype("<f8", copy=False).tobytes())
        if self.row_weights is not None:
            digest.update(b"weights" + self.row_weights.astype("<f8", copy=False).tobytes())
        if self.row_exposure is not None:
            digest.update(b"exposure" + self.row_exposure.astype("<f8", copy=False).tobytes())
        if self.survival is not None:
            self.survival.digest(digest.update)
        return f"sha256:{digest.hexdigest()}"

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        names: Sequence[str] | None = None,
        target: str | None = None,
        aux: Mapping[str, ArrayLike] | None = None,
    ) -> Dataset:
        """Return a data set with copies of arrays.

        Parameters
        ----------
        X : (n, p) array_like of numbers
            Features; a table of pandas, polars, DuckDB or Arrow also gives the column names.
        y : (n,) array_like of numbers
            Target.
        names : sequence of p str, optional
            Feature names; `x0, x1, ...` by default.
        target : str, optional
            Name of the target; that of a Series by default, or `y`.
        aux : mapping of str to (n,) array_like, optional
            Group and fold columns.

        Raises
        ------
        BadInput
            If a shape, a name or a number is wrong.

        Examples
        --------
        >>> Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]).names
        ('x0',)
        """
        X = require_in_memory(X)
        if hasattr(X, "columns") or hasattr(type(X), "__arrow_c_stream__"):
            header, X = find_implementation("table_columns")(X)
            names = header if names is None else names
        numbers, response = _as_floats(X, "X", 2), _as_floats(y, "y", 1)
        n, p = numbers.shape
        if response.shape[0] != n:
            raise BadInput(f"X has {n} rows but y has {response.shape[0]}; give one target per row")
        labels = tuple(f"x{j}" for j in range(p)) if names is None else tuple(str(name) for name in names)
        if len(labels) != p:
            raise BadInput(f"X has {p} columns but {len(labels)} names were given; give one name per column")
        columns = {str(key): np.array(column) for key, column in (aux or {}).items()}
        if target is None:
            name = getattr(y, "name", None)
            target = name if isinstance(name, str) and name and name not in (*labels, *columns) else "y"
        return check_dataset(cls(numbers, response, labels, str(target), columns))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame | ArrowTable,
        target: str | int,
        features: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        aux: Sequence[str] = (),
        two_words: bool | None = None,
        **reading: Any,
    ) -> Dataset:
        """Return a data set with copies of the columns of a table in memory.

        Parameters
        ----------
        frame : pandas.DataFrame, or a table with `__arrow_c_stream__`
            A table of polars, DuckDB or Arrow (the second kind) is read as the same frame of pandas.
        target : str or int
            Column name, or 0-based position if no column has that name.
        features, drop : sequence of str, optional
            Columns to keep, or to drop; at most one of the two.
        aux : sequence of str
            Group and fold columns.
        two_words : bool, optional
            True if the target may hold two text values, for classification; they become 0 and 1. By default it may
            not, and the error for such a target names this parameter.
        **reading
            Options for cells that are not numbers: `na`, `na_values`, `keep_default_na`, `encode`, `order`, `dates`,
            and for text `decimal` and `thousands`; see :class:`~sparsecv_mio.data.reading_options.Reading`.

        Raises
        ------
        BadInput
            If a name is unknown or given twice, a used column holds text, empty cells, NaN or infinity that no option
            allows, or an option applies to files only.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "g": ["u", "v"], "t": [0.0, 1.0]})
        >>> Dataset.from_frame(frame, "t", aux=["g"]).names
        ('a',)
        """
        dataset: Dataset = find_implementation("dataset_from_frame")(
            frame, target, features, drop, aux, two_words, reading
        )
        return dataset


def require_in_memory(data: Any) -> Any:
    """Return a table or an array; raise `BadInput` for a collection of dask, which has yet to be computed.

    Parameters
    ----------
    data : object
        Table or array.
    """
    if hasattr(data, "compute") and hasattr(data, "dask"):
        raise BadInput(f"data: a {type(data).__name__} of dask is not in memory; call its .compute() first")
    return data


def require_dataset(data: object, who: str) -> Dataset:
    """Return the argument if it is a `Dataset`.

    Parameters
    ----------
    data : object
        Object to check.
    who : str
        Name of the function that needs it, for the message.

    Raises
    ------
    BadInput
        If it is not a `Dataset`.
    """
    if not isinstance(data, Dataset):
        how = "solve takes a frame or a file, Dataset.from_frame converts a frame, and read_dataset reads a file"
        raise BadInput(f"{who} needs a Dataset, but the data are {type(data).__name__}; {how}")
    return data


def check_dataset(data: Dataset) -> Dataset:
    """Return a data set after checking its names and numbers.

    Parameters
    ----------
    data : Dataset
        Data set.

    Raises
    ------
    BadInput
        If there are no rows or columns, a name is repeated or reserved, a column has the wrong length, or a number is
        not finite.
    """
    if data.n == 0:
        raise BadInput("the data have no rows; give at least one row for every fold")
    if data.p == 0:
        raise BadInput("no feature is left; keep at least one column in addition to the target")
    if INTERCEPT in data.names:
        raise BadInput(
            f"feature name {INTERCEPT!r} is reserved for the constant of the model; rename the column or drop it"
        )
    seen: set[str] = {data.target}
    for name in data.names:
        if name in seen:
            fault = "is also the target" if name == data.target else "is given twice"
            raise BadInput(f"feature name {name!r} {fault}; give every column a different name")
        seen.add(name)
    for name, column in data.aux.items():
        if column.shape != (data.n,):
            raise BadInput(
                f"column {name!r} has shape {column.shape} but the data have {data.n} rows; give one value per row"
            )
        column.setflags(write=False)
    check_finite(data.X, data.y, data.names, data.target)
    return data


def check_finite(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> None:
    """Raise `BadInput` at the first row with NaN or infinity; O(np) time, memory of one block."""
    step = max(1, (1 << 20) // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block, response = X[start : start + step], y[start : start + step]
        good_rows = np.isfinite(block).all(axis=1) & np.isfinite(response)
        if not good_rows.all():
            i = int(np.argmin(good_rows))
            cells = {**dict(zip(names, block[i].tolist(), strict=True)), target: float(response[i])}
            name = next(name for name, value in cells.items() if not np.isfinite(value))
            advice = "replace it by a finite number, or leave the row out"
            raise BadInput(f"column {name!r} holds {cells[name]} in row {start + i + 1}; {advice}")


def _as_floats(values: ArrayLike, what: str, ndim: int) -> FloatArray:
    if hasattr(values, "toarray"):
        raise BadInput(f"{what} is sparse; give {what}.toarray(), because every method needs a dense array")
    try:
        array = np.array(unmask(values), dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        words = NUMPY_TEXT.sub(r"\1", str(error).splitlines()[0])
        raise BadInput(f"{what} must hold numbers only: {words}") from error
    return check_dimensions(array, what, ndim)


def check_dimensions(array: NDArray[Any], what: str, ndim: int) -> NDArray[Any]:
    """Return an array with the given number of dimensions; a single column also counts as a vector.

    Parameters
    ----------
    what : str
        Name of the array in messages.

    Raises
    ------
    BadInput
        If the number of dimensions differs.
    """
    if ndim == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.ndim != ndim:
        raise BadInput(f"{what} has {several(array.ndim, 'dimension')}; give an array with {ndim}")
    return array
