"""Tables of random columns at random widths: no number is cut."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.report.layout import Column, Row, print_table

from .printing import printed


def random_cell(column: Column, rng: np.random.Generator) -> str:
    if column.text:
        return "some words of text"
    return f"{10.0 ** rng.integers(-9, 12) * rng.random():.{rng.integers(3, 13)}g}"


def test_random_tables_are_never_cut() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(1, 9))
        columns = [Column(f"head number {k}" if k % 2 else f"x{k}", text=bool(rng.integers(2))) for k in range(count)]
        rows = [Row([random_cell(column, rng) for column in columns]) for _ in range(3)]
        width = int(rng.integers(24, 120))
        names, words = [column.name for column in columns], {column.name for column in columns if column.text}
        text = printed(lambda console, n=names, r=rows, w=words: print_table(console, n, r, w), width)  # type: ignore[misc]
        for row in rows:
            for column, cell in zip(columns, row.cells, strict=True):
                assert column.text or cell in text
