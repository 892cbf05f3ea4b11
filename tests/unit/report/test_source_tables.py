"""The table of the sources of bounds and the figure of the gap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsecv_mio.certificate.parts import GapStep, SourceWork
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.record_plots import draw_panel
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.report.record_tables import print_answer
from sparsecv_mio.report.source_tables import print_sources, source_rows

from .printing import check, printed

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


def test_the_gap_is_drawn_in_the_colour_of_who_closed_it(booked: Record) -> None:
    ax = draw_panel(booked, "sources").axes[0]
    assert [line.get_label() for line in ax.lines].count("subproblem trees") == 1
    colours = [line.get_color() for line in ax.lines]
    assert colours[2] == colours[3] != colours[1]
    assert ax.lines[-1].get_ydata()[-1] == 0.0


def test_a_record_of_before_has_neither(record: Record) -> None:
    before = replace(record, work=replace(record.work, sources=(), course=()))
    assert source_rows(before) == [] and printed(lambda console: print_sources(console, before), 200) == ""
    assert "bounding method" not in report_text(before, "md", "RECORD", None, "DATA")
    with pytest.raises(BadInput, match="panel sources"):
        draw_panel(before, "sources")
