"""Tables of random columns at random widths: no number is cut."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.report.layout import print_table

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
