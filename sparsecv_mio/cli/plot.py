"""`sparsecv plot`: figures of a record, the course of a run, or the results of many runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, parse, results, session
from sparsecv_mio.errors import BadInput

CODES = "Exit codes: 0 drawn, 2 bad input."
TABLES = (".parquet", ".csv")


class Panel(StrEnum):
    """What to draw of a record."""

    ALL = "all"
    CV_ERROR = "cv-error"
    GRID = "grid"
    FEATURES = "features"
    COEFFICIENTS = "coefficients"


class Kind(StrEnum):
    """What to draw of many runs."""

    PROFILE = "profile"
    CRITICAL = "critical"
    BOX = "box"
    LINES = "lines"


def plot(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD",
            help="JSON record of `solve`, `path` or `fit`; a trace (`solve --trace`); or a table (`collect`).",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DATA", help="Data of the record: coefficients by tau, in comparable units."),
    ] = None,
    panel: Annotated[
        str,
        typer.Option(
            "--panel", metavar="WORD", callback=parse.word(Panel, "--panel"),
            help="Of a record of `solve`: cv-error, grid (every pair), features (how often each is chosen), "
            "coefficients or all.",
        ),
    ] = Panel.ALL,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE",
            help="The figure (.png, .svg, .pdf). [RECORD with .png]",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="WORD", callback=parse.word(Kind, "--kind"),
            help="Of a table: profile (share of problems within a factor of the best), critical (mean ranks and "
            "Nemenyi's critical difference), box or lines (against a column, with standard errors). [box]",
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="A", help="Of a table: the number that is drawn; of lines A,B,... "
                                 "[cv_error]")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="A,B,...", help="Of a table: columns that tell apart what is "
                                 "compared. [estimator]")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="A", help="Of lines: the column of the horizontal axis.")
    ] = None,
    panels: Annotated[
        str | None, typer.Option("--panels", metavar="A,B,...", help="Of a table: a panel for each value of these "
                                 "columns. [one panel]")
    ] = None,
    larger: Annotated[
        bool, typer.Option("--larger", help="Of profile and critical: larger numbers are better.")
    ] = False,
    where: results.Where = None,
    relative: results.Relative = None,
    reduction: results.Reduction = None,
    problem: results.Problem = None,
    name: results.Names = None,
) -> int:  # fmt: skip
    """Draw a record: CV error by tau, every pair, how often features are chosen, coefficients. Or the course of a run.

    Of a trace: the certified bounds closing over time, and the interval of every tau. Of a table of many runs:
    performance profiles, critical differences of mean ranks, boxes, or lines against a parameter.
    """
    from sparsecv_mio.report.figures import check_plot, save
    from sparsecv_mio.search.observers.trace import is_trace, read_trace

    place = out or str(Path(record).with_suffix(".png"))
    session.check_outputs({"--out": place}, [record, *([data] if data else [])])
    if Path(record).suffix.lower() in TABLES:
        check_plot(place, "--out")
        asked = results.Drawing(kind, value, by, against, panels, larger)
        save(asked.figure(record, results.Selection.of(where, relative, reduction, problem, name)), place)
    elif any((kind, value, by, against, panels, larger, where, relative, reduction, problem, name)):
        raise BadInput(f"{record} is no table of runs: --kind and what goes with it need one that `collect` wrote")
    elif is_trace(record):
        from sparsecv_mio.report.trace_plots import plot_trace

        check_plot(place, "--out")
        plot_trace(*read_trace(record), place)
    else:
        from sparsecv_mio.certificate.reading import read_drawn
        from sparsecv_mio.errors import CorruptStore
        from sparsecv_mio.report.record_plots import panel_of

        check_plot(place, "--out")
        try:
            stored = read_drawn(record)
        except CorruptStore as error:
            raise BadInput(f"{record} is neither a trace nor a record: {error}") from None
        save(panel_of(stored, str(panel), session.read_to_draw(data, stored) if data else None), place)
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"figure: {place}", soft_wrap=True))
