"""PEGASOS and averaged least-squares SGD for TreeCV: updates and scores of a model, and the recursion over folds.

A model is one row of numbers, `[v (p), t]` for PEGASOS (kind 0) or `[w (p), sum of w (p), t]` for least squares (kind
1), where t is the number of rows learned. The argument `a` is the penalty weight lam of PEGASOS or the step length of
least squares. A random order of rows depends only on (seed, first row, last row), so it is the same for `tree` and
`standard` cross-validation and on all threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.kernels.jit import njit

PEGASOS, LEAST_SQUARES = range(2)


class Sgd(NamedTuple):
    """Settings of the updates: the kind and its `a`, in order or shuffled by a seed."""

    kind: int
    a: float
    shuffled: bool
    seed: int


@njit(cache=True, nogil=True)
def splitmix(x: np.uint64) -> np.uint64:
    """Return one step of splitmix64 on a uint64. O(1)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def shuffled_range(first: int, last: int, seed: int, out: NDArray[np.int64]) -> None:
    """Fill `out[:last - first]` with first .. last-1 in a random order (Fisher-Yates). O(last - first).

    Parameters
    ----------
    first, last : int
        Range.
    seed : int
        Seed.
    out : int array
        Array to fill.
    """
    m = last - first
    for i in range(m):
        out[i] = first + i
    key = splitmix(splitmix(splitmix(np.uint64(seed)) ^ np.uint64(first)) ^ np.uint64(last))
    for i in range(m - 1, 0, -1):
        key = splitmix(key)
        j = np.int64(np.float64(key >> np.uint64(11)) * 1.1102230246251565e-16 * (i + 1))  # 2^-53
        kept = out[i]
        out[i] = out[j]
        out[j] = kept


@njit(cache=True, nogil=True)
def learn_row(kind, model, x, target, a):
    """Update `model` in place by one row. O(p).

    Parameters
    ----------
    kind : int
        Kind of model.
    model : array
        Row of numbers as defined in the module.
    x, target : (p,) array, float
        Row and target.
    a : float
        Parameter a.
    """
    p = x.shape[0]
    t = model[model.shape[0] - 1]
    product = 0.0
    for j in range(p):
        product += model[j] * x[j]
    if kind == PEGASOS:
        # w = v / (lam t): (1 - 1/t) w + y x / (lam t) leaves v alone or adds y x to it
        if t == 0.0 or target * product < a * t:
            for j in range(p):
                model[j] += target * x[j]
    else:
        move = 2.0 * a * (product - target)
        length = 0.0
        for j in range(p):
            w = model[j] - move * x[j]
            model[j] = w
            length += w * w
        shrink = 1.0 / np.sqrt(length) if length > 1.0 else 1.0
        for j in range(p):
            model[j] *= shrink
            model[p + j] += model[j]
    model[model.shape[0] - 1] = t + 1.0


@njit(cache=True, nogil=True)
def learn_rows(kind, model, X, y, a):
    """Update `model` in place by all rows in order. O(m p).

    Parameters
    ----------
    kind : int
        Kind of model.
    model : array
        Row of numbers as defined in the module.
    X, y : (m, p), (m,) arrays
        Rows and targets.
    a : float
        Parameter a.
    """
    for i in range(X.shape[0]):
        learn_row(kind, model, X[i], y[i], a)


@njit(cache=True, nogil=True)
def score_rows(kind, model, X, y, first, last):
    """Return the mean loss over rows first .. last-1: share of wrong signs (kind 0) or squared error (kind 1). O(m p).

    Parameters
    ----------
    kind : int
        Kind of model.
    model : array
        Row of numbers as defined in the module.
    X, y : (m, p), (m,) arrays
        Rows and targets.
    first, last : int
        Range of rows.
    """
    p = X.shape[1]
    t = max(model[model.shape[0] - 1], 1.0)
    total = 0.0
    for i in range(first, last):
        product = 0.0
        for j in range(p):
            product += (model[j] if kind == PEGASOS else model[p + j]) * X[i, j]
        if kind == PEGASOS:
            total += 1.0 if (product >= 0.0) != (y[i] > 0.0) else 0.0
        else:
            total += (product / t - y[i]) ** 2
    return total / (last - first)


@njit(cache=True, nogil=True)
def learn_range(sgd, model, X, y, first, last, order):
    """Update a model by a range of rows. O(m p).

    Parameters
    ----------
    sgd : Sgd
        Settings.
    model : array
        Model, changed in place.
    X, y : (n, p), (n,) arrays
        Rows and targets.
    first, last : int
        Rows first .. last-1.
    order : int array
        Work array of at least that length, if rows are shuffled.
    """
    if sgd.shuffled:
        shuffled_range(first, last, sgd.seed, order)
        for i in range(last - first):
            learn_row(sgd.kind, model, X[order[i]], y[order[i]], sgd.a)
    else:
        for i in range(first, last):
            learn_row(sgd.kind, model, X[i], y[i], sgd.a)


@njit(cache=True, nogil=True)
def tree(sgd, base, X, y, starts, first, last, scores):
    """Cross-validate some chunks from a model of all other rows; return the number of rows learned.

    Parameters
    ----------
    sgd : Sgd
        Settings.
    base : array
        Model.
    X, y : (n, p), (n,) arrays
        Rows and targets.
    starts : (k + 1,) int array
        Start of each chunk.
    first, last : int
        Chunks first .. last-1.
    scores : (last - first,) array
        Array to fill.

    Notes
    -----
    The tree is depth-first on an explicit stack with one model for each level, so it needs O(p log k) memory. The left
    child is a copy that learns the right half's chunks; the right child then reuses its parent's memory. O(m p log2 k)
    time, with m rows in the chunks.
    """
    levels = 2
    while (1 << (levels - 2)) < last - first:
        levels += 1
    models = np.empty((levels, base.shape[0]))
    models[0] = base
    longest = starts[last] - starts[first] if sgd.shuffled else 0
    order = np.empty(longest, dtype=np.int64)
    stack = np.empty((2 * levels, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = first, last, 0, 0
    height, learned = 1, 0
    while height > 0:
        height -= 1
        s, e, level, second = stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3]
        if e - s == 1:
            scores[s - first] = score_rows(sgd.kind, models[level], X, y, starts[s], starts[e])
            continue
        m = s + (e - s + 1) // 2
        if second == 0:
            stack[height, 3] = 1
            height += 1
            for j in range(base.shape[0]):
                models[level + 1, j] = models[level, j]
            lo, hi = starts[m], starts[e]
            learn_range(sgd, models[level + 1], X, y, lo, hi, order)
            stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3] = s, m, level + 1, 0
        else:
            lo, hi = starts[s], starts[m]
            learn_range(sgd, models[level], X, y, lo, hi, order)
            stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3] = m, e, level, 0
        height += 1
        learned += hi - lo
    return learned
