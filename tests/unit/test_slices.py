"""Slices that are done here, and what of them is sent; `test_parallel` has a cluster for them."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from sparsecv_mio import slices
from sparsecv_mio.slices import Hands, Kept, Moment


def twice(number: int, *, more: int = 0, expired: Callable[[], bool] | None = None) -> tuple[int, bool | None]:
    return 2 * number + more, expired and expired()


def test_a_slice_is_told_when_to_end_where_somebody_says_so() -> None:
    hands = Hands()
    assert hands.do(twice, 3) == (6, None)
    assert hands.do(twice, 3, until=Moment(), more=1) == (7, False)
    assert hands.do(twice, 3, until=Moment(lambda: True)) == (6, True)


def test_what_is_kept_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "KEPT_NAMES", 2)
    here = Kept()
    here["spectrum"] = 1.0
    sent = pickle.dumps({"first": here, "second": here})
    there = pickle.loads(sent)
    assert there["first"] is there["second"] and not there["first"] and there["first"].name == here.name
    there["first"]["spectrum"] = 2.0
    assert pickle.loads(sent)["first"] == {"spectrum": 2.0} and here == {"spectrum": 1.0}
    for _ in range(2):
        pickle.loads(pickle.dumps(Kept()))
    assert pickle.loads(sent)["first"] == {}  # of many the one used last longest ago is let go
