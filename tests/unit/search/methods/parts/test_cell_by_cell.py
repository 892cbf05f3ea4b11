"""Cells handed out one by one: what is open, the budget, the backend that is not there."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.base import Availability
from sparsecv_mio.search.methods.parts.cell_by_cell import bracket, check_available


def test_solving_a_cell_closes_it() -> None:
    run = drawn_run("grid")
    by_cell = run.method.by_cell
    by_cell.prepare()
    assert by_cell.open.all()
    nodes = run.run.state.counts.nodes
    by_cell.solve([(0, 1, 2)], 0)
    assert not by_cell.open[0, 1, 2] and by_cell.mios == 1 and run.run.state.counts.nodes >= nodes


def test_the_budget_cuts_a_portion() -> None:
    by_cell = drawn_run("grid", mio_budget=3, threads=4).method.by_cell
    by_cell.prepare()
    by_cell.solve([(0, 0, fold) for fold in range(4)], 1)
    assert by_cell.mios == 2 and by_cell.exhausted(3) and not by_cell.exhausted(2)


def test_every_cell_gets_a_support_and_bounds() -> None:
    run = drawn_run("grid")
    run.method.by_cell.prepare()
    run.method.by_cell.bound_every_cell([1])
    assert np.isfinite(run.run.state.cells.value[1]).all() and not np.isfinite(run.run.state.cells.value[0]).any()
    assert run.method.by_cell.words("grid") == "grid on native"


def test_a_backend_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    check_available("native")
    gone = Availability(False, "no solver here", hint="install it")
    monkeypatch.setattr(type(get_backend("highs")), "available", lambda self: gone)
    with pytest.raises(BackendUnavailable, match="no solver here; install it"):
        check_available("highs")


def test_only_the_rows_asked_for_are_bracketed_and_the_truth_is_inside() -> None:
    truth = to_end(drawn_run()).run.state.cells.nominal
    run = drawn_run("algorithm1")
    run.method.by_cell.prepare()
    bracket(run.method.by_cell, np.array([1]), np.array([0, 2]))
    cells = run.run.state.cells
    assert np.isfinite(cells.upper[1][[0, 2]]).all() and not np.isfinite(cells.upper[0]).any()
    assert not np.isfinite(cells.upper[1, 1]).any()
    slip = 1e-9 * truth
    assert (cells.lower <= truth + slip).all() and (cells.upper >= truth - slip).all()
