"""Ctrl-C sets an event once, and quits the second time; elsewhere than in the main thread it does not arrive."""

from __future__ import annotations

import signal
import threading

import pytest

from sparsecv_mio.search.interrupts import interruptible


def test_the_first_interrupt_sets_the_event_and_the_second_quits(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible("name") as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set() and capfd.readouterr().err.startswith("name: stopping")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_takes_no_handler() -> None:
    seen = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
