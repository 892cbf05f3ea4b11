"""Nested cross-validation: the procedure carried out by hand, limits, Ctrl-C, and what `verify` says of it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_predict

import sparsecv_mio as sc
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.nested_folds import outer_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.observers.progress import Progress

GAMMAS = "0.05,1"


def drawn(seed: int = 0, n: int = 30) -> sc.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] - X[:, 2] + rng.normal(size=n)
    return sc.Dataset.from_arrays(X, y, aux={"g": np.arange(n) // 3})


def solved(**given: Any) -> Record:
    return sc.solve(drawn(), **{"folds": "5", "gammas": GAMMAS, "nested": 3, "threads": 1, **given})


def test_it_is_what_cross_val_predict_makes_of_the_estimator() -> None:
    data, record = drawn(), solved(one_se=True)
    outer = outer_folds(3, sc.make_folds("5", data), data)
    splits = [(outer.train_rows(j), outer.scored_rows(j)) for j in range(3)]
    model = sc.BestSubsetRidgeCV(gammas=GAMMAS, cv=5, one_se=True)
    predicted = cross_val_predict(model, data.X, data.y, cv=splits)
    assert record.nested is not None and record.least is not None
    assert record.nested.error == pytest.approx(np.mean((data.y - predicted) ** 2), rel=1e-12)
    assert record.nested.optimism == pytest.approx(100.0 * (record.nested.error / record.cv_error - 1.0))
    assert [one.fold for one in record.nested.folds] == [0, 1, 2]


def test_the_answer_is_that_without_it() -> None:
    with_it, without = solved(), solved(nested=None)
    assert without.nested is None
    assert replace(with_it, nested=None, work=without.work) == without


def test_a_stop_keeps_the_main_answer_and_the_folds_that_are_done() -> None:
    stop, stages = threading.Event(), []

    def watch(state: Progress) -> None:
        stages.append(state.stage)
        if "outer fold 2 of 3" in state.stage:
            stop.set()

    record = solved(stop=stop, progress=watch)
    assert record.status == "proved" and record.nested is not None
    assert [one.fold for one in record.nested.folds] == [0] and record.nested.standard_error is None
    assert any("outer fold 1 of 3" in stage for stage in stages) and sc.verify(record, drawn()).ok
    stop.clear()
    early = solved(stop=stop, progress=lambda state: stop.set())
    assert early.nested is None and early.cv_error > 0.0


def test_ctrl_c_between_folds_keeps_the_main_answer() -> None:
    def interrupted(state: Progress) -> None:
        if "outer fold 2" in state.stage:
            raise KeyboardInterrupt

    record = solved(progress=interrupted)
    assert record.status == "proved" and record.nested is not None and len(record.nested.folds) == 1


def test_a_limit_is_shared_and_kept_in_the_record() -> None:
    record = solved(time_limit=60.0)
    assert record.request.time_limit == 60.0 and record.nested is not None and len(record.nested.folds) == 3


def test_what_is_wrong_inside_says_where() -> None:
    with pytest.raises(BadInput, match="^nested: 1 is out of range"):
        solved(nested=1)
    data = drawn()
    flat = sc.Dataset.from_arrays(data.X, np.where(np.arange(30) == 4, 1.0, 0.0))
    with pytest.raises(BadInput, match="^nested, without outer fold . *: target 'y' is constant"):
        sc.solve(flat, folds="5", gammas=GAMMAS, nested=3)


def test_the_command_prints_and_stores_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path, out = drawn(), tmp_path / "data.csv", tmp_path / "out.json"
    head = ",".join((*data.names, "y"))
    np.savetxt(path, np.column_stack([data.X, data.y]), delimiter=",", header=head, comments="", fmt="%.17g")
    ask = ["solve", str(path), "--target", "y", "--folds", "5", "--gamma", GAMMAS, "--threads", "1", "--nested", "3"]
    assert run([*ask, "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "honest error of the whole procedure: " in printed and "by nested CV over 3 outer folds" in printed
    assert "models chosen without an outer fold" in printed
    record, ours = Record.from_json(out.read_text()), solved()
    assert record.nested == ours.nested
    assert run(["verify", str(out), str(path)]) == 0
    assert "error of the 3 models that were chosen without an outer fold" in capsys.readouterr().out
