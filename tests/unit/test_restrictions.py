"""Restrictions by names or positions: what they become, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import NONE, Restrictions

NAMES = ("a", "b", "c d", "7")


def test_names_positions_and_numbers_mean_the_same_columns() -> None:
    assert Restrictions(["c d", "0"], 1).within(NAMES) == Restrictions(("a", "c d"), ("b",))  # type: ignore[arg-type]
    assert Restrictions(np.int64(2)).within(NAMES).force_in == ("c d",)  # type: ignore[arg-type]
    assert Restrictions("7").within(NAMES).force_in == ("7",)  # type: ignore[arg-type]
    assert Restrictions(("a", "a", 0)).within(NAMES).force_in == ("a",)  # type: ignore[arg-type]


def test_no_restriction_is_false_and_stays_as_it_is() -> None:
    assert not NONE and NONE.within(NAMES) is NONE and Restrictions(force_out=("a",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"force_in": "e"}, r"force-in: there is no feature 'e'"),
        ({"force_in": ["c  d"]}, r"force-in: there is no feature 'c  d' \(did you mean 'c d'\?\)"),
        ({"force_out": [4]}, "force-out: there is no feature '4'"),
        ({"force_in": "a", "force_out": ["b", "a"]}, "feature 'a' is in both"),
        ({"force_out": list(NAMES)}, "force-out: no feature is left"),
        ({"force_in": 1.5}, "force-in: 1.5 is not a feature nor a list of features"),
        ({"force_in": [None]}, "force-in: None is neither the name nor the position of a feature"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        Restrictions(**given).within(NAMES)
    assert "\n" not in str(error.value)


def test_sizes_that_no_model_can_have() -> None:
    made = Restrictions(("a", "b"), ("7",))
    made.check_sizes([2, 3], 4)
    with pytest.raises(BadInput, match="^tau 1 is below the number of features that are forced in: use 2 to 3"):
        made.check_sizes([1, 2], 4)
    with pytest.raises(BadInput, match="^tau 4 is above the number of features that are not forced out: use at most 3"):
        made.check_sizes([4], 4)
