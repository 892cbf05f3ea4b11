"""Limits on groups and parents as users give them."""

from __future__ import annotations

from typing import Any

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.families import AtMost, Parents, features_of, limits_of, parents_of, products
from sparsecv_mio.restrictions import Restrictions


def test_what_may_be_given() -> None:
    assert limits_of(["2:a,b", (1, [0, "c"])]) == (AtMost(2, ("a", "b")), AtMost(1, ("0", "c")))
    assert parents_of(["a:b=a,b", "c=a|b"]) == (Parents("a:b", ("a", "b")), Parents("c", ("a", "b"), False))
    assert features_of("a, 'b", "at-most") == ("a", "'b")
    assert limits_of(()) == parents_of(()) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at_most": "a,b"}, "at-most: 'a,b' is not K:A,B"),
        ({"at_most": "-1:a"}, "at-most: -1 is out of range"),
        ({"at_most": "1:a,,b"}, "at-most: 'a,,b' is not a list"),
        ({"at_most": 3}, "at-most: 3 is not understood"),
        ({"at_most": [("a", 1)]}, "at-most: .* is neither"),
        ({"hierarchy": "ab"}, "hierarchy: 'ab' is none of strong, weak"),
        ({"hierarchy": "c=a,b|d"}, "hierarchy: .* is none of"),
        ({"hierarchy": {"ab": []}}, "hierarchy: \\[\\] is not a list of features"),
        ({"hierarchy": 1}, "hierarchy: 1 is not understood"),
        ({"nonnegative": 1.5}, "nonnegative: 1.5 is not a feature"),
    ],
)
def test_what_may_not_be_given(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        Restrictions(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at_most": "1:a,d"}, "at-most: there is no feature 'd'"),
        ({"hierarchy": "c=a,d"}, "hierarchy: there is no feature 'd'"),
        ({"hierarchy": "c=a,c"}, "hierarchy: feature 'c' is its own parent"),
        ({"hierarchy": "strong"}, "hierarchy: no feature has the name of a product"),
        ({"nonnegative": "all", "nonpositive": "b"}, "nonnegative, nonpositive: feature 'b' is in both"),
    ],
)
def test_what_the_data_refuse(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        Restrictions(**given).within(["a", "b", "c"])


def test_words_are_spelt_out_by_the_names_of_the_data() -> None:
    names = ["b", "a", "a*b", "all b"]
    found = Restrictions(hierarchy="weak", nonnegative="all", at_most=[(1, ["a", 0])]).within(names)
    assert found.hierarchy == (Parents("a*b", ("b", "a"), False),)
    assert found.nonnegative == tuple(names) and found.at_most == (AtMost(1, ("b", "a")),)
    assert found.within(names) == found
    assert found.beyond_forcing == ("at_most", "hierarchy", "nonnegative")


def test_products_by_their_names() -> None:
    names = ["a", "b", "c", "a:b", "b:c", "a:b:c", "a^2", "a^2 b", "d:e"]
    found = {one.feature: one.parents for one in products(names, True)}
    assert found == {
        "a:b": ("a", "b"), "b:c": ("b", "c"), "a:b:c": ("a:b", "b:c"), "a^2": ("a",), "a^2 b": ("a:b", "a^2"),
    }  # fmt: skip


def test_digits_are_those_from_0_to_9() -> None:
    for text in ("²:a", "١:a", "1_0:a"):
        with pytest.raises(BadInput, match="is not K:A,B"):
            limits_of(text)
    assert products(["a", "a^²"], every=True) == ()
