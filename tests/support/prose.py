"""Counts of unclear phrases, long sentences and long lines in each file of prose, and the table of allowed counts.

Run `python tests/support/prose.py` to lower the table to the present counts. The command refuses a table in which
the sum of a kind rises.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from repository import DOCS, ROOT

TABLE = Path(__file__).with_name("prose_counts.json")
KINDS = ("phrases", "long sentences", "long lines")
MAX_SENTENCE_WORDS = 30
MAX_LINE_LENGTH = 120  # characters of a line of Markdown, outside code blocks, tables and captions of pictures
MIN_MESSAGE_WORDS = 4  # a shorter text of the package is a name, a key or a format

# Each phrase has made a reader ask "which one?"; the text after it names what to write instead.
PHRASES = {
    r"(?:^|[.:;] )(?:What|Of) (?:is|are|was|a|an|the|it|they|one|no|some|this|that|such)\b": "begin with the noun",
    r"\b(?:of|by|in|from) what\b|\bof which\b": "name the thing, or split the sentence",
    r"\bsaid\b|\b(?:says|say) (?:of|so|what|which|how)\b": "state, report",
    r"\b(?:tells|told)\b": "state, imply",
    r"\bbeside\b": "next to, compared with",
    r"\bin place of\b": "instead of",
    r"\bbut for\b": "except for",
    r"\banew\b": "again",
    r"\bso (?:many|much)\b": "at most n, n",
    r"\bin (?:one|a) line\b": "with a one-line message",
    r"\bas (?:it|they) (?:is|are|was|were|stands?)\b": "unchanged",
    r"\b(?:is|are) no\b(?! longer)": "is not a, are not",
    r"\bof (?:its|their|our|one's) own\b": "separate",
    r"\b(?:by|for) (?:itself|themselves)\b": "separately",
    r"\bhangs? on\b": "depends on",
    r"\bgoes? (?:with|together)\b": "is compatible with, requires",
    r"\b(?:dealt|deals? (?:rows|folds))\b": "split, assigned to folds",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bcure[sd]?\b": "imputed, encoded",
    r"\b(?:slip|doubt)s?\b": "bound on the rounding error",
    r"\boff by\b": "differs by",
    r"\bworth\b": "gain, saves time",
    r"\basked(?: for)?\b": "requested",
    r"\b(?:upper|lower) ends?\b": "upper bound, lower bound",
    r"\brows left out\b|\bleft out of (?:it|them|a fit)\b": "held-out rows",
    r"\bleav\w+ (?:a fold|folds|rows) out\b": "hold a fold out",
    r"\bfits? (?:of|on) all rows\b": "full-data fit",
    r"\bwhole factors?\b": "all levels of a factor",
    r"\bstands? for (?:nothing|no)\b": "counts as missing",
    r"\bcolumns? of words\b": "text columns",
    r"\b(?:held open|in view|at hand)\b": "name it",
    r"\blikely winners?\b": "pair with the best estimate",
    r"\bfirst supports?\b": "initial supports",
    r"\bleast of\b|\bleast (?:CV )?errors?\b|\bleast lower\b": "minimum, smallest",
    r"\bnear-best\b": "near-optimal",
    r"\bnear copies\b|\bare (?:all but )?alike\b": "nearly collinear",
    r"\bother than squares\b|\bof squares\b": "squared-error loss",
    r"\bTwo classes and counts\b": "logistic and Poisson loss",
    r"\brooms?\b": "modules",
}
PATTERN = re.compile("|".join(PHRASES))
TOKEN = re.compile(  # a string or a comment of Python; much faster than a parser, and no f-string here nests its quotes
    r'''(?P<comment>\#[^\n]*)|(?P<prefix>\b[rbfRBF]{1,2}|)(?:"""(?P<long>(?:[^"\\]|\\.|"(?!""))*)"""'''
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)')""",
    re.DOTALL,
)


def without_blocks(markdown: str) -> str:
    """Return the text without code blocks, tables, headings and pictures."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return "\n".join("" if re.match(r"\s*(\||#|!\[)", line) else line for line in text.split("\n"))


def without_code(text: str) -> str:
    """Return the text with the contents of code spans replaced by `x`."""
    return re.sub(r"`[^`\n]*`", "`x`", text)


def n_phrases(text: str) -> int:
    """Return the number of unclear phrases; a line break counts as a space."""
    return len(PATTERN.findall(re.sub(r"\s+", " ", text)))


def count_markdown(markdown: str, wrapped: bool = True) -> dict[str, int]:
    """Return the counts of a page of Markdown; a page that is not wrapped has no long lines."""
    written = without_blocks(markdown)
    text = without_code(written)
    sentences = re.split(r"(?<=[.?!])\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    lines = written.split("\n") if wrapped else ()
    return {
        "phrases": sum(map(n_phrases, re.split(r"\n\s*\n", text))),
        "long sentences": sum(len(sentence.split()) > MAX_SENTENCE_WORDS for sentence in sentences),
        "long lines": sum(len(line) > MAX_LINE_LENGTH for line in lines),
    }


def messages(source: str) -> Iterator[str]:
    """Yield the texts of a module that a user may read: messages, help and sentences of reports, but not docstrings."""
    parts: list[str] = []
    end = 0
    for token in TOKEN.finditer(source):
        if token["comment"]:
            continue
        if source[end : token.start()].strip():  # adjacent strings are one text
            yield "".join(parts)
            parts = []
        end = token.end()
        is_docstring = token["long"] is not None and re.search(
            r"(?:^|\n) *$", source[max(token.start() - 80, 0) : token.start()]
        )
        if not is_docstring:
            text = (token["long"] or token["double"] or token["single"] or "").replace("\\n", " ")
            parts.append(re.sub(r"\{[^{}]*\}", "x", text) if "f" in token["prefix"] else text)
    yield "".join(parts)


def count_messages(source: str) -> dict[str, int]:
    """Return the counts of the messages of a module."""
    return {"phrases": sum(n_phrases(text) for text in messages(source) if len(text.split()) >= MIN_MESSAGE_WORDS)}


def counts() -> dict[str, dict[str, int]]:
    """Return the counts above 0 of each page and each module, by path in the repository."""
    found = {}
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "sparsecv_mio").rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if name.startswith("docs/generated/"):
            continue
        counted = (
            count_messages(text) if path.suffix == ".py" else count_markdown(text, not name.startswith("docs/changes/"))
        )
        found[name] = {kind: n for kind, n in counted.items() if n}
    return {name: found[name] for name in sorted(found) if found[name]}


def allowed() -> dict[str, dict[str, int]]:
    """Return the table of allowed counts."""
    table: dict[str, dict[str, int]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def rises(found: Mapping[str, Mapping[str, int]], table: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each count that is above the table."""
    return [
        f"{name}: {n} {kind}, {table.get(name, {}).get(kind, 0)} allowed"
        for name, row in found.items()
        for kind, n in row.items()
        if n > table.get(name, {}).get(kind, 0)
    ]


def places(name: str) -> list[str]:
    """Return a line for each unclear phrase of a file, with what to write instead."""
    text = (ROOT / name).read_text(encoding="utf-8")
    texts = list(messages(text)) if name.endswith(".py") else [without_code(without_blocks(text))]
    found = []
    for one in (re.sub(r"\s+", " ", text) for text in texts):
        for pattern, better in PHRASES.items():
            found += [
                f"... {one[max(m.start() - 30, 0) : m.end() + 20]} ... -> {better}" for m in re.finditer(pattern, one)
            ]
    return found


def main() -> int:
    """Lower the table to the present counts; with names of files, print their unclear phrases instead."""
    if names := sys.argv[1:]:
        print("\n".join(line for name in names for line in places(name)))
        return 0
    found = counts()
    if TABLE.exists():
        before = allowed()
        for kind in KINDS:
            now, then = (sum(row.get(kind, 0) for row in table.values()) for table in (found, before))
            if now > then:
                print(f"{kind}: {now} in all, {then} allowed; rewrite these files first:")
                print("\n".join(line for line in rises(found, before) if kind in line))
                return 1
    rows = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
