"""What is printed: no number cut at any width, estimates marked, edges of the grid told."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from repository import INSTANCES
from rich.console import Console

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.certificate.record import PathRecord, Record
from sparsecv_mio.cli import live, run
from sparsecv_mio.cli.session import Stop
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.report.bounds_tables import print_bounds
from sparsecv_mio.report.hints import hints
from sparsecv_mio.report.layout import Column, Row, print_table
from sparsecv_mio.report.tables import print_answer, print_path
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.observers.progress import Progress, TauProgress

WIDTHS = (30, 40, 60, 80, 200)
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


def data() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    names = [*("a", "b", "c", "d"), "a_name_that_is_much_longer_than_the_column_it_stands_in"]
    return Dataset.from_arrays(X, 1e4 * (X[:, 0] - X[:, 4] + 0.3 * rng.normal(size=40)), names)


@pytest.fixture(scope="module")
def record() -> Record:
    plan = make_folds("5", data())
    return cross_validate(data(), plan, gammas=[0.012345678, 0.1, 1.0], taus=[1, 2, 3], one_se=True, threads=1)


@pytest.fixture(scope="module")
def path() -> PathRecord:
    return best_subsets(data(), gammas=[0.01, 0.1, 10.0], taus=[1, 2, 3], threads=1)


def printed(printer: Callable[[Console], None], width: int) -> str:
    text = io.StringIO()
    printer(Console(file=text, width=width, highlight=False, markup=False, emoji=False))
    return text.getvalue()


def numbers(text: str) -> list[str]:
    """Numbers of a text whose lines were folded at blanks: what a wrap must not change."""
    return sorted(number.rstrip(".,") for number in NUMBER.findall(text))


def check(printer: Callable[[Console], None]) -> None:
    wide = numbers(printed(printer, 300))
    for width in WIDTHS:
        text = printed(printer, width)
        assert "…" not in text and numbers(text) == wide, width
        assert max(map(len, text.splitlines())) <= width


def test_no_number_is_cut(record: Record, path: PathRecord) -> None:
    check(lambda console: print_answer(console, record))
    check(lambda console: print_path(console, path))
    check(lambda console: print_path(console, path, full=True))
    table = compute_bounds(standardize(data()), make_folds("5", data()), (0.1, 1.0), (1, 2, 3), threads=1)
    check(lambda console: print_bounds(console, table))
    check(lambda console: print_bounds(console, table, full=True))


def random_cell(column: Column, rng: np.random.Generator) -> str:
    if column.text:
        return "some words of text"
    return f"{10.0 ** rng.integers(-9, 12) * rng.random():.{rng.integers(3, 13)}g}"


def test_random_tables_are_never_cut() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(1, 9))
        columns = [Column(f"head number {k}" if k % 2 else "x", text=bool(rng.integers(2))) for k in range(count)]
        rows = [Row([random_cell(column, rng) for column in columns]) for _ in range(3)]
        width = int(rng.integers(24, 120))
        text = printed(lambda console, c=columns, r=rows: print_table(console, c, r), width)  # type: ignore[misc]
        for row in rows:
            for column, cell in zip(columns, row.cells, strict=True):
                assert column.text or cell in text


def test_the_pair_stands_above_its_coefficients(record: Record) -> None:
    lines = printed(lambda console: print_answer(console, record), 200).splitlines()
    assert lines[0].startswith("proved   tau = ") and "features" in lines[0] and "(ridge weight)" in lines[0]
    assert record.one_se is not None
    at = next(k for k, line in enumerate(lines) if line.startswith("one-standard-error rule"))
    assert lines[at + 1].startswith(f"tau = {record.one_se.tau} feature") and lines[at + 2].startswith("coefficients")


def test_a_rule_that_is_not_settled_says_so(record: Record) -> None:
    assert record.one_se is not None
    unsettled = replace(record, one_se=replace(record.one_se, estimate=True))
    text = printed(lambda console: print_answer(console, unsettled), 200)
    assert "one-standard-error rule, not settled" in text and "smallest tau" not in text
    assert "the smallest tau, then the largest gamma" in printed(lambda console: print_answer(console, record), 200)


def test_estimates_are_marked(record: Record) -> None:
    row = replace(record.table[0], estimate=True)
    marked = replace(record, estimate=True, one_se=None, table=(row, *record.table[1:]))
    text = printed(lambda console: print_answer(console, marked), 200)
    assert "CV error ~" in text and "R^2 ~" in text and "~ an estimate" in text
    assert "~" not in printed(lambda console: print_answer(console, record), 200)


def test_a_run_that_ended_by_itself_does_not_blame_its_limit(record: Record) -> None:
    for limit in (None, 60.0):
        ended = replace(record, status="limit", request=replace(record.request, time_limit=limit))
        assert printed(lambda console: print_answer(console, ended), 200).startswith("ended without a proof: best")  # noqa: B023
        assert len(hints(ended)) == 1 and hints(ended)[0].startswith("more time would prove no more")


def test_what_is_not_proved_is_said(record: Record) -> None:
    nothing = replace(record.table[0], cv_error=float("inf"), lower=0.0, upper=float("inf"), estimate=True)
    rows = [replace(row, lower=0.0, upper=float("inf"), estimate=True, folds_decided=0) for row in record.table]
    rows = [
        row if row.gamma == record.gamma else replace(nothing, gamma=row.gamma, tau=row.tau, folds_decided=0)
        for row in rows
    ]
    bare = replace(
        record, status="limit", estimate=True, one_se=None, table=tuple(rows), lower=0.0, upper=float("inf"),
        request=replace(record.request, time_limit=1.0), work=replace(record.work, seconds=1.1),
    )  # fmt: skip
    text = printed(lambda console: print_answer(console, bare), 200)
    assert text.startswith("limit reached: best answer so far, nothing proved yet") and "[0, ?]" not in text
    assert "proved to be the best one in 0 of 5 folds" in text
    assert f"chosen among 3 of 9 pairs, all at gamma = {record.gamma:.6g}; the others have no estimate" in text
    assert hints(bare) == ["a longer --time-limit or fewer pairs (--gamma, --tau) let it try and prove more"]
    assert "least certified upper bound" not in text
    better = replace(rows[0], lower=0.5, upper=0.75)
    rest = [row for row in rows if (row.gamma, row.tau) != (better.gamma, better.tau)]
    told = printed(lambda console: print_answer(console, replace(bare, upper=2.0, table=(better, *rest))), 200)
    where = f"tau = {better.tau}, gamma = {better.gamma:.6g}"
    assert f"least certified upper bound of any pair: {where}, CV error in [0.5, 0.75]" in told
    bounded = replace(bare, lower=1.0, upper=2.0)
    assert "bounds valid" in printed(lambda console: print_answer(console, bounded), 200)


@pytest.mark.parametrize(
    ("gamma", "tau", "gammas", "taus", "told"),
    [
        (1.0, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["largest asked: try --gamma 0.01:10:5"]),
        (0.01, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["smallest asked: try --gamma 0.001:1:5"]),
        (0.1, 2, (0.01, 0.1, 1.0), (1, 2, 3), []),
        (0.1, 3, (0.01, 0.1, 1.0), (1, 2, 3), ["largest asked: try --tau 1:5"]),
        (0.1, 5, (0.01, 0.1, 1.0), (1, 2, 5), []),
        (0.1, 1, (0.01, 0.1, 1.0), (1, 2, 5), ["smallest asked: --tau 0:5 has the intercept alone"]),
        (0.1, 0, (0.01, 0.1, 1.0), (0, 2, 5), []),
        (0.1, 2, (0.01, 0.1, 1.0), (2, 3), ["smallest asked: try --tau 1:3"]),
        (0.1, 2, (0.1,), (2,), []),
        (1e-7, 2, (1e-7, 0.1), (1, 2, 3), []),
    ],
)
def test_an_edge_of_the_grid_is_told(
    gamma: float, tau: int, gammas: tuple[float, ...], taus: tuple[int, ...], told: list[str], record: Record
) -> None:
    request = replace(record.request, gammas=gammas, taus=taus)
    found = hints(replace(record, gamma=gamma, tau=tau, request=request))
    assert len(found) == len(told) and all(text in hint for text, hint in zip(told, found, strict=True))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_live_view_cuts_no_number(width: int) -> None:
    state = Progress(
        done=30, total=6000, nodes=1234567, lower=1523.25, upper=2012.75, seconds=3.0, mios=789, pruned=12,
        best=(0.1, 3),
        taus=tuple(TauProgress(tau, 3, 2, 1200, 1001.5 + tau, 2002.5 + tau) for tau in range(1, 4)),
    )  # fmt: skip
    view = live.View(Stop(), Console(file=io.StringIO(), width=width, height=40))
    view(state)
    text = printed(lambda console: console.print(view.draw()), width)
    for number in ("1523.25", "2012.75", "1,234,567", "1002.5", "2005.5", "3+2/1200"):
        assert number in text


def test_a_pipe_has_the_width_it_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:

    prostate = str(INSTANCES / "prostate.csv")
    for width in (40, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(["solve", prostate, "-t", "lpsa", "--folds", "3", "--gamma", "0.1", "--tau", "1:2"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width
