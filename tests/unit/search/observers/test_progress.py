"""Progress: counts and bounds in the units of the file; slow reports come less often."""

from __future__ import annotations

import threading
import time
import warnings

import pytest
from drawn_search import drawn_run
from numba import njit
from runs import record_of, to_end

from sparsecv_mio.search.observers.progress import COMPILING, FIRST_USE, Progress, Reporter, Reports, reports
from sparsecv_mio.search.state.deadline import Deadline


def test_the_end_is_the_record() -> None:
    run = to_end(drawn_run())
    shown, record = run.progress(), record_of(run)
    assert shown.done == shown.total == 30 and shown.best == (record.gamma, record.tau)
    assert (shown.lower, shown.upper) == (record.lower, record.upper)
    assert [row.tau for row in shown.taus] == [1, 2, 3] and all(row.final == row.total for row in shown.taus)
    assert shown.cv_error == record.cv_error and not shown.estimate
    of_tau = [min(row.cv_error for row in record.table if row.tau == tau) for tau in (1, 2, 3)]
    assert [row.cv_error for row in shown.taus] == of_tau and not any(row.estimate for row in shown.taus)


def test_reports_take_a_small_share_of_the_time() -> None:
    seen: list[Progress] = []

    def slow() -> Progress:
        time.sleep(0.02)
        return Progress(0, 1, 0, 0.0, 1.0, 0.0)

    reporter, begin = Reporter(seen.append, slow), time.monotonic()
    while time.monotonic() - begin < 0.3:
        reporter.visit()
    assert 1 <= len(seen) <= 6


def test_what_is_being_done_is_said_beside_the_last_numbers() -> None:
    seen, made = list[Progress](), list[Progress]()

    def make() -> Progress:
        made.append(Progress(len(made), 9, 0, 0.0, 1.0, 2.0))
        return made[-1]

    reporter = Reporter(seen.append, make)
    reporter.say("trees: tau 1")  # the first time there are no numbers yet
    reporter.say("trees: tau 2")
    assert len(made) == 1 and [one.done for one in seen] == [0, 0]
    assert seen[1].stage == "trees: tau 2" and seen[1].seconds >= 2.0


def test_compiling_is_said_with_the_last_numbers() -> None:
    seen: list[Progress] = []
    reports = Reports(seen.append, Deadline(None, None))
    reports(Progress(3, 9, 0, 0.0, 1.0, 0.0))
    reports.compiling()
    assert [one.done for one in seen] == [3, 3] and seen[1].stage == COMPILING


def test_compiling_is_warned_of_once_in_a_process_where_nobody_else_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    @njit
    def double(x):  # a new function in every run of the test: not in the cache
        return 2 * x

    monkeypatch.setattr("sparsecv_mio.search.observers.progress._warned", threading.Event())
    deadline, seen = Deadline(None, None), list[Progress]()
    with reports(seen.append, deadline), warnings.catch_warnings():
        warnings.simplefilter("error")
        double(1)
    assert [one.stage for one in seen] == [COMPILING] and 0.0 < deadline.compiled <= deadline.seconds
    before = deadline.compiled
    with warnings.catch_warnings(record=True) as caught, reports(None, deadline) as none:
        warnings.simplefilter("always")
        assert none is None and double(1.0) == 2.0 and double(1j) == 2j
    assert [str(one.message) for one in caught] == [FIRST_USE] and deadline.compiled > before


def test_a_warning_of_compiling_that_is_an_error_ends_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecv_mio.search.observers.progress._warned", threading.Event())
    with warnings.catch_warnings(), reports(None, Deadline(None, None)):
        warnings.simplefilter("error")
        assert njit(lambda x: x + 1)(1) == 2
