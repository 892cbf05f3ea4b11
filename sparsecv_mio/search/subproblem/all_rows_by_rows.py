"""Best subsets of all rows where columns are too many for a matrix of their products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathCell, PathResult
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.subproblem.presolve import in_columns
from sparsecv_mio.search.subproblem.supports import places_in

PART_COLUMNS = 3000  # whose products are formed, once


def all_rows_of(data: StandardData, gamma: float, expired: Callable[[], bool]) -> WideFold:
    """Return all rows at a gamma, none held out. O(n^2 q).

    Parameters
    ----------
    data : StandardData
    gamma : float
    expired : callable
        True ends what is computed of them early.
    """
    rows = np.arange(data.n)
    return WideFold(WideRows.of(data, rows, rows[:0], gamma), expired)


def solve_by_rows(
    data: StandardData,
    whole: WideFold,
    tau: int,
    gamma: float,
    expired: Callable[[], bool],
    effort: int = UNLIMITED,
) -> PathResult:
    """Find the best subset of one size on all rows; by a tree on the rows where screening leaves many columns.

    Parameters
    ----------
    data : StandardData
    whole : WideFold
        All rows at `gamma`.
    tau : int
    gamma : float
    expired : callable
        True ends it with what it holds.
    effort : int
        As for `solve_path`.
    """
    seen, nodes = whole.survivors(tau), 0
    if len(seen.columns) > PART_COLUMNS and not expired():
        branched, nodes = whole.branch(tau, most=effort)
        seen = replace(branched, lower=max(branched.lower, seen.lower))
    support = whole.incumbent(tau)
    held = support if support is not None else np.zeros(0, dtype=np.int64)
    cell = PathCell.unproved(tau, held, lower=seen.lower)
    if len(seen.columns) > PART_COLUMNS or expired():
        return PathResult({tau: cell}, nodes, False)
    small = data.only(seen.columns)
    problem = row_moments(small, slice(0, data.n)).problem(small, gamma)
    starts = places_in(seen.columns, [support] if support is not None else [])
    result = in_columns(solve_path(problem, [tau], starts=starts, effort=effort, expired=expired), seen.columns)
    cell = result.cells[tau]
    if not cell.complete:
        result.cells[tau] = replace(cell, lower=max(cell.lower, seen.lower))
    return replace(result, nodes=result.nodes + nodes)
