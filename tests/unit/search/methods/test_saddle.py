"""The saddle point: estimates everywhere, lower bounds that hold."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn, drawn_run
from runs import to_end

from sparsecv_mio.search.methods.saddle import Rows, guess, supports_of
from sparsecv_mio.search.registry import RowMaker


def test_lower_bounds_hold_and_nothing_is_decided() -> None:
    exact = to_end(drawn_run())
    grid = exact.context.grid
    run = to_end(RowMaker(exact.context, saddle=True).make(grid.gammas.tolist(), grid.taus.tolist()))
    ours, truth = run.run.state.cells, exact.run.state.cells
    assert not ours.decided.any() and np.isfinite(ours.nominal).all() and run.method.mios() == 0
    assert (ours.lower <= truth.upper * (1.0 + 1e-9)).all()
    assert (ours.value >= truth.value * (1.0 - 1e-9)).all()


def test_supports_of_every_size() -> None:
    data, _, _ = drawn()
    rows = Rows.of(data, slice(0, data.n))
    found = supports_of(rows, 0.5, {tau: guess(rows, 0.5, tau, 50, None) for tau in (0, 1, 2, 6)})
    assert [len(found[tau]) for tau in (0, 1, 2, 6)] == [0, 1, 2, 6] and found[2].tolist() == [0, 3]
