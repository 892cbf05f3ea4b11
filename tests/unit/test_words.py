"""The words that options take."""

from __future__ import annotations

import pytest

from sparsecv_mio.errors import BadInput, one_of, word_of
from sparsecv_mio.words import Method


def test_a_word_is_found_in_whatever_letters() -> None:
    assert word_of(Method, " Algorithm1 ", "method") is Method.ALGORITHM1
    assert word_of(Method, Method.JOINT, "method") is Method.JOINT
    assert one_of("Fold", ("fold", "loo"), "folds") == "fold"


@pytest.mark.parametrize("word", ["", "roundss", "x" * 300, "nul\0nul", None, 3])
def test_another_word_is_refused_with_those_that_are_known(word: object) -> None:
    with pytest.raises(BadInput, match="^method: unknown word .*, use auto, rounds, joint"):
        word_of(Method, word, "method")  # type: ignore[arg-type]


def test_the_nearest_word_is_named() -> None:
    with pytest.raises(BadInput, match="did you mean 'rounds'"):
        word_of(Method, "roundss", "method")
