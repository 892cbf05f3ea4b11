"""Prose gets plainer: counts of unclear phrases, long sentences and long lines in each file may only fall."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import prose
import pytest
from prose import KINDS, MAX_SENTENCE_WORDS, allowed, count_markdown, count_messages, counts, rises
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


def test_the_table_names_kinds_that_are_counted() -> None:
    assert {kind for row in allowed().values() for kind in row} <= set(KINDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The bound holds.\n", (0, 0, 0)),
        ("What is proved of a pair\ngoes with it.\n", (2, 0, 0)),
        ("Fits beside\nothers, in place\nof trees.\n", (2, 0, 0)),
        ("`beside` and\n\n```\nbeside\n```\n| beside |\n", (0, 0, 0)),
        ("word " * 31 + "\n", (0, 1, 1)),
        ("word " * 20 + "\n\n" + "word " * 20 + "\n", (0, 0, 0)),
        ("`" + "word " * 30 + "`\n", (0, 0, 1)),
        ("| " + "word " * 40 + "|\n", (0, 0, 0)),
    ],
)
def test_counts_of_a_page(text: str, expected: tuple[int, ...]) -> None:
    assert tuple(count_markdown(text)[kind] for kind in KINDS) == expected


def test_counts_of_messages() -> None:
    source = """# beside
raise E(f"{name}: a column beside others; leave it out, in " "place of it")
X = "beside"
"""
    docstring = "'Fits beside others of a fold.'".replace("'", '"' * 3)
    assert count_messages(f"{docstring}\n{source}") == {"phrases": 2}


def test_no_message_states_a_clause_twice() -> None:
    doubled = re.compile(r"(?:^|[;:] )([a-z][^;:()\[\]{}]{3,})[;:] \1(?:[;:]|$)")
    assert doubled.search("record x: run it again; run it again") and not doubled.search("run it again; run it then")
    texts = [text for path in (ROOT / "sparsecv_mio").rglob("*.py") for text in prose.messages(path.read_text("utf-8"))]
    assert [text for text in texts if doubled.search(text)] == []


def test_a_count_above_the_table_is_named() -> None:
    found = {"docs/new.md": {"phrases": 1}, "README.md": {"phrases": 2, "long lines": 1}}
    assert rises(found, {"README.md": {"phrases": 2}}) == [
        "docs/new.md: 1 phrases, 0 allowed",
        "README.md: 1 long lines, 0 allowed",
    ]


def test_the_table_is_lowered_and_never_raised_in_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"a.md": {"phrases": 2}, "b.md": {"phrases": 1}}
    monkeypatch.setattr(prose, "TABLE", tmp_path / "table.json")
    monkeypatch.setattr(prose, "counts", lambda: found)
    monkeypatch.setattr(sys, "argv", ["prose.py"])
    assert prose.main() == 0 and prose.allowed() == found
    found = {"c.md": {"phrases": 3}}  # a page was renamed
    assert prose.main() == 0 and prose.allowed() == found
    found = {"c.md": {"phrases": 4}}
    assert prose.main() == 1 and prose.allowed() == {"c.md": {"phrases": 3}}


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_one_short_sentence_of_a_known_kind(path: Path) -> None:
    kinds = r"\d+-[\w-]+\.(?:added|changed|deprecated|removed|fixed|numerical)\.md"
    assert re.fullmatch(kinds, path.name)
    text = path.read_text(encoding="utf-8")
    assert len(text.split()) <= MAX_SENTENCE_WORDS and text.endswith(".\n") and text.count("\n") == 1


def test_entries_of_the_changelog_are_short() -> None:
    entries = re.findall(r"^- (.*(?:\n  .*)*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(entries) > 50 and [entry for entry in entries if len(entry.split()) > MAX_SENTENCE_WORDS] == []
