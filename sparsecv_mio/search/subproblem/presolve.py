"""Trees of one fold after the first test by the duals of all rows: some cells need none, some need fewer columns.

A cell whose support is decided at its incumbent needs no tree. Where a single tau is asked for, columns that are in no
support worth keeping are taken out of the problem: safe for that tau alone, optima of two tau need not nest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.reused import Points, Tested, reuse
from sparsecv_mio.formulation.backends.native.path import SMALL, PathCell, PathResult
from sparsecv_mio.kernels.reused_dual import DROPPED
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import KEEP_RTOL

IntArray = NDArray[np.int64]
Solver = Callable[[SparseProblem, list[int], list[IntArray]], PathResult]
Tell = Callable[[int, int, int, float], None]

SLACK = 1e-12  # of y'y, beside the relative margin of a decided cell
NO_ROWS = 0


def solve_reduced(
    problem: SparseProblem,
    points: Points,
    taus: Sequence[int],
    starts: Sequence[IntArray],
    solver: Solver,
    tell: Tell,
    restrict: bool = True,
) -> PathResult:
    """As `solver`, but for what the points decide.

    Parameters
    ----------
    problem : SparseProblem
        Training rows of a fold at the gamma of the points.
    points : Points
    taus : sequence of int
    starts : sequence of int arrays
        Supports to try as incumbents.
    solver : callable
        `(problem, taus, starts) -> PathResult` for what is left.
    tell : callable
        Told (cells tested, cells decided, columns taken out, seconds).
    restrict : bool
        Take columns out.
    """
    begun = time.perf_counter()
    fold = FoldBounds(problem, np.zeros((NO_ROWS, problem.q)), np.zeros(NO_ROWS), points.diagonal)
    asked = [tau for tau in taus if 0 < tau < fold.m]
    tested: Tested | None = None
    if asked:
        fold.try_supports(starts)
        if problem.q <= SMALL:  # beyond, elimination costs more than a tree
            fold.search(asked)
        tested = reuse(fold, points, asked, KEEP_RTOL)
    if tested is None:
        tell(0, 0, 0, time.perf_counter() - begun)
        return solver(problem, list(taus), list(starts))
    decided = {int(tested.sizes[t]): _decided(fold, int(tested.sizes[t])) for t in np.flatnonzero(tested.decided)}
    left = [tau for tau in taus if tau not in decided]
    held = [tau for tau in left if 0 < tau < fold.m and np.isfinite(fold.best[tau])]
    known = [*starts, *(np.flatnonzero(fold.supports[tau]) for tau in held)]
    keep = np.arange(problem.q)
    copies = problem.copy_of is not None and bool(np.any(problem.copy_of >= 0))
    if restrict and not copies and len(left) == 1 and left[0] in tested.sizes:
        keep = np.flatnonzero(tested.status[int(np.searchsorted(tested.sizes, left[0]))] != DROPPED)
    tell(len(tested.sizes), len(decided), problem.q - len(keep), time.perf_counter() - begun)
    if not left:
        return PathResult(decided, 0, True)
    if len(keep) == problem.q or len(keep) <= left[0]:
        rest = solver(problem, left, known)
    else:
        rest = _in_columns(solver(restricted(problem, keep), left, _places(known, keep)), keep)
    return PathResult({**rest.cells, **decided}, rest.nodes, rest.finished, rest.reused)


def _decided(fold: FoldBounds, tau: int) -> PathCell:
    value = float(fold.best[tau])
    margin = KEEP_RTOL * value + SLACK * fold.problem.yy
    support = np.flatnonzero(fold.supports[tau])
    low = max(value - margin, 0.0)
    return PathCell(tau, support, low, value, (support,), (value,), margin, complete=True, branched=False)


def restricted(problem: SparseProblem, keep: IntArray) -> SparseProblem:
    """The problem on some of its columns, none of which is a copy.

    Examples
    --------
    >>> whole = SparseProblem(np.diag([1.0, 2.0]), np.ones(2), 4.0, np.ones(2), 1.0, 9, np.zeros(2), 0.0)
    >>> restricted(whole, np.array([1])).Q.tolist()
    [[2.0]]
    """
    return replace(
        problem,
        Q=np.ascontiguousarray(problem.Q[np.ix_(keep, keep)]),
        c=problem.c[keep],
        weight=problem.weight[keep],
        v_mean=problem.v_mean[keep],
        copy_of=np.full(len(keep), -1, dtype=np.intp) if problem.copy_of is not None else None,
        _gamma_free={},
    )


def _places(supports: Sequence[IntArray], keep: IntArray) -> list[IntArray]:
    """Supports that lie in `keep`, as places in it."""
    found = []
    for support in supports:
        place = np.searchsorted(keep, support)
        if np.all(place < len(keep)) and np.array_equal(keep[np.minimum(place, len(keep) - 1)], support):
            found.append(place.astype(np.int64))
    return found


def _in_columns(result: PathResult, keep: IntArray) -> PathResult:
    """Cells of a restricted problem in the columns of the whole."""
    cells = {
        tau: replace(
            cell, support=keep[cell.support], candidates=tuple(keep[support] for support in cell.candidates)
        )
        for tau, cell in result.cells.items()
    }
    return PathResult(cells, result.nodes, result.finished, result.reused)
