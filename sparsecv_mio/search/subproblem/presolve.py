"""Branch-and-bound in one fold after a test by the relaxations on all rows (reused duals).

The dual solutions of the relaxations on all rows are dual feasible in every fold (:mod:`sparsecv_mio.bounds.reused`).
In a fold they fix columns in or out of every near-optimal support. A cell whose support they fix completely needs no
branch-and-bound. Where a single tau is left, the columns that are fixed out are removed from the problem; this is valid
for that tau alone, as optima of two tau need not be nested.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.reused import Points, reuse
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.formulation.backends.native.path import SMALL
from sparsecv_mio.kernels.reused_dual import Reused
from sparsecv_mio.kernels.status import DROPPED
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.moment_fits import near_tie_margin
from sparsecv_mio.search.subproblem.supports import places_in
from sparsecv_mio.units import KEEP_RTOL

Solver = Callable[[SparseProblem, list[int], list[IntArray]], PathResult]


class Report(Protocol):
    """Takes note of what one test did."""

    def __call__(self, *, seconds: float, asked: int = 0, mios: int = 0, columns: int = 0) -> None:
        """Count cells that were tested, those decided without branch-and-bound, and columns removed for the others."""


def solve_presolved(
    problem: SparseProblem,
    points: Points,
    taus: Sequence[int],
    starts: Sequence[IntArray],
    solver: Solver,
    report: Report,
    restrict: bool = True,
) -> PathResult:
    """Solve some tau of a fold, by `solver` what the relaxations on all rows do not decide.

    Parameters
    ----------
    problem : SparseProblem
        Training rows of a fold at the gamma of the points.
    points : Points
        Solutions of the relaxations on all rows.
    taus : sequence of int
    starts : sequence of int arrays
        Supports to try as incumbents.
    solver : callable
        `(problem, taus, starts) -> PathResult`.
    report : callable
        Called with what the test did.
    restrict : bool
        Whether columns may be removed.

    Returns
    -------
    PathResult
        In the columns of `problem`.
    """
    begun = time.perf_counter()
    fold = FoldBounds(problem, np.zeros((0, problem.q)), np.zeros(0), points.diagonal)  # no held-out rows
    tested = _test(fold, points, [tau for tau in taus if 0 < tau < fold.m], starts)
    if tested is None:
        report(seconds=time.perf_counter() - begun)
        return solver(problem, list(taus), list(starts))
    decided = {int(tested.sizes[t]): _decided(fold, int(tested.sizes[t])) for t in np.flatnonzero(tested.decided)}
    left = [tau for tau in taus if tau not in decided]
    incumbents = [tau for tau in left if 0 < tau < fold.m and np.isfinite(fold.best[tau])]
    known = [*starts, *(np.flatnonzero(fold.supports[tau]) for tau in incumbents)]
    keep = _columns_left(problem, tested, left) if restrict else np.arange(problem.q)
    seconds, removed = time.perf_counter() - begun, problem.q - len(keep)
    report(seconds=seconds, asked=len(tested.sizes), mios=len(decided), columns=removed)
    if not left:
        return PathResult(decided, 0, True)
    if len(keep) == problem.q or len(keep) <= left[0]:
        rest = solver(problem, left, known)
    else:
        rest = in_columns(solver(problem.only(keep), left, places_in(keep, known)), keep)
    return PathResult({**rest.cells, **decided}, rest.nodes, rest.finished, rest.reused)


def _test(fold: FoldBounds, points: Points, sizes: list[int], starts: Sequence[IntArray]) -> Reused | None:
    """Test the points on all rows in a fold; None where they say nothing."""
    if not sizes:
        return None
    fold.try_supports(starts)
    if fold.problem.q <= SMALL:  # beyond, elimination costs more than a tree
        fold.search(sizes)
    return reuse(fold, points, sizes, KEEP_RTOL)


def _decided(fold: FoldBounds, tau: int) -> PathCell:
    """Cell of which the incumbent is the only near-optimal support."""
    value, support = float(fold.best[tau]), np.flatnonzero(fold.supports[tau])
    margin = near_tie_margin(fold.problem, value)
    low = max(value - margin, 0.0)
    return PathCell(tau, support, low, value, (support,), (value,), margin, complete=True, branched=False)


def _columns_left(problem: SparseProblem, tested: Reused, left: list[int]) -> IntArray:
    """Columns that a near-optimal support may hold, where a single tau is left and no column has a copy; else all."""
    copies = problem.copy_of is not None and bool(np.any(problem.copy_of >= 0))
    if copies or len(left) != 1 or left[0] not in tested.sizes:
        return np.arange(problem.q)
    return np.flatnonzero(tested.status[int(np.searchsorted(tested.sizes, left[0]))] != DROPPED)


def in_columns(result: PathResult, columns: IntArray) -> PathResult:
    """Return the result for a restricted problem in the columns of the whole."""
    cells = {
        tau: replace(
            cell, support=columns[cell.support], candidates=tuple(columns[support] for support in cell.candidates)
        )
        for tau, cell in result.cells.items()
    }
    return replace(result, cells=cells)
