"""Gamma improved around the reported pair: never worse, and a certified interval of its own."""

from __future__ import annotations

from drawn_search import drawn_run
from runs import record_of, to_end

from sparsecv_mio.search.methods.refine import refined
from sparsecv_mio.search.registry import RowMaker


def test_never_worse_than_the_grid() -> None:
    run = to_end(drawn_run())
    record = record_of(run)
    found = refined(record, run.run.state, RowMaker(run.context).make)
    assert found.tau == record.tau and found.lower <= found.cv_error <= found.upper <= record.upper
