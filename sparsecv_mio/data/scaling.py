"""Column means and centred norms that neither overflow nor underflow, and rows about means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, row_chunks

CONSTANT_ULPS = 4.0


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Range, mean and norms of every column of an (n, p) array.

    Attributes
    ----------
    largest : (p,) array
        Largest absolute value.
    constant : (p,) bool array
        All values equal up to `4 eps` of the largest: what is left is the rounding of whoever wrote the file.
    mean : (p,) array
        Column means, weighted.
    norm : (p,) array
        Centred l2 norms, `sqrt(sum_i w_i (x_ij - mean_j)^2)`.
    raw_norm : (p,) array
        l2 norms about zero, weighted.
    """

    largest: FloatArray
    constant: BoolArray
    mean: FloatArray
    norm: FloatArray
    raw_norm: FloatArray


def column_moments(X: FloatArray, weights: FloatArray | None = None) -> ColumnMoments:
    """Two passes over power-of-two multiples of the columns; O(np) time, one 8 MB chunk of memory.

    Each column is multiplied by the power of two that brings its largest value into [1/2, 1), which is exact, so the
    squares stay in range for values up to 2^1000 in size. The second pass corrects the first pass's mean, which makes
    both moments accurate to a few ulps whatever the number of rows.

    Parameters
    ----------
    X : (n, p) array
    weights : (n,) array, optional
        Of the rows, positive; 1 by default.

    Examples
    --------
    >>> m = column_moments(np.array([[1e150], [3e150]]))
    >>> float(m.mean[0]), float(m.norm[0] / 1e150)
    (2e+150, 1.4142135623730951)
    """
    n, p = X.shape
    low, high = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    exponent = np.clip(np.frexp(largest)[1], -1000, 1000)
    factor = np.ldexp(1.0, -exponent)
    total = n if weights is None else float(weights.sum())

    def summed(block: FloatArray, rows: slice) -> FloatArray:
        return np.asarray(block.sum(axis=0) if weights is None else weights[rows] @ block)

    def squared(block: FloatArray, rows: slice) -> FloatArray:
        if weights is None:
            return np.asarray(np.einsum("ij,ij->j", block, block))
        return np.asarray(np.einsum("i,ij,ij->j", weights[rows], block, block))

    mean = np.zeros(p)
    for rows in row_chunks(n, p):
        mean += summed(X[rows] * factor, rows) / total
    drift, squares, raw = np.zeros(p), np.zeros(p), np.zeros(p)
    for rows in row_chunks(n, p):
        block = X[rows] * factor
        raw += squared(block, rows)
        block -= mean
        drift += summed(block, rows)
        squares += squared(block, rows)
    squares = np.maximum(squares - drift * (drift / total), 0.0)
    constant = high * factor - low * factor <= CONSTANT_ULPS * np.finfo(float).eps * (largest * factor)
    with np.errstate(over="ignore"):  # a norm beyond the floats becomes infinite and is refused by the caller
        norm, raw_norm = np.ldexp(np.sqrt(squares), exponent), np.ldexp(np.sqrt(raw), exponent)
    return ColumnMoments(largest, constant, np.ldexp(mean + drift / total, exponent), norm, raw_norm)


def nearest_exponent(values: FloatArray) -> IntArray:
    """Return e such that 2^e is nearest in ratio to each positive value.

    Examples
    --------
    >>> nearest_exponent(np.array([1.0, 3.0, 0.3])).tolist()
    [0, 2, -2]
    """
    mantissa, exponent = np.frexp(values)
    return np.where(mantissa < np.sqrt(0.5), exponent - 1, exponent).astype(np.int64)


def about_means(
    V: FloatArray, r: FloatArray, root: FloatArray | None, v_mean: FloatArray, r_mean: float
) -> tuple[FloatArray, FloatArray]:
    """Take means off rows, off each as often as the root of its weight says.

    Parameters
    ----------
    V, r : (m, q), (m,) arrays
        Each row times the root of its weight.
    root : (m,) array or None
        These roots; None where each row counts once.
    v_mean, r_mean : (q,) array, float
        Not scaled.

    Examples
    --------
    >>> about_means(np.array([[6.0]]), np.array([4.0]), np.array([2.0]), np.array([1.0]), 0.5)
    (array([[4.]]), array([3.]))
    """
    if root is None:
        return V - v_mean, r - r_mean
    return V - root[:, None] * v_mean, r - root * r_mean
