"""The options of a reading; the names that words give to features."""

from __future__ import annotations

import pytest

from sparsecv_mio.data.reading import STRICT, Applied, Reading, feature_names
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Encode


def test_words_for_separators_and_what_is_given() -> None:
    how = Reading.of(sep="space", na="MEAN", header=False, index_col=0)
    assert (how.sep, how.na, how.index_col) == (" ", "mean", "0")
    assert how.given() == ["sep", "header", "index_col", "na"]
    assert how.cures and how.rewrites
    assert not STRICT.given() and not STRICT.cures and not STRICT.rewrites
    assert Reading.of(sep="\\t").sep == "\t" == Reading.of(sep="tab").sep


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sep": "a"}, "sep: 'a' is no separator"),
        ({"sep": '"'}, "is no separator"),
        ({"decimal": "x"}, "decimal: 'x' is no decimal mark"),
        ({"comment": ","}, "comment: ',' cannot begin a comment"),
        ({"encoding": "no"}, "encoding: 'no' is unknown"),
        ({"na": "x"}, "na: unknown word 'x'"),
        ({"na": None}, "na: None is no text"),
        ({"thousands": 3}, "thousands: 3 is no text"),
        ({"thousands": "x"}, "thousands: 'x' sets off no thousands: use comma, point, space, apostrophe or none"),
        ({"thousands": "."}, "thousands: '.' is the decimal mark already: give decimal=\",\" too"),
        ({"decimal": ",", "thousands": "comma"}, "thousands: 'comma' is the decimal mark already"),
        ({"header": "no"}, "header: 'no' is neither True nor False"),
        ({"index_col": 1.5}, "index_col: 1.5 is neither the name nor the position"),
        ({"encode": "one-hot"}, "encode: unknown word 'one-hot' .did you mean 'onehot'"),
    ],
)
def test_wrong_options(words: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Reading.of(**words)  # type: ignore[arg-type]


def test_names_of_features() -> None:
    learnt = Applied(Reading.of(encode="onehot"), ("a", "b"), {}, {"b": ("x", "y", "z")})
    assert learnt.names_of("a") == ("a",) and learnt.names_of("b") == ("b=x", "b=y", "b=z")
    assert feature_names("b", ("x", "y", "z"), Encode.ORDINAL) == ("b",)


def test_thousands_have_one_name() -> None:
    for given in ("space", " ", "\u00a0", "\u202f"):
        assert Reading.of(thousands=given).thousands == " "
    for given in ("apostrophe", "'", "\u2019"):
        assert Reading.of(thousands=given).thousands == "'"
    assert Reading.of(thousands="point", decimal=",").way == (",", ".")
    assert Reading.of(thousands="none").thousands == "none"
    assert Reading.of(thousands="comma").cures and not Reading.of(thousands="none").cures
    with pytest.raises(TypeError, match="'thousand' .did you mean 'thousands'"):
        Reading.of(thousand=",")  # type: ignore[call-arg]
