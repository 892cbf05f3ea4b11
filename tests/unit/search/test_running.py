"""A record of a running search at any moment, and the state that it is made of."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn, drawn_run

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search import loop as module
from sparsecv_mio.search.answer.instability import Instabilities
from sparsecv_mio.search.answer.quick_answer import QuickAnswer, find_quick_answer
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.loop import RunningSearch, drive, with_quick_answer
from sparsecv_mio.search.observers import Checkpoint, Signals, read_checkpoint
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import BestOnAllRows, Snapshot
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets


def running() -> RunningSearch:
    data, folds, grid = drawn()
    question = Question(data.dataset, folds, grid.gammas, grid.taus, SearchOptions())
    return RunningSearch(question, grid, Deadline(60.0, None))


def test_a_record_without_any_method() -> None:
    made = running()
    made.standardize()
    made.prepare_answer(made.deadline.at)
    record = made.record()
    assert record.estimate and record.status == "limit" and record.work.engine == "forward selection"
    verify(record, made.question.dataset)


def test_a_thread_takes_the_quick_answer_that_another_one_is_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a limit the thread that searches and the one that waits fitted the same supports at the same time."""
    made, find, calls, begun, go_on = running(), find_quick_answer, list[int](), threading.Event(), threading.Event()
    made.standardize()

    def found(*given: Any) -> QuickAnswer:
        calls.append(1)
        begun.set()
        assert go_on.wait(60.0)
        return find(*given)

    monkeypatch.setattr(module, "find_quick_answer", found)
    waits = threading.Thread(target=made.prepare_answer, args=(made.deadline.at,))
    waits.start()
    assert begun.wait(60.0)
    searches = threading.Thread(target=made.record)
    searches.start()
    go_on.set()
    waits.join()
    searches.join()
    assert len(calls) == 1 and made.quick is not None


def test_what_is_scored_is_not_overwritten() -> None:
    run = drawn_run()
    run.step()
    snapshot, (data, folds, grid) = run.snapshot(), drawn()
    quick = find_quick_answer(data, folds, grid, float("inf"))
    both = with_quick_answer(snapshot, quick)
    g = int(np.flatnonzero(grid.gammas == quick.gamma)[0])
    assert np.isfinite(both.cells.nominal[g]).all() and len(both.best) == len(grid.gammas)
    assert all(ours.by_size == known.by_size for ours, known in zip(both.best, snapshot.best, strict=False))
    assert with_quick_answer(both, None) is both


def test_a_resumed_run_says_at_least_what_its_checkpoint_holds(tmp_path: Path) -> None:
    """Whenever its limit comes: before there is a method, and while the method still computes what was not stored."""
    run, place = drawn_run(), tmp_path / "run.ck"
    drive(run, Signals(), Hooks(checkpoint=place))
    known = run.state.bounds()
    made = running()
    made.question = replace(made.question, hooks=Hooks(resume=place))
    made.standardize()
    unit = run.context.cv_error_factor
    for method in (None, drawn_run()):
        if method is not None:
            made.set_method(method)
        made.prepare_answer(made.deadline.at)
        record = made.record()
        assert record.status == "proved" and record.support
        assert [row.lower for row in record.table] == pytest.approx((known.lower * unit).ravel().tolist(), rel=1e-15)
        assert (record.lower, record.upper) == pytest.approx((known.floor * unit, known.ceiling * unit), rel=1e-15)


def test_a_run_of_another_question_is_refused_before_a_limit_may_come(tmp_path: Path) -> None:
    drive(drawn_run(), Signals(), Hooks(checkpoint=tmp_path / "run.ck"))
    made = running()
    made.question = replace(made.question, hooks=Hooks(resume=tmp_path / "run.ck"))
    made.grid = replace(made.grid, taus=made.grid.taus[:1])
    with pytest.raises(BadInput, match="run.ck belongs to another run: its tau differs"):
        made.standardize()


def test_a_last_checkpoint_holds_what_the_answer_says(tmp_path: Path) -> None:
    run, made = drawn_run(), running()
    made.standardize()
    made.keeper, made.deadline = Checkpoint(tmp_path / "run.ck"), Deadline(0.0, None)
    run.step()
    made.set_method(run)
    made.store_end()
    assert np.array_equal(read_checkpoint(tmp_path / "run.ck")[1]["cells.lower"], run.state.cells.lower)


def test_a_gamma_that_was_left_out_gets_supports_and_no_bound() -> None:
    context = drawn_run().context
    all_rows = BestOnAllRows(context.data, context.grid)
    all_rows.keep({})
    assert all_rows.best == []
    cell = BestSubset.from_bounds(2, np.array([0, 3]))
    all_rows.keep({1: BestSubsets({2: cell}, 4, True)})
    assert all_rows.best[0].by_size[2].support.tolist() == [0, 3]
    assert all_rows.best[0].by_size[2].lower == 0.0 and not all_rows.best[0].by_size[2].complete


def test_pairs_out_of_the_race_are_not_worth_work() -> None:
    for gap, worth in ((1e-4, False), (0.0, True)):
        state = drawn_run(gap=gap).state
        state.cells.narrow((slice(None), slice(None), slice(None)), 3.0, 9.0)
        state.cells.lower[0, 1] = 1.0
        state.cells.upper[0, 1] = 2.0
        state.cells.mark((1, 1, 2))
        found = state.worth_work()
        assert found[0, 1].all() and not found[1, 1, 2] and bool(found[1, 0].all()) is worth
        assert state.open.sum() == state.cells.final.size - 1 and not state.is_certified()
        assert np.array_equal(found, found & state.open)


def test_scored_needs_a_pair_in_every_fold_and_all_rows() -> None:
    run = drawn_run()
    run.step()
    cells = CellTable.empty(*run.context.shape)
    best = tuple(run.state.all_rows.best)
    assert not Snapshot(run.context, cells, best).has_scored_pair
    cells.offer((0, 1, slice(None)), 0, [1.0] * 5, [1.0] * 5)
    assert Snapshot(run.context, cells, best).has_scored_pair and not Snapshot(run.context, cells).has_scored_pair


def test_a_change_that_is_not_known_has_no_lower_end() -> None:
    """As of a fold of counts without which predictors overflow."""
    cells, some = CellTable.empty(1, 1, 2), object.__new__(Instabilities)
    cells.decided[...] = True
    some.cells = cells
    full: Any = None
    found, doubt = np.array([1.0, np.inf]), np.array([0.25, np.inf])
    with np.errstate(invalid="raise"):
        assert some._interval(0, 0, full, found, doubt) == (0.75, np.inf)
