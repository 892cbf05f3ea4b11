"""A descent: every move lowers the CV error, and what a checkpoint holds brings it back."""

from __future__ import annotations

import json

import pytest
from drawn_search import drawn_run
from runs import record_of, to_end

from sparsecv_mio.certificate.codec import plain, read
from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.methods.descent import Journal


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


def test_there_and_back() -> None:
    step = DescentStep("gamma", 0.5, 3, 2.0, 1.9, True)
    for trial in (None, ("line", [0.5], [3], True)):
        journal = Journal([step], [0.25], [0.5, 1.0], certain=False, nodes=7, mios=2, here=[0.5], trial=trial)
        assert read(json.loads(json.dumps(plain(journal, Journal, "journal"))), Journal, "journal") == journal


def test_what_is_no_journal_raises() -> None:
    found = plain(Journal(), Journal, "journal")
    for name, wrong in (("proposed", ["x"]), ("nodes", [1]), ("seen", 3), ("trial", ["line", [0.5]])):
        with pytest.raises(CorruptStore, match=f"field journal.{name}"):
            read({**found, name: wrong}, Journal, "journal")
