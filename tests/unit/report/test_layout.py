"""Tables of random columns at random widths: no number is cut."""

from __future__ import annotations

import io

import numpy as np

from sparsecv_mio.report.layout import DataConsole, print_table, say

from .printing import printed


def random_cell(text: bool, rng: np.random.Generator) -> str:
    return "some words of text" if text else f"{10.0 ** rng.integers(-9, 12) * rng.random():.{rng.integers(3, 13)}g}"


def test_random_tables_are_never_cut() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(1, 9))
        columns = {f"head number {k}" if k % 2 else f"x{k}": bool(rng.integers(2)) for k in range(count)}
        rows = [[random_cell(text, rng) for text in columns.values()] for _ in range(3)]
        words = {head for head, text in columns.items() if text}
        width = int(rng.integers(24, 120))
        printed_text = printed(lambda console, c=list(columns), r=rows, w=words: print_table(console, c, r, w), width)  # type: ignore[misc]
        for row in rows:
            for text, cell in zip(columns.values(), row, strict=True):
                assert text or cell in printed_text


def test_names_cannot_control_the_terminal() -> None:
    text = io.StringIO()
    console = DataConsole(file=text, width=60, force_terminal=True, markup=False)
    say(console, "\x1b[31mred\x07 \x9b2J", style="bold")
    print_table(console, ["feature"], [["[bold]\x1b[2J"]], text=["feature"])
    shown = text.getvalue()
    assert "␛[31mred" in shown and "[bold]␛[2J" in shown and "\ufffd2J" in shown
    assert "\x1b[31m" not in shown and "\x1b[2J" not in shown and "\x1b[1m" in shown


def test_long_texts_side_by_side_get_equal_widths() -> None:
    texts = tuple("  ".join(f"{1.5 + k} name{k}" for k in range(count)) for count in (30, 24))
    text = printed(
        lambda console: print_table(console, ("tau", "left", "right"), [(1, *texts)], ("left", "right")), 120
    )
    rows = text.splitlines()
    assert max(map(len, rows)) <= 120 and len(rows) <= 12  # the right one had 18 of 120 characters, and 20 rows
    assert all(f"name{k}" in text for k in range(30))
