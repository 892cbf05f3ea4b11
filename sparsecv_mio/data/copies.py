"""Find columns that repeat another one, or its negative, without comparing all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray

COPY_RTOL = 1e-13


def find_copies(
    project: Callable[[FloatArray], FloatArray],
    column: Callable[[int], FloatArray],
    norm: FloatArray,
    weight: FloatArray,
    n: int,
) -> IntArray:
    """Return for each column the earliest earlier column that equals it or its negative, else -1.

    Parameters
    ----------
    project : callable
        `g -> V' g` for a vector g of n numbers.
    column : callable
        `j -> V[:, j]`.
    norm : (q,) array
        l2 norms of the columns of V.
    weight : (q,) array
        Penalty weights; only columns of equal weight can be copies.
    n : int
        Number of rows.

    Returns
    -------
    (q,) int array

    Notes
    -----
    `v` and `w` are copies when `||v - w||` or `||v + w||` is at most `1e-13 ||w||`. Equal columns have equal
    projections on any vector, so only neighbours in the sorted |projection on one fixed Gaussian vector| are compared:
    O(nq + q log q), plus O(n) for each such neighbour.
    """
    probe = np.random.Generator(np.random.PCG64(20240229)).standard_normal(n)
    key = np.abs(project(probe)) / norm
    order = np.argsort(key, kind="stable")
    window = 4 * COPY_RTOL * float(np.linalg.norm(probe))
    cuts = np.flatnonzero(np.diff(key[order]) > window) + 1
    copy_of = np.full(key.shape[0], -1, dtype=np.int64)
    for run in np.split(order, cuts):
        if run.size > 1:
            _link(np.sort(run), column, norm, weight, copy_of)
    return copy_of


def _link(
    run: IntArray, column: Callable[[int], FloatArray], norm: FloatArray, weight: FloatArray, copy_of: IntArray
) -> None:
    originals: list[tuple[int, FloatArray]] = []
    for j in run.tolist():
        v = column(j)
        for i, w in originals:
            if weight[i] == weight[j] and _same(v, w, COPY_RTOL * float(norm[i])):
                copy_of[j] = i
                break
        else:
            originals.append((j, v))


def _same(v: FloatArray, w: FloatArray, atol: float) -> bool:
    other = w if v @ w >= 0 else -w
    return float(np.linalg.norm(v - other)) <= atol
