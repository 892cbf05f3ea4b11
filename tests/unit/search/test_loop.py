"""The loop: begin, step, finish; observers see it, and what cannot be written costs the file and never the run."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, record_of, to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import OutOfTime, SparseCVError
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.loop import drive, refined
from sparsecv_mio.search.observers.checkpoint import Checkpoint, read_checkpoint
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import read_trace
from sparsecv_mio.search.registry import RowMaker


def test_observers_see_the_whole_run(tmp_path: Path) -> None:
    signals, seen = Signals(), list[Progress]()
    run = new_run(*drawn(), signals=signals)
    hooks = Hooks(progress=seen.append, checkpoint=tmp_path / "run.ck", trace=tmp_path / "run.jsonl")
    drive(run, signals, hooks)
    head, moments = read_trace(tmp_path / "run.jsonl")
    assert head["method"] == "rounds" and moments[-1]["done"] == 30 and seen[0].total == 30
    key, state = read_checkpoint(tmp_path / "run.ck")
    assert key["method"] == "rounds" and bool(state["cells.decided"].all())
    again = new_run(*drawn())
    drive(again, Signals(), Hooks(resume=tmp_path / "run.ck"))
    assert again.run.state.cells.decided.all() and again.run.state.counts == run.run.state.counts


def test_a_run_that_ended_before_its_first_answers_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the checkpoint does not exist."""
    run, place = new_run(*drawn()), tmp_path / "run.ck"

    def ended() -> None:
        raise OutOfTime("the limit came while the run began")

    monkeypatch.setattr(run, "begin", ended)
    with pytest.raises(OutOfTime):
        drive(run, Signals(), Hooks(checkpoint=place))
    assert read_checkpoint(place)[1] == {}
    again = new_run(*drawn())
    drive(again, Signals(), Hooks(resume=place, checkpoint=place))
    assert again.run.state.proved() and "cells.decided" in read_checkpoint(place)[1]


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = list[SparseCVError]()

    def fail(self: Checkpoint, run: object, begun: bool = True) -> None:
        self.failure = SparseCVError("disk full")

    monkeypatch.setattr(Checkpoint, "write", fail)
    run, signals = new_run(*drawn()), Signals()
    drive(run, signals, Hooks(checkpoint=tmp_path / "run.ck", lost=lost.append))
    assert [str(error) for error in lost] == ["disk full"] and run.run.state.proved()


def test_memory_grows_with_the_data_and_with_one_table_of_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out: a row takes its numbers and twenty more, a row and a tau what a cell holds, and that once."""
    p, taus = 14, range(1, 13)
    of_row, of_cell = 8 * (p + 20), 3 * 8 + 4 + 3 + 4  # a cell: ends, error, number, marks; and masks of cells
    for name, most in (("state.cells.MANY_CELLS", 0), ("shared_tree.root_node.KEPT_SCORES", 0)):
        monkeypatch.setattr(f"sparsecv_mio.search.{name}", most)
    monkeypatch.setattr("sparsecv_mio.data.standard.CACHE_BYTES", 0)
    monkeypatch.setattr("sparsecv_mio.search.shared_tree.leave_out.CHUNK_ROWS", 1 << 10)
    monkeypatch.setattr("sparsecv_mio.search.shared_tree.leave_out.KEPT_NUMBERS", 0)
    monkeypatch.setattr("sparsecv_mio.search.shared_tree.thresholds.SINGLE_PRECISION_FOLDS", 0)
    peaks = []
    for n in (1_000, 20_000, 60_000):  # the first one loads what there is to
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, p))
        data = Dataset.from_arrays(X, X[:, :5].sum(axis=1) + rng.standard_normal(n))
        tracemalloc.start()
        record = cross_validate(data, "loo", gammas=[1.0], taus=taus, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert record.status == "proved"
    assert (peaks[2] - peaks[1]) / 40_000 < of_row + of_cell * len(taus)


def test_never_worse_than_the_grid() -> None:
    run = to_end(drawn_run())
    record = record_of(run)
    found = refined(record, run.run.state, RowMaker(run.context).make)
    assert found.tau == record.tau and found.lower <= found.cv_error <= found.upper <= record.upper
