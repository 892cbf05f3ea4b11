"""The commands `sparsecv table` and `sparsecv plot` for collected runs; `plot` also draws single records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import Place, option, with_declared_options
from sparsecv_mio.cli.record_commands import PLOT_CODES as PLOT_CODES
from sparsecv_mio.cli.record_commands import PLOT_DATA, PLOT_OUT, PLOT_PANEL, draw_file, draw_record, figure_place
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import special, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TESTED = "test_error"
USUAL = f"{TESTED}, or cv_error if {TESTED} is missing"
KINDS = ("profile", "box", "lines")  # kinds of figures of many runs


@dataclass(frozen=True)
class RunSelection:
    """Options that select runs and numbers of a table."""

    where: list[str] | None = option(
        None, "COLUMN=A,B", "Use only runs with one of these values in the column. May be repeated. [all]"
    )  # fmt: skip
    relative: str | None = option(
        None,
        "COLUMN=VALUE",
        "Divide each number by that of a reference run on the same problem: the run with this VALUE in this COLUMN. "
        "[none]",
    )
    reduction: str | None = option(
        None,
        "COLUMN=VALUE",
        "As --relative, but show the reduction of each number from that of the reference run, in %. [none]",
    )
    problem: str | None = option(
        None, "A,B,...", "Columns whose values together identify a problem. [data,folds,seed,test,split]"
    )  # fmt: skip
    name: list[str] | None = option(None, "LABEL=WORDS", "Text to show instead of a label. May be repeated. [none]")

    @property
    def names(self) -> dict[str, str]:
        """Other names for labels."""
        return dict(_name_and_value(text) for text in self.name or ())

    @property
    def keys(self) -> list[str]:
        """Columns that runs on one problem share; empty for the default columns."""
        return parse.names(self.problem, "--problem") or []

    def words(self, value: str) -> str:
        """Return the name of a number of these runs."""
        if self.reduction is not None:
            return f"{value}, reduction in % relative to {self.reduction}"
        return value if self.relative is None else f"{value} divided by that of {self.relative}"

    def read(self, path: str, values: Sequence[str], option: str = "--value") -> tuple[pd.DataFrame, list[str]]:
        """Return the runs, and the numeric columns (the default one if none is named).

        Parameters
        ----------
        path : str
            Table that `collect` wrote.
        values : sequence of str
            Requested numeric columns.
        option : str
            Option that names them, for messages.
        """
        from sparsecv_mio.batch.run_tables import check_columns, read_table, relative, where

        if self.relative is not None and self.reduction is not None:
            raise BadInput("--relative and --reduction exclude each other; give one of the two")
        frame = read_table(path)
        chosen = where(frame, self.where or ())
        tested = TESTED in chosen and bool(chosen[TESTED].notna().any())
        values = list(values) or [TESTED if tested else "cv_error"]
        check_columns(frame, values, option, numbers=True)
        baseline = self.reduction or self.relative
        if baseline is None:
            return chosen, values
        full = relative(frame, values, baseline, self.keys, self.reduction is not None)
        return full.loc[chosen.index], values


DATA_SETS, MOST_PANELS = "data", 12  # column that names data sets, and maximum number of panels of a figure


def _name_and_value(text: str) -> tuple[str, str]:
    label, mark, words = text.partition("=")
    if not mark:
        raise BadInput(f"--name {text!r} is not of the form LABEL=WORDS; write for example lasso=Lasso")
    return label, words


@dataclass(frozen=True)
class Drawing:
    """Options that select what is drawn from the runs of a table; None is the default."""

    kind: str | None = option(
        None,
        "WORD",
        "Kind of figure of a table: profile (share of problems for which a method is within a given factor of the "
        "best), box (box plots) or lines (means with standard errors over the column of --against). [box]",
        KINDS,
    )
    value: str | None = option(
        None, "A", f"Column whose values are drawn; with --kind lines, also several columns (A,B,...). [{USUAL}]"
    )
    by: str | None = option(
        None,
        "A,B,...",
        "Columns of the table that define the compared groups. [estimator; for lines also the settings that differ, "
        "except seeds, splits and folds]",
    )
    against: str | None = option(None, "A", "With --kind lines: column of the horizontal axis. [none]")
    panels: str | None = option(
        None,
        "A,B,...",
        "Columns of the table; each combination of their values has its own panel. [data, for box plots of 2 to "
        f"{MOST_PANELS} data sets without --relative or --reduction; otherwise one panel]",
    )

    def figure(self, path: str, chosen: RunSelection) -> Figure:
        """Return the figure of the runs of a table.

        Parameters
        ----------
        path : str
            Table that `collect` wrote.
        """
        from sparsecv_mio.batch import run_figures as draw
        from sparsecv_mio.batch import run_tables

        values = parse.names(self.value, "--value") or []
        if self.kind != "lines" and len(values) > 1:
            raise BadInput("--value: several columns require --kind lines; name one column")
        if (self.kind == "lines") != (self.against is not None):
            faults = (
                "--kind lines: the horizontal axis is missing; name its column by --against COLUMN",
                "--against: requires --kind lines; leave this option out for other figures",
            )
            raise BadInput(faults[self.kind != "lines"])
        frame, values = chosen.read(path, values)
        frame = run_tables.with_numbers(frame, self.against)
        panel_columns = self._panels(frame, comparable=chosen.relative is not None or chosen.reduction is not None)
        parts = self._parts(frame, panel_columns)
        if self.against is not None:
            run_tables.check_columns(frame, [self.against], "--against", numbers=True)
        by_columns = parse.names(self.by, "--by") or ["estimator"]
        if self.against is not None and self.by is None:
            by_columns = draw.distinguishing_settings(frame, [self.against, *panel_columns])
        run_tables.check_columns(frame, by_columns, "--by")
        by = run_tables.labels(frame, by_columns, chosen.names)
        apart = [by, *(frame[name] for name in panel_columns)]
        if self.against is not None:
            figure = draw.lines(parts, values, by, self.against)
            return draw.add_pooling_note(figure, frame, [*apart, frame[self.against]], "a point")
        if self.kind in (None, "box"):
            figure = draw.boxes(parts, values[0], by, chosen.words(values[0]))
            return draw.add_pooling_note(figure, frame, apart, "a box")
        keys, tabulate = run_tables.problem_columns(frame, chosen.keys), run_tables.tabulate_problems
        tables = {title: tabulate(runs, values[0], by[runs.index], keys) for title, runs in parts.items()}
        figure = draw.profiles(tables, values[0])
        return draw.add_pooling_note(figure, frame, [*apart, *(frame[name] for name in keys)], "a problem")

    def _panels(self, frame: pd.DataFrame, comparable: bool) -> list[str]:
        """Return the columns with separate panels; for boxes, data sets have panels if they are few."""
        if self.panels is not None or self.kind not in (None, "box") or comparable or DATA_SETS not in frame:
            return parse.names(self.panels, "--panels") or []
        return [DATA_SETS] if 1 < frame[DATA_SETS].nunique() <= MOST_PANELS else []

    def _parts(self, frame: pd.DataFrame, columns: list[str]) -> dict[str, pd.DataFrame]:
        from sparsecv_mio.batch.run_tables import check_columns, labels

        if not columns:
            return {"": frame}
        check_columns(frame, columns, "--panels")
        titles = labels(frame, columns)
        numbers = len(columns) == 1 and frame[columns[0]].dtype.kind in "iuf"
        before = columns[0].removeprefix("design_").replace("_", " ") + " " if numbers else ""
        return {f"{before}{title}": frame[titles == title] for title in titles.cat.categories}


TABLE_CODES = "Exit codes: 0 written, 2 bad input."


AGGREGATES = ("mean-se", "mean", "median", "min", "max", "sum", "count")
BOLD = ("auto", "min", "max", "none")
MARKDOWN, LATEX, CSV = "markdown", "latex", "csv"
ENDINGS = {".md": MARKDOWN, ".markdown": MARKDOWN, ".tex": LATEX, ".csv": CSV}


def _output_format(out: str | None) -> str:
    """Return the format of a file by its suffix; Markdown for the screen, pipes and devices."""
    if out is None or special(out) is not None:
        return MARKDOWN
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"--out: {out!r} must end with {', '.join(ENDINGS)}")
    return ENDINGS[ending]


@with_declared_options(chosen=RunSelection)
def table(
    runs: Annotated[str, Place("RESULTS", "Table that `sparsecv collect` wrote.")],
    *,
    rows: str = option("data", "A,B,...", "Columns that define the rows."),
    columns: str = option("estimator", "A,B,...", "Columns whose values become the columns of the table."),
    values: str | None = option(None, "A,B,...", f"Columns of numbers to show. [{USUAL}]", also="--value"),
    aggregate: str = option(AGGREGATES[0], "WORD", "Summary of the runs: mean-se (mean with standard error), "
                            "mean, median, min, max, sum or count.", AGGREGATES),
    chosen: RunSelection,
    overall: bool = option(False, "", "Add a last row with the mean over the rows (geometric with --relative)."),
    best: str = option(BOLD[0], "min|max|none", "Value of each row to set in bold. [the smallest error, the largest "
                                                "R^2, ...]", BOLD),
    digits: int = option(4, "N", "Number of significant digits."),
    out: str | None = option(None, "FILE", "Output file: .md, .tex or .csv (all digits). [standard output]", also="-o"),
) -> int:  # fmt: skip
    """Make a table for a paper, with means and standard errors, and the best value of each row in bold."""
    if not 1 <= digits <= 12:
        raise BadInput(f"--digits {digits} is out of range; give a number from 1 to 12")
    session.check_outputs({"--out": out}, [runs])
    kind = _output_format(out)
    by_row, by_column = parse.names(rows, "--rows") or [], parse.names(columns, "--columns") or []
    frame, wanted = chosen.read(runs, parse.names(values, "--values") or (), "--values")
    from sparsecv_mio.batch import run_tables as make

    make.check_columns(frame, by_row, "--rows")
    make.check_columns(frame, by_column, "--columns")
    row_labels, column_labels = (make.labels(frame, names, chosen.names) for names in (by_row, by_column))
    cells = make.summarise(frame, row_labels, column_labels, tuple(wanted), aggregate)
    numbers = ", ".join(map(chosen.words, wanted))
    cells = replace(cells, notes=(f"{aggregate.removesuffix('-se')} of {numbers}", *cells.notes))
    if overall:
        cells = make.with_overall(cells, geometric=chosen.relative is not None)
    if kind == CSV:
        text = make.csv(cells)
        for note in cells.notes[1:]:  # notes that do not fit into a table of numbers
            ending.tell(f"note: {note}")
    else:
        better = "max" if chosen.reduction and best == BOLD[0] else best
        text = (make.latex if kind == LATEX else make.markdown)(cells, better, digits)
    if out is not None:
        write_text(out, [text], "table", through=True)
    elif (failure := ending.write_stream(sys.stdout, [text])) is not None:
        raise failure
    return 0


TABLES = (".parquet", ".csv")


@with_declared_options(asked=Drawing, chosen=RunSelection)
def plot(
    record: Annotated[
        str,
        Place("RECORD", "JSON record of `solve`, `path` or `fit`; a trace (`solve --trace`); or a table (`collect`).",
        ),
    ],
    *,
    data: str | None = PLOT_DATA,
    panel: str = PLOT_PANEL,
    out: str | None = PLOT_OUT,
    asked: Drawing,
    chosen: RunSelection,
) -> int:  # fmt: skip
    """Draw a record, a trace, or a table of runs.

    The figure of a record shows the CV error by tau, the CV error of every pair, how often each feature is selected,
    and the coefficients. The figure of a trace shows the certified bounds over time and the interval of every tau. The
    figure of a table shows performance profiles, box plots, or lines over a parameter.
    """
    from sparsecv_mio.report.figures import save

    place = figure_place(record, data, out)
    if Path(record).suffix.lower() in TABLES:
        return draw_file(lambda: save(asked.figure(record, chosen), place), place)
    if any((*astuple(asked), *astuple(chosen))):
        raise BadInput(
            f"{record} is not a table of runs; --kind and its options require a table that `sparsecv collect` wrote"
        )
    return draw_record(record, data, panel, place)
