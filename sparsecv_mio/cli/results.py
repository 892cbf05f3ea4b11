"""What `table` and `plot` share: which runs of a collected table, relative to what, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio.cli import ending, parse
from sparsecv_mio.errors import BadInput

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
class Selection:
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
    ) -> Selection:  # fmt: skip
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

    def figure(self, path: str, chosen: Selection) -> Figure:
        """Draw the runs of a table.

        Parameters
        ----------
        path : str
            Table that `collect` wrote.
        chosen : Selection
        """
        from sparsecv_mio.batch.results import by_problem, check_columns, labels, problem_columns, with_numbers
        from sparsecv_mio.report import results_plots

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
            return results_plots.lines(parts, values, by, self.against)
        if self.kind in (None, "box"):
            return results_plots.boxes(parts, values[0], by, chosen.words(values[0]))
        given = chosen.problem or (("data",) if self.kind == "critical" else ())
        keys = problem_columns(frame, given)
        tables = {title: by_problem(part, values[0], by[part.index], keys) for title, part in parts.items()}
        if self.kind == "profile":
            return results_plots.profiles(tables, values[0], self.larger)
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
        from sparsecv_mio.batch.ranks import ranks
        from sparsecv_mio.report.results_plots import critical_difference

        if len(tables) > 1:
            raise BadInput("--kind critical has one panel: choose the runs with --where")
        found = ranks(next(iter(tables.values())), self.larger)
        if found.needed > found.problems:
            few = f"{found.problems} problems can show no difference of {len(found.mean)} methods"
            ending.tell(f"note: {few}: {found.needed} are needed, see --problem")
        words = f"Mean ranks by {value} over {found.problems} problems, Friedman p = {found.p_value:.2g}"
        words += f"; {found.left_out} without all values left out" if found.left_out else ""
        return critical_difference(found.mean, found.groups(), found.difference, words)
