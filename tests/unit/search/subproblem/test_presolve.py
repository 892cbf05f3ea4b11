"""The test by the relaxations on all rows before branch-and-bound: same answers, and less to solve."""

from __future__ import annotations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.reused import points_of
from sparsecv_mio.bounds.unit_diagonal import unit_diagonal
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.presolve import in_columns, solve_presolved

from .drawn import all_rows_of, context_of, fold_of


@pytest.mark.parametrize("taus", [[2], [0, 1, 2, 3], [6]])
def test_answers_are_those_of_the_solver(taus: list[int]) -> None:
    done: list[dict[str, float]] = []

    def note(seconds: float, asked: int = 0, mios: int = 0, columns: int = 0) -> None:
        done.append({"seconds": seconds, "asked": asked, "mios": mios, "columns": columns})

    for seed in range(6):
        context = context_of(seed)
        points = points_of(unit_diagonal(all_rows_of(context).problem(1)), range(7))
        assert points is not None
        for fold in range(context.folds.k):
            problem = fold_of(context, fold, 1).problem
            widths: list[int] = []

            def solver(
                part: SparseProblem, left: list[int], starts: list[IntArray], widths: list[int] = widths
            ) -> PathResult:
                widths.append(part.q)
                assert all(len(start) == 0 or start.max() < part.q for start in starts)
                return solve_path(part, left, starts=starts)

            found = solve_presolved(problem, points, taus, [np.array([0])], solver, note)
            plain = solve_path(problem, taus)
            for tau in taus:
                cell, expected = found.cells[tau], plain.cells[tau]
                assert cell.complete and np.array_equal(np.sort(cell.support), np.sort(expected.support))
                assert cell.upper == pytest.approx(expected.upper, rel=1e-9) and cell.lower <= expected.upper
            assert widths == ([] if done[-1]["mios"] == len(taus) else [problem.q - done[-1]["columns"]])
    tested = taus != [6]
    assert any(work["mios"] for work in done) == tested and any(work["columns"] for work in done) == (taus == [2])
    assert all(work["mios"] <= work["asked"] <= len(taus) and work["seconds"] >= 0.0 for work in done)


def test_vendors_problems_keep_their_columns() -> None:
    context, removed = context_of(), list[int]()
    points = points_of(unit_diagonal(all_rows_of(context).problem(1)), range(7))
    assert points is not None
    for fold in range(context.folds.k):
        problem = fold_of(context, fold, 1).problem
        solve_presolved(
            problem, points, [2], [], lambda part, taus, starts: solve_path(part, taus),
            lambda seconds, asked=0, mios=0, columns=0: removed.append(columns), restrict=False,
        )  # fmt: skip
    assert len(removed) == context.folds.k and not any(removed)


def test_a_restricted_problem_is_the_problem_on_its_columns() -> None:
    context = context_of()
    problem, keep = all_rows_of(context).problem(0), np.array([0, 2, 5])
    part = problem.only(keep)
    assert ridge(part, np.array([0, 2]))[1] == ridge(problem, np.array([0, 5]))[1]
    assert part.spectrum()[0] >= problem.spectrum()[0] * (1.0 - 1e-9)
    found = solve_path(part, [2])
    back = in_columns(found, keep)
    assert back.cells[2].support.tolist() == keep[found.cells[2].support].tolist() and back.nodes == found.nodes
    assert [s.tolist() for s in back.cells[2].candidates] == [keep[s].tolist() for s in found.cells[2].candidates]
