"""The sentences below the table of `inspect`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sparsecv_mio.data.inspection import ColumnFacts, Inspection
from sparsecv_mio.report.inspection import print_inspection


def column(name: str, spread: float = 1.0) -> ColumnFacts:
    return ColumnFacts(name, "number", 0, 0.0, 0.5, 1.0, spread, (), False)


def printed(found: Inspection) -> str:
    screen = io.StringIO()
    print_inspection(Console(file=screen, width=200), found, "a b.csv")
    return screen.getvalue()


@pytest.mark.parametrize(
    ("n", "p", "words"),
    [(50, 8, "expect a proof in seconds"), (50, 80, "a proof for small tau"), (50, 500, "expect an estimate"),
     (3, 8, "too little to cross-validate"), (50, 0, "too little to cross-validate")],
)  # fmt: skip
def test_what_to_expect(n: int, p: int, words: str) -> None:
    text = printed(Inspection(n, (column("x"), column("y")), "y", 0, 0, ("--na mean",), n, p))
    assert words in text
    assert ("sparsecv solve 'a b.csv' --target y --na mean" in text) == ("too little" not in words)


def test_findings() -> None:
    text = printed(Inspection(50, (column("x"), column("z", 1e8), column("y")), "y", 3, 2, (), 50, 2))
    assert "3 rows have an empty cell" in text and "2 rows repeat an earlier one" in text
    assert "spreads differ by more than a million" in text
