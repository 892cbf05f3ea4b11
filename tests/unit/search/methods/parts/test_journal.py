"""The journal of a descent, there and back."""

from __future__ import annotations

import json

import pytest

from sparsecv_mio.certificate.codec import plain, read
from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.methods.parts.journal import Journal


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
