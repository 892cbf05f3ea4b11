"""The bounds layer asked about some gammas and taus."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search.methods.parts.bracketing import Expiry, bracket
from sparsecv_mio.search.state.deadline import Deadline


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


def test_expiry_is_the_deadline_as_an_event() -> None:
    deadline = Deadline(None, None)
    expiry = Expiry(deadline)
    assert not expiry.is_set()
    deadline.stop.set()
    assert expiry.is_set()
