"""Tables over (gamma, tau, fold) that hold a row of folds for a pair only where its folds differ.

Of very many folds most pairs are never worked on: their cells all have the same number, and the row is that number.
Copies share rows until either side writes one. Whoever reads sees an array. A pair that is done with may be held as one
number that stands for each of its cells, beside the sum that they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sparsecv_mio.errors import CorruptStore

Row = NDArray[Any]
Index = Any  # of numpy
READING = ("argmax", "argmin", "astype", "max", "min", "ravel", "reshape", "tobytes", "tolist")


class PairRows(np.lib.mixins.NDArrayOperatorsMixin):
    """A (G, T, K) array, of which a pair whose K numbers are all the same takes the memory of one.

    It is read and written by any index of numpy, but `newaxis`. Arithmetic makes ordinary arrays of it. What is read
    is not to be written to.

    Parameters
    ----------
    shape : (int, int, int)
    fill : scalar
        What every cell holds at first.
    dtype : data type
    better : callable, optional
        Of two sums of a pair, `max` of lower bounds, `min` of upper ones: the one that is held and that of its cells.
        None where what is written to a cell puts an end to a sum that is held.

    Examples
    --------
    >>> table = PairRows((2, 3, 1000), np.inf, float)
    >>> table[0, 1, 5] = 2.0
    >>> table.rows_held, float(table[0].min()), np.isfinite(table).sum(axis=2).tolist()
    (1, 2.0, [[0, 1, 0], [0, 0, 0]])
    """

    def __init__(
        self, shape: tuple[int, int, int], fill: Any, dtype: DTypeLike, better: Callable[..., float] | None = None
    ) -> None:
        self.better, self._held = better, dict[int, float]()
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.size = int(np.prod(shape))
        self._places = np.arange(shape[0] * shape[1]).reshape(shape[:2])
        self._rows: list[Row] = [np.array(fill, dtype=self.dtype)] * self._places.size
        self._writes = [0] * self._places.size
        self._sums: list[tuple[int, Any]] = [(-1, None)] * self._places.size  # after how many writes each was taken

    @property
    def rows_held(self) -> int:
        """How many pairs have a row of their own."""
        return sum(row.ndim for row in self._rows)

    def copy(self) -> PairRows:
        """Return a copy, which shares rows until one of the two is written to."""
        other = PairRows.__new__(PairRows)
        other.__dict__.update(self.__dict__)
        for row in self._rows:
            row.flags.writeable = False
        other._writes, other._rows, other._sums = list(self._writes), list(self._rows), list(self._sums)
        other._held = dict(self._held)
        return other

    def share_equal(self, other: PairRows, g: int, t: int) -> None:
        """Hold the row of a pair once where another table of the same kind has the same numbers."""
        place = int(self._places[g, t])
        here, there = self._rows[place], other._rows[place]
        if here is not there and here.ndim == there.ndim == 1 and np.array_equal(here, there):
            there.flags.writeable = False
            self._rows[place] = there

    # -- sums that are held -------------------------------------------------------------------------------------------

    def hold_sum(self, g: int, t: int, total: float) -> None:
        """Hold the sum of a pair, or the better one of two.

        Parameters
        ----------
        g, t : int
        total : float
        """
        place = int(self._places[g, t])
        before = self._held.get(place)
        self._held[place] = total if before is None or self.better is None else self.better(before, total)

    def hold_for_all(self, g: int, t: int, cell: float) -> None:
        """Hold of a pair's row its sum, and one number that each of its cells is read as.

        Parameters
        ----------
        g, t : int
        cell : float
        """
        total, place = float(self.sum(axis=2)[g, t]), int(self._places[g, t])
        self._replace(place, np.full(1, cell, dtype=self.dtype))
        self.hold_sum(g, t, total)

    def held_sums(self) -> NDArray[np.float64]:
        """(G, T): sums that are held; nan where none is."""
        sums = np.full(len(self._rows), np.nan)
        sums[list(self._held)] = list(self._held.values())
        return sums.reshape(self.shape[:2])

    # -- a checkpoint -------------------------------------------------------------------------------------------------

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return what is held: a number of every pair, rows of those whose numbers differ, and sums, nan for none."""
        at = [place for place, row in enumerate(self._rows) if row.ndim]
        return {
            "cells": np.array([row.flat[0] for row in self._rows], dtype=self.dtype).reshape(self.shape[:2]),
            "at": np.array(at, dtype=np.int64),
            "rows": np.array([self._rows[place] for place in at], dtype=self.dtype).reshape(-1, self.shape[2]),
            "sums": self.held_sums(),
        }

    def of_packed(self, packed: Mapping[str, NDArray[Any]]) -> PairRows:
        """Return the table of this shape that `packed` has made arrays of.

        Raises
        ------
        CorruptStore
            If they are of none.
        """
        at, rows, sums = packed["at"], packed["rows"], packed["sums"]
        if rows.shape != (len(at), self.shape[2]) or not ((at >= 0) & (at < self._places.size)).all():
            raise CorruptStore("its rows are of pairs that are not there")
        if np.any(sums < 0.0):
            raise CorruptStore("its sums are below 0")
        table = PairRows(self.shape, 0, self.dtype, self.better)
        table._rows = [np.array(cell, dtype=self.dtype) for cell in packed["cells"].ravel()]
        for place, row in zip(at.tolist(), rows, strict=True):
            table._replace(place, row)
        for g, t in np.argwhere(~np.isnan(sums)).tolist():
            table.hold_sum(g, t, float(sums[g, t]))
        return table

    def become(self, other: PairRows) -> None:
        """Hold what another table of the same kind does."""
        self.__dict__.update(other.copy().__dict__)

    # -- readers ------------------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self._stacked(self._places, slice(None))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        if named.get("out"):
            return NotImplemented
        arrays = [np.asarray(given) if isinstance(given, PairRows) else given for given in inputs]
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

    def __getitem__(self, index: Index) -> Any:
        pairs, folds = self._parted(index)
        if pairs is None:
            rows, folds = self._coordinates(index)
            picked = np.empty(rows.shape, dtype=self.dtype)
            for place in np.unique(rows).tolist():
                here = rows == place
                picked[here] = self._row(place)[folds[here]]
            return picked[()]
        if pairs.ndim == 0:
            return self._row(int(pairs))[folds]
        return self._stacked(pairs, folds)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return the sums of all pairs over their folds (axis 2), which are kept; any others as of an array."""
        for place, (taken, _) in enumerate(self._sums):
            if taken != self._writes[place]:
                before = self._writes[place]  # another thread may write meanwhile
                self._sums[place] = before, self._row(place).sum()
        sums = np.array([kept for _, kept in self._sums]).reshape(self.shape[:2])
        for place, total in self._held.items():
            at = np.unravel_index(place, sums.shape)
            sums[at] = total if self.better is None else self.better(sums[at], total)
        return sums if axis == 2 else sums.sum() if axis is None else np.asarray(self).sum(axis=axis)

    def all(self, axis: int | None = None) -> Any:
        """Return whether all cells are true, or all folds of each pair."""
        found = np.array([bool(row.all()) for row in self._rows]).reshape(self.shape[:2])
        return found if axis == 2 else found.all() if axis is None else np.asarray(self).all(axis=axis)

    def any(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """Return whether any cell is true, or any fold of each pair."""
        found = np.array([bool(row.any()) for row in self._rows]).reshape(self.shape[:2])
        return found if axis == 2 else found.any() if axis is None else np.asarray(self).any(axis=axis)

    def finite_rows(self) -> NDArray[np.bool_]:
        """(G, T): pairs with finite numbers alone."""
        return np.array([bool(np.isfinite(row).all()) for row in self._rows]).reshape(self.shape[:2])

    def _row(self, place: int) -> Row:
        """(K,) a row, not to be written to."""
        row = self._rows[place]
        if row.ndim == 0:
            return np.broadcast_to(row, self.shape[2])
        view = row.view()
        view.flags.writeable = False
        return view

    def _stacked(self, pairs: NDArray[np.intp], folds: Any) -> NDArray[Any]:
        parts = [self._row(int(place))[folds] for place in pairs.ravel().tolist()]
        width = np.shape(self._row(0)[folds]) if self._rows else (self.shape[2],)
        stacked = np.array(parts, dtype=self.dtype).reshape(*pairs.shape, *width)
        return stacked

    # -- the writer ---------------------------------------------------------------------------------------------------

    def __setitem__(self, index: Index, new: ArrayLike) -> None:
        pairs, folds = self._parted(index)
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

    def _parted(self, index: Index) -> tuple[NDArray[np.intp] | None, Any]:
        """Return the places of the pairs that an index picks, and its part for folds; None where arrays pick pairs."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(part is Ellipsis for part in parts):
            at = [part is Ellipsis for part in parts].index(True)
            fill = (slice(None),) * (self.ndim - len(parts) + 1)
            parts = (*parts[:at], *fill, *parts[at + 1 :])
        parts = (*parts, *(slice(None),) * (self.ndim - len(parts)))
        plain = [isinstance(part, int | np.integer | slice) for part in parts]
        one_pair = all(isinstance(part, int | np.integer) for part in parts[:2])
        if len(parts) > self.ndim or not all(plain[:2]) or not (plain[2] or one_pair):
            return None, None
        return np.asarray(self._places[parts[:2]]), parts[2]

    def _coordinates(self, index: Index) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places of pairs and the folds of all cells that an index picks."""
        places = np.broadcast_to(self._places[:, :, None], self.shape)[index]
        return np.asarray(places), np.asarray(np.broadcast_to(np.arange(self.shape[2]), self.shape)[index])
