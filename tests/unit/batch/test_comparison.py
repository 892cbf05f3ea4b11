"""`sparsecv compare`: what is judged, the tables, several files and folds, and mistakes in its options."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import problems
import pytest
from command_lines import changed
from repository import INSTANCES
from rich.console import Console

from sparsecv_mio.batch.comparison_command import OUTPUTS
from sparsecv_mio.batch.mio_comparison import (
    Cell,
    CompareRow,
    Contender,
    cells_of,
    compare,
    format_comparison,
    print_compare,
    write_csv,
)
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import Limits, Start


def made() -> Dataset:
    return problems.linear(1, 20, 5, {0: 1.0, 4: -1.0})


def cells() -> list[Cell]:
    return list(cells_of("here", made(), None, taus=[2, 1], gammas=[0.3]))


class Fake:
    """A backend that says what it is told to, and remembers its starts."""

    name = "fake"

    def __init__(self, contender: Contender, *, trouble: Exception | None = None, worse: bool = False) -> None:
        self.real, self.trouble, self.worse = contender.backend, trouble, worse
        self.capabilities, self.available = self.real.capabilities, self.real.available
        self.starts: list[Start | None] = []

    def solve(self, problem, tau, **how):  # type: ignore[no-untyped-def]
        self.starts.append(how.get("start"))
        if self.trouble is not None:
            raise self.trouble
        return self.real.solve(problem, tau - 1 if self.worse else tau, **how)


def fake(trouble: Exception | None = None, worse: bool = False) -> tuple[Contender, Fake]:
    real = Contender.of("native")
    backend = Fake(real, trouble=trouble, worse=worse)
    return replace(real, label="fake", backend=backend), backend  # type: ignore[arg-type]


def test_cells_are_the_problems_of_the_folds() -> None:
    data = made()
    assert [(cell.fold, cell.tau) for cell in cells()] == [(-1, 1), (-1, 2)]
    plan = make_folds("4", data)
    split = list(cells_of("here", data, plan, taus=[1], gammas=[1.0, 0.1]))
    assert [(cell.fold, cell.gamma) for cell in split] == [(fold, gamma) for fold in range(4) for gamma in (0.1, 1.0)]
    assert all(cell.problem.n == 15 and cell.names == data.names for cell in split)
    for given in ({"taus": [6], "gammas": [1.0]}, {"taus": [1], "gammas": [-0.1]}):
        with pytest.raises(BadInput, match="out of range"):
            list(cells_of("here", data, None, **given))  # type: ignore[arg-type]


def test_a_worse_answer_is_judged_by_the_best() -> None:
    rows = compare(cells()[1:], [Contender.of("native"), fake(worse=True)[0]], repeats=1)
    good, bad = rows
    assert good.same_support and good.true_gap == 0.0
    assert not bad.same_support and bad.true_gap == pytest.approx(bad.objective / good.objective - 1.0)


@pytest.mark.parametrize(
    ("error", "status"),
    [(BackendUnavailable("no licence"), "unavailable: no licence"), (BackendFailed("it broke"), "failed: it broke")],
)
def test_trouble_costs_a_row_and_no_second_try(error: Exception, status: str) -> None:
    contender, backend = fake(trouble=error)
    rows = compare(cells(), [contender, Contender.of("native")], repeats=3)
    assert [row.status for row in rows] == [status, "optimal", status, "optimal"]
    assert len(backend.starts) == 1 + len(cells()) and np.isnan(rows[0].seconds)  # the toy, then once a cell


def test_progress_and_cancel() -> None:
    seen: list[tuple[int, int]] = []
    compare(cells(), [Contender.of("native")], repeats=2, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    stop = Event()
    stop.set()
    rows = compare(cells(), [Contender.of("native")], repeats=1, limits=Limits(cancel=stop))
    assert [row.status for row in rows] == ["not run", "not run"]


def test_what_is_refused() -> None:
    for label, message in (("cplex", "unknown word 'cplex'"), ("highs:benders", "formulation of highs")):
        with pytest.raises(BadInput, match=message):
            Contender.of(label)
    with pytest.raises(BadInput, match="^repeats: 0"):
        compare(cells(), [], repeats=0)
    with pytest.raises(BadInput, match="^gap: "):
        compare(cells(), [], limits=Limits(gap=2.0))


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


DIABETES = str(INSTANCES / "diabetes.csv")


def test_compare_says_which_file_lacks_the_target_and_takes_one_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name in ("y", "z"):
        files.append(str(tmp_path / f"{name}.csv"))
        Path(files[-1]).write_text(f"a,b,{name}\n1,2,3\n2,1,4\n3,3,5\n4,1,1\n")
    args = ["compare", *files, "--tau", "1", "--gamma", "1", "--backends", "native", "--repeats", "1"]
    args += ["--out", str(tmp_path / "out"), "--target"]
    assert run([*args, "y"]) == 2
    error = capsys.readouterr().err
    assert f"{files[1]}: target 'y' is not in the data" in error and "--target takes one for each file" in error
    assert run([*args, "y,z"]) == 0
    with open(tmp_path / "out" / "compare.csv") as stream:
        first, second = csv.DictReader(stream)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(OUTPUTS)
    assert (first["data"], second["data"]) == ("y", "z") and first["objective"] == second["objective"]


def test_compare_by_folds_and_its_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2", "--gamma", "1", "--repeats", "1"]
    args += ["--out", str(tmp_path)]
    assert run([*args, "--backends", "native,highs", "--folds", "3"]) == 0
    with open(tmp_path / "compare.csv") as stream:
        assert {row["fold"] for row in csv.DictReader(stream)} == {"0", "1", "2"}
    capsys.readouterr()
    for extra, message in (
        (["--backends", "native,cplex"], "backend: unknown word 'cplex'; use native"),
        (["--repeats", "0"], "--repeats"),
        (["--target", "y,z"], "2 names for 1 files"),
    ):
        assert run(changed(args, extra)) == 2
        assert message in capsys.readouterr().err
    assert run([*args, "--backends", "mosek"]) == (0 if get_backend("mosek").available().usable else 4)
