"""The test by the relaxations on all rows before branch-and-bound: same answers, and less to solve."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.fold import points_of
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search import deadline, fold_solver
from sparsecv_mio.search.accelerators import solve_presolved
from sparsecv_mio.search.fold_fits import FoldProblem
from sparsecv_mio.search.fold_solver import (
    CellIntervals,
    Incumbent,
    held_out_intervals,
)
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.trees.every_size import FIRST_LOOK, STORED_TREES, solve_path
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets
from sparsecv_mio.units import Interval

from .drawn_subproblem import (
    GAMMAS,
    TAUS,
    all_rows_of,
    assert_true,
    best_support,
    cells_of,
    context_of,
    fold_of,
    moments_of,
    solver_of,
    state_of,
)


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
            ) -> BestSubsets:
                widths.append(part.q)
                assert all(len(start) == 0 or start.max() < part.q for start in starts)
                return solve_path(part, left, starts=starts)

            found = solve_presolved(problem, points, taus, [np.array([0])], solver, note)
            plain = solve_path(problem, taus)
            for tau in taus:
                cell, expected = found.by_size[tau], plain.by_size[tau]
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
    back = found.in_columns(keep)
    assert back.by_size[2].support.tolist() == keep[found.by_size[2].support].tolist() and back.nodes == found.nodes
    assert [s.tolist() for s in back.by_size[2].candidates] == [keep[s].tolist() for s in found.by_size[2].candidates]


EVERY = np.arange(len(TAUS))


def unproved(support: tuple[int, ...]) -> BestSubset:
    return BestSubset(len(support), np.array(support, dtype=np.int64), 0.0, np.inf, (), (), 0.0, False, False)


@pytest.mark.parametrize("seed", range(3))
def test_known_candidates_decide_a_cell(seed: int) -> None:
    context = context_of(seed)
    cells = cells_of(context)
    intervals = CellIntervals(state_of(context, cells))
    for g, fold in np.ndindex(len(GAMMAS), context.folds.k):
        here = fold_of(context, fold, g)
        intervals.write_outcome(here, g, EVERY, solve_path(here.problem, list(TAUS)))
    assert cells.decided.all() and cells.final.all()
    assert_true(context, cells)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("relax", [True, False])
def test_an_incumbent_alone_bounds_a_cell(seed: int, relax: bool) -> None:
    """Whatever support is held, the optimum's error is inside the interval."""
    context, rng = context_of(seed), np.random.default_rng(seed)
    cells = cells_of(context)
    intervals = CellIntervals(state_of(context, cells))
    for g, fold in np.ndindex(len(GAMMAS), context.folds.k):
        held = {tau: unproved(tuple(np.sort(rng.choice(6, tau, replace=False)).tolist())) for tau in TAUS}
        intervals.write_outcome(fold_of(context, fold, g), g, EVERY, BestSubsets(held, 0, False), relax)
    assert not cells.decided.any() and not cells.final.any()
    assert np.isfinite(cells.upper).all() and np.isfinite(cells.nominal).all()
    assert_true(context, cells)


def test_relaxations_narrow_what_the_ridge_ball_leaves() -> None:
    widths = []
    for relax in (False, True):
        context = context_of(1)
        cells = cells_of(context)
        held = {tau: unproved(best_support(context, (1, t, 0))) for t, tau in enumerate(TAUS)}
        intervals = CellIntervals(state_of(context, cells))
        intervals.write_outcome(fold_of(context, 0, 1), 1, EVERY, BestSubsets(held, 0, False), relax)
        widths.append((cells.upper - cells.lower)[1, 1:, 0])
    assert np.all(widths[1] <= widths[0] * (1.0 + 1e-9)) and widths[1].sum() < 0.9 * widths[0].sum()


def test_cells_are_bounded_until_shortly_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        fold_solver, "held_out_intervals",
        lambda here, incumbents, relax: asked.append(relax) or ([Interval(0.0, np.inf)] * len(incumbents), 0.0),
    )  # fmt: skip
    context = context_of(late=True)
    intervals = CellIntervals(state_of(context, cells_of(context)))
    result = BestSubsets({tau: unproved(tuple(range(tau))) for tau in TAUS}, 0, False)
    here = fold_of(context, 0, 0)
    intervals.write_outcome(here, 0, EVERY, result)
    monkeypatch.setattr(deadline, "GRACE", 0.0)
    intervals.write_outcome(here, 0, EVERY, result)
    assert asked == [True]


def test_values_that_the_refit_does_not_confirm_decide_nothing() -> None:
    context = context_of()
    cells, here = cells_of(context), fold_of(context, 0, 0)
    found = solve_path(here.problem, [2])
    wrong = replace(found.by_size[2], values=tuple(1.01 * value for value in found.by_size[2].values))
    intervals = CellIntervals(state_of(context, cells))
    intervals.write_outcome(here, 0, np.array([2]), replace(found, by_size={2: wrong}))
    assert not cells.decided.any() and cells.lower[0, 2, 0] <= cells.upper[0, 2, 0] < np.inf


def test_ties_widen_a_decided_cell() -> None:
    """Two supports of the same training objective: the interval holds the errors of both."""
    context = context_of()
    cells, here = cells_of(context), fold_of(context, 0, 0)
    supports = [np.array([1, 5]), np.array([0, 1])]
    fits = here.refit(supports)
    tied = replace(fits, value=np.full(2, fits.value[0]))
    CellIntervals(state_of(context, cells)).decide(here, (0, 2, 0), supports, tied, branched=True)
    where = (0, 2, 0)
    assert cells.decided[where] and cells.branched[where]
    assert cells.lower[where] <= fits.held_out.min() and fits.held_out.max() <= cells.upper[where]
    assert cells.ties[where] == pytest.approx(np.ptp(fits.held_out))
    assert cells.pool.supports[cells.support[where]].tolist() == [0, 1]  # the first in the order of columns


def test_an_error_that_is_not_known_well_decides_nothing() -> None:
    context = context_of()
    cells, here, where = cells_of(context), fold_of(context, 0, 0), (0, 2, 0)
    fits = here.refit([np.array([1, 5])])
    vague = replace(fits, held_out_error=0.1 * fits.held_out)
    CellIntervals(state_of(context, cells)).decide(here, where, [np.array([1, 5])], vague, branched=True)
    assert not cells.decided[where] and cells.final[where] and cells.nominal[where] == fits.held_out[0]
    assert cells.lower[where] == pytest.approx(0.9 * fits.held_out[0])
    assert cells.upper[where] == pytest.approx(1.1 * fits.held_out[0])


def test_a_restricted_problem_names_columns_of_the_data() -> None:
    context = context_of()
    best = np.array(best_support(context, (0, 2, 1)))
    columns = np.union1d(best, [2, 3])
    small = context.data.only(columns)
    moments = next(training_moments(small, context.folds, [1]))[1]
    here = FoldProblem.of(small, context.folds, 1, moments, columns).with_gamma(GAMMAS[0])
    cells = cells_of(context)
    intervals = CellIntervals(state_of(context, cells))
    intervals.write_outcome(here, 0, np.array([2]), solve_path(here.problem, [2]))
    assert cells.decided[0, 2, 1] and np.array_equal(cells.pool.supports[cells.support[0, 2, 1]], best)


def test_no_cell_in_question_is_no_work() -> None:
    context = context_of(0)
    cells = cells_of(context)
    intervals = CellIntervals(state_of(context, cells))
    none = np.zeros(0, dtype=np.int64)
    intervals.write_outcome(fold_of(context, 0, 0), 0, none, BestSubsets({}, 0, False))
    assert not np.isfinite(cells.nominal).any()


def test_without_relaxations_every_support_below_the_value_is_inside() -> None:
    """The ridge ball knows nothing of tau: what it says holds for every b with f(b) <= upper."""
    context = context_of(1)
    here = fold_of(context, 0, 0)
    supports = [np.array(s) for size in (1, 2, 3) for s in combinations(range(6), size)]
    fits = here.refit(supports)
    upper = float(np.median(fits.value))
    [found], [floor] = held_out_intervals(here, [Incumbent(3, supports[-1], upper)], relax=False)
    assert 0.0 < floor <= fits.value.min()
    inside = fits.held_out[fits.value <= upper]
    assert len(inside) > 5 and found.lower <= inside.min() and inside.max() <= found.upper


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


def test_trees_of_a_fold_go_on_where_they_were_left() -> None:
    context = replace(context_of(n=80, p=40), grid=Grid.of((1e-3, 2.0), (0, 1, 2, 12), 40))
    solver, kept = solver_of(context, cells_of(context)), dict[str | float, Any]()
    here, spent = fold_of(context, 0, 0).keeping(kept), []
    for _ in range(2):
        assert not solver.branch_and_bound(here, 0, np.array([3]), [], FIRST_LOOK).finished
        (tree,) = kept[here.problem.lam][STORED_TREES].values()
        spent.append((tree, tree.nodes))
    assert spent[0][0] is spent[1][0] and spent[0][1] < spent[1][1]
    assert tree.nbytes <= solver.tree_bytes and solver.tree_bytes * 2 * context.folds.k <= fold_solver.STORE_BYTES


def test_only_what_is_wanted_is_worked_on() -> None:
    context = context_of()
    cells = cells_of(context)
    wanted = np.zeros(context.shape[:2], dtype=bool)
    wanted[1, 2] = True
    solver_of(context, cells).run(3, moments_of(context, 3), wanted, UNLIMITED)
    assert np.argwhere(cells.decided).tolist() == [[1, 2, 3]] and np.argwhere(np.isfinite(cells.nominal)).tolist() == [
        [1, 2, 3]
    ]  # fmt: skip


def test_after_the_limit_cells_are_bounded_and_no_tree_is_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "GRACE", 600.0)  # however slow the machine is
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
