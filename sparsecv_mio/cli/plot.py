"""`sparsecv plot`: figures of a record, or the course of a run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, parse, session

CODES = "Exit codes: 0 drawn, 2 bad input."


class Panel(StrEnum):
    """What to draw of a record."""

    ALL = "all"
    CV_ERROR = "cv-error"
    GRID = "grid"
    FEATURES = "features"
    COEFFICIENTS = "coefficients"


def plot(
    record: Annotated[
        str,
        typer.Argument(metavar="RECORD", help="JSON record of `solve`, `path` or `fit`; or a trace (`solve --trace`)."),
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
            "--out", metavar="FILE",
            help="The figure (.png, .svg, .pdf); of a trace also an animation (.gif). [RECORD with .png]",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Draw a record: CV error by tau, every pair, how often features are chosen, coefficients. Or the course of a run.

    Of a trace: the certified bounds closing over time, and the interval of every tau.
    """
    from sparsecv_mio.report.figures import check_plot, save
    from sparsecv_mio.search.observers.trace import is_trace, read_trace

    place = out or str(Path(record).with_suffix(".png"))
    session.check_outputs({"--out": place}, [record, *([data] if data else [])])
    if is_trace(record):
        from sparsecv_mio.report.trace_plots import plot_trace

        plot_trace(*read_trace(record), place)
    else:
        from sparsecv_mio.certificate.reading import read_record
        from sparsecv_mio.errors import BadInput, CorruptStore
        from sparsecv_mio.report.record_plots import panel_of

        check_plot(place, "--out")
        try:
            stored = read_record(record)
        except CorruptStore as error:
            raise BadInput(f"{record} is neither a trace nor a record: {error}") from None
        save(panel_of(stored, str(panel), session.read_again(data, stored) if data else None), place)
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"figure: {place}", soft_wrap=True))
