"""Searches over small random problems, and what enumeration of all supports says of their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from judge import wrong_cells
from truth import Truth
from zoo import RandomProblem, random_problem

from sparsecv_mio.bounds.closed_form import enough_on_all_rows
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.registry import find_source
from sparsecv_mio.search.steps import Findings, Step
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import ACCURATE_RTOL


def random_search(seed: int, **words: Any) -> tuple[RandomProblem, GridSearch]:
    """A search over a random problem of few rows and columns."""
    case = random_problem(seed, rows=24, columns=6)
    return case, case.new_run(gap=1e-4, **words)


def do(search: GridSearch, steps: Sequence[Step]) -> list[Findings]:
    """Do steps, and let the writer take what they find."""
    found = [find_source(step).run_step(step, search.problems, is_never_expired) for step in steps]
    search.writer.take(found)
    return found


def grow_full_data(search: GridSearch) -> None:
    """Let the search know best subsets of the full data, and nothing of its folds."""
    search.take_turn()
    assert search.state.has_supports.all() and not search.state.cells.decided.any()


def check_state(case: RandomProblem, search: GridSearch) -> None:
    """Assert that no bound excludes what enumeration finds, and that stored sums and cutoffs are right."""
    truth, state = Truth(case), search.state
    check_stored_numbers(search)
    assert [*wrong_cells(truth, search.snapshot())] == []
    data, grid = state.context.data, state.context.grid
    full_lower = state.all_rows.lower() if state.has_supports.any() else None
    for fold in range(-1, case.folds.k):
        rows = truth.rows(fold)
        unit = (np.ldexp(1.0, rows.exponent) / data.y_unit) ** 2
        for g, t in np.ndindex(len(grid.gammas), len(grid.taus)):
            optima = rows.optima(float(grid.gammas[g]), int(grid.taus[t]))
            best, slip = optima.best * unit, 1e-9 * optima.best * unit + float(optima.value_error.max()) * unit
            if fold >= 0:
                assert state.objective_upper[g, t, fold] >= best - slip, (g, t, fold)
            elif full_lower is not None:
                assert full_lower[g, t] <= best + slip, (g, t)


def check_stored_numbers(search: GridSearch) -> None:
    """Assert that the numbers that are computed again for changed pairs only are those of the whole arrays."""
    state, cells = search.state, search.state.cells
    for total, array in zip(cells.sums(), (cells.lower, cells.upper, cells.nominal), strict=True):
        np.testing.assert_array_equal(total, array.sum(axis=2))
    cutoffs = state.sum_cutoffs()
    upper = np.where(state.context.folds.scores_all_left_out, state.objective_upper + state.slip, np.inf)
    whole = enough_on_all_rows(cells.lower, upper, cutoffs * (1.0 + ACCURATE_RTOL))
    np.testing.assert_array_equal(state.objective_cutoffs(cutoffs), whole)
