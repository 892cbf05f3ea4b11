"""`sparsecv report`: a record as a page to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, session
from sparsecv_mio.words import one_of

CODES = "Exit codes: 0 written, 2 bad input."


def report(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="JSON record of `solve`, `path` or `fit`.")],
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DATA", help="Data of the record: adds coefficients by tau."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="The report; - is standard output. [RECORD with .html]"),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="WORD", help="html (one page), md or latex (tables). [by the ending of FILE]"),
    ] = None,
) -> int:
    """Write a report of a record: answer, what is proved and what not, pictures, tables, how to verify it.

    The HTML page needs no other file and no network.
    """
    kind = _format(out, format_)
    ending_of = {"html": ".html", "md": ".md", "latex": ".tex"}[kind]
    place = out or str(Path(record).with_suffix(ending_of))
    session.check_outputs({"--out": None if place == "-" else place}, [record, *([data] if data else [])])
    from sparsecv_mio.certificate.reading import read_drawn
    from sparsecv_mio.files import write_text
    from sparsecv_mio.report.record_report import report_text

    stored = read_drawn(record)
    rows = session.read_to_draw(data, stored) if data else None
    text = report_text(stored, kind, record, rows, data or "DATA")
    if place == "-":
        failure = ending.put(sys.stdout, [text])
        if failure is not None:
            raise failure
        return 0
    write_text(place, [text], "report", through=True)
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"report: {place}", soft_wrap=True))


def _format(out: str | None, word: str | None) -> str:
    """Return the format that is asked for, by its word or by the ending of the file."""
    from sparsecv_mio.report.record_report import format_of

    if word is not None:
        return one_of(word, ("html", "md", "latex"), "--format")
    return "html" if out is None else format_of(out)
