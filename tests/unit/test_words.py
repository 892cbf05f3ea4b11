"""The words that options take."""

from __future__ import annotations

import pytest

from sparsecv_mio.errors import BadInput, match_keyword, parse_keyword
from sparsecv_mio.words import Method


def test_a_word_is_found_in_whatever_letters() -> None:
    assert parse_keyword(Method, " Algorithm1 ", "method") is Method.ALGORITHM1
    assert parse_keyword(Method, Method.JOINT, "method") is Method.JOINT
    assert match_keyword("Fold", ("fold", "loo"), "folds") == "fold"


@pytest.mark.parametrize("word", ["", "roundss", "x" * 300, "nul\0nul", None, 3])
def test_another_word_is_refused_with_those_that_are_known(word: object) -> None:
    with pytest.raises(BadInput, match="^method: unknown word .*; use auto, rounds, joint"):
        parse_keyword(Method, word, "method")  # type: ignore[arg-type]


def test_the_nearest_word_is_named() -> None:
    with pytest.raises(BadInput, match="did you mean 'rounds'"):
        parse_keyword(Method, "roundss", "method")
