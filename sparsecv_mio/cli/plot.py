"""`sparsecv plot`: the course of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecv_mio.cli import session

CODES = "Exit codes: 0 drawn, 2 bad input."


def plot(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="What `sparsecv solve --trace` wrote.")],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="A figure (.png, .svg, .pdf) or an animation (.gif).")
    ],
) -> int:
    """Draw the certified bounds of a run closing over time, and the interval of every tau."""
    session.check_outputs({"--out": out}, [trace])
    from sparsecv_mio.report.trace_plots import plot_trace
    from sparsecv_mio.search.observers.trace import read_trace

    head, moments = read_trace(trace)
    plot_trace(head, moments, out)
    return 0
