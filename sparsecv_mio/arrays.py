"""Array types for type annotations, block sizes for loops over rows, and exact products of floating-point numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
LongArray = NDArray[np.longdouble]

LONG = np.longdouble
FINE = 16.0 * float(np.finfo(LONG).eps)  # bound on the rounding error of a sum in long precision


class ArrowTable(Protocol):
    """A table that exports its columns as an Arrow stream, such as those of polars, DuckDB and Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream in a Python capsule."""


CHUNK_ELEMENTS = 1 << 20  # a block of 8 MB stays near the caches, and no pass over X copies all of X
BLOCK_NUMBERS = 1 << 22  # numbers in a block of any other computation: 32 MB
CACHED_NUMBERS = 1 << 15  # numbers in a block of rows that is read repeatedly: 0.3 MB, which fits in a cache
CACHED_ROWS = 1 << 12  # rows in such a block if only some of its columns are read
STORE_BYTES = 1 << 28  # bytes of results that are cached


def is_constant(array: NDArray[Any]) -> bool:
    """Return True if one number in memory stands for all elements of an array."""
    return array.strides == (0,) * array.ndim


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cut n rows of `width` numbers into blocks of at most 8 MB."""
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def base_with_ones(X: FloatArray) -> FloatArray | None:
    """Return the (1 + p, n) array of which X is a view, with ones in its first row; None if there is no such array.

    Examples
    --------
    >>> columns = prepend_ones(np.array([[2.0, 3.0], [4.0, 5.0]]), np.array([1]))
    >>> columns.tolist(), base_with_ones(columns[1:].T) is columns
    ([[1.0, 1.0], [3.0, 5.0]], True)
    """
    (n, p), whole = X.shape, X.base
    if isinstance(whole, np.ndarray) and whole.shape == (1 + p, n) and whole.flags.c_contiguous:
        inside = whole[1:].T
        if (X.ctypes.data, X.strides) == (inside.ctypes.data, inside.strides) and np.all(whole[0] == 1.0):
            return whole
    return None


def prepend_ones(X: FloatArray, columns: IntArray) -> FloatArray:
    """Return the (1 + k, n) array of a row of ones and k columns of X."""
    whole = np.empty((1 + len(columns), len(X)))
    whole[0] = 1.0
    for row, j in zip(whole[1:], columns, strict=True):
        row[:] = X[:, j]
    return whole


def give_back_memory() -> None:
    """Return free memory between arrays to the operating system, if the C library supports it (glibc).

    Without this, large arrays do not fit into the gaps between others, and the process grows with each new array.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SPLITTER = 2.0**27 + 1.0  # splits a float into two halves of 26 bits, whose products are exact


def power_of_two(size: ArrayLike) -> FloatArray:
    """Return the power of two above each size, 1 for 0."""
    return np.asarray(np.exp2(np.where(np.asarray(size) > 0.0, np.frexp(size)[1], 0).astype(float)))


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product and its rounding error, which together equal `a * b` exactly (Dekker)."""
    product = a * b
    a_high, b_high = SPLITTER * a, SPLITTER * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def unmask(values: Any) -> Any:
    """Return a masked array of numpy with NaN in its masked cells, and any other object unchanged.

    Examples
    --------
    >>> unmask(np.ma.masked_greater([1.0, 5.0], 2.0))
    array([ 1., nan])
    """
    return np.ma.filled(values.astype(np.float64), np.nan) if isinstance(values, np.ma.MaskedArray) else values


def is_missing_cell(value: object) -> bool:
    """Return True if a cell is None, NaN, or a missing value of pandas, whose `NA` has no truth value.

    Examples
    --------
    >>> [is_missing_cell(value) for value in (None, float("nan"), 0.0, "")]
    [True, True, False, False]
    """
    return value is None or repr(value) in ("<NA>", "NaT") or (isinstance(value, float) and value != value)
