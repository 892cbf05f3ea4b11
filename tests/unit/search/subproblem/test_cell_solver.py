"""Cells one at a time, by our own trees or a solver that names one support only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing

from .drawn import TAUS, assert_true, best_support, cells_of, context_of
from .drawn import solver_of as fold_solver_of


def solver_of(context: Context, vendor: VendorListing | None = None) -> CellSolver:
    return CellSolver(fold_solver_of(context, cells_of(context)), vendor)


def test_each_cell_is_decided_and_true_and_solved_once() -> None:
    context = context_of(1)
    solver = solver_of(context)
    for g, t, fold in np.ndindex(*context.shape):
        solver.solve((g, t, fold), solver.starts((g, t, fold)))
    assert solver.cells.decided.all()
    assert_true(context, solver.cells)
    assert solver.solve((0, 2, 0), []) == 0


def test_first_bounds_are_true_and_cheap() -> None:
    context = context_of(2)
    solver = solver_of(context)
    for g, fold in np.ndindex(2, context.folds.k):
        solver.first_bounds(g, fold)
    assert np.isfinite(solver.cells.nominal).all() and not solver.cells.decided[:, 1:].any()
    assert_true(context, solver.cells)


def test_supports_are_offered_and_the_only_one_decides() -> None:
    context = context_of()
    solver, best = solver_of(context), np.array(best_support(context, (0, 2, 1)))
    solver.try_supports(0, np.array([1, 2]), 1, [np.array([3]), best], np.array([False, True]))
    cells = solver.cells
    assert cells.decided[0, :, 1].tolist() == [False, False, True, False] and cells.lower[0, 1, 1] == 0.0
    assert cells.pool.supports[cells.support[0, 1, 1]].tolist() == [3] and np.isfinite(cells.nominal[0, 1, 1])
    assert_true(context, cells)


def test_a_cell_starts_from_its_neighbours() -> None:
    context = context_of()
    solver = solver_of(context)
    for where, support in (((0, 2, 1), [2, 3]), ((0, 3, 1), [0, 2, 3]), ((1, 2, 1), [0, 4]), ((1, 3, 3), [3, 4, 5])):
        solver.cells.offer(where, solver.cells.pool.number(np.array(support)), 1.0, 1.0)
    starts = [support.tolist() for support in solver.starts((0, 2, 1))]
    assert starts[0] == [2, 3] and [0, 2, 3] in starts and [0, 4] in starts and [3, 4, 5] not in starts
    assert len(starts) >= 4 + len(TAUS)  # the empty support of the others, and all rows


class OneSupport:
    """A vendor's solver that finds the best support and cannot prove that it is alone."""

    def __init__(self) -> None:
        self.asked = 0

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> PathResult:
        self.asked += 1
        found = solve_path(problem, [tau])
        cell = replace(found.cells[tau], complete=False, candidates=(), values=())
        return PathResult({tau: cell}, 1, True)


def test_near_ties_that_a_vendor_leaves_are_listed_by_our_own_trees() -> None:
    context, vendor = context_of(), OneSupport()
    solver = solver_of(context, cast(VendorListing, vendor))
    nodes = solver.solve((0, 2, 0), [])
    assert vendor.asked == 1 and nodes > 1 and solver.cells.decided[0, 2, 0]
    assert_true(context, solver.cells)
