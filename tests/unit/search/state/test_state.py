"""The state of a search: counts, and which cells are worth work."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.state import Counts, Snapshot


def test_counts_add_up() -> None:
    counts = Counts()
    counts.add(5, {"shared": 2})
    counts.add(1, {"shared": 1, "enumerate": 4})
    assert counts == Counts(6, {"shared": 3, "enumerate": 4})


def test_pairs_out_of_the_race_are_not_worth_work() -> None:
    for gap, worth in ((1e-4, False), (0.0, True)):
        state = drawn_run(gap=gap).run.state
        state.cells.narrow((slice(None), slice(None), slice(None)), 3.0, 9.0)
        state.cells.lower[0, 1] = 1.0
        state.cells.upper[0, 1] = 2.0
        state.cells.mark((1, 1, 2))
        found = state.worth_work()
        assert found[0, 1].all() and not found[1, 1, 2] and bool(found[1, 0].all()) is worth
        assert state.open.sum() == state.cells.final.size - 1 and not state.proved()
        assert np.array_equal(found, found & state.open)


def test_scored_needs_a_pair_in_every_fold_and_all_rows() -> None:
    run = drawn_run()
    run.method._fit_all_rows()
    cells = CellTable.empty(*run.context.shape)
    best = tuple(run.run.state.all_rows.best)
    assert not Snapshot(run.context, cells, best).scored
    cells.offer((0, 1, slice(None)), 0, [1.0] * 5, [1.0] * 5)
    assert Snapshot(run.context, cells, best).scored and not Snapshot(run.context, cells).scored
