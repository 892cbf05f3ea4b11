"""Tables over subproblems, which are read and written as numpy arrays with the axes (gamma, tau, fold).

A table stores either one number for each subproblem, or one number for all subproblems. With very many folds, the
search never works on most pairs (tau, gamma). A third kind of table therefore stores one number per fold only for pairs
whose folds have different numbers, and a single number for every other pair. `make_table` chooses the kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sparsecv_mio.arrays import STORE_BYTES, FloatArray
from sparsecv_mio.errors import CorruptStore

Row = NDArray[Any]
Index = Any  # numpy index
Archive = dict[str, NDArray[Any]]  # arrays of a checkpoint, by name
READING = ("argmax", "argmin", "astype", "max", "min", "ravel", "reshape", "tobytes", "tolist")
BY_PAIRS = STORE_BYTES // 8 // 64  # subproblems from which tables may store rows of pairs: about 56 bytes each


def has_rows_of_pairs(shape: tuple[int, int, int]) -> bool:
    """Return True if tables of a shape are so large that they store rows only for pairs whose folds differ."""
    return shape[0] * shape[1] * shape[2] >= BY_PAIRS


def make_table(
    shape: tuple[int, int, int], fill: Any, dtype: DTypeLike = float, by_pairs: bool = True,
    better: Callable[..., float] | None = None,
) -> FoldTable:  # fmt: skip
    """Return a table (gamma, tau, fold) that is filled with one number.

    Parameters
    ----------
    shape : (int, int, int)
        Numbers of gammas, taus and folds.
    fill : scalar
        Initial value of every subproblem.
    dtype : data type
        Data type of the values.
    by_pairs : bool
        True if a table of very many subproblems stores rows only for pairs whose folds differ.
    better : callable, optional
        Parameter of :class:`PairRows`.
    """
    if by_pairs and has_rows_of_pairs(shape):
        return PairRows(shape, fill, dtype, better)
    return WholeTable(np.full(shape, fill, dtype=dtype) if fill else np.zeros(shape, dtype=dtype))


def make_constant(shape: tuple[int, int, int], number: Any) -> FoldTable:
    """Return a table of one number, which takes no memory and cannot be written."""
    return WholeTable(np.broadcast_to(number, shape))


class FoldTable(np.lib.mixins.NDArrayOperatorsMixin, ABC):
    """A (G, T, K) array: any numpy index except `newaxis` reads and writes it, and arithmetic returns arrays.

    Attributes
    ----------
    shape : (int, int, int)
        Numbers of gammas, taus and folds.
    dtype : data type
        Data type of the values.
    is_stored : bool
        False if one number, which cannot be written, is the value of all subproblems.
    has_rows_of_pairs : bool
        True if a pair whose folds are all the same has no row.
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    ndim = 3
    is_stored = True
    has_rows_of_pairs = False

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...

    @abstractmethod
    def __getitem__(self, index: Index) -> Any: ...

    @abstractmethod
    def __setitem__(self, index: Index, new: ArrayLike) -> None: ...

    @abstractmethod
    def copy(self) -> FoldTable:
        """Return a copy that later changes do not affect."""

    @abstractmethod
    def pack(self, name: str) -> Archive:
        """Return the table as arrays of a checkpoint, by names that begin with `name`."""

    @abstractmethod
    def unpack(self, name: str, archive: Mapping[str, NDArray[Any]]) -> FoldTable:
        """Return the table of this shape from the arrays of `pack`; raise `CorruptStore` if there is none."""

    @abstractmethod
    def become(self, other: FoldTable) -> None:
        """Copy the values of another table of the same kind."""

    @property
    def size(self) -> int:
        """Number of subproblems."""
        return int(np.prod(self.shape))

    def sums(self) -> FloatArray:
        """(G, T): sums that are stored instead of rows; nan for a pair without a sum."""
        return np.full(self.shape[:2], np.nan)

    def finite_rows(self) -> NDArray[np.bool_]:
        """(G, T): pairs whose values are all finite."""
        return np.asarray(np.isfinite(np.asarray(self)).all(axis=2))

    def share_equal(self, other: FoldTable, g: int, t: int) -> None:
        """Store the row of a pair once if another table has an equal row; tables of all values store it twice."""

    def store_sum(self, g: int, t: int, total: float) -> None:
        """Store the sum of a pair; tables of all values store no sums and raise `TypeError`."""
        raise TypeError(f"{type(self).__name__} stores no sums")

    def store_for_all(self, g: int, t: int, cell: float) -> None:
        """Store the sum of a pair with one number for its folds; tables of all values raise `TypeError`."""
        raise TypeError(f"{type(self).__name__} stores no sums")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        if named.get("out"):
            return NotImplemented
        arrays = [np.asarray(argument) if isinstance(argument, FoldTable) else argument for argument in inputs]
        return getattr(ufunc, method)(*arrays, **named)

    def __getattr__(self, name: str) -> Any:
        """Return the method of an array that only reads."""
        if name not in READING:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(np.asarray(self), name)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[g] for g in range(self.shape[0]))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return sums, as for an array."""
        return np.asarray(self).sum(axis=axis)

    def all(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return True where all values are true, as for an array."""
        return np.asarray(self).all(axis=axis)

    def any(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return True where any value is true, as for an array."""
        return np.asarray(self).any(axis=axis)


class WholeTable(FoldTable):
    """A table that stores every value, or, with a broadcast array, one number for all.

    Parameters
    ----------
    array : (G, T, K) array
        Values of the table.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype
        self.is_stored = array.flags.writeable
        self._n_writes, self._sums = 0, (-1, np.empty(0))  # number of writes before the sums over folds, and sums

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._array, dtype=dtype) if copy else np.asarray(self._array, dtype=dtype)

    def __getitem__(self, index: Index) -> Any:
        return self._array[index]

    def __setitem__(self, index: Index, new: ArrayLike) -> None:
        self._array[index] = new
        self._n_writes += 1

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return sums, as for an array; those over folds are stored until the next write and must not be written to."""
        if axis != 2:
            return self._array.sum(axis=axis)
        n_writes, sums = self._sums
        if n_writes != self._n_writes:
            n_writes = self._n_writes  # another thread may write meanwhile
            sums = self._array.sum(axis=2)
            sums.flags.writeable = False
            self._sums = n_writes, sums
        return sums

    def copy(self) -> WholeTable:
        """Return a copy; a table of one number returns itself."""
        return WholeTable(self._array.copy()) if self.is_stored else self

    def pack(self, name: str) -> Archive:
        """Return the array under the name."""
        return {name: np.array(self._array)}

    def unpack(self, name: str, archive: Mapping[str, NDArray[Any]]) -> WholeTable:
        """Return the table under a name."""
        return WholeTable(archive[name])

    def become(self, other: FoldTable) -> None:
        """Copy all values."""
        self[...] = np.asarray(other)


class PairRows(FoldTable):
    """A (G, T, K) array in which a pair with K equal numbers takes the memory of one number.

    Arrays that are read must not be written to. Copies share rows until either side writes one. A finished pair may be
    stored as one number, which is the value of each of its folds, together with the sum that they had.

    Parameters
    ----------
    shape : (int, int, int)
        Numbers of gammas, taus and folds.
    fill : scalar
        Initial value of every subproblem.
    dtype : data type
        Data type of the values.
    better : callable, optional
        Function that chooses between the stored sum of a pair and the sum of its values: `max` for lower bounds, `min`
        for upper bounds. None if a write to a fold removes a stored sum.

    Examples
    --------
    >>> table = PairRows((2, 3, 1000), np.inf, float)
    >>> table[0, 1, 5] = 2.0
    >>> table.n_stored_rows, float(table[0].min()), np.isfinite(table).sum(axis=2).tolist()
    (1, 2.0, [[0, 1, 0], [0, 0, 0]])
    """

    has_rows_of_pairs = True

    def __init__(
        self, shape: tuple[int, int, int], fill: Any, dtype: DTypeLike, better: Callable[..., float] | None = None
    ) -> None:
        self.better, self._held = better, dict[int, float]()
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._places = np.arange(shape[0] * shape[1]).reshape(shape[:2])
        self._rows: list[Row] = [np.array(fill, dtype=self.dtype)] * self._places.size
        self._writes = [0] * self._places.size
        self._sums: list[tuple[int, Any]] = [(-1, None)] * self._places.size  # writes before each sum, and sum

    @property
    def n_stored_rows(self) -> int:
        """Number of pairs with a separate row."""
        return sum(row.ndim for row in self._rows)

    def copy(self) -> PairRows:
        """Return a copy, which shares rows until one of the two is written to."""
        table = PairRows.__new__(PairRows)
        table.__dict__.update(self.__dict__)
        for row in self._rows:
            row.flags.writeable = False
        table._writes, table._rows, table._sums = list(self._writes), list(self._rows), list(self._sums)
        table._held = dict(self._held)
        return table

    def share_equal(self, other: FoldTable, g: int, t: int) -> None:
        """Store the row of a pair once if another table of the same kind has the same numbers."""
        if not other.has_rows_of_pairs:
            return
        place, others = int(self._places[g, t]), cast(PairRows, other)._rows
        here, there = self._rows[place], others[place]
        if here is not there and here.ndim == there.ndim == 1 and np.array_equal(here, there):
            there.flags.writeable = False
            self._rows[place] = there

    # -- stored sums --------------------------------------------------------------------------------------------------

    def store_sum(self, g: int, t: int, total: float) -> None:
        """Store the sum of a pair, or the better one of two sums.

        Parameters
        ----------
        g, t : int
            Indices of gamma and tau.
        total : float
            Sum of the pair.
        """
        place = int(self._places[g, t])
        before = self._held.get(place)
        self._held[place] = total if before is None or self.better is None else self.better(before, total)

    def store_for_all(self, g: int, t: int, cell: float) -> None:
        """Store the sum of a pair instead of its row, and one number as the value of each of its folds.

        Parameters
        ----------
        g, t : int
            Indices of gamma and tau.
        cell : float
            Value of each fold.
        """
        total, place = float(self.sum(axis=2)[g, t]), int(self._places[g, t])
        self._replace(place, np.full(1, cell, dtype=self.dtype))
        self.store_sum(g, t, total)

    def sums(self) -> NDArray[np.float64]:
        """(G, T): stored sums; nan for a pair without a sum."""
        sums = np.full(len(self._rows), np.nan)
        sums[list(self._held)] = list(self._held.values())
        return sums.reshape(self.shape[:2])

    # -- a checkpoint -------------------------------------------------------------------------------------------------

    def pack(self, name: str) -> Archive:
        """Return a number of every pair, rows of pairs whose folds differ, and sums, nan for none, under the name."""
        at = [place for place, row in enumerate(self._rows) if row.ndim]
        packed = {
            "cells": np.array([row.flat[0] for row in self._rows], dtype=self.dtype).reshape(self.shape[:2]),
            "at": np.array(at, dtype=np.int64),
            "rows": np.array([self._rows[place] for place in at], dtype=self.dtype).reshape(-1, self.shape[2]),
            "sums": self.sums(),
        }
        return {f"{name}.{key}": array for key, array in packed.items()}

    def unpack(self, name: str, archive: Mapping[str, NDArray[Any]]) -> PairRows:
        """Return the table of this shape from the arrays of `pack`; raise `CorruptStore` if there is none."""
        at, rows, sums, first = (archive[f"{name}.{key}"] for key in ("at", "rows", "sums", "cells"))
        if rows.shape != (len(at), self.shape[2]) or not ((at >= 0) & (at < self._places.size)).all():
            raise CorruptStore("its rows refer to pairs that do not exist")
        if np.any(sums < 0.0):
            raise CorruptStore("some of its sums are negative")
        table = PairRows(self.shape, 0, self.dtype, self.better)
        table._rows = [np.array(cell, dtype=self.dtype) for cell in first.ravel()]
        for place, row in zip(at.tolist(), rows, strict=True):
            table._replace(place, row)
        for g, t in np.argwhere(~np.isnan(sums)).tolist():
            table.store_sum(g, t, float(sums[g, t]))
        return table

    def become(self, other: FoldTable) -> None:
        """Copy the values and sums of another table of the same kind."""
        self.__dict__.update(other.copy().__dict__)

    # -- readers ------------------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self._stack_rows(self._places, slice(None))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __getitem__(self, index: Index) -> Any:
        pairs, folds = self._split_index(index)
        if pairs is None:
            rows, folds = self._coordinates(index)
            picked = np.empty(rows.shape, dtype=self.dtype)
            for place in np.unique(rows).tolist():
                here = rows == place
                picked[here] = self._row(place)[folds[here]]
            return picked[()]
        if pairs.ndim == 0:
            return self._row(int(pairs))[folds]
        return self._stack_rows(pairs, folds)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return the sums of all pairs over their folds (axis 2), which are stored; other sums as for an array."""
        for place, (taken, _) in enumerate(self._sums):
            if taken != self._writes[place]:
                before = self._writes[place]  # another thread may write meanwhile
                self._sums[place] = before, self._row(place).sum()
        sums = np.array([stored_sum for _, stored_sum in self._sums]).reshape(self.shape[:2])
        for place, total in self._held.items():
            at = np.unravel_index(place, sums.shape)
            sums[at] = total if self.better is None else self.better(sums[at], total)
        return sums if axis == 2 else sums.sum() if axis is None else np.asarray(self).sum(axis=axis)

    def all(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return True where all values are true, or all folds of each pair."""
        pairs = np.array([bool(row.all()) for row in self._rows]).reshape(self.shape[:2])
        return pairs if axis == 2 else pairs.all() if axis is None else np.asarray(self).all(axis=axis)

    def any(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return True where any value is true, or any fold of each pair."""
        pairs = np.array([bool(row.any()) for row in self._rows]).reshape(self.shape[:2])
        return pairs if axis == 2 else pairs.any() if axis is None else np.asarray(self).any(axis=axis)

    def finite_rows(self) -> NDArray[np.bool_]:
        """(G, T): pairs whose values are all finite."""
        return np.array([bool(np.isfinite(row).all()) for row in self._rows]).reshape(self.shape[:2])

    def _row(self, place: int) -> Row:
        """Return a (K,) row, which must not be written to."""
        row = self._rows[place]
        if row.ndim == 0:
            return np.broadcast_to(row, self.shape[2])
        view = row.view()
        view.flags.writeable = False
        return view

    def _stack_rows(self, pairs: NDArray[np.intp], folds: Any) -> NDArray[Any]:
        parts = [self._row(int(place))[folds] for place in pairs.ravel().tolist()]
        width = np.shape(self._row(0)[folds]) if self._rows else (self.shape[2],)
        stacked = np.array(parts, dtype=self.dtype).reshape(*pairs.shape, *width)
        return stacked

    # -- the writer ---------------------------------------------------------------------------------------------------

    def __setitem__(self, index: Index, new: ArrayLike) -> None:
        pairs, folds = self._split_index(index)
        numbers = np.asarray(new, dtype=self.dtype)
        if pairs is None:
            rows, at = self._coordinates(index)
            numbers = np.broadcast_to(numbers, rows.shape)
            for place in np.unique(rows).tolist():
                here = rows == place
                self._write(place, at[here], numbers[here])
            return
        whole = isinstance(folds, slice) and folds == slice(None)
        shape = (*pairs.shape, *np.shape(np.empty(self.shape[2], dtype=np.bool_)[folds]))
        by_row = np.broadcast_to(numbers, shape).reshape(pairs.size, *shape[pairs.ndim :])
        for place, row in zip(pairs.ravel().tolist(), by_row, strict=True):
            if whole:
                self._replace(place, row)
            else:
                self._write(place, folds, row)

    def _replace(self, place: int, row: Row) -> None:
        same = len(row) > 0 and row[0] == row[-1] and bool((row == row[0]).all())
        self._rows[place] = np.array(row[0] if same else row)
        self._written(place)

    def _write(self, place: int, folds: Any, numbers: Row) -> None:
        row = self._rows[place]
        if row.ndim == 0:
            if np.all(numbers == row):
                return
            self._rows[place] = row = np.full(self.shape[2], row)
        elif not row.flags.writeable:
            self._rows[place] = row = row.copy()
        row[folds] = numbers
        self._written(place)

    def _written(self, place: int) -> None:
        self._writes[place] += 1
        if self.better is None:
            self._held.pop(place, None)

    # -- indices ------------------------------------------------------------------------------------------------------

    def _split_index(self, index: Index) -> tuple[NDArray[np.intp] | None, Any]:
        """Return the places of the pairs of an index, and its part for folds; None if arrays select pairs."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(entry is Ellipsis for entry in parts):
            at = [entry is Ellipsis for entry in parts].index(True)
            fill = (slice(None),) * (self.ndim - len(parts) + 1)
            parts = (*parts[:at], *fill, *parts[at + 1 :])
        parts = (*parts, *(slice(None),) * (self.ndim - len(parts)))
        plain = [isinstance(entry, int | np.integer | slice) for entry in parts]
        one_pair = all(isinstance(entry, int | np.integer) for entry in parts[:2])
        if len(parts) > self.ndim or not all(plain[:2]) or not (plain[2] or one_pair):
            return None, None
        return np.asarray(self._places[parts[:2]]), parts[2]

    def _coordinates(self, index: Index) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places of pairs and the folds of all values that an index selects."""
        places = np.broadcast_to(self._places[:, :, None], self.shape)[index]
        return np.asarray(places), np.asarray(np.broadcast_to(np.arange(self.shape[2]), self.shape)[index])
