"""Searches by rows: best subsets, bounds of folds, and where a search may stop, against enumeration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run

from sparsecv_mio import thresholds
from sparsecv_mio.search.problems import by_rows
from sparsecv_mio.search.problems.by_rows import RowBasedProblems
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.trees.subsets import is_never_expired

DRAW: dict[str, Any] = {"p": 24, "n": 20, "folds": "4"}
FEW = pytest.mark.parametrize("few", [False, True])  # whether a matrix of what screening leaves is too large


def problems_of(few: bool, monkeypatch: pytest.MonkeyPatch, **words: Any) -> RowBasedProblems:
    """Problems of a small draw; every call makes them again."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)
    if few:
        monkeypatch.setattr(by_rows, "EXACT_COLUMNS", 2)
        monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 0)
    problems = new_run(*drawn(**DRAW), **words).problems
    assert isinstance(problems, RowBasedProblems)
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
