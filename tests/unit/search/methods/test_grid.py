"""Grid search asks about every cell, pair by pair."""

from __future__ import annotations

from drawn_search import drawn_run

from sparsecv_mio.search.methods.grid import GridOrder


def test_cells_in_their_order_and_of_one_pair() -> None:
    run = drawn_run("grid", threads=4)
    order, asked = GridOrder(), run.method.by_cell.submitted
    assert order.pick(run.method.by_cell) == [(0, 0, fold) for fold in range(4)]
    asked[0, 0, :4] = True
    assert order.pick(run.method.by_cell) == [(0, 0, 4)]
    asked[...] = True
    assert order.pick(run.method.by_cell) == []
