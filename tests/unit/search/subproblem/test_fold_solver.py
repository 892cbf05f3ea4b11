"""All cells of a fold: with time against all subsets, without time bounded, accelerators asked first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathResult
from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.search.subproblem.presolve import Solver

from .drawn import assert_true, cells_of, context_of, moments_of, solver_of, state_of


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_is_decided_and_true(seed: int) -> None:
    context = context_of(seed)
    cells = cells_of(context)
    solver = solver_of(context, cells)
    every = np.ones(context.shape[:2], dtype=bool)
    nodes = [
        solver.run(fold, moments, every, UNLIMITED) for fold, moments in training_moments(context.data, context.folds)
    ]
    assert cells.decided.all() and all(nodes)
    assert_true(context, cells)


def test_only_what_is_wanted_is_worked_on() -> None:
    context = context_of()
    cells = cells_of(context)
    wanted = np.zeros(context.shape[:2], dtype=bool)
    wanted[1, 2] = True
    solver_of(context, cells).run(3, moments_of(context, 3), wanted, UNLIMITED)
    assert np.argwhere(cells.decided).tolist() == [[1, 2, 3]] and np.argwhere(np.isfinite(cells.nominal)).tolist() == [
        [1, 2, 3]
    ]  # fmt: skip


def test_after_the_limit_cells_are_bounded_and_no_tree_is_grown() -> None:
    context = context_of(late=True)
    cells = cells_of(context)
    solver = solver_of(context, cells)
    wanted = np.zeros(context.shape[:2], dtype=bool)
    wanted[0, 3] = True
    assert solver.run(0, moments_of(context, 0), wanted, UNLIMITED) == 0 and not np.isfinite(cells.nominal).any()
    for fold in range(context.folds.k):
        solver.bound(fold, moments_of(context, fold), wanted)
    assert np.isfinite(cells.upper[0, 3]).all() and not cells.branched.any()
    assert_true(context, cells)


class Listening:
    """Accelerators that name one support and write down what the solver is asked."""

    def __init__(self, support: list[int]) -> None:
        self.support, self.starts = np.array(support), list[list[int]]()

    def training_moments(self, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, Moments]]:
        raise AssertionError("the caller has the moments")

    def proposed(self, g: int, tau: int, fold: int) -> list[IntArray]:
        return [self.support] if len(self.support) == tau else []

    def solve(
        self, problem: SparseProblem, g: int, taus: Sequence[int], starts: Sequence[IntArray], solver: Solver,
        by_vendor: bool,
    ) -> PathResult:  # fmt: skip
        self.starts += [start.tolist() for start in starts]
        return solver(problem, list(taus), list(starts))


def test_supports_that_are_named_come_first() -> None:
    context = context_of()
    accelerators = Listening([2, 3])
    every = np.ones(context.shape[:2], dtype=bool)
    solver = FoldSolver(state_of(context, cells_of(context)), accelerators)
    solver.run(0, moments_of(context, 0), every, UNLIMITED)
    assert accelerators.starts[0] == [2, 3] and len(accelerators.starts) > 1
