"""Draws of the rows of a data set: bootstrap draws with replacement, and complementary halves without replacement.

A draw lists distinct rows and the number of copies of each row. The number of copies is used as the weight of the row.
All copies of a row are then in one fold, and a fit to the draw equals the fit to a data set in which the rows are
copied.

The *units* of a draw are rows. If whole groups of rows are in one fold (folds `groups:COLUMN` and `groups:COLUMN:K`,
folds given row by row, and splitters of groups), the units are these groups. With two classes every draw has as many
units of each class as the data, unless a group contains both classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import COPIES, Dataset
from sparsecv_mio.data.fold_plan import WEIGHTED, FoldPlan, group_labels
from sparsecv_mio.data.folds import canonical, ids_of_groups, is_dealt
from sparsecv_mio.data.rows_of_folds import fills_of_rows
from sparsecv_mio.errors import BadInput

BOOTSTRAP, HALVES = 1, 2  # first keys of the random numbers: each kind of draws has separate numbers
HIGH_BITS = np.uint64(32)  # number of bits of a raw number that choose a unit


@dataclass(frozen=True, eq=False)
class Draw:
    """Some rows of a data set, each with a number of copies.

    Attributes
    ----------
    number : int
        Number of the draw, from 0.
    rows : (m,) int array
        Distinct rows, ascending.
    weights : (m,) int array
        Number of copies of each row, at least 1.
    """

    number: int
    rows: IntArray
    weights: IntArray

    def select_rows(self, dataset: Dataset) -> Dataset:
        """Return the rows of the draw, weighted by their numbers of copies, with missing cells imputed from them.

        Parameters
        ----------
        dataset : Dataset
            Data of all rows, whose weights are multiplied by the numbers of copies.

        Examples
        --------
        >>> data = Dataset.from_arrays([[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0])
        >>> drawn = Draw(0, np.array([0, 2]), np.array([1, 2])).select_rows(data)
        >>> drawn.y.tolist(), drawn.row_weights.tolist()
        ([0.0, 2.0], [1.0, 2.0])
        """
        taken = dataset.take(self.rows)
        taken = _impute(replace(taken, aux={**taken.aux, COPIES: self.weights}))
        if np.all(self.weights == 1):
            return taken
        own = 1.0 if taken.row_weights is None else taken.row_weights
        return replace(taken, row_weights=own * self.weights.astype(np.float64))


def _impute(drawn: Dataset) -> Dataset:
    """Return the rows of a draw, with missing cells imputed from these rows and their copies."""
    if drawn.holes is None or drawn.reading is None or not drawn.reading.how.na.uses_imputation:
        return drawn
    rows = np.unique(drawn.places, return_index=True)[1]  # trials are two rows of outcomes
    columns = np.flatnonzero(drawn.holes.any(axis=0) & ~drawn.holes.all(axis=0))  # an empty column is constant
    X = drawn.X.copy()
    X[:, columns] = np.where(drawn.holes[:, columns], fills_of_rows(drawn, rows, columns), X[:, columns])
    return replace(drawn, X=X)


@dataclass(frozen=True, eq=False)
class DrawUnits:
    """The units that are drawn: rows, or groups of rows.

    Attributes
    ----------
    of_row : (n,) int array
        Unit of each row, from 0.
    stratum : (m,) int array
        Stratum of each unit: its class, or 0.
    name : str
        Description of the units, such as `rows` or `groups of subject`.
    """

    of_row: IntArray
    stratum: IntArray
    name: str

    @property
    def is_stratified(self) -> bool:
        """True if the units of each class are drawn separately."""
        return bool(np.any(self.stratum))

    @property
    def strata(self) -> list[IntArray]:
        """Units of each stratum, ascending."""
        return [np.flatnonzero(self.stratum == value) for value in np.unique(self.stratum)]

    def draw_numbers(self, seed: int, kind: int, number: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Return a random number for each unit; numpy guarantees these streams across versions, as for folds.

        Parameters
        ----------
        seed : int
            Seed of the draws.
        kind : int
            `BOOTSTRAP` or `HALVES`.
        number : int
            Number of the draw, or of the pair of halves.
        """
        source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(kind, number)))
        return np.asarray(source.random_raw(len(self.stratum)))

    def make_draw(self, number: int, copies: IntArray) -> Draw:
        """Return the draw in which every unit has some number of copies.

        Parameters
        ----------
        number : int
            Number of the draw.
        copies : (m,) int array
            Numbers of copies by unit.
        """
        weights = copies[self.of_row]
        rows = np.flatnonzero(weights)
        return Draw(number, rows, weights[rows])


def find_units(dataset: Dataset, folds: FoldPlan) -> DrawUnits:
    """Return the units to draw for some folds of a data set.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds by which a model is chosen.

    Raises
    ------
    BadInput
        If the folds are in time order or blocks, or overlap and were given row by row.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> data = Dataset.from_arrays([[0.0]] * 4, [0.0] * 4, aux={"who": ["a", "b", "b", "c"]})
    >>> find_units(data, make_folds("groups:who", data)).of_row.tolist()
    [0, 1, 1, 2]
    """
    spec = folds.spec.removesuffix(WEIGHTED)
    kind, _, value = canonical(spec).partition(":")
    if kind == "forward":
        raise BadInput(
            f"folds {spec!r}: the bootstrap, stability selection and splits draw single rows, which would break the "
            "order of time; give folds without an order of time"
        )
    if kind.endswith("blocks"):  # also repeated ones, such as 2xblocks
        raise BadInput(
            f"folds {spec!r}: draws of single rows would divide the blocks of neighbouring rows; give groups:COLUMN "
            "with a column of blocks, which are drawn as a whole"
        )
    rows = np.unique(dataset.places, return_inverse=True)[1]  # the outcomes of trials are one row of the file
    if is_dealt(folds) or kind == "stratified":
        of_row, name = rows, "rows"
    elif (ids := ids_of_groups(folds, dataset)) is not None:
        of_row, name = group_labels(ids, f"folds {spec!r}"), f"groups of {value.rpartition(':')[0]}"
    else:
        folds.check_partition("draws")
        of_row, name = rows, "rows"
        if kind != "splitter" or "Group" in value:
            alone = folds.labels < 0  # a row that is never held out is a unit
            of_row = np.where(alone, folds.k - 1 + np.cumsum(alone), folds.labels)
            name = f"groups of {value}" if kind == "groups" and value in dataset.aux else f"folds {spec}"
    return DrawUnits(of_row, _find_strata(dataset, of_row), name)


def _find_strata(dataset: Dataset, of_row: IntArray) -> IntArray:
    """Return the class of each unit; 0 for all units without classes, or if some unit contains both classes."""
    size = np.bincount(of_row)
    if dataset.classes is None:
        return np.zeros_like(size)
    positive = np.bincount(of_row, dataset.y)
    is_mixed = np.any((positive > 0.0) & (positive < size))
    return np.zeros_like(size) if is_mixed else (positive > 0.0).astype(np.int64)


def bootstrap_draws(dataset: Dataset, folds: FoldPlan, count: int, seed: int) -> Iterator[Draw]:
    """Yield draws with replacement, each with as many units as the data, by class if units have one class.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds by which a model is chosen; their groups are drawn as a whole.
    count : int
        Number of draws.
    seed : int
        Seed of the draws. A draw does not depend on `count`.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> data = Dataset.from_arrays([[0.0]] * 6, [0.0] * 6)
    >>> for draw in bootstrap_draws(data, make_folds("3", data), 2, 0):
    ...     print(draw.rows.tolist(), draw.weights.tolist())
    [1, 2, 3, 5] [1, 1, 2, 2]
    [0, 3, 4, 5] [1, 3, 1, 1]
    """
    units = find_units(dataset, folds)
    for number in range(count):
        raw, copies = units.draw_numbers(seed, BOOTSTRAP, number), np.zeros_like(units.stratum)
        for stratum in units.strata:
            chosen = (raw[stratum] >> HIGH_BITS) * np.uint64(len(stratum)) >> HIGH_BITS
            copies[stratum] = np.bincount(chosen.astype(np.int64), minlength=len(stratum))
        yield units.make_draw(number, copies)


def half_draws(dataset: Dataset, folds: FoldPlan, count: int, seed: int) -> Iterator[Draw]:
    """Yield halves of the units without replacement; draws 2 i and 2 i + 1 have no unit in common.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds by which a model is chosen; their groups are drawn as a whole.
    count : int
        Number of draws, two for each complementary pair.
    seed : int
        Seed of the draws. A draw does not depend on `count`.

    Notes
    -----
    A half has `m // 2` of m units, and `m // 2` of each class if the units of each class are drawn separately.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> data = Dataset.from_arrays([[0.0]] * 6, [0.0] * 6)
    >>> [draw.rows.tolist() for draw in half_draws(data, make_folds("3", data), 2, 0)]
    [[0, 1, 3], [2, 4, 5]]
    """
    units = find_units(dataset, folds)
    for number in range(count):
        order = np.argsort(units.draw_numbers(seed, HALVES, number // 2), kind="stable")
        copies = np.zeros_like(units.stratum)
        for stratum in units.strata:
            shuffled, half = order[np.isin(order, stratum)], len(stratum) // 2
            copies[shuffled[(number % 2) * half : (number % 2 + 1) * half]] = 1
        yield units.make_draw(number, copies)
