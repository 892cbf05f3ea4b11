"""Signals reach every listener, in the order in which they came."""

from __future__ import annotations

from sparsecv_mio.search.observers.signals import Signals


def test_listeners_are_called_in_their_order() -> None:
    signals, heard = Signals(), []
    assert not signals.storing
    signals.listen(progressed=lambda: heard.append("first"))
    signals.listen(progressed=lambda: heard.append("second"), safe_point=lambda: heard.append("safe"))
    signals.progressed()
    signals.safe_point()
    assert heard == ["first", "second", "safe"] and signals.storing
