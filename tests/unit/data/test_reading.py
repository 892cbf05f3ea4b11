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
