"""The table of sizes: an excluded size shows bounds on its CV error, on the screen and in the report alike."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.certificate.parts import GapStep, SourceWork
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import format_number, format_with_zeros
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.optional_parts import print_sources, source_table
from sparsecv_mio.report.record_plots import draw_panel, plot_cv_error
from sparsecv_mio.report.record_report import report_of, report_text
from sparsecv_mio.report.record_tables import print_answer
from sparsecv_mio.report.size_rows import advise_full_curve, best_by_tau, explain_excluded
from sparsecv_mio.search.api import solve

from .printing import check, printed
from .test_record_report import tables

GAMMAS = (0.002, 0.02, 0.2)


@pytest.fixture(scope="module")
def relapses() -> tuple[Record, Record]:
    """A logistic record with excluded sizes, and one of the same pairs with every pair solved."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 5))
    probability = 1.0 / (1.0 + np.exp(-(X @ [1.2, -0.8, 0.5, 0.3, 0.0])))
    data = Dataset.from_arrays(X, rng.random(90) < probability)
    found, complete = (solve(data, gammas=GAMMAS, folds=4, gap=gap, threads=1, loss="logistic") for gap in (1e-2, 0.0))
    return found, complete


def test_bounds_of_excluded_sizes_hold(relapses: tuple[Record, Record]) -> None:
    found, complete = relapses
    truth = {one.tau: one.cv_error for one in best_by_tau(complete)}
    rows = best_by_tau(found)
    assert sum(one.excluded for one in rows) >= 2 and not any(one.excluded for one in best_by_tau(complete))
    for one in rows:
        assert one.lower * (1.0 - 1e-9) <= truth[one.tau] <= one.upper * (1.0 + 1e-9)
        if not one.excluded:
            assert one.row.cv_error <= truth[one.tau] * (1.0 + 1e-2)


def test_screen_and_report_show_the_same_bounds_and_estimates(relapses: tuple[Record, Record]) -> None:
    found, complete = relapses
    rows = best_by_tau(found)
    n_excluded, truth = sum(one.excluded for one in rows), {one.tau: one.cv_error for one in best_by_tau(complete)}
    assert any(one.excluded and one.lower < one.row.cv_error for one in rows)
    for full in (False, True):
        text = printed(lambda console: print_answer(console, found, full=full), 200)  # noqa: B023
        shown = text.partition("best gamma for each tau")[2]
        _, by_tau, every, *_ = tables(report_of(found))
        for one, line in zip(best_by_tau(found), by_tau.rows, strict=True):
            printed_line = next(words for words in shown.splitlines() if words.split()[:1] == [str(one.tau)])
            assert line[2] in printed_line
            if one.excluded:
                estimate, _, bounds = line[2].rpartition(", at least ")
                assert bounds or line[2].startswith("in [")
                if estimate:
                    assert estimate == f"~{format_with_zeros(one.row.cv_error, 6)}" and one.lower < one.row.cv_error
                    assert one.row.cv_error == pytest.approx(truth[one.tau], rel=0.05)
                assert line[1] == "" == line[3] == line[4]
                assert f"{line[2]} (excluded)" in printed_line and format_number(one.row.gamma) not in printed_line
            else:
                assert line[1] == format_number(one.row.gamma) and line[1] in printed_line and "~" not in printed_line
        assert (
            "excluded: this tau, at every gamma of the grid, is certified not to improve on the minimum CV error by "
            "more than the gap"
        ) in shown and "~ marks an estimate, perhaps too low or too high" in " ".join(shown.split())
        advice = f"{n_excluded} of {len(rows)} sizes are excluded; --gap 0 computes the CV error of every size"
        assert advice in shown and advice in by_tau.caption and "computes it" not in shown
    excluded = {(row.gamma, row.tau) for row in found.table if row.status == "excluded" and row.estimate}
    for row, line in zip(found.table, every.rows, strict=True):
        assert ((row.gamma, row.tau) in excluded) == line[2].startswith(("~", "at least ", "in ["))
    complete_text = printed(lambda console: print_answer(console, complete), 200)
    assert "excluded" not in complete_text and "~" not in complete_text


def test_the_figure_shows_bounds_of_excluded_sizes(relapses: tuple[Record, Record]) -> None:
    found = relapses[0]
    ax = plot_cv_error(found)
    marks = [at for line in ax.lines if line.get_marker() == "^" for at in line.get_xydata().tolist()]
    assert marks == [[one.tau, one.lower] for one in best_by_tau(found) if one.excluded]


def test_a_size_is_not_excluded_while_one_of_its_pairs_is_open(relapses: tuple[Record, Record]) -> None:
    found = relapses[0]
    tau = next(one.tau for one in best_by_tau(found) if one.excluded)
    rows = tuple(
        replace(row, status="open", lower=0.1) if row.tau == tau and row.gamma == GAMMAS[0] else row
        for row in found.table
    )
    ended = replace(found, status="limit", table=rows)
    one = next(one for one in best_by_tau(ended) if one.tau == tau)
    assert not one.excluded and one.describe_error(6).startswith("~")
    text = printed(lambda console: print_answer(console, ended), 200)
    assert "best gamma found for each tau" in text and "~ an estimate, perhaps too low or too high" in text


def test_a_solved_pair_is_not_called_best_while_another_gamma_may_be_better(relapses: tuple[Record, Record]) -> None:
    complete = relapses[1]
    tau = next(one.tau for one in best_by_tau(complete) if one.tau != complete.tau)
    best = next(one.row for one in best_by_tau(complete) if one.tau == tau)
    rows = tuple(
        replace(row, status="excluded", estimate=True, lower=0.9 * best.cv_error, upper=math.inf, folds_decided=0)
        if row.tau == tau and row.gamma != best.gamma
        else row
        for row in complete.table
    )
    one = next(one for one in best_by_tau(replace(complete, table=rows)) if one.tau == tau)
    assert one.excluded and one.describe_error(6).startswith("in [")
    assert (one.lower, one.upper) == (0.9 * best.cv_error, best.upper)


def test_a_few_excluded_sizes_are_explained_without_advice_on_the_curve(relapses: tuple[Record, Record]) -> None:
    found, _ = relapses
    taus = [one.tau for one in best_by_tau(found) if one.excluded][:1]
    taus += [one.tau for one in best_by_tau(found) if not one.excluded]
    few = replace(found, table=tuple(row for row in found.table if row.tau in taus))
    rows = best_by_tau(few)
    assert 2 * sum(one.excluded for one in rows) <= len(rows) and advise_full_curve(few) == ""
    assert "(--gap 0 computes it)" in explain_excluded(few, rows)
    for upper, word in ((math.inf, "`at least`"), (10.0, "`in`")):  # only words of the table are explained
        bounded = [replace(one, upper=upper) if one.excluded else one for one in rows]
        assert re.findall("`.*?`", explain_excluded(few, bounded)) == [word]


SOURCES = (
    SourceWork("full-data trees", 1, 15, 4580, 0.5, 0.4, 0, 120, 0.25),
    SourceWork("subproblem trees", 2, 150, 47430, 1.5, 1.4, 1200, 0, 0.75),
)
COURSE = (GapStep("other work", 0.5, 1.0), GapStep("full-data trees", 1.0, 0.75),
          GapStep("subproblem trees", 1.5, 0.5), GapStep("subproblem trees", 2.5, 0.0))  # fmt: skip


@pytest.fixture
def booked(record: Record) -> Record:
    return replace(record, work=replace(record.work, sources=SOURCES, course=COURSE))


def test_a_full_answer_ends_with_the_table(booked: Record) -> None:
    check(lambda console: print_sources(console, booked))
    full = printed(lambda console: print_answer(console, booked, full=True), 200)
    row = next(line for line in full.splitlines() if "subproblem trees" in line)
    assert row.split()[-7:] == ["150", "47,430", "1.50", "1.40", "1,200", "0", "75.0%"]
    assert "bounding method" not in printed(lambda console: print_answer(console, booked), 200)


@pytest.mark.parametrize("full", [False, True])
def test_the_duration_is_that_of_the_answer(record: Record, full: bool) -> None:
    timed = replace(record, work=replace(record.work, seconds=7.67), request=replace(record.request, threads=2))
    text = printed(lambda console: print_answer(console, timed, full=full), 200)
    assert "search ended after 7.67 s on 2 threads" in text


def test_an_external_solver_is_named_with_its_share_of_the_work_and_its_tolerance(booked: Record) -> None:
    assert "solver " not in printed(lambda console: print_answer(console, booked), 200)
    mios = SourceWork("MIOs of highs", 2, 15, 4580, 6.0, 0.4, 0, 120, 0.25)
    by_highs = replace(booked.request, backend="highs"), replace(booked.work, sources=(mios, *SOURCES))
    text = printed(lambda console: print_answer(console, replace(booked, request=by_highs[0], work=by_highs[1])), 300)
    assert "\nsolver highs: 15 MIO problems in 75% of the search time closed 25% of the relative gap (100% " in text
    assert "the gap may be smaller than the tolerance of the solver, 2e-06" in text


def test_the_gap_is_drawn_in_the_colour_of_who_closed_it(booked: Record) -> None:
    ax = draw_panel(booked, "sources").axes[0]
    assert [line.get_label() for line in ax.lines].count("subproblem trees") == 1
    colours = [line.get_color() for line in ax.lines]
    assert colours[2] == colours[3] != colours[1]
    assert ax.lines[-1].get_ydata()[-1] == 0.0


def test_a_record_of_before_has_neither(record: Record) -> None:
    before = replace(record, work=replace(record.work, sources=(), course=()))
    assert source_table(before) is None and printed(lambda console: print_sources(console, before), 200) == ""
    assert "bounding method" not in report_text(before, "md", "RECORD", None, "DATA")
    with pytest.raises(BadInput, match="panel sources"):
        draw_panel(before, "sources")
