"""Every method keeps the contract of a strategy; snapshots are copies that later work does not change."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.run import CellMethod, Strategy, run_to_end
from sparsecv_mio.words import Method


def members(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("method", [str(word) for word in Method if word is not Method.AUTO])
def test_every_method_is_a_strategy(method: str) -> None:
    run = drawn_run(method)
    wanted = members(Strategy) if method == "descent" else members(CellMethod)
    assert {"begin", "step", "finished", "archive", "resume"} <= wanted
    assert not [name for name in wanted if name != "reported" and not hasattr(run, name)]
    assert run.context.gap == 0.0


def test_a_snapshot_stays_as_it_was() -> None:
    run = drawn_run()
    run.begin()
    snapshot = run.snapshot()
    decided = snapshot.cells.decided.copy()
    run_to_end(run)
    assert np.array_equal(snapshot.cells.decided, decided) and not decided.all()
    assert run.snapshot().cells.decided.all() and run.snapshot().scored
    assert len(snapshot.best) == 2 and snapshot.best[0] is run.run.state.all_rows.best[0]
