"""Arrays of a checkpoint are checked before they are trusted."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.state.stored import below, check_like, counts_of, parsed, prefixed, within

MODEL = {"a": np.zeros((2, 3)), "b": np.zeros(4, dtype=np.int64)}


@pytest.mark.parametrize(
    "found",
    [{}, {"a": MODEL["a"]}, {**MODEL, "a": np.zeros(6)}, {**MODEL, "b": np.zeros(4)}, {**MODEL, "b": np.zeros(5, int)}],
)
def test_what_is_unlike_is_refused(found: dict[str, np.ndarray]) -> None:
    with pytest.raises(CorruptStore):
        check_like(found, MODEL)


def test_what_is_free_may_have_any_length() -> None:
    check_like({**MODEL, "b": np.zeros(9, dtype=np.int64)}, MODEL, free=("b",))


def test_numbers_outside_are_refused() -> None:
    within(MODEL, "a", 0.0, 1.0)
    for wrong in (np.array([np.nan]), np.array([2.0])):
        with pytest.raises(CorruptStore, match="a holds numbers"):
            within({"a": wrong}, "a", 0.0, 1.0)


def test_counts_and_json() -> None:
    assert counts_of(np.array('{"x": 3}')) == {"x": 3} and parsed(np.array("[1]")) == [1]
    for wrong in ('{"x": 1.5}', '{"x": true}', "[]", "{"):
        with pytest.raises(CorruptStore):
            counts_of(np.array(wrong))


def test_names_below_a_name() -> None:
    state = prefixed("run", MODEL)
    assert set(state) == {"run.a", "run.b"} and set(below("run", state)) == {"a", "b"} and below("here", state) == {}
