"""Tables of a comparison of backends: on the screen, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rich.console import Console

from sparsecv_mio.batch.mio_comparison import CompareRow, format_comparison, print_compare, write_csv

MACHINE = {"machine": "x86", "cores": "2", "numpy": "2.0", "backend_version": "1.2"}
ROWS = [
    CompareRow(
        "one", -1, 2, 0.1, "native", "tree", "optimal", 0.01, 0.02, 5, 0, 3.0, 2.9999, 3e-5, 0.0, 0.0, True,
        ("a", "b"), MACHINE,
    ),
    CompareRow(
        "one", -1, 2, 0.1, "highs", "outer", "time", 10.0, 0.1, 7, 9, 3.3, 1.0, 0.7, 0.0, 0.1, False,
        ("a", "c"), MACHINE,
    ),
    CompareRow("one", -1, 2, 0.1, "mosek", "", "unavailable: no licence", environment=MACHINE),
]  # fmt: skip


def printed(rows: list[CompareRow]) -> str:
    text = io.StringIO()
    print_compare(Console(file=text, width=200, highlight=False, markup=False, emoji=False), rows)
    return text.getvalue()


def test_every_row_and_a_summary_of_each_backend_are_printed() -> None:
    text = printed(ROWS)
    summary = text[text.index("median s") :]
    cells = [line.split() for line in summary.splitlines() if line.split()[:1] in (["native"], ["highs"], ["mosek"])]
    assert [cell[:3] for cell in cells] == [["native", "1", "1"], ["highs", "0", "1"], ["mosek", "0", "1"]]
    assert cells[0][-1] == "1/1" and cells[1][-2:] == ["0.1", "0/1"]
    assert "unavailable: no licence" in text
    assert "no" not in text[: text.index("median s")].partition("mosek")[2].split("\n")[0]  # it did not disagree


def test_numbers_that_are_not_known_are_empty_cells(tmp_path: Path) -> None:
    write_csv(ROWS, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["backend"] for line in lines] == ["native", "highs", "mosek"]
    assert (lines[0]["support"], lines[0]["cores"]) == ("a b", "2") and float(lines[0]["objective"]) == 3.0
    assert lines[2]["seconds"] == lines[2]["objective"] == ""


def test_the_page_names_its_command_and_has_a_line_for_each_row() -> None:
    page = format_comparison(ROWS, "sparsecv compare one.csv")
    assert "`sparsecv compare one.csv`" in page and "machine x86" in page
    assert sum(line.startswith("| one |") for line in page.splitlines()) == 3
