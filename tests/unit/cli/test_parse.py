"""Option texts to values."""

from __future__ import annotations

import pytest

from sparsecv_mio.cli import parse
from sparsecv_mio.errors import BadInput


def test_names_may_be_quoted() -> None:
    assert parse.names(None, "--drop") is None
    assert parse.names('a b,"c,d" , e', "--drop") == ["a b", "c,d", "e"]
    for text in ("", " ", "a,,b", "a,"):
        with pytest.raises(BadInput, match="^--drop: "):
            parse.names(text, "--drop")


def test_limits() -> None:
    assert parse.threads(None, 7) == 7 and parse.threads(3, 7) == 3
    with pytest.raises(BadInput, match="^--threads: "):
        parse.threads(0, 7)
