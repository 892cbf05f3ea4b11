"""Array types for signatures, block sizes for passes over rows, and exact products of floats."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class ArrowTable(Protocol):
    """A table that exports its columns as an Arrow stream: of polars, DuckDB, Arrow and other libraries."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream in a capsule of Python."""


CHUNK_ELEMENTS = 1 << 20  # 8 MB blocks keep every pass over X inside the caches' reach and free of copies of X
BLOCK_NUMBERS = 1 << 22  # in a block of any other work that is done at once: 32 MB
CACHED_NUMBERS = 1 << 15  # of rows that are looked at several times over: 0.3 MB, as caches hold
CACHED_ROWS = 1 << 12  # the same, where only some columns of them are looked at
STORE_BYTES = 1 << 28  # of what is kept so that it need not be computed again


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cut n rows of `width` numbers into blocks of at most 8 MB."""
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def beside_ones(X: FloatArray) -> FloatArray | None:
    """Return the (1 + p, n) array, of a row of ones and the columns of X, that X is a view of; None where it is none.

    Examples
    --------
    >>> columns = put_beside_ones(np.array([[2.0, 3.0], [4.0, 5.0]]), np.array([1]))
    >>> columns.tolist(), beside_ones(columns[1:].T) is columns
    ([[1.0, 1.0], [3.0, 5.0]], True)
    """
    (n, p), whole = X.shape, X.base
    if isinstance(whole, np.ndarray) and whole.shape == (1 + p, n) and whole.flags.c_contiguous:
        inside = whole[1:].T
        if (X.ctypes.data, X.strides) == (inside.ctypes.data, inside.strides) and np.all(whole[0] == 1.0):
            return whole
    return None


def put_beside_ones(X: FloatArray, columns: IntArray) -> FloatArray:
    """Return a (1 + k, n) array of a row of ones and k columns of X."""
    whole = np.empty((1 + len(columns), len(X)))
    whole[0] = 1.0
    for row, j in zip(whole[1:], columns, strict=True):
        row[:] = X[:, j]
    return whole


def give_back_memory() -> None:
    """Have the C library give the holes between its arrays back to the system, where it can (glibc).

    Else no array of many rows finds room in them, and the process grows by each new one.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SPLITTER = 2.0**27 + 1.0  # takes a number apart into halves of 26 digits, whose products are exact


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product and what rounding took off: `a * b` exactly (Dekker)."""
    product = a * b
    a_high, b_high = SPLITTER * a, SPLITTER * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
