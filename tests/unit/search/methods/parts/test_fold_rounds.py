"""Rounds of growing effort."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn_run

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.methods.parts.fold_rounds import EFFORT_GROWTH, FIRST_EFFORT


def test_a_round_decides_its_cells_and_no_others() -> None:
    run = drawn_run()
    run.begin()
    cells = np.zeros((2, 3, 5), dtype=bool)
    cells[0, 1, [0, 3]] = True
    assert not run.method.rounds.under_way
    run.method.rounds.run_round(cells)
    assert np.array_equal(run.run.state.cells.decided, cells)
    assert run.method.rounds.effort == FIRST_EFFORT * EFFORT_GROWTH and not run.method.rounds.under_way


def test_a_round_under_way_is_stored() -> None:
    run, other = drawn_run(), drawn_run()
    run.method.rounds.start(np.ones((2, 3, 5), dtype=bool))
    stored = run.method.rounds.archive()
    other.method.rounds.check(stored)
    other.method.rounds.restore(stored)
    assert other.method.rounds.under_way and other.method.rounds.folds_left == [0, 1, 2, 3, 4]
    stored["round_cells"] = np.ones((2, 2, 5), dtype=bool)
    with pytest.raises(CorruptStore, match="round_cells"):
        other.method.rounds.check(stored)
