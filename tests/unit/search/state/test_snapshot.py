"""When a record can be made of a snapshot."""

from __future__ import annotations

from drawn_search import drawn_run

from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.snapshot import Snapshot


def test_scored_needs_a_pair_in_every_fold_and_all_rows() -> None:
    run = drawn_run()
    run.method._fit_all_rows()
    cells = CellTable.empty(*run.context.shape)
    best = tuple(run.run.state.all_rows.best)
    assert not Snapshot(run.context, cells, best).scored
    cells.offer((0, 1, slice(None)), 0, [1.0] * 5, [1.0] * 5)
    assert Snapshot(run.context, cells, best).scored and not Snapshot(run.context, cells).scored
