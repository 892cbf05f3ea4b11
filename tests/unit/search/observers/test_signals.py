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


def test_what_is_being_done_is_counted_where_it_can_be() -> None:
    signals, heard = Signals(), list[str]()
    signals.listen(doing=heard.append)
    signals.doing("relaxations:", 120, 7500)
    signals.doing("trees: tau 3")
    assert heard == ["relaxations: 120 of 7,500", "trees: tau 3"] and signals.phase == "trees: tau 3"
