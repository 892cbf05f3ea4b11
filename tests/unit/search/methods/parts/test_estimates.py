"""Estimates for open cells: feasible supports of each fold, no bound touched."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, to_end


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_every_cell_shows_a_support_of_its_fold(folds: str) -> None:
    data, plan, grid = drawn(p=8, n=60, folds=folds)
    run, exact = new_run(data, plan, grid), to_end(new_run(data, plan, grid)).run.state.cells
    run.method._fit_all_rows()
    cells = run.run.state.cells
    low, high = cells.lower.copy(), cells.upper.copy()
    run.method.estimates.at_end()
    assert run.method.estimates.done and np.isfinite(cells.nominal).all() and not cells.decided.any()
    assert np.array_equal(low, cells.lower) and np.array_equal(high, cells.upper)
    assert (cells.value >= exact.value * (1.0 - 1e-9)).all()
    assert np.mean(cells.value <= exact.value * (1.0 + 1e-9)) > 0.9


def test_once_in_a_run() -> None:
    data, plan, grid = drawn()
    run = new_run(data, plan, grid)
    run.method.estimates.resume()
    assert not run.method.estimates.done  # with few columns nothing is searched for before the proof
    run.method.estimates.done = True
    run.method.estimates.at_end()
    assert not np.isfinite(run.run.state.cells.nominal).any()
