"""A run as arrays: what was stored comes back, what is of another grid is refused before anything changes."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.methods.parts.archive import begun
from sparsecv_mio.search.options import Grid


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
        assert begun(stored)


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
