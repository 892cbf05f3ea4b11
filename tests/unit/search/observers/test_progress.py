"""Progress: counts and bounds in the units of the file; slow reports come less often."""

from __future__ import annotations

import time

from drawn_search import drawn_run
from runs import record_of, to_end

from sparsecv_mio.search.observers.progress import COMPILING, Progress, Reporter, Reports
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
