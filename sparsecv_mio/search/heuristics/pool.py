"""Supports for the folds to learn from each other, without repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.search.heuristics.fold_search import FoldSearch
from sparsecv_mio.search.subproblem.supports import table_of

MOST_POOLED = 12  # supports of one gamma and size, those that most folds found first


def seeds_of(supports: Sequence[NDArray[np.integer]], top: int) -> IntArray:
    """Return the supports of 1 to `top` columns as rows (m, top), -1 beyond their size."""
    return table_of([support for support in supports if 0 < len(support) <= top], top)


def pooled(searches: Sequence[FoldSearch], q: int, most: int = MOST_POOLED) -> tuple[IntArray, IntArray]:
    """Collect what the searches of some folds found.

    Parameters
    ----------
    searches : sequence of FoldSearch
        With the same gammas and sizes.
    q : int
        Columns of the data.
    most : int
        Supports of one gamma and size, those that most folds found.

    Returns
    -------
    supports : (m, top) int array
        Columns of the data, -1 beyond the size; none of a gamma and size at which all folds agree.
    gammas : (m,) int array
        Index of the gamma of each.

    Notes
    -----
    Supports are told apart by the sum of random 64-bit keys of their columns; a collision loses a start, no more.
    """
    keys = np.random.default_rng(0).integers(0, 1 << 63, q + 1, dtype=np.int64)
    keys[-1] = 0  # of -1
    seeds: list[IntArray] = []
    found = [search.found() for search in searches]
    for g in range(len(searches[0].lams)):
        columns = np.stack([mine[g] for mine in found])
        sums = keys[columns].sum(axis=-1)
        for size in range(1, columns.shape[1]):
            _, first, count = np.unique(sums[:, size], return_index=True, return_counts=True)
            common = first[np.argsort(-count, kind="stable")[:most]]
            if len(first) > 1:
                seeds.append(np.column_stack([np.full(len(common), g), columns[common, size]]))
    if not seeds:
        return np.empty((0, searches[0].top), dtype=np.int64), np.empty(0, dtype=np.int64)
    both = np.concatenate(seeds)
    return np.ascontiguousarray(both[:, 1:]), np.ascontiguousarray(both[:, 0])
