"""Supports: ascending columns in an array of their own, several as the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import IntArray

NO_COLUMN = -1  # fills rows of a table beyond the size of their support


def table_of(supports: Sequence[NDArray[np.integer]], width: int) -> IntArray:
    """Return supports as the rows (m, width) of a table, `NO_COLUMN` beyond their size.

    Examples
    --------
    >>> table_of([np.array([2, 5]), np.array([], dtype=int)], 3).tolist()
    [[2, 5, -1], [-1, -1, -1]]
    """
    table = np.full((len(supports), width), NO_COLUMN, dtype=np.int64)
    for row, support in zip(table, supports, strict=True):
        row[: len(support)] = support
    return table


def missing_columns(support: IntArray, size: int, others: IntArray) -> IntArray:
    """Return the first of the `others` that a support lacks, as many as it is short of `size` columns.

    Parameters
    ----------
    support : int array
    size : int
    others : int array
        Distinct columns, in the order of preference.

    Returns
    -------
    int array
        Fewer where there are no more others.
    """
    return others[~np.isin(others, support)][: max(size - len(support), 0)]


def filled_up(support: IntArray, size: int, others: IntArray) -> IntArray:
    """Return a support with its :func:`missing_columns`, in ascending order.

    Parameters
    ----------
    support : int array
    size : int
    others : int array
        Distinct columns, in the order of preference.

    Returns
    -------
    int array

    Examples
    --------
    >>> filled_up(np.array([1, 4]), 3, np.array([4, 3, 0])).tolist()
    [1, 3, 4]
    """
    return np.sort(np.append(support, missing_columns(support, size, others))).astype(np.int64)


def places_in(columns: IntArray, supports: Sequence[IntArray]) -> list[IntArray]:
    """Return the supports that lie in some ascending columns, each by its places in these.

    Examples
    --------
    >>> [support.tolist() for support in places_in(np.array([1, 4, 6]), [np.array([1, 6]), np.array([2, 4])])]
    [[0, 2]]
    """
    return [np.searchsorted(columns, support) for support in supports if np.all(np.isin(support, columns))]
