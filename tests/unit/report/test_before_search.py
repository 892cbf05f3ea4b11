"""The sentences below the table of `inspect`."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import sparsecv_mio as sc
from sparsecv_mio.bounds.cv_error import BoundsTable, compute_bounds, printed_bounds
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.table_facts import ColumnFacts, Inspection, inspect_file
from sparsecv_mio.digits import format_interval
from sparsecv_mio.report.before_search import print_bounds, print_inspection
from sparsecv_mio.targets import Loss

from .printing import data
from .printing import printed as printed_from_printing


def column(name: str, spread: float = 1.0) -> ColumnFacts:
    return ColumnFacts(name, "number", 0, 0.0, 0.5, 1.0, spread, (), False)


def printed(found: Inspection) -> str:
    screen = io.StringIO()
    print_inspection(Console(file=screen, width=200), found, "a b.csv")
    return screen.getvalue()


@pytest.mark.parametrize("options", [("--na mean", "--na-within folds"), ("--na drop",)])
def test_which_rows_fill_empty_cells_is_said_where_numbers_are_filled(options: tuple[str, ...]) -> None:
    empty = ColumnFacts("x", "number", 4, None, None, None, None, (), False)
    text = printed(Inspection(50, (empty, column("y")), "y", 4, 0, options, 50, 8))
    said = "--na-within folds: missing values are imputed from the training rows of each fold" in text
    assert "4 rows have a missing value" in text and said == (len(options) == 2)
    assert ("imputed from the training rows of each fold, without its held-out rows" in text) == said


@pytest.mark.parametrize(
    ("n", "p", "words"),
    [(50, 8, "expect a certified choice in seconds"), (50, 80, "a certified choice for small tau"),
     (50, 500, "expect an estimate"), (3, 8, "too few to cross-validate"), (50, 0, "too few to cross-validate")],
)  # fmt: skip
def test_what_to_expect(n: int, p: int, words: str) -> None:
    text = printed(Inspection(n, (column("x"), column("y")), "y", 0, 0, ("--na mean",), n, p))
    assert words in text
    assert ("sparsecv solve 'a b.csv' --target y --na mean" in text) == ("too few" not in words)


def test_skipped_lines_are_explained() -> None:
    lines = ("--skip-lines '1,223'",)
    text = printed(Inspection(50, (column("x"), column("y")), "y", 0, 0, lines, 50, 8))
    assert "--skip-lines '1,223': leaves out lines with titles, units or totals" in text
    assert "leaves out" not in printed(Inspection(50, (column("x"), column("y")), "y", 0, 0, (), 50, 8))


def test_counts_have_a_size_of_their_own() -> None:
    text = printed(Inspection(50, (column("x"), column("y")), "y", 0, 0, (), 50, 8, counts=True))
    assert "15 gammas from 0.001 to 10, tau from 1 to 8: 1,200 subproblems" in text
    assert (
        "7 gammas from 0.067 to 67, tau from 1 to 8: 560 subproblems" in text
        and "expect a certified choice within a minute" in text
    )


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize(("folds", "within"), [(10, True), (70, True), (70, False)])
def test_folds_with_columns_of_their_own_are_not_promised_soon(loss: Loss, folds: int, within: bool) -> None:
    options = ("--na mean", *["--na-within folds"] * within)
    found = Inspection(140, (column("x"), column("y")), "y", 4, 0, options, 140, 8, folds=folds, loss=Loss(loss))
    text = printed(found)
    slow = loss != "squared" and folds == 70 and within
    assert ("the time is not forecast: with --na-within folds, each of the 70 folds" in text) == slow
    assert ("expect a certified choice" in text) != slow


def test_findings() -> None:
    text = printed(Inspection(50, (column("x"), column("z", 1e8), column("y")), "y", 3, 2, (), 50, 2))
    assert "3 rows have a missing value" in text and "2 rows repeat an earlier row" in text
    assert "standard deviations of columns differ by a factor of more than a million" in text


@pytest.fixture(scope="module")
def table() -> BoundsTable:
    return compute_bounds(standardize(data()), make_folds("5", data()), (0.1, 1.0), (1, 2, 3), threads=1)


def test_the_least_interval_comes_first(table: BoundsTable) -> None:
    least = table.minimum()
    text = printed_from_printing(lambda console: print_bounds(console, table, seconds=1.5), 200)
    assert text.startswith(
        f"minimum CV error over the grid: in {format_interval(least.lower, least.upper)} (certified)"
    )
    assert (
        "without branch and bound; answer after 1.50 s" in text
        and "add --full or --json" in text
        and "gamma = 0.1 (" not in text.split("\n", 2)[2]
    )
    brief = printed_from_printing(lambda console: print_bounds(console, table, brief=True), 200)
    assert len(brief.splitlines()) == 2


def test_what_is_not_known_yet_is_no_estimate() -> None:
    nothing = BoundsTable.empty(standardize(data()), make_folds("5", data()), (0.1, 1.0), (1, 2))
    text = printed_from_printing(lambda console: print_bounds(console, nothing), 200)
    assert "no pair has an upper bound yet" in text and "smallest upper bound" not in text
    assert "~?" not in text and "? not known yet" in text


def test_printed_bounds_are_called_estimates(tmp_path: Path) -> None:
    table = printed_bounds(standardize(data()), make_folds("5", data()), (0.1,), (1, 2), threads=1)
    text = printed_from_printing(lambda console: print_bounds(console, table), 200)
    assert "estimates, not valid bounds" in text and "lower (estimate)" in text and "certified" not in text


def test_the_forecast_counts_what_solve_solves(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    days = [f"2024-{1 + row // 28:02d}-{1 + row % 28:02d}" for row in range(60)]
    cells = rng.normal(size=(60, 13)).cumsum(axis=0)
    lines = [",".join(["day", *(f"x{j}" for j in range(12)), "y"])]
    lines += [f"{day},{','.join(map(repr, row))}" for day, row in zip(days, cells.tolist(), strict=True)]
    path.write_text("\n".join(lines))
    found = inspect_file(path, "y", Reading(), None)
    assert "--folds forward:5" in found.options
    record = sc.solve(path, "y", drop=["day"], folds="forward:5", threads=1)
    assert f": {len(record.table) * record.folds.k:,} subproblems" in printed(found)


def test_weights_and_few_events_are_noted_next_to_the_proposed_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"]).assign(survey_weight=2.0, birth_weight=3.0)
    frame[["survey_weight", "birth_weight"]] += rng.random((60, 2))
    for n_ill in (49, 30):
        frame.assign(y=np.where(np.arange(60) < n_ill, "ill", "well")).to_csv(tmp_path / "t.csv", index=False)
        text = printed(inspect_file(tmp_path / "t.csv", "y", Reading(), None))
        assert "add --weights survey_weight if 'survey_weight' has the weights of the rows" in text
        assert "--weights birth_weight" not in text
        assert "the rarer class has " in text
    assert "has 30 rows, fewer than 10 for each of the 5 features" in text
    frame[["a", "y"]] = np.column_stack([frame["a"], np.arange(60) % 2])
    frame[["a", "y"]].to_csv(tmp_path / "t.csv", index=False)
    assert "the rarer class" not in printed(inspect_file(tmp_path / "t.csv", "y", Reading(), None))
