"""Prose gets plainer: counts of unclear phrases, long sentences and long lines in each file may only fall."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import prose
import pytest
from prose import MAX_SENTENCE_WORDS, allowed, counts, rises
from repository import DOCS, ROOT

FRAGMENTS = [path for path in sorted((DOCS / "changes").glob("*.md")) if path.name != "README.md"]


def test_no_count_rises() -> None:
    found, table = counts(), allowed()
    higher = rises(found, table)
    assert not higher, (
        "rewrite the new phrases and long lines (`python tests/support/prose.py FILE` lists the phrases):\n"
        + "\n".join(higher)
    )
    if lower := rises(table, found):
        warnings.warn(
            f"counts of {len(lower)} files and kinds fell; run `python tests/support/prose.py` to lower the table",
            stacklevel=1,
        )


def test_no_message_states_a_clause_twice() -> None:
    doubled = re.compile(r"(?:^|[;:] )([a-z][^;:()\[\]{}]{3,})[;:] \1(?:[;:]|$)")
    assert doubled.search("record x: run it again; run it again") and not doubled.search("run it again; run it then")
    texts = [text for path in (ROOT / "sparsecv_mio").rglob("*.py") for text in prose.messages(path.read_text("utf-8"))]
    assert [text for text in texts if doubled.search(text)] == []


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_one_short_sentence_of_a_known_kind(path: Path) -> None:
    kinds = r"\d+-[\w-]+\.(?:added|changed|deprecated|removed|fixed|numerical)\.md"
    assert re.fullmatch(kinds, path.name)
    text = path.read_text(encoding="utf-8")
    assert len(text.split()) <= MAX_SENTENCE_WORDS and text.endswith(".\n") and text.count("\n") == 1
