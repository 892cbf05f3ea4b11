"""Orders of cells: Algorithm 1, grid search, bounds alone."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search.methods.orders import next_in_grid, widest_of_least


def test_the_widest_cells_of_the_lowest_pair() -> None:
    run = drawn_run("algorithm1", threads=2)
    cells, asked = run.run.state.cells, run.method.by_cell.submitted
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 9.0)
    cells.lower[1, 1] = 1.0
    cells.upper[1, 1] = [3.0, 8.0, 4.0, 7.0, 2.0]
    assert widest_of_least(run.method.by_cell) == [(1, 1, 1), (1, 1, 3)]
    asked[1, 1] = True
    g, t = run.run.state.bounds().best
    assert {where[:2] for where in widest_of_least(run.method.by_cell)} <= {(g, t)}


def test_nothing_once_it_is_proved() -> None:
    run = drawn_run("algorithm1")
    cells = run.run.state.cells
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    cells.nominal[...] = 2.0
    assert np.isfinite(run.run.state.bounds().ceiling) and widest_of_least(run.method.by_cell) == []


def test_cells_in_their_order_and_of_one_pair() -> None:
    run = drawn_run("grid", threads=4)
    asked = run.method.by_cell.submitted
    assert next_in_grid(run.method.by_cell) == [(0, 0, fold) for fold in range(4)]
    asked[0, 0, :4] = True
    assert next_in_grid(run.method.by_cell) == [(0, 0, 4)]
    asked[...] = True
    assert next_in_grid(run.method.by_cell) == []


def test_every_cell_has_an_interval_that_holds_the_truth() -> None:
    run, exact = to_end(drawn_run("bounds")), to_end(drawn_run())
    ours, truth = run.run.state.cells, exact.run.state.cells.nominal
    assert run.method.mios() == 0 and np.isfinite(ours.upper).all()
    assert (ours.lower <= truth * (1.0 + 1e-9)).all() and (ours.upper >= truth * (1.0 - 1e-9)).all()
