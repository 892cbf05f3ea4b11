"""Deal rows out to folds: the arithmetic behind the specs `K`, `stratified:K`, `blocks:B`, `holdout:F`, `forward:K`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import MOST_ROWS, RowLists, row_lists
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.grids import number

SPECS = (
    "K, RxK (R repeats), loo, stratified:K, forward:K, blocks:B, holdout:F, groups:COLUMN, column:COLUMN or file:F"
)


def _draws(count: int, seed: int, repeat: int) -> NDArray[np.uint64]:
    """Return raw random numbers, every repeat the next ones of the stream."""
    # numpy keeps the raw stream of PCG64 across versions but not what Generator.permutation makes of it, and a record
    # must still find its folds years later.
    bits = np.random.PCG64(seed)
    if repeat:
        bits.advance(repeat * count)
    return np.asarray(bits.random_raw(count))


def _dealt(labels: IntArray, seed: int, repeat: int) -> IntArray:
    """Deal labels to rows in a shuffled order."""
    order = np.argsort(_draws(len(labels), seed, repeat), kind="stable")
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[order] = labels
    return dealt


def whole_number(text: str, spec: str) -> int:
    """Return the number that a part of a spec spells, or refuse the spec."""
    if not (text.isascii() and text.isdigit()):
        near = did_you_mean(text, ("loo",)) if ":" not in spec else ""
        raise BadInput(f"folds {spec!r} are unknown{near}: use {SPECS}")
    return int(text) if len(text) <= 18 else 10**18  # more than any data have rows


def equal_folds(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `K` shuffled folds whose sizes differ by at most one.

    Parameters
    ----------
    text : str
        `K` as it was given.
    n : int
        Number of rows.
    seed, repeat : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    k = _folds(text, text, n)
    return _dealt(np.repeat(np.arange(k), [n // k + (j < n % k) for j in range(k)]), seed, repeat)


def _folds(text: str, spec: str, n: int) -> int:
    k = whole_number(text, spec)
    if k < 2:
        raise BadInput(f"folds {spec!r} make fewer than two folds: ask for 2 or more, or holdout:F for one scored fold")
    if k > n:
        raise BadInput(f"folds {spec!r} need {k} rows but the data has {n}: ask for fewer folds")
    return k


def stratified(text: str, y: FloatArray, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `stratified:K`: K folds with the same share of every quantile of the target.

    In the order of the target, equal ones shuffled, each K rows in turn go to the K folds in a random order.

    Parameters
    ----------
    text : str
        `K` as it was given.
    y : (n,) array
        Target.
    seed, repeat : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.

    Examples
    --------
    >>> labels = stratified("2", np.array([5.0, 1.0, 4.0, 2.0, 3.0]), 0)
    >>> sorted(labels[[1, 3]].tolist()), sorted(labels[[2, 4]].tolist())
    ([0, 1], [0, 1])
    """
    n = len(y)
    k, draws = _folds(text, f"stratified:{text}", n), _draws(2 * n, seed, repeat)
    by_target, place = np.lexsort((draws[:n], y)), np.arange(n)
    labels = np.empty(n, dtype=np.int64)
    labels[by_target[np.lexsort((draws[n:], place // k))]] = place % k
    return labels


def forward(text: str, n: int) -> tuple[RowLists, RowLists]:
    """Return the rows scored and the rows left out by the folds of `forward:K`, as scikit-learn's TimeSeriesSplit.

    Parameters
    ----------
    text : str
        `K` as it was given.
    n : int
        Number of rows, in the order of time.

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.

    Examples
    --------
    >>> scored, left = forward("2", 6)
    >>> scored.of(0).tolist(), left.of(0).tolist()
    ([2, 3], [2, 3, 4, 5])
    """
    spec = f"forward:{text}"
    k = whole_number(text, spec)
    if k < 2:
        raise BadInput(f"folds {spec!r} make fewer than two folds: ask for 2 or more")
    if k >= n:
        raise BadInput(f"folds {spec!r} need more than {k} rows but the data has {n}: ask for fewer folds")
    if k * n > MOST_ROWS:
        raise BadInput(f"folds {spec!r} of {n} rows list too many rows: ask for fewer folds")
    size = n // (k + 1)
    begins = range(n - k * size, n, size)
    return row_lists([np.arange(at, at + size) for at in begins]), row_lists([np.arange(at, n) for at in begins])


def blocks(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `blocks:B`: floor(n / B) blocks, the rows left over dealt out one to a block in turn.

    Parameters
    ----------
    text : str
        `B` as it was given.
    n : int
        Number of rows.
    seed, repeat : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    spec = f"blocks:{text}"
    size = whole_number(text, spec)
    if size < 1:
        raise BadInput(f"folds {spec!r} have empty blocks: ask for at least one row a block")
    k = n // size
    if k < 2:
        raise BadInput(f"folds {spec!r} make fewer than two blocks of the data's {n} rows: ask for smaller blocks")
    return _dealt(np.concatenate((np.repeat(np.arange(k), size), np.arange(n - k * size) % k)), seed, repeat)


def holdout(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `holdout:F`: 0 for the nearest whole number to F n rows (at least one), -1 for the others.

    Parameters
    ----------
    text : str
        `F` as it was given.
    n : int
        Number of rows.
    seed, repeat : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    spec = f"holdout:{text}"
    try:
        share = number(text, spec)
    except BadInput:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise BadInput(f"folds {spec!r}: the share of held-out rows must be between 0 and 1, as in holdout:0.2")
    held = max(1, int(share * n + 0.5))
    return _dealt(np.repeat([0, -1], [held, n - held]), seed, repeat)
