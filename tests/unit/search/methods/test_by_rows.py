"""Data that go by rows: the answers are those of the trees."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, to_end

from sparsecv_mio.search.methods import by_rows
from sparsecv_mio.search.methods.by_rows import threads_for


def test_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    data, folds, grid = drawn(p=24, n=16, folds="4")
    exact = to_end(new_run(data, folds, grid)).run.state.cells
    monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 1)
    run = to_end(new_run(data, folds, grid))
    ours = run.run.state.cells
    assert run.name == "by rows" and exact.decided.all() and np.isfinite(ours.nominal).all()
    slack = 1e-9 * exact.upper + 1e-12
    assert (ours.lower <= exact.upper + slack).all() and (exact.lower <= ours.upper + slack).all()
    cell = run.method.best_on_all_rows(0, 2)
    assert len(cell.support) == 2


def test_threads_share_the_room_for_copies() -> None:
    data, _, _ = drawn()
    assert threads_for(data, 3) == 3
