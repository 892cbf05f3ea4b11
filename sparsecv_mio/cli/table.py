"""`sparsecv table`: a collected table of runs as a table of a paper."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, parse, results, session
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import special

CODES = "Exit codes: 0 written, 2 bad input."


class Aggregate(StrEnum):
    """What a cell says of its runs."""

    MEAN_SE = "mean-se"
    MEAN = "mean"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"


class Best(StrEnum):
    """What is set in bold in a row."""

    AUTO = "auto"
    MIN = "min"
    MAX = "max"
    NONE = "none"


class Format(StrEnum):
    """What is written."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


ENDINGS = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".tex": Format.LATEX, ".csv": Format.CSV}


def _format_of(out: str | None) -> Format:
    """Return the format of a file by its ending; Markdown for the screen, pipes and devices."""
    if out is None or special(out) is not None:
        return Format.MARKDOWN
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"--out: {out!r} must end with {', '.join(ENDINGS)}; or name the --format")
    return ENDINGS[ending]


def table(
    runs: Annotated[str, typer.Argument(metavar="RESULTS", help="Table that `sparsecv collect` wrote.")],
    rows: Annotated[str, typer.Option("--rows", metavar="A,B,...", help="Columns that name a row.")] = "data",
    columns: Annotated[
        str, typer.Option("--columns", metavar="A,B,...", help="Columns whose values stand side by side.")
    ] = "estimator",
    values: Annotated[
        str, typer.Option("--values", "--value", metavar="A,B,...", help="Columns of numbers in the cells.")
    ] = "cv_error",
    aggregate: Annotated[
        str,
        typer.Option(
            "--aggregate", metavar="WORD", callback=parse.word(Aggregate, "--aggregate"),
            help="What a cell says of its runs: mean-se (with standard error), mean, median, min, max, sum or count.",
        ),
    ] = Aggregate.MEAN_SE,
    where: results.Where = None,
    relative: results.Relative = None,
    reduction: results.Reduction = None,
    problem: results.Problem = None,
    name: results.Names = None,
    overall: Annotated[
        bool,
        typer.Option("--overall", help="A last row: the mean over the rows, geometric with --relative."),
    ] = False,
    best: Annotated[
        str,
        typer.Option(
            "--best", metavar="min|max|none", callback=parse.word(Best, "--best"),
            help="What is set in bold in a row. [the least error, the largest R^2, ...]", show_default=False,
        ),
    ] = Best.AUTO,
    digits: Annotated[int, typer.Option("--digits", metavar="N", help="Significant digits.")] = 4,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="WORD", callback=parse.word(Format, "--format"),
            help="markdown, latex or csv (numbers in full). [by the ending: .md, .tex, .csv; markdown on the screen]",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="The table. [shown]")] = None,
) -> int:  # fmt: skip
    """Make a table of a paper: a mean and a standard error for each cell, the best of every row in bold."""
    if not 1 <= digits <= 12:
        raise BadInput(f"--digits {digits} is out of range: give a number from 1 to 12")
    session.check_outputs({"--out": out}, [runs])
    kind = format_ or _format_of(out)
    chosen = results.Selection.of(where, relative, reduction, problem, name)
    by_row, by_column = parse.names(rows, "--rows") or [], parse.names(columns, "--columns") or []
    wanted = tuple(parse.names(values, "--values") or ())
    frame = chosen.read(runs, wanted)
    from sparsecv_mio.batch.results import check_columns, labels
    from sparsecv_mio.files import write_text
    from sparsecv_mio.report import results_table

    check_columns(frame, by_row, "--rows")
    check_columns(frame, by_column, "--columns")
    cells = results_table.summarise(
        frame, labels(frame, by_row, chosen.names), labels(frame, by_column, chosen.names), wanted, aggregate
    )
    if overall:
        cells = results_table.with_overall(cells, geometric=relative is not None)
    if kind == Format.CSV:
        text = results_table.csv(cells)
    else:
        better = "max" if reduction and best == Best.AUTO else str(best)
        text = (results_table.latex if kind == Format.LATEX else results_table.markdown)(cells, better, digits)
    if out is not None:
        write_text(out, [text], "table", through=True)
    elif (failure := ending.put(sys.stdout, [text])) is not None:
        raise failure
    return 0
