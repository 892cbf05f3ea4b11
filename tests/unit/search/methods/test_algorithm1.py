"""Algorithm 1 picks the widest open cells of the pair with the least lower bound."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.search.methods.algorithm1 import Algorithm1


def test_the_widest_cells_of_the_lowest_pair() -> None:
    run = drawn_run("algorithm1", threads=2)
    cells, asked = run.run.state.cells, run.method.by_cell.submitted
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 9.0)
    cells.lower[1, 1] = 1.0
    cells.upper[1, 1] = [3.0, 8.0, 4.0, 7.0, 2.0]
    assert Algorithm1().pick(run.method.by_cell) == [(1, 1, 1), (1, 1, 3)]
    asked[1, 1] = True
    g, t = run.run.state.bounds().best
    assert {where[:2] for where in Algorithm1().pick(run.method.by_cell)} <= {(g, t)}


def test_nothing_once_it_is_proved() -> None:
    run = drawn_run("algorithm1")
    cells = run.run.state.cells
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    cells.nominal[...] = 2.0
    assert np.isfinite(run.run.state.bounds().ceiling) and Algorithm1().pick(run.method.by_cell) == []
