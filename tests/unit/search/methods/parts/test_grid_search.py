"""A search over one grid: snapshots are copies, what was stored comes back, another grid is refused unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.methods.parts.run import run_to_end


@pytest.mark.parametrize("method", ["rounds", "joint", "grid"])
def test_there_and_back(method: str) -> None:
    run, other = drawn_run(method), drawn_run(method)
    run.begin()
    run.step()
    stored = run.archive()
    other.resume(stored)
    assert other.run.state.counts == run.run.state.counts
    for name, array in other.archive().items():
        assert np.array_equal(array, stored[name]), name
    if method != "rounds":
        assert stored["run.begun"]


def test_another_grid_is_refused() -> None:
    data, folds, _ = drawn()
    run, other = drawn_run(), new_run(data, folds, Grid.of([0.1], [1, 2, 3], 6))
    run.begin()
    with pytest.raises(CorruptStore):
        other.resume(run.archive())
    assert other.run.state.all_rows.best == []


def test_counts_that_are_no_counts() -> None:
    run = drawn_run()
    run.begin()
    stored = run.archive()
    stored["run.by_engine"] = np.array('{"shared": "many"}')
    with pytest.raises(CorruptStore, match="counts"):
        drawn_run().resume(stored)


def test_stored_within_the_first_steps_it_begins_anew() -> None:
    run, other = drawn_run("joint"), drawn_run("joint")
    other.resume(run.archive())
    assert other.method.by_cell.begun and other.run.state.all_rows.best


def test_a_snapshot_stays_as_it_was() -> None:
    run = drawn_run()
    run.begin()
    snapshot = run.snapshot()
    decided = snapshot.cells.decided.copy()
    run_to_end(run)
    assert np.array_equal(snapshot.cells.decided, decided) and not decided.all()
    assert run.snapshot().cells.decided.all() and run.snapshot().scored
    assert len(snapshot.best) == 2 and snapshot.best[0] is run.run.state.all_rows.best[0]
