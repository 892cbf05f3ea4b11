"""Time limit, stop request and abandonment in one question."""

from __future__ import annotations

import threading
import time

import pytest

from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.search.state.deadline import Deadline


def test_without_a_limit_it_never_expires() -> None:
    deadline = Deadline(None, None)
    assert not deadline.limited and not deadline.expired() and deadline.left == float("inf")
    assert not deadline.share_spent(0.0) and deadline.seconds >= 0.0


def test_a_limit_counts_from_where_it_began() -> None:
    deadline = Deadline(10.0, None, began=time.monotonic() - 9.0)
    assert not deadline.expired() and deadline.share_spent(0.5) and 0.0 < deadline.left < 1.1
    assert Deadline(10.0, None, began=time.monotonic() - 11.0).expired()


def test_a_share_from_now() -> None:
    late = Deadline(10.0, None, began=time.monotonic() - 9.0)
    assert not late.share_from_now(0.05)() and late.share_from_now(-0.05)()
    assert not Deadline(None, None).share_from_now(0.1)()
    assert Deadline(10.0, None, began=time.monotonic() - 11.0).share_from_now(0.5)()


def test_a_stop_and_an_abandoned_run() -> None:
    stop = threading.Event()
    deadline = Deadline(None, stop)
    assert deadline.limited
    deadline.check_wanted()
    stop.set()
    assert deadline.expired()
    deadline.abandoned.set()
    with pytest.raises(OutOfTime):
        deadline.check_wanted()
