"""Searches in all folds at once, against all subsets: what they find, claim, store, and leave when they are stopped."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from plain_ridge import ridge
from runs import new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.accounts import Accounts
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems import local_search
from sparsecv_mio.search.problems.local_search import FoldSearch
from sparsecv_mio.search.problems.protocol import FoldsSearched, Problems
from sparsecv_mio.search.problems.support_searches import FoldPasses, bound_objectives
from sparsecv_mio.search.sources.fold_searches import FoldSearches
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import Context, SearchState
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import FullDataBounds, Step, SubproblemBounds
from sparsecv_mio.search.writer import Writer
from sparsecv_mio.slices import Clock
from sparsecv_mio.trees.subsets import is_never_expired


class SearchesAlone(Problems):
    """Problems of which nothing is used but the search in all folds."""

    def __init__(self, data: StandardData, folds: FoldPlan, grid: Grid) -> None:
        self.passes = FoldPasses(data, folds, grid)

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> FoldsSearched:  # fmt: skip
        return self.passes.search(gammas, taus, n_passes, n_threads, until, are_estimates)

    def full(self, gamma: int) -> Any:
        raise AssertionError(gamma)

    def fold(self, fold: int, gamma: int) -> Any:
        raise AssertionError(fold, gamma)

    def clear(self) -> None:
        self.passes.clear()


def new_state() -> GridState:
    data, folds, grid = drawn(p=8, n=24, folds="4")
    options = SearchOptions.of(threads=1)
    context = Context(data, folds, grid, options.request(grid), Deadline(None, None), 1)
    return GridState.unknown(SearchState.from_context(context), 0.0)


def problems_of(state: GridState) -> SearchesAlone:
    return SearchesAlone(state.context.data, state.context.folds, state.context.grid)


PLAN = Plan(searches_all_folds=True)
BY_ROWS = pytest.mark.parametrize("by_rows", [False, True])


def every_pass(state: GridState) -> list[Step]:
    """Do all passes, and let the writer take them; the steps that were done."""
    source, problems, writer, done = FoldSearches(), problems_of(state), Writer(state, PLAN, Accounts(state)), []
    while steps := list(source.steps(state, PLAN, np.ones(state.context.shape[:2], dtype=bool))):
        writer.take([source.run(step, problems, is_never_expired) for step in steps])
        done += steps
    return done


def optimum(state: GridState, g: int, t: int, fold: int) -> tuple[float, tuple[int, ...]]:
    """The smallest objective of a fold, or of the full data, of all subsets, and its support."""
    data, folds, grid = state.context.data, state.context.folds, state.context.grid
    rows = np.arange(data.n) if fold == ALL_ROWS else folds.train_rows(fold)
    problem = row_moments(data, rows).problem(data, float(grid.gammas[g]))
    return min((ridge(problem, s)[1], s) for s in combinations(range(data.q), int(grid.taus[t])))


@BY_ROWS
def test_it_finds_the_best_of_all_subsets(by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_rows:
        monkeypatch.setattr(local_search, "PRODUCT_BYTES", 0)
    state = new_state()
    steps = every_pass(state)
    assert [step.n_passes for step in steps] == list(range(len(steps))) and len(steps) >= 3
    assert int(state.tried.fold_passes) == DONE and state.has_supports.all() and state.tried.is_pair_searched.all()
    data, folds, grid, cells = state.context.data, state.context.folds, state.context.grid, state.cells
    for g, t, fold in np.ndindex(*state.context.shape):
        least, support = optimum(state, g, t, fold)
        shown = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), shown, float(grid.gammas[g]))
        assert shown.tolist() == list(support) and cells.value[g, t, fold] == pytest.approx(least, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-9)
        assert least <= state.objective_upper[g, t, fold] <= least * (1.0 + 1e-6)
    for g, t in np.ndindex(*state.context.shape[:2]):
        least, support = optimum(state, g, t, ALL_ROWS)
        subset = state.full_subset((g, t))
        assert subset.support.tolist() == list(support) and least <= subset.upper <= least * (1.0 + 1e-6)
    assert (
        not cells.lower.any() and not cells.decided.any() and not state.tried.round
    )  # nothing is proved, no tree grown


@BY_ROWS
def test_a_pass_is_the_same_without_the_passes_before(by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_rows:
        monkeypatch.setattr(local_search, "PRODUCT_BYTES", 0)
    state, source = new_state(), FoldSearches()
    problems, everywhere = problems_of(state), np.ones(state.context.shape[:2], dtype=bool)
    (step,) = source.steps(state, PLAN, everywhere)
    for n_passes in range(3):
        one = replace(step, n_passes=n_passes)
        here = source.run(one, problems, is_never_expired)
        there = source.run(pickle.loads(pickle.dumps(one)), problems_of(state), is_never_expired)
        assert here.is_finished == there.is_finished and len(here.statements) == len(there.statements) == 4
        for mine, other in zip(here.statements, there.statements, strict=True):
            if isinstance(mine, SubproblemBounds):
                for name in ("best", "held_out", "objective", "objective_upper"):
                    assert np.array_equal(getattr(mine, name), getattr(other, name))
            else:
                assert isinstance(mine, FullDataBounds) and isinstance(other, FullDataBounds)
                assert [cell.upper for cell in mine.subsets.by_size.values()] == [
                    cell.upper for cell in other.subsets.by_size.values()
                ]


def test_the_first_pass_is_done_whatever_the_time_and_others_end_with_theirs() -> None:
    state, source = new_state(), FoldSearches()
    problems, everywhere = problems_of(state), np.ones(state.context.shape[:2], dtype=bool)
    (step,) = source.steps(state, PLAN, everywhere)
    assert step.seconds == np.inf
    stopped = source.run(step, problems, lambda: True)
    assert stopped.was_stopped and not stopped.is_finished and len(stopped.statements) == 4
    Writer(state, PLAN, Accounts(state)).take([stopped])
    assert np.isfinite(state.cells.nominal).all() and not state.tried.fold_passes  # it may be done again
    ended = source.run(replace(step, n_passes=1, seconds=-1.0), problems, is_never_expired)
    assert ended.is_finished and not ended.was_stopped


def test_a_support_with_a_column_that_the_search_has_let_go_has_no_bound() -> None:
    data, folds, _ = drawn(p=8, n=24, folds="4")
    few = np.array([0, 2, 3, 5])
    narrow = data.only(few)
    problem = row_moments(narrow, folds.train_rows(0)).problem(narrow, 1.0)
    search = FoldSearch(0, problem, np.array([0.05]), 2, few)
    upper = bound_objectives(search, 0, [np.array([2, 5]), np.array([2, 4])])
    exact = refit_rows(data, folds.train_rows(0), np.array([2, 5]), 0.1).objective
    assert exact <= upper[0] <= exact * (1.0 + 1e-6) and upper[1] == np.inf


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.state.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


def search_folds(run: object, n_passes: int) -> None:
    """Take turns until so many passes over the folds are done."""
    while int(run.state.tried.fold_passes) < n_passes:  # type: ignore[attr-defined]
        run.step()  # type: ignore[attr-defined]


def test_a_quick_answer_has_not_seen_the_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    shown = []
    for change in (0.0, 50.0):
        folds = make_folds("5", Dataset.from_arrays(X, y))
        other = y.copy()
        other[folds.scored_rows(1)] += change * X[folds.scored_rows(1), 7]
        data = standardize(Dataset.from_arrays(X, other), "none")
        run = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 40), seconds=600.0)
        search_folds(run, 1)
        shown.append([supports(run, fold) for fold in (0, 1)])
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]  # another fold trains on these rows
