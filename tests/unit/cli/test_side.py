"""Options of side constraints, and work in a thread of its own."""

from __future__ import annotations

import math
import threading

import pytest

from sparsecv_mio.cli.side import in_own_thread, one_gamma, side_options
from sparsecv_mio.errors import BadInput


def test_texts_become_constraints() -> None:
    found = side_options("a, b", None, ["c,d", '"e,f",g'], ["2:a,c"], ["a:-1:2.5", "b::0", "x:y:0:"])
    assert found.force_in == ("a", "b") and found.force_out == ()
    assert found.together == (("c", "d"), ("e,f", "g")) and found.at_most == ((2, ("a", "c")),)
    assert found.box == {"a": (-1.0, 2.5), "b": (-math.inf, 0.0), "x:y": (0.0, math.inf)}


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"at_most": ["a,b"]}, "--at-most"),
        ({"at_most": ["-1:a"]}, "at least 0"),
        ({"box": ["a:0"]}, "--box"),
        ({"box": ["a:2:1"]}, "reversed"),
        ({"box": ["a:x:1"]}, "--box"),
        ({"force_in": ","}, "--force-in"),
    ],
)
def test_what_cannot_be_read_names_its_option(asked: dict[str, object], word: str) -> None:
    every = {"force_in": None, "force_out": None, "together": None, "at_most": None, "box": None} | asked
    with pytest.raises(BadInput, match=word):
        side_options(**every)  # type: ignore[arg-type]


def test_one_gamma() -> None:
    assert one_gamma("0.5") == 0.5
    with pytest.raises(BadInput, match="--gamma"):
        one_gamma("0.1,1")


def test_work_in_a_thread_hands_over_its_result_and_its_error() -> None:
    assert in_own_thread(threading.current_thread) is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 // 0)
