"""Backends and single fits on the screen and as JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparsecv_mio.batch.mio_comparison import CompareRow
from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import BACKENDS
from sparsecv_mio.report.backend_tables import (
    describe_backends,
    markdown,
    print_backends,
    print_compare,
    print_fit,
    text_of_backends,
    write_csv,
)

from .printing import check, data, printed


@pytest.fixture(scope="module")
def fit() -> FitRecord:
    return fit_one(data(), tau=2, gamma=0.1)


def test_every_backend_has_its_row() -> None:
    rows = describe_backends()
    assert [row.name for row in rows] == list(BACKENDS)
    assert [row["name"] for row in json.loads(text_of_backends(rows))["backends"]] == list(BACKENDS)
    broken = replace(rows[0], usable=False, why="numba is not installed", hint="pip install numba")
    text = printed(lambda console: print_backends(console, [broken]), 200)
    assert "numba is not installed. pip install numba" in text and "no" in text.split()


def test_a_fit_says_what_is_proved_and_cuts_no_number(fit: FitRecord) -> None:
    check(lambda console: print_fit(console, fit))
    text = printed(lambda console: print_fit(console, fit), 200)
    assert text.startswith("certified best subset: tau = 2 features")
    assert "minimum objective: in [" in text and "(certified, relative gap " in text and "work: native" in text
    brief = printed(lambda console: print_fit(console, fit, brief=True), 200)
    assert "work:" not in brief and "(intercept)" in brief


def test_an_allowance_is_explained(fit: FitRecord) -> None:
    for allowance, said in ((0.0, False), (0.5, True)):
        other = replace(fit, allowance=allowance)
        text = printed(lambda console: print_fit(console, other), 200)  # noqa: B023
        assert ("subtracted from the bound of the solver" in text) is said


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


def test_every_row_and_a_summary_of_each_backend_are_printed() -> None:
    text = printed(lambda console: print_compare(console, ROWS), 200)
    summary = text[text.index("median s") :]
    cells = [line.split() for line in summary.splitlines() if line.split()[:1] in (["native"], ["highs"], ["mosek"])]
    assert [cell[:3] for cell in cells] == [["native", "1", "1"], ["highs", "0", "1"], ["mosek", "0", "1"]]
    assert cells[0][-1] == "1/1" and cells[1][-2:] == ["0.1", "0/1"]
    assert "unavailable: no licence" in text


def test_numbers_that_are_not_known_are_empty_cells(tmp_path: Path) -> None:
    write_csv(ROWS, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["backend"] for line in lines] == ["native", "highs", "mosek"]
    assert (lines[0]["support"], lines[0]["cores"]) == ("a b", "2") and float(lines[0]["objective"]) == 3.0
    assert lines[2]["seconds"] == lines[2]["objective"] == ""


def test_the_page_names_its_command_and_has_a_line_for_each_row() -> None:
    page = markdown(ROWS, "sparsecv compare one.csv")
    assert "`sparsecv compare one.csv`" in page and "machine x86" in page
    assert sum(line.startswith("| one |") for line in page.splitlines()) == 3
