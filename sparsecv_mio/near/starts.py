"""Supports worth valuing before any proof: the best ones on all rows, and exchanges while they help."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.near.collecting import Wanted
from sparsecv_mio.near.criteria import Criterion
from sparsecv_mio.problem.problem import SparseProblem

EFFORT = 2048  # nodes for each size of the best subsets on all rows
ROUNDS = 20  # of exchanges
MOST_TIED = 8  # near ties of a size that are tried


def offer(criterion: Criterion, wanted: Wanted, supports: Sequence[IntArray]) -> None:
    """Hand over some supports with their values.

    Parameters
    ----------
    criterion : Criterion
    wanted : Wanted
    supports : sequence of int arrays
        Ascending.
    """
    if not supports:
        return
    values, errors = criterion.values(supports)
    for support, value, error in zip(supports, values.tolist(), errors.tolist(), strict=True):
        wanted.take(support, value, error)


def best_on_all_rows(
    problem: SparseProblem, taus: Sequence[int], expired: Callable[[], bool], effort: int = EFFORT
) -> list[IntArray]:
    """Return supports with a small training objective, some of each size.

    Parameters
    ----------
    problem : SparseProblem
        All rows at one gamma.
    taus : sequence of int
    expired : callable
    effort : int
        Nodes for each size.
    """
    found = solve_path(problem, taus, effort=effort, expired=expired)
    return [
        np.sort(one)
        for tau, cell in found.cells.items()
        for one in (cell.support, *cell.candidates[:MOST_TIED])
        if len(one) == tau
    ]


def neighbours(support: IntArray, q: int, forced: IntArray, taus: Sequence[int]) -> list[IntArray]:
    """Return the supports of some sizes that differ by one column more, one less, or one in the place of another.

    Parameters
    ----------
    support : int array
        Ascending.
    q : int
        Number of columns.
    forced : int array
        Columns that stay.
    taus : sequence of int
        Sizes that are wanted.

    Examples
    --------
    >>> [one.tolist() for one in neighbours(np.array([0, 1]), 3, np.array([0]), [1, 2])]
    [[0], [0, 2]]
    """
    size = len(support)
    outside = np.setdiff1d(np.arange(q), support)
    shorter = [np.delete(support, np.searchsorted(support, j)) for j in np.setdiff1d(support, forced).tolist()]
    found = list(shorter) if size - 1 in taus else []
    for start in (*(shorter if size in taus else ()), *([support] if size + 1 in taus else ())):
        found += [np.insert(start, np.searchsorted(start, j), j) for j in outside.tolist()]
    return found
