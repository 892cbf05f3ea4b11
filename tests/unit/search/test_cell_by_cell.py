"""Cells that a vendor solves: what is made of supports whose columns are collinear to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.formulation.near_ties import VendorListing
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.cell_by_cell import CellSolver, bracket
from sparsecv_mio.search.context import Context
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import BestSubsets

from .drawn_subproblem import TAUS, assert_true, best_support, cells_of, context_of
from .drawn_subproblem import solver_of as fold_solver_of


@pytest.mark.parametrize("method", ["grid", "joint"])
def test_near_ties_that_a_vendor_leaves_are_listed_by_our_own_trees(method: str) -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    a = [-0.3671, -1.6379, 0.0258, 1.1266, -0.7264, 1.6279]
    b = np.array([-2.3245, 0.2766, -0.1144, -0.0582, 1.1595, -0.8081])
    c = np.array([0.5822, -0.8066, 0.6203, -0.6028, -1.3161, -0.3488])
    y = [0.6674, -0.3188, 1.2167, -0.4563, 0.1081, -1.5969]
    data = Dataset.from_arrays(np.column_stack([a, b, c, -c, -c, b]), y)  # three copies of one column, two of another
    record = cross_validate(
        data, make_folds("holdout:0.4", data, 3), gammas=[5e-6], taus=[4], scale="variance", method=method,
        backend="highs", gap=0.0, threads=1,
    )  # fmt: skip
    assert record.status == "proved" and record.chosen_folds.decided.all()


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

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> BestSubsets:
        self.asked += 1
        found = solve_path(problem, [tau])
        cell = replace(found.by_size[tau], complete=False, candidates=(), values=())
        return BestSubsets({tau: cell}, 1, True)


def test_near_ties_that_a_vendor_leaves_are_listed_by_our_own_trees_cell_solver() -> None:
    context, vendor = context_of(), OneSupport()
    solver = solver_of(context, cast(VendorListing, vendor))
    nodes = solver.solve((0, 2, 0), [])
    assert vendor.asked == 1 and nodes > 1 and solver.cells.decided[0, 2, 0]
    assert_true(context, solver.cells)


def test_solving_a_cell_closes_it() -> None:
    run = drawn_run("grid")
    run._fit_all_rows()
    assert run.open.all()
    nodes = run.run.counts.nodes
    run.solve([(0, 1, 2)])
    assert not run.open[0, 1, 2] and run.asked() == 1 and run.run.counts.nodes >= nodes


def test_the_budget_cuts_a_portion() -> None:
    run = drawn_run("grid", mio_budget=3, threads=4)
    run._fit_all_rows()
    run.solve([(0, 0, 0)])
    assert run.asked() == 1 and not run.exhausted
    run.solve([(0, 1, fold) for fold in range(4)])
    assert run.asked() == 3 and run.exhausted


def test_every_cell_gets_a_support_and_bounds() -> None:
    run = drawn_run("grid")
    run._fit_all_rows()
    run.bound_every_cell([1])
    assert np.isfinite(run.run.cells.value[1]).all() and not np.isfinite(run.run.cells.value[0]).any()
    assert run.engine() == "grid on native"


def test_only_the_rows_asked_for_are_bracketed_and_the_truth_is_inside() -> None:
    truth = to_end(drawn_run()).run.cells.nominal
    run = drawn_run("algorithm1")
    run._fit_all_rows()
    bracket(run, np.array([1]), np.array([0, 2]))
    cells = run.run.cells
    assert np.isfinite(cells.upper[1][[0, 2]]).all() and not np.isfinite(cells.upper[0]).any()
    assert not np.isfinite(cells.upper[1, 1]).any()
    slip = 1e-9 * truth
    assert (cells.lower <= truth + slip).all() and (cells.upper >= truth - slip).all()
