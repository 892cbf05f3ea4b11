"""The bounds alone: every cell bracketed, no MIO."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run
from runs import to_end


def test_every_cell_has_an_interval_that_holds_the_truth() -> None:
    run, exact = to_end(drawn_run("bounds")), to_end(drawn_run())
    ours, truth = run.run.state.cells, exact.run.state.cells.nominal
    assert run.method.mios() == 0 and np.isfinite(ours.upper).all()
    assert (ours.lower <= truth * (1.0 + 1e-9)).all() and (ours.upper >= truth * (1.0 - 1e-9)).all()
