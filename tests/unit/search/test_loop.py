"""Methods by their words, what `auto` means, and how many threads a run has."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import problems
import pytest
from drawn_search import drawn
from runs import new_run

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, OutOfTime, SparseCVError
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.loop import drive
from sparsecv_mio.search.observers import Checkpoint, Signals, read_checkpoint
from sparsecv_mio.search.options import Hooks


def test_a_run_is_carried_on_without_its_limit(tmp_path: Path) -> None:
    data = problems.linear(0, 60, 40, {0: 1.0, 1: -1.0}, noise=0.3)
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": range(4), "threads": 1}
    path = tmp_path / "run.ck"
    folds = make_folds("4", data)
    cross_validate(data, folds, time_limit=600.0, checkpoint=path, **asked)
    carried_on, afresh = cross_validate(data, folds, resume=path, **asked), cross_validate(data, folds, **asked)
    assert carried_on.status == afresh.status == "proved"
    assert (carried_on.tau, carried_on.gamma) == (afresh.tau, afresh.gamma)
    for method in ("joint", "grid"):
        with pytest.raises(BadInput, match="its method differs"):
            cross_validate(data, folds, resume=path, method=method, **asked)


def test_another_weighing_of_rows_is_named_when_a_run_is_carried_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame = frame.assign(w=rng.integers(1, 3, 40), y=(frame.a + rng.normal(size=40) > 0.5) * 1)
    asked: dict[str, Any] = {"target": "y", "loss": "logistic", "gammas": [1.0], "taus": [1], "folds": 3}
    path, other = tmp_path / "run.ck", tmp_path / "other.ck"
    sc.solve(frame, class_weight="balanced", checkpoint=path, weights="w", **asked)
    with pytest.raises(BadInput, match=r"its class-weight differs \(balanced in the checkpoint, none in this run\);"):
        sc.solve(frame, resume=path, weights="w", **asked)
    with pytest.raises(BadInput, match=r"its weights differ \(w in the checkpoint, none in this run\);"):
        sc.solve(frame.drop(columns="w"), class_weight="balanced", resume=path, **asked)
    assert sc.solve(frame, class_weight="balanced", resume=path, weights="w", **asked).status == "proved"
    sc.solve(frame, checkpoint=other, weights="w", **asked)
    (tmp_path / "w.csv").write_text("\n".join(map(str, frame.w)))
    by_file = sc.solve(frame.drop(columns="w"), resume=other, weights=f"file:{tmp_path / 'w.csv'}", **asked)
    assert by_file.status == "proved"  # the same numbers


def test_a_run_that_ended_before_its_first_answers_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the checkpoint does not exist."""
    run, place = new_run(*drawn()), tmp_path / "run.ck"

    def ended() -> None:
        raise OutOfTime("the limit came while the run began")

    monkeypatch.setattr(run, "step", ended)
    with pytest.raises(OutOfTime):
        drive(run, Signals(), Hooks(checkpoint=place))
    assert not read_checkpoint(place)[1]["cells.decided"].any()
    again = new_run(*drawn())
    drive(again, Signals(), Hooks(resume=place, checkpoint=place))
    assert again.state.is_certified() and "cells.decided" in read_checkpoint(place)[1]


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = list[SparseCVError]()

    def fail(self: Checkpoint, run: object, ended: bool = False) -> None:
        self.failure = SparseCVError("disk full")

    monkeypatch.setattr(Checkpoint, "write", fail)
    run, signals = new_run(*drawn()), Signals()
    drive(run, signals, Hooks(checkpoint=tmp_path / "run.ck", lost=lost.append))
    assert [str(error) for error in lost] == ["disk full"] and run.state.is_certified()


def test_memory_grows_with_the_data_and_with_one_table_of_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out: a row takes its numbers and twenty more, a row and a tau what a cell holds, and that once."""
    p, taus = 14, range(1, 13)
    of_row, of_cell = 8 * (p + 20), 3 * 8 + 4 + 3 + 4  # a cell: ends, error, number, marks; and masks of cells
    for name, most in (("state.cells.MANY_CELLS", 0), ("problems.left_out_folds.STORE_BYTES", 0)):
        monkeypatch.setattr(f"sparsecv_mio.search.{name}", most)
    monkeypatch.setattr("sparsecv_mio.data.standard.STORE_BYTES", 0)
    monkeypatch.setattr("sparsecv_mio.search.problems.left_out_folds.CACHED_ROWS", 1 << 10)
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
