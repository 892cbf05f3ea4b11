"""The loop: begin, step, finish; observers see it, and what cannot be written costs the file and never the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.loop import drive
from sparsecv_mio.search.observers.checkpoint import Checkpoint, read_checkpoint
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import read_trace


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


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = list[SparseCVError]()

    def fail(self: Checkpoint, run: object) -> None:
        self.failure = SparseCVError("disk full")

    monkeypatch.setattr(Checkpoint, "write", fail)
    run, signals = new_run(*drawn()), Signals()
    drive(run, signals, Hooks(checkpoint=tmp_path / "run.ck", lost=lost.append))
    assert [str(error) for error in lost] == ["disk full"] and run.run.state.proved()
