"""The commands `sparsecv report` and `sparsecv plot`, which write pages and figures of a record."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio.cli import ending, session
from sparsecv_mio.cli.command_options import option, with_declared_options
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import write_text
from sparsecv_mio.model_space import FEW_FEATURES

if TYPE_CHECKING:
    from sparsecv_mio.certificate.read_back import StoredRecord
    from sparsecv_mio.data.dataset import Dataset

REPORT_CODES = "Exit codes: 0 written, 2 bad input."


def read_to_draw(path: str, stored: StoredRecord) -> Dataset:
    """Return the data of a record for its figures, with a note if drawing may take long."""
    from sparsecv_mio.certificate.read_back import data_of
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.report.record_plots import PATH_SECONDS

    data = data_of(stored, path)
    if isinstance(stored, Record) and data.p > FEW_FEATURES:
        picture = "computing the best subset of every size on all rows, for the picture of coefficients"
        ending.tell(f"{picture}; this takes about {PATH_SECONDS:.0f} s")
    return data


@with_declared_options()
def report(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="JSON record of `solve`, `path` or `fit`.")],
    data: str | None = option(None, "DATA", "Data of the record. If you give this file, the report also shows the "
                                            "coefficients for each tau. [none]"),
    style: str = option("report", "", "report: the whole report; publication: the table of the model for a paper, and "
                                      "(not in .csv) texts on methods and results.", ("report", "publication")),
    out: str | None = option(None, "FILE", "Output file: .html (one page), .md or .tex (tables); with --style "
                                           "publication .tex, .csv or .md; - writes the default format to standard "
                                           "output. [RECORD with .html, or .md with --style publication]", also="-o"),
) -> int:  # fmt: skip
    """Write a report of a record: answer, certified statements, pictures, tables, and how to verify it.

    The HTML page works without other files and without a network. --style publication writes a table for a paper:
    estimates, effects of one standard deviation (with --data), and how often the folds chose each term. Its caption
    states only what is certified.
    """
    from sparsecv_mio.report.record_report import PUBLICATION, report_format

    suffix = ".md" if style == PUBLICATION else ".html"
    place = out or str(Path(record).with_suffix(suffix))
    kind = report_format(f"RECORD{suffix}" if place == "-" else place, style)
    session.check_outputs({"--out": None if place == "-" else place}, [record, *([data] if data else [])])
    from sparsecv_mio.certificate.read_back import data_of, read_drawable_record
    from sparsecv_mio.report.record_report import report_text

    stored = read_drawable_record(record)
    read = read_to_draw if style != PUBLICATION else lambda path, stored: data_of(stored, path)
    rows = read(data, stored) if data else None
    text = report_text(stored, kind, record, rows, data or "DATA", style)
    if place == "-":
        return _print_text(text)
    write_text(place, [text], "report", through=True)
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"report: {place}", soft_wrap=True))


def _print_text(text: str) -> int:
    """Write a text to standard output; return the exit code."""
    failure = ending.write_stream(sys.stdout, [text])
    if failure is not None:
        raise failure
    return 0


CITE_CODES = "Exit codes: 0 printed, 2 bad input."


@with_declared_options()
def cite(
    record: Annotated[
        str | None, typer.Argument(metavar="RECORD", help="JSON record, for the papers of the methods that it used.")
    ] = None,
) -> int:
    """Print the references of this package, or of a record, as BibTeX.

    Without a record, these are the package and the paper that it starts from. With a record, they are all references
    that the methods text of `report --style publication` cites, with the version of the package that made the record.
    """
    from sparsecv_mio.report.references import bibliography, find_references

    if record is None:
        return _print_text(bibliography(find_references()))
    from sparsecv_mio.certificate.read_back import read_record
    from sparsecv_mio.report.publication import cited_keys

    stored = read_record(record)
    return _print_text(bibliography(find_references(cited_keys(stored), stored.versions["sparsecv_mio"])))


PLOT_CODES = "Exit codes: 0 drawn, 2 bad input."
PANELS = (  # panels of a record
    "all", "cv-error", "grid", "bounds", "features", "sources", "baselines", "inclusion", "intervals", "roc",
    "calibration", "coefficients",
)  # fmt: skip
PLOT_DATA = option(
    None,
    "DATA",
    "Data of the record. If you give this file, the figure also shows the coefficients for each tau, in comparable "
    "units.",
)
PLOT_PANEL = option(
    PANELS[0],
    "WORD",
    "Panel for a record of `solve`: cv-error, grid (every pair), bounds (certified bound of every pair), features "
    "(number of folds that select each), sources (relative gap over time, by bounding method), baselines (with "
    "solve --baselines), inclusion and intervals (frequencies of features and percentiles of coefficients over the "
    "draws of --bootstrap), coefficients or all; "
    "with logistic loss and --data, also roc and calibration.",
    PANELS,
)
PLOT_OUT = option(None, "FILE", "Output file (.png, .svg, .pdf). [RECORD with .png]", also="-o")


@with_declared_options()
def plot(
    record: Annotated[
        str,
        typer.Argument(metavar="RECORD", help="JSON record of `solve`, `path` or `fit`; or a trace (`solve --trace`)."),
    ],
    *,
    data: str | None = PLOT_DATA,
    panel: str = PLOT_PANEL,
    out: str | None = PLOT_OUT,
) -> int:  # fmt: skip
    """Draw a record or a trace.

    The figure of a record shows the CV error by tau, the CV error of every pair, how often each feature is selected,
    and the coefficients. The figure of a trace shows the certified bounds over time and the interval of every tau.
    """
    return draw_record(record, data, panel, figure_place(record, data, out), out)


def figure_place(record: str, data: str | None, out: str | None) -> str:
    """Return the file of a figure, RECORD with .png by default, after checking that it can be written."""
    place = out or str(Path(record).with_suffix(".png"))
    session.check_outputs({"--out": place}, [record, *([data] if data else [])])
    return place


def draw_file(draw: Callable[[], None], place: str, out: str | None) -> int:
    """Draw a figure into its file; return the exit code.

    Parameters
    ----------
    draw : callable
        Function that draws and writes the figure.
    place : str
        File of the figure, which is printed if `out` does not name it.
    out : str or None
        Value of `--out`.
    """
    from sparsecv_mio.report.figures import check_plot

    check_plot(place, "--out")
    replaced = " (replaced an older file)" if Path(place).exists() else ""
    with ending.print_warnings():
        draw()
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"figure: {place}{replaced}", soft_wrap=True))


def draw_record(record: str, data: str | None, panel: str, place: str, out: str | None) -> int:
    """Draw a record or a trace into a file; return the exit code.

    Parameters
    ----------
    record : str
        File of the record or the trace.
    data : str or None
        File of its data.
    panel : str
        Picture of a record, one of `PANELS`.
    place, out : str
        File of the figure, and value of `--out`, as for :func:`draw_file`.
    """
    from sparsecv_mio.search.observers import is_trace, read_trace

    def draw() -> None:
        if is_trace(record):
            from sparsecv_mio.report.course_plots import plot_trace

            plot_trace(*read_trace(record), place)
            return
        from sparsecv_mio.certificate.read_back import read_drawable_record
        from sparsecv_mio.report.figures import save
        from sparsecv_mio.report.record_plots import draw_panel

        try:
            stored = read_drawable_record(record)
        except CorruptStore as error:
            raise BadInput(f"{record} cannot be read as a trace or a record: {error}") from None
        save(draw_panel(stored, panel, read_to_draw(data, stored) if data else None), place)

    return draw_file(draw, place, out)
