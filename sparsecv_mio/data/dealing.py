"""Deal shuffled rows out to folds: the arithmetic behind the specs `K`, `blocks:B` and `holdout:F`."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.errors import BadInput, did_you_mean

SPECS = "K, loo, blocks:B, holdout:F, groups:COLUMN, column:COLUMN or file:F"


def _dealt(labels: IntArray, seed: int) -> IntArray:
    """Deal labels to rows in a shuffled order."""
    # numpy keeps the raw stream of PCG64 across versions but not what Generator.permutation makes of it, and a record
    # must still find its folds years later.
    order = np.argsort(np.random.PCG64(seed).random_raw(len(labels)), kind="stable")
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[order] = labels
    return dealt


def _whole_number(text: str, spec: str) -> int:
    if not (text.isascii() and text.isdigit()):
        near = did_you_mean(text, ("loo",)) if ":" not in spec else ""
        raise BadInput(f"folds {spec!r} are unknown{near}: use {SPECS}")
    return int(text) if len(text) <= 18 else 10**18  # more than any data have rows


def equal_folds(text: str, n: int, seed: int) -> IntArray:
    """Return labels of `K` shuffled folds whose sizes differ by at most one.

    Parameters
    ----------
    text : str
        `K` as it was given.
    n : int
        Number of rows.
    seed : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    k = _whole_number(text, text)
    if k < 2:
        raise BadInput(f"folds {text!r} make fewer than two folds: ask for 2 or more, or holdout:F for one scored fold")
    if k > n:
        raise BadInput(f"folds {text!r} need {k} rows but the data has {n}: ask for fewer folds")
    return _dealt(np.repeat(np.arange(k), [n // k + (j < n % k) for j in range(k)]), seed)


def blocks(text: str, n: int, seed: int) -> IntArray:
    """Return labels of `blocks:B`: floor(n / B) blocks, the rows left over dealt out one to a block in turn.

    Parameters
    ----------
    text : str
        `B` as it was given.
    n : int
        Number of rows.
    seed : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    spec = f"blocks:{text}"
    size = _whole_number(text, spec)
    if size < 1:
        raise BadInput(f"folds {spec!r} have empty blocks: ask for at least one row a block")
    k = n // size
    if k < 2:
        raise BadInput(f"folds {spec!r} make fewer than two blocks of the data's {n} rows: ask for smaller blocks")
    return _dealt(np.concatenate((np.repeat(np.arange(k), size), np.arange(n - k * size) % k)), seed)


def holdout(text: str, n: int, seed: int) -> IntArray:
    """Return labels of `holdout:F`: 0 for the nearest whole number to F n rows (at least one), -1 for the others.

    Parameters
    ----------
    text : str
        `F` as it was given.
    n : int
        Number of rows.
    seed : int

    Raises
    ------
    BadInput
        It is no number that makes folds of n rows.
    """
    spec = f"holdout:{text}"
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise BadInput(f"folds {spec!r}: the share of held-out rows must be between 0 and 1, as in holdout:0.2")
    held = max(1, int(share * n + 0.5))
    return _dealt(np.repeat([0, -1], [held, n - held]), seed)
