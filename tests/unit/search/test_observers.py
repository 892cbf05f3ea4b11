"""Progress and trace end at the numbers of the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from drawn_search import drawn_run
from repository import INSTANCES
from runs import record_of, to_end

from sparsecv_mio.cli import run as main
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search import observers as trace_module
from sparsecv_mio.search.observers import Progress, Reporter, read_trace


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
    reporter.say("trees: tau 1")  # the first time there are not numbers yet
    reporter.say("trees: tau 2")
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
