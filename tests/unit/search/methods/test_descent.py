"""A descent: every move lowers the CV error, and what a checkpoint holds brings it back."""

from __future__ import annotations

from drawn_search import drawn_run
from runs import record_of, to_end


def test_moves_only_lower_the_error() -> None:
    run = to_end(drawn_run("descent", gap=1e-4))
    accepted = [step.upper for step in run.journal.steps if step.accepted]
    assert accepted == sorted(accepted, reverse=True) and run.journal.over
    record = record_of(run)
    assert record.status == "proved" and record.descent == tuple(run.journal.steps)
    assert record.work.engine == "descent, certified rows" and record.work.mios == run.journal.mios


def test_stored_between_moves_it_ends_the_same() -> None:
    run, other, whole = (drawn_run("descent", gap=1e-4) for _ in range(3))
    run.begin()
    run.step()
    other.resume(run.archive())
    assert other.journal == run.journal
    while not other.finished:
        other.step()
    to_end(whole)
    assert [(s.move, s.gamma, s.tau, s.upper) for s in other.journal.steps] == [
        (s.move, s.gamma, s.tau, s.upper) for s in whole.journal.steps
    ]


def test_a_saddle_descent_is_an_estimate() -> None:
    record = record_of(to_end(drawn_run("descent", tau_step="saddle")))
    assert record.status == "limit" and any("saddle" in note for note in record.warnings)
