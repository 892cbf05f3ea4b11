"""A running search: its record at any moment, its signals, and the accounts of its sources."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from repository import INSTANCES
from runs import drawn, drawn_run, new_run, record_of, to_end

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run as main
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search import observers as trace_module
from sparsecv_mio.search import running_search as module
from sparsecv_mio.search.accounts import OTHER_WORK
from sparsecv_mio.search.answer.instability import Instabilities
from sparsecv_mio.search.answer.quick_answer import QuickAnswer, find_quick_answer
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.grid_search import ORDERS, GridSearch
from sparsecv_mio.search.observers import (
    BegunStep,
    Checkpoint,
    Progress,
    Reporter,
    Signals,
    read_checkpoint,
    read_trace,
)
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question
from sparsecv_mio.search.running_search import RunningSearch, drive, with_quick_answer
from sparsecv_mio.search.sources.registry import SOURCES
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
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
    run.take_turn()
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
    run.take_turn()
    made.set_method(run)
    made.store_end(record_of(run))
    key, stored = read_checkpoint(tmp_path / "run.ck")
    assert np.array_equal(stored["cells.lower"], run.state.cells.lower) and "ended" not in key


@pytest.mark.parametrize("expires", ["take_turn", "score_reported_pair"])
def test_a_certified_answer_ends_its_checkpoint_whenever_the_limit_comes(
    expires: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit between the last turn and the answer left a checkpoint that a new run took for an unfinished one."""
    (data, folds, grid), act = drawn(), getattr(GridSearch, expires)

    def act_until_limit(run: GridSearch) -> None:
        act(run)
        if run.state.is_certified():
            run.context.deadline.at = 0.0

    monkeypatch.setattr(GridSearch, expires, act_until_limit)
    words: dict[str, Any] = {"gammas": grid.gammas, "taus": grid.taus, "time_limit": 60.0, "threads": 1}
    record = cross_validate(data.dataset, folds, checkpoint=tmp_path / "run.ck", **words)
    assert record.status == "proved" and read_checkpoint(tmp_path / "run.ck")[0]["ended"]


def test_a_gamma_that_was_left_out_gets_supports_and_no_bound() -> None:
    context = drawn_run().context
    all_rows = BestOnAllRows(context.data, context.grid)
    all_rows.keep({})
    assert all_rows.best == []
    cell = BestSubset.from_bounds(2, np.array([0, 3]))
    all_rows.keep({1: BestSubsets({2: cell}, 4, True)})
    assert all_rows.best[0].by_size[2].support.tolist() == [0, 3]
    assert all_rows.best[0].by_size[2].lower == 0.0 and not all_rows.best[0].by_size[2].complete


def test_excluded_pairs_have_no_subproblem_to_solve() -> None:
    for gap, worth in ((1e-4, False), (0.0, True)):
        state = drawn_run(gap=gap).state
        state.cells.narrow((slice(None), slice(None), slice(None)), 3.0, 9.0)
        state.cells.lower[0, 1] = 1.0
        state.cells.upper[0, 1] = 2.0
        state.cells.mark((1, 1, 2))
        found = state.unexcluded_subproblems()
        assert found[0, 1].all() and not found[1, 1, 2] and bool(found[1, 0].all()) is worth
        assert state.open.sum() == state.cells.final.size - 1 and not state.is_certified()
        assert np.array_equal(found, found & state.open)


def test_scored_needs_a_pair_in_every_fold_and_all_rows() -> None:
    run = drawn_run()
    run.take_turn()
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


def test_the_end_is_the_record() -> None:
    run = to_end(drawn_run())
    shown, record = run.progress(), record_of(run)
    assert shown.done == shown.total == 30 and shown.best == (record.gamma, record.tau)
    assert (shown.lower, shown.upper) == pytest.approx((record.lower, record.upper), rel=1e-13)
    assert [row.tau for row in shown.taus] == [1, 2, 3] and all(row.final == row.total for row in shown.taus)
    assert shown.cv_error == record.cv_error and not shown.estimate
    of_tau = [min(row.cv_error for row in record.table if row.tau == tau) for tau in (1, 2, 3)]
    assert [row.cv_error for row in shown.taus] == of_tau and not any(row.estimate for row in shown.taus)


def test_what_is_being_done_is_said_beside_the_last_numbers() -> None:
    seen, made = list[Progress](), list[Progress]()

    def make() -> Progress:
        made.append(Progress(len(made), 9, 0, 0.0, 1.0, 2.0))
        return made[-1]

    reporter = Reporter(seen.append, make)
    reporter.say(BegunStep("together", "trees: tau 1", (1.0, 1.0), 0))  # the first time there are not numbers yet
    reporter.say(BegunStep("together", "trees: tau 2", (1.0, 1.0), 0))
    assert len(made) == 1 and [one.done for one in seen] == [0, 0]
    assert seen[1].stage == "trees: tau 2" and seen[1].seconds >= 2.0


SERVO = str(INSTANCES / "servo.csv")
ASK = ["solve", SERVO, "--target", "class", "--folds", "blocks:20", "--gamma", "0.1,1", "--tau", "1:5"]
ASK += ["--threads", "1"]


@pytest.fixture
def a_line_at_every_safe_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the machine, the lines are those of the run."""
    monkeypatch.setattr(trace_module, "REPORT_SHARE", 0.0)
    monkeypatch.setattr(trace_module, "TRACE_EVERY", 0.0)


@pytest.mark.usefixtures("a_line_at_every_safe_point")
@pytest.mark.parametrize("method", ["rounds", "joint"])
def test_bounds_close_monotonically_and_end_at_the_record(method: str, tmp_path: Path) -> None:
    trace, out = tmp_path / "run.jsonl", tmp_path / "answer.json"
    assert main([*ASK, "--method", method, "--trace", str(trace), "--json", str(out), "-q"]) == 0
    head, moments = read_trace(trace)
    record = json.loads(out.read_text())
    assert (head["method"], head["gammas"], head["taus"]) == (method, [0.1, 1.0], [1, 2, 3, 4, 5])
    for before, after in zip(moments, moments[1:], strict=False):
        assert after["lower"] >= before["lower"] and after["nodes"] >= before["nodes"]
        assert before["upper"] is None or after["upper"] <= before["upper"]
    assert (moments[-1]["lower"], moments[-1]["upper"]) == pytest.approx((record["lower"], record["upper"]), rel=1e-13)
    begun = [step for moment in moments for step in moment["begun"]]
    assert [moment["begun"][-1]["step"] for moment in moments if moment["begun"]][-1] == moments[-1]["stage"]
    assert {step["order"] for step in begun} <= set(ORDERS)
    assert {gamma for step in begun for gamma in step["gammas"]} == {0.1, 1.0}
    assert moments[-1]["pairs"][0] == pytest.approx([record["table"][0][end] for end in ("lower", "upper")])


@pytest.mark.usefixtures("a_line_at_every_safe_point")
def test_a_descent_traces_the_row_it_solves(tmp_path: Path) -> None:
    trace, out = tmp_path / "run.jsonl", tmp_path / "answer.json"
    assert main([*ASK, "--method", "descent", "--trace", str(trace), "--json", str(out), "-q"]) == 0
    head, moments = read_trace(trace)
    record = json.loads(out.read_text())
    assert head["gammas"] is None and head["taus"] == [1, 2, 3, 4, 5]
    assert {moment["gamma"] for moment in moments} <= {step["gamma"] for step in record["descent"]}
    for before, after in zip(moments, moments[1:], strict=False):
        assert after["steps"] >= before["steps"] and after["nodes"] >= before["nodes"]
        assert before["upper"] is None or after["upper"] <= before["upper"]
    last = moments[-1]
    assert (last["gamma"], last["steps"]) == (record["gamma"], len(record["descent"]))
    assert last["upper"] == pytest.approx(record["upper"], rel=1e-13)


@pytest.mark.usefixtures("a_line_at_every_safe_point")
def test_a_cut_line_is_left_out_and_other_files_are_refused(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    assert main([*ASK, "--trace", str(trace), "-q"]) == 0
    text, (_, moments) = trace.read_text(), read_trace(trace)
    trace.write_text(text[:-20])
    assert len(read_trace(trace)[1]) == len(moments) - 1
    for wrong in ("", "{}\n", "[1]\n[2]\n", text.splitlines()[0] + "\n"):
        trace.write_text(wrong)
        with pytest.raises(CorruptStore):
            read_trace(trace)
    with pytest.raises(CorruptStore, match="cannot read"):
        read_trace(tmp_path / "none")


def test_a_trace_ends_with_the_record_although_the_search_goes_on(tmp_path: Path) -> None:
    record_is_built = threading.Event()
    deadline = SimpleNamespace(abandoned=record_is_built)
    grid = SimpleNamespace(gammas=np.array([0.1]), taus=np.array([1]))
    context = SimpleNamespace(deadline=deadline, grid=grid, gap=0.0, folds=SimpleNamespace(k=2))
    run = SimpleNamespace(name="rounds", context=context, trace_line=lambda: {"pairs": [[0.0, None]]})
    trace = trace_module.Trace(tmp_path / "run.jsonl")
    trace.write(run)
    record_is_built.set()
    trace.close(run)
    assert len(read_trace(tmp_path / "run.jsonl")[1]) == 1


COUNTS = ("slices", "problems", "nodes", "decided", "ruled_out", "gap_closed")
METHODS = ("rounds", "joint", "algorithm1", "grid", "bounds", "descent")


def correlated(n: int, p: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return Dataset.from_arrays(X, X[:, :4] @ np.ones(4) + 2.0 * rng.normal(size=n))


@pytest.mark.parametrize("method", METHODS)
def test_the_table_adds_up(method: str) -> None:
    run = to_end(drawn_run(method))
    record = record_of(run)
    sources = record.work.sources
    assert len({work.source for work in sources}) == len(sources)
    assert sum(work.nodes for work in sources) == record.work.nodes
    assert all(getattr(work, name) >= 0 for work in sources for name in COUNTS)
    assert sum(work.seconds for work in sources) <= record.work.seconds
    if method != "descent":  # of which the table of the record has one row of several
        assert sum(work.decided for work in sources) == sum(row.folds_decided for row in record.table)
        gap = 1.0 - record.lower / record.upper if np.isfinite(record.upper) else 1.0
        assert sum(work.gap_closed for work in sources) == pytest.approx(1.0 - gap, abs=1e-9)
        assert record.work.course[-1].gap == pytest.approx(gap, abs=1e-9)
    assert verify(record, run.context.data.dataset).ok


@pytest.mark.parametrize(
    ("threads", "folds", "limit"), [(1, "5", None), (3, "5", None), (1, "30", None), (2, "5", 1.0)]
)
def test_the_table_of_two_classes_adds_up(
    threads: int, folds: str, limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All seconds are those of the processor, because other programs may take most of the time of a short run."""
    monkeypatch.setattr(time, "monotonic", time.process_time)
    data = as_two_classes(two_classes(60, 40 if limit else 7))
    record = cross_validate(
        data, make_folds(folds, data), gammas=[0.1, 1.0, 10.0], taus=range(1, 6), loss="logistic", threads=threads,
        time_limit=limit,
    )  # fmt: skip
    work, sources = record.work, record.work.sources
    assert sum(each.nodes for each in sources) == work.nodes
    assert sum(each.decided for each in sources) == sum(row.folds_decided for row in record.table)
    assert sum(each.gap_closed for each in sources) == pytest.approx(record.lower / record.upper, abs=1e-9)
    assert sum(each.ruled_out for each in sources) >= sum(
        row.folds - row.folds_decided for row in record.table if row.status == "excluded"
    )
    assert all(getattr(each, name) >= 0 for each in sources for name in (*COUNTS, "seconds", "cpu_seconds"))
    assert 0.5 * work.seconds <= sum(each.seconds for each in sources) <= work.seconds
    assert {each.source for each in sources} <= {*SOURCES, OTHER_WORK}
    assert all(each.problems for each in sources if each.source != OTHER_WORK)


def two_classes(n: int, p: int) -> Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return Dataset.from_arrays(X, (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.0).astype(float))


def test_what_was_booked_before_a_run_was_stored_is_kept(tmp_path: Path) -> None:
    data = correlated(60, 40, 3)
    folds, path = make_folds("4", data), tmp_path / "run.ck"
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": range(4), "threads": 1, "gap": 0.0}
    whole = cross_validate(data, folds, checkpoint=path, **asked)
    again = cross_validate(data, folds, resume=path, **asked)
    before, after = ({work.source: work for work in record.work.sources} for record in (whole, again))
    for source, work in before.items():
        if source != OTHER_WORK:
            assert after[source].decided == work.decided and after[source].nodes >= work.nodes
    run = drawn_run()
    for wrong in ("{}", '[{"source": "a", "nodes": -1}]', '[{"nodes": 1}]', "[3]"):
        with pytest.raises(CorruptStore):
            run.accounts.check({"accounts": np.array(wrong)})


def test_who_reads_a_run_from_another_thread_gets_its_slice_so_far() -> None:
    search = new_run(*drawn(), seconds=60.0)
    accounts = search.accounts
    accounts.turn_to(SubproblemTrees.name)
    search.state.counts.nodes += 11
    assert {work.source: work.nodes for work in accounts.table()}[SubproblemTrees.name] == 11
    search.state.counts.nodes += 1
    accounts.book(1, 0.0)
    assert {work.source: work.nodes for work in accounts.table()}[SubproblemTrees.name] == 12
