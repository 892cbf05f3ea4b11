"""`sparsecv table` and `sparsecv plot`: tables and figures of collected runs, figures of records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import special

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=A,B", help="Only runs whose column holds one of these; may be repeated."),
]
Relative = Annotated[
    str | None,
    typer.Option("--relative", metavar="COLUMN=VALUE", help="Divide by the run of the same problem that has this."),
]
Reduction = Annotated[
    str | None,
    typer.Option("--reduction", metavar="COLUMN=VALUE", help="Show how many % less than that run."),
]
Problem = Annotated[
    str | None,
    typer.Option(
        "--problem", metavar="A,B,...",
        help="Columns that runs on one problem share. [data,folds,seed,test,split; of critical: data]",
    ),
]  # fmt: skip
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="LABEL=WORDS", help="Other words for a label; may be repeated."),
]


@dataclass(frozen=True)
class RunSelection:
    """Which runs of a table, and what of them.

    Attributes
    ----------
    where : sequence of str
        Conditions.
    relative, reduction : str, optional
        A baseline.
    problem : sequence of str
        Columns that runs on one problem share; empty for the usual ones.
    names : dict
        Other words for labels.
    """

    where: Sequence[str] = ()
    relative: str | None = None
    reduction: str | None = None
    problem: Sequence[str] = ()
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, where: Sequence[str] | None, relative: str | None, reduction: str | None, problem: str | None,
        names: Sequence[str] | None,
    ) -> RunSelection:  # fmt: skip
        """Check what the options say.

        Parameters
        ----------
        where, relative, reduction, problem, names
            As given.
        """
        if relative is not None and reduction is not None:
            raise BadInput("--relative and --reduction exclude each other: give one of them")
        words = dict(_named(text) for text in names or ())
        return cls(where or (), relative, reduction, parse.names(problem, "--problem") or (), words)

    def words(self, value: str) -> str:
        """Return what a number of these runs is."""
        if self.reduction is not None:
            return f"{value}, % less than {self.reduction}"
        return value if self.relative is None else f"{value} over that of {self.relative}"

    def read(self, path: str, values: Sequence[str]) -> pd.DataFrame:
        """Return the runs.

        Parameters
        ----------
        path : str
            Table that `collect` wrote.
        values : sequence of str
            Columns of numbers that are wanted.
        """
        from sparsecv_mio.batch.results import check_columns, read_table, relative, where

        frame = read_table(path)
        check_columns(frame, values, "--value", numbers=True)
        chosen = where(frame, self.where)
        baseline = self.reduction or self.relative
        if baseline is None:
            return chosen
        full = relative(frame, values, baseline, self.problem, self.reduction is not None)
        return full.loc[chosen.index]


def _named(text: str) -> tuple[str, str]:
    label, mark, words = text.partition("=")
    if not mark:
        raise BadInput(f"--name {text!r}: write LABEL=WORDS")
    return label, words


@dataclass(frozen=True)
class Drawing:
    """What to draw of the runs of a table; None is the usual.

    Attributes
    ----------
    kind : {"profile", "critical", "box", "lines"}, optional
    value, by, panels : str, optional
        Columns, separated by commas.
    against : str, optional
        Column.
    larger : bool
        Whether larger numbers are better.
    """

    kind: str | None = None
    value: str | None = None
    by: str | None = None
    against: str | None = None
    panels: str | None = None
    larger: bool = False

    def figure(self, path: str, chosen: RunSelection) -> Figure:
        """Draw the runs of a table.

        Parameters
        ----------
        path : str
            Table that `collect` wrote.
        chosen : Selection
        """
        from sparsecv_mio.batch.results import by_problem, check_columns, labels, problem_columns, with_numbers
        from sparsecv_mio.report import batch_results

        values = parse.names(self.value or "cv_error", "--value") or []
        if self.kind != "lines" and len(values) > 1:
            raise BadInput("--value: several numbers go with --kind lines only")
        if (self.kind == "lines") != (self.against is not None):
            raise BadInput("--kind lines and --against go together: name the column of the horizontal axis")
        frame = with_numbers(chosen.read(path, values), self.against)
        by_columns = parse.names(self.by or "estimator", "--by") or []
        check_columns(frame, by_columns, "--by")
        by = labels(frame, by_columns, chosen.names)
        parts = self._parts(frame)
        if self.against is not None:
            check_columns(frame, [self.against], "--against", numbers=True)
            return batch_results.lines(parts, values, by, self.against)
        if self.kind in (None, "box"):
            return batch_results.boxes(parts, values[0], by, chosen.words(values[0]))
        given = chosen.problem or (("data",) if self.kind == "critical" else ())
        keys = problem_columns(frame, given)
        tables = {title: by_problem(part, values[0], by[part.index], keys) for title, part in parts.items()}
        if self.kind == "profile":
            return batch_results.profiles(tables, values[0], self.larger)
        return self._critical(tables, values[0])

    def _parts(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        from sparsecv_mio.batch.results import check_columns, labels

        if self.panels is None:
            return {"": frame}
        columns = parse.names(self.panels, "--panels") or []
        check_columns(frame, columns, "--panels")
        titles = labels(frame, columns)
        numbers = len(columns) == 1 and frame[columns[0]].dtype.kind in "iuf"
        before = columns[0].removeprefix("design_").replace("_", " ") + " " if numbers else ""
        return {f"{before}{title}": frame[titles == title] for title in titles.cat.categories}

    def _critical(self, tables: dict[str, pd.DataFrame], value: str) -> Figure:
        from sparsecv_mio.batch.results import ranks
        from sparsecv_mio.report.batch_results import critical_difference

        if len(tables) > 1:
            raise BadInput("--kind critical has one panel: choose the runs with --where")
        found = ranks(next(iter(tables.values())), self.larger)
        if found.needed > found.problems:
            few = f"{found.problems} problems can show no difference of {len(found.mean)} methods"
            ending.tell(f"note: {few}: {found.needed} are needed, see --problem")
        words = f"Mean ranks by {value} over {found.problems} problems, Friedman p = {found.p_value:.2g}"
        words += f"; {found.left_out} without all values left out" if found.left_out else ""
        return critical_difference(found.mean, found.groups(), found.difference, words)


TABLE_CODES = "Exit codes: 0 written, 2 bad input."


class Aggregate(StrEnum):
    """What a cell says of its runs."""

    MEAN_SE = "mean-se"
    MEAN = "mean"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"


class BoldOf(StrEnum):
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
    where: Where = None,
    relative: Relative = None,
    reduction: Reduction = None,
    problem: Problem = None,
    name: Names = None,
    overall: Annotated[
        bool,
        typer.Option("--overall", help="A last row: the mean over the rows, geometric with --relative."),
    ] = False,
    best: Annotated[
        str,
        typer.Option(
            "--best", metavar="min|max|none", callback=parse.word(BoldOf, "--best"),
            help="What is set in bold in a row. [the least error, the largest R^2, ...]", show_default=False,
        ),
    ] = BoldOf.AUTO,
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
    chosen = RunSelection.of(where, relative, reduction, problem, name)
    by_row, by_column = parse.names(rows, "--rows") or [], parse.names(columns, "--columns") or []
    wanted = tuple(parse.names(values, "--values") or ())
    frame = chosen.read(runs, wanted)
    from sparsecv_mio.batch.results import check_columns, labels
    from sparsecv_mio.files import write_text
    from sparsecv_mio.report import batch_results

    check_columns(frame, by_row, "--rows")
    check_columns(frame, by_column, "--columns")
    cells = batch_results.summarise(
        frame, labels(frame, by_row, chosen.names), labels(frame, by_column, chosen.names), wanted, aggregate
    )
    if overall:
        cells = batch_results.with_overall(cells, geometric=relative is not None)
    if kind == Format.CSV:
        text = batch_results.csv(cells)
    else:
        better = "max" if reduction and best == BoldOf.AUTO else str(best)
        text = (batch_results.latex if kind == Format.LATEX else batch_results.markdown)(cells, better, digits)
    if out is not None:
        write_text(out, [text], "table", through=True)
    elif (failure := ending.put(sys.stdout, [text])) is not None:
        raise failure
    return 0


PLOT_CODES = "Exit codes: 0 drawn, 2 bad input."
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
    where: Where = None,
    relative: Relative = None,
    reduction: Reduction = None,
    problem: Problem = None,
    name: Names = None,
) -> int:  # fmt: skip
    """Draw a record: CV error by tau, every pair, how often features are chosen, coefficients. Or the course of a run.

    Of a trace: the certified bounds closing over time, and the interval of every tau. Of a table of many runs:
    performance profiles, critical differences of mean ranks, boxes, or lines against a parameter.
    """
    from sparsecv_mio.report.figures import check_plot, save
    from sparsecv_mio.search.observers import is_trace, read_trace

    place = out or str(Path(record).with_suffix(".png"))
    session.check_outputs({"--out": place}, [record, *([data] if data else [])])
    if Path(record).suffix.lower() in TABLES:
        check_plot(place, "--out")
        asked = Drawing(kind, value, by, against, panels, larger)
        save(asked.figure(record, RunSelection.of(where, relative, reduction, problem, name)), place)
    elif any((kind, value, by, against, panels, larger, where, relative, reduction, problem, name)):
        raise BadInput(f"{record} is no table of runs: --kind and what goes with it need one that `collect` wrote")
    elif is_trace(record):
        from sparsecv_mio.report.course_plots import plot_trace

        check_plot(place, "--out")
        plot_trace(*read_trace(record), place)
    else:
        from sparsecv_mio.certificate.read_back import read_drawn
        from sparsecv_mio.errors import CorruptStore
        from sparsecv_mio.report.record_plots import panel_of

        check_plot(place, "--out")
        try:
            stored = read_drawn(record)
        except CorruptStore as error:
            raise BadInput(f"{record} is neither a trace nor a record: {error}") from None
        save(panel_of(stored, str(panel), session.read_to_draw(data, stored) if data else None), place)
    return 0 if out else ending.deliver(0, lambda screen: screen.print(f"figure: {place}", soft_wrap=True))
