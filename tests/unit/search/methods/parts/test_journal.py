"""The journal of a descent, there and back."""

from __future__ import annotations

import json

import pytest

from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.search.methods.parts.journal import Journal


def test_there_and_back() -> None:
    step = DescentStep("gamma", 0.5, 3, 2.0, 1.9, True)
    journal = Journal([step], [0.25], [0.5, 1.0], lined=True, certain=False, nodes=7, mios=2)
    assert Journal.of(json.loads(json.dumps(journal.plain()))) == journal


def test_what_is_no_journal_raises() -> None:
    found = Journal().plain()
    for name, wrong in (("proposed", ["x"]), ("spent", [1]), ("seen", 3)):
        with pytest.raises((TypeError, ValueError)):
            Journal.of({**found, name: wrong})
