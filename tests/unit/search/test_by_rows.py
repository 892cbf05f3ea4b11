"""Searches by rows: best subsets, bounds of folds, and where a search may stop, against enumeration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run, to_end

from sparsecv_mio import thresholds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.problems import all_rows, by_rows
from sparsecv_mio.search.problems.all_rows import make_full_data_fold, solve_by_rows
from sparsecv_mio.search.problems.by_rows import RowsProblems, limit_threads
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import is_never_expired


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_on_the_rows_finds_the_best_subset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rows, "PART_COLUMNS", 5)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 25)) + rng.normal(size=(20, 1))
    data = standardize(Dataset.from_arrays(X, X[:, ::6].sum(axis=1) + 2.0 * rng.normal(size=20)))
    whole, tau = make_full_data_fold(data, 0.1, lambda: False), 2 + seed % 3
    whole.search([tau])
    found = solve_by_rows(data, whole, tau, 0.1, lambda: False)
    true = solve_path(row_moments(data, slice(0, data.n)).problem(data, 0.1), [tau]).by_size[tau]
    cell = found.by_size[tau]
    assert cell.complete and cell.support.tolist() == true.support.tolist()
    assert cell.lower <= true.upper and cell.upper == pytest.approx(true.upper, rel=1e-8)
    early = solve_by_rows(data, whole, tau, 0.1, lambda: False, effort=1).by_size[tau]
    assert early.lower <= true.upper


def test_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    data, folds, grid = drawn(p=24, n=16, folds="4")
    exact = to_end(new_run(data, folds, grid)).state.cells
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)
    run = to_end(new_run(data, folds, grid))
    ours = run.state.cells
    assert isinstance(run.problems, RowsProblems) and exact.decided.all() and np.isfinite(ours.nominal).all()
    slack = 1e-9 * exact.upper + 1e-12
    assert (ours.lower <= exact.upper + slack).all() and (exact.lower <= ours.upper + slack).all()
    cell = run.best_on_all_rows(0, 2)
    assert len(cell.support) == 2


def test_threads_share_the_room_for_copies() -> None:
    data, _, _ = drawn()
    assert limit_threads(data, 3) == 3


DRAW: dict[str, Any] = {"p": 24, "n": 20, "folds": "4"}
FEW = pytest.mark.parametrize("few", [False, True])  # whether a matrix of what screening leaves is too large


def problems_of(few: bool, monkeypatch: pytest.MonkeyPatch, **words: Any) -> RowsProblems:
    """Problems of a small draw; every call makes them again."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)
    if few:
        monkeypatch.setattr(by_rows, "EXACT_COLUMNS", 2)
        monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 0)
    problems = new_run(*drawn(**DRAW), **words).problems
    assert isinstance(problems, RowsProblems)
    return problems


@cache
def truth(g: int, tau: int, fold: int) -> tuple[float, float, float]:
    """The smallest objective of a fold, or of the full data, and the ends of the held-out losses of its optima."""
    standard, folds, grid = drawn(**DRAW)
    data, unit = standard.dataset, standard.y_unit**2
    rows = np.arange(data.n) if fold == ALL_ROWS else folds.train_rows(fold)
    best = brute_force_cell(data.X, data.y, tau, float(grid.gammas[g]), rows=rows)
    low, high = best.held_out(data.X, data.y, folds.scored_rows(fold)) if fold != ALL_ROWS else (0.0, np.inf)
    return best.objective / unit, low / unit, high / unit


@FEW
@pytest.mark.parametrize("node_limit", [0, 1, 1 << 13])
def test_outcomes_hold_the_truth(few: bool, node_limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = problems_of(few, monkeypatch)
    starts, n_complete = [np.arange(size) for size in (1, 2, 3)], 0
    for g, fold in np.ndindex(2, 5):
        fold = fold if fold < 4 else ALL_ROWS
        problem = problems.full(g) if fold == ALL_ROWS else problems.fold(fold, g)
        solved = problem.solve([1, 2, 3], starts, node_limit, is_never_expired)
        subsets = [solved.by_size[size] for size in (1, 2, 3)]
        known = (
            None
            if fold == ALL_ROWS
            else bound_subproblems(problem, g, (0, 1, 2), fold, subsets, False, is_never_expired)
        )
        for t, subset in enumerate(subsets):
            least, low, high = truth(g, t + 1, fold)
            assert subset.lower <= least * (1.0 + 1e-9) and subset.upper >= least * (1.0 - 1e-9)
            assert len(subset.support) == t + 1
            n_complete += subset.complete
            if known is not None:
                assert known.lower[t, 0] <= low * (1.0 + 1e-7) and known.upper[t, 0] >= high * (1.0 - 1e-7)
                assert known.objective_lower[t, 0] <= least * (1.0 + 1e-9)
    assert node_limit == 1 or n_complete == (30 if node_limit else 0)


@FEW
def test_what_a_problem_returns_does_not_depend_on_other_calls(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    used, starts = problems_of(few, monkeypatch), [np.array([3, 7])]
    for g, fold in ((0, 1), (1, 1), (1, ALL_ROWS), (0, 1), (1, 2)):
        fresh = problems_of(few, monkeypatch)
        one, other = (
            made.full(g) if fold == ALL_ROWS else made.fold(fold, g) for made in (used, fresh)
        )  # fmt: skip
        for node_limit in (1, 64):
            mine, theirs = (made.solve([2], starts, node_limit, is_never_expired).by_size[2] for made in (one, other))
            assert (mine.lower, mine.upper, mine.complete) == (theirs.lower, theirs.upper, theirs.complete)
            assert mine.support.tolist() == theirs.support.tolist()


def test_fits_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problems, supports = problems_of(False, monkeypatch), [np.array([1]), np.array([0, 5, 11]), np.zeros(0, dtype=int)]
    data, folds = problems.context.data, problems.context.folds
    for fold in range(folds.k):
        fits = problems.fold(fold, 1).fit(supports)
        for i, support in enumerate(supports):
            fit = refit_rows(data, folds.train_rows(fold), support, float(problems.context.grid.gammas[1]))
            loss = fit.held_out(data, folds.scored_rows(fold))[0]
            assert fits.objective_lower[i] <= fit.objective * (1.0 + 1e-12)
            assert fits.objective_upper[i] >= fit.objective * (1.0 - 1e-12)
            assert fits.held_out_lower[i] <= loss * (1.0 + 1e-12) and fits.held_out_upper[i] >= loss * (1.0 - 1e-12)
            assert fits.held_out[i] == pytest.approx(loss, rel=1e-9)
            upper, held_out = problems.full(1).hold_out(support, is_never_expired)
            assert held_out[fold] == pytest.approx(loss, rel=1e-9) and upper[fold] >= fit.objective * (1.0 - 1e-12)


def test_few_rows_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = problems_of(True, monkeypatch)  # their products take more than the room for them
    for g, fold in np.ndindex(2, 4):
        assert problems.fold(fold, g).rows is problems.rows(fold, g)
        assert len(problems._stored) <= problems._most
    assert problems._most < 8
    problems.clear()
    assert not problems._stored


@FEW
def test_a_search_that_stops_at_any_turn_goes_on_from_a_checkpoint(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problems_of(few, monkeypatch)

    def made() -> Any:
        return new_run(*drawn(p=24, n=20, folds="4", noise=2.0))

    whole = made()
    n_turns = sum(1 for _ in whole.turns())
    exact = whole.state.cells
    assert exact.decided.all() and n_turns > 5
    for turn in np.linspace(0, n_turns - 1, 6).astype(int).tolist():
        first, again = made(), made()
        for _, _ in zip(range(turn + 1), first.turns(), strict=False):
            pass
        cells = first.state.cells
        assert np.all(cells.lower <= exact.upper * (1.0 + 1e-9)) and np.all(exact.lower <= cells.upper * (1.0 + 1e-9))
        again.resume(first.checkpoint())
        assert np.array_equal(again.state.cells.lower, cells.lower)
        assert sum(1 for _ in again.turns()) <= n_turns + 1
        assert again.state.cells.decided.all()
        assert np.allclose(again.state.cells.nominal, exact.nominal, rtol=1e-9)


def test_without_branching_sizes_are_bounded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = problems_of(False, monkeypatch, method="bounds", gap=1e-4)
    for fold in range(4):
        solved = problems.fold(fold, 1).solve([2], [], 1 << 13, is_never_expired)
        least, _, _ = truth(1, 2, fold)
        assert solved.finished and 0.0 < solved.by_size[2].lower <= least * (1.0 + 1e-9)
