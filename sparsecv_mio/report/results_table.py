"""The results of many runs as a table of a paper: a mean and a standard error in each cell, the best in bold."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.report.numbers import aligned

if TYPE_CHECKING:
    import pandas as pd

BEST = ("auto", "min", "max", "none")
SMALLER = re.compile(
    r"(.*_)?error|seconds|relative_risk|relative_test_error|mae|gap|mios|nodes|upper"
)  # values of which less is better
LARGER = re.compile(r"f1|variance_explained|test_r_squared|lower")
MISSING = "-"
ON_TEST_ROWS = re.compile(r"(?!relative_)(.*_)?test_(error|r_squared)")
DIFFER = ("data", "design_draw", "split", "seed", "folds", "test")  # in which runs of a cell may differ


@dataclass(frozen=True)
class Cells:
    """Numbers of a table.

    Attributes
    ----------
    centre, spread, count : pandas.DataFrame
        A row for every row of the table, columns by (label, value); `spread` holds standard errors, NaN where there
        are none.
    values : tuple of str
    notes : tuple of str
        Over what the standard errors are taken.
    """

    centre: pd.DataFrame
    spread: pd.DataFrame
    count: pd.DataFrame
    values: tuple[str, ...]
    notes: tuple[str, ...] = ()


def summarise(
    frame: pd.DataFrame, rows: pd.Series, columns: pd.Series, values: tuple[str, ...], aggregate: str = "mean-se"
) -> Cells:
    """Summarise the runs of every cell.

    Parameters
    ----------
    frame : pandas.DataFrame
    rows, columns : pandas.Series
        Labels of every run.
    values : tuple of str
        Columns of numbers.
    aggregate : {"mean-se", "mean", "median", "min", "max", "sum", "count"}
        Missing numbers are left out.

    Returns
    -------
    Cells
        Rows and columns in the order of the categories, or in which the runs name them.
    """
    numbers = frame[list(values)].astype(float)
    cell = [rows.astype(str).rename("row"), columns.astype(str).rename("column")]
    groups = numbers.groupby(cell, sort=False)
    word = "mean" if aggregate == "mean-se" else aggregate
    centre, count = getattr(groups, word)(), groups.count()
    if word == "sum":
        centre = centre.where(count > 0)
    spread, notes = standard_errors(numbers, cell, frame) if aggregate == "mean-se" else (centre * np.nan, ())
    order = [(label, value) for label in present(columns) for value in values]

    def wide(found: pd.DataFrame) -> pd.DataFrame:
        table: pd.DataFrame = found.unstack("column")  # type: ignore[assignment]  # of a frame: a frame
        return table.swaplevel(axis=1).reindex(index=present(rows))[order]

    return Cells(wide(centre), wide(spread), wide(count).fillna(0).astype(int), values, notes)


def standard_errors(
    numbers: pd.DataFrame, cell: list[pd.Series], frame: pd.DataFrame
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the standard errors of the cells, and over what they are taken.

    Errors on test rows vary with the rows: runs on one test set, by the fingerprint of the others, count as one.

    Parameters
    ----------
    numbers : pandas.DataFrame
        Of every run.
    cell : list of pandas.Series
        What tells the cells apart.
    frame : pandas.DataFrame
        All columns of these runs.
    """
    groups = numbers.groupby(cell, sort=False)
    spread, on_tests = groups.sem(), [name for name in map(str, numbers) if ON_TEST_ROWS.fullmatch(name)]
    alone: list[str] = []
    if on_tests and "fingerprint" in frame:
        by_set = numbers.groupby([*cell, frame["fingerprint"].rename("test set")], sort=False).mean()
        over_sets = by_set.groupby(level=list(range(len(cell))), sort=False)
        for value in on_tests:
            spread[value] = over_sets[value].sem().reindex(spread.index)
            sets = over_sets[value].count().reindex(spread.index)
            if ((sets == 1) & (groups[value].count() > 1)).any():
                alone.append(f"{value}: no ± for runs on one test set; vary split for more of them, seed deals folds")
    if not spread.notna().to_numpy().any():
        return spread, tuple(alone)
    several = [name for name in DIFFER if name in frame and (frame[name].groupby(cell).nunique() > 1).any()]
    over = f"±: standard error of the mean over runs{' that differ in ' if several else ''}{', '.join(several)}"
    means = "fingerprint" in frame and any(spread[value].notna().any() for value in on_tests)
    return spread, (over + ("; of errors on test rows over test sets" if means else ""), *alone)


def present(labels: pd.Series) -> list[str]:
    """Return the labels that there are, in the order of their categories, or of the runs."""
    found = dict.fromkeys(map(str, labels))
    return [name for name in labels.cat.categories if name in found] if labels.dtype == "category" else list(found)


def with_overall(cells: Cells, geometric: bool = False) -> Cells:
    """Add a last row: the mean over all rows above, of the columns that have them all.

    Parameters
    ----------
    cells : Cells
    geometric : bool
        Take the geometric mean, that of ratios.
    """
    import pandas as pd

    centre = cells.centre
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = np.log(centre.to_numpy()).mean(axis=0) if geometric else centre.to_numpy().mean(axis=0)
    mean = pd.Series(np.exp(numbers) if geometric else numbers, index=centre.columns)
    name = "geometric mean" if geometric else "mean"

    def add(table: pd.DataFrame, row: pd.Series) -> pd.DataFrame:
        return pd.concat([table, row.to_frame(name).T])

    spread, count = add(cells.spread, mean * np.nan), add(cells.count, cells.count.sum())
    return Cells(add(centre, mean), spread, count, cells.values, cells.notes)


def best_of(value: str, word: str = "auto") -> str:
    """Return whether the least or the largest of a value is the best: min, max or none.

    Examples
    --------
    >>> best_of("test_error"), best_of("f1"), best_of("tau")
    ('min', 'max', 'none')
    """
    if word != "auto":
        return word
    return "min" if SMALLER.fullmatch(value) else "max" if LARGER.fullmatch(value) else "none"


def markdown(cells: Cells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in Markdown, columns padded so that it reads as plain text too.

    Parameters
    ----------
    cells : Cells
    best : {"auto", "min", "max", "none"}
        What is set in bold in each row.
    digits : int
        Significant ones.
    """
    body = _texts(cells, best, digits, lambda text: f"**{text}**", " ± ")
    head = ["", *(_head(cells, *column) for column in _columns(cells))]
    lines = [[str(name), *row] for name, row in zip(cells.centre.index, body, strict=True)]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in [head, *lines]]
    width = [max(3, *(len(line[j]) for line in lines)) for j in range(len(head))]
    padded = [[lines[0][j].ljust(width[j]) for j in range(len(head))]]
    padded.append(["-" * width[0], *("-" * (wide - 1) + ":" for wide in width[1:])])
    padded += [[line[0].ljust(width[0]), *(line[j].rjust(width[j]) for j in range(1, len(head)))] for line in lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in padded) + "\n" + _note(cells)


def latex(cells: Cells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in LaTeX, for the package booktabs.

    Parameters
    ----------
    cells, best, digits
        As of :func:`markdown`.
    """
    body = _texts(cells, best, digits, lambda text: rf"\textbf{{{text}}}", r" $\pm$ ")
    labels, many = list(dict.fromkeys(label for label, _ in _columns(cells))), len(cells.values)
    lines = [rf"\begin{{tabular}}{{l{'r' * cells.centre.shape[1]}}}", r"\toprule"]
    lines.append(" & ".join(["", *(rf"\multicolumn{{{many}}}{{c}}{{{_escaped(one)}}}" for one in labels)]) + r" \\")
    if many > 1:
        lines.append(" & ".join(["", *(_escaped(value) for _, value in _columns(cells))]) + r" \\")
    lines.append(r"\midrule")
    names = [_escaped(str(name)) for name in cells.centre.index]
    lines += [" & ".join([name, *row]) + r" \\" for name, row in zip(names, body, strict=True)]
    notes = [f"% {note}".replace("±", r"$\pm$") for note in _note(cells).split("\n") if note]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, ""])


def csv(cells: Cells) -> str:
    """Return the numbers in full, a line for every row, with the number of runs and, if there are any, the errors."""
    import pandas as pd

    spread = bool(cells.spread.notna().to_numpy().any())
    found: dict[str, pd.Series] = {}
    for column in cells.centre.columns:
        name = " ".join(map(str, column)).strip()
        found[name] = cells.centre[column]
        if spread:
            found[f"{name} standard error"] = cells.spread[column]
        found[f"{name} runs"] = cells.count[column]
    return pd.DataFrame(found).rename_axis("row").to_csv(lineterminator="\n")


def _columns(cells: Cells) -> list[tuple[str, str]]:
    return [(str(column[0]), str(column[1])) for column in cells.centre.columns]


def _head(cells: Cells, label: str, value: str) -> str:
    return label or value if len(cells.values) == 1 else f"{label} {value}".strip()


def _texts(cells: Cells, best: str, digits: int, bold: Callable[[str], str], between: str) -> list[list[str]]:
    found, whole = [], {value for value in cells.values if _are_whole(cells, value)}
    for name in range(len(cells.centre)):
        row, spread, count = cells.centre.iloc[name], cells.spread.iloc[name], cells.count.iloc[name]
        plain = {column: _text(float(row[column]), digits, column[1] in whole) for column in row.index}
        marked = {}
        for value in cells.values:
            columns = [column for column in row.index if column[1] == value]
            most = max(int(count[column]) for column in columns)
            winner = _winner([float(row[column]) for column in columns], best_of(value, best))
            winning = None if winner is None else _text(winner, digits, value in whole)
            for column in columns:
                text, error = plain[column], float(spread[column])
                shown = bold(text) if text == winning else text
                if np.isfinite(error):
                    shown += between + _as_many_decimals(error, text)
                fewer = "*" if 0 < int(count[column]) < most else ""
                marked[column] = MISSING if np.isnan(float(row[column])) else shown + fewer
        found.append([marked[column] for column in row.index])
    return found


def _are_whole(cells: Cells, value: str) -> bool:
    """Whether all numbers of a value are whole, and none is a mean beside an error."""
    numbers = cells.centre.xs(value, axis=1, level=1).to_numpy()
    known = numbers[np.isfinite(numbers)]
    return bool(np.all(known == np.round(known))) and not cells.spread.xs(value, axis=1, level=1).gt(0).to_numpy().any()


def _text(number: float, digits: int, whole: bool) -> str:
    return f"{number:.0f}" if whole and np.isfinite(number) else aligned(number, digits)


def _winner(numbers: list[float], word: str) -> float | None:
    """Return the best of several numbers; None where there is nothing to compare."""
    known = [number for number in numbers if np.isfinite(number)]
    if word == "none" or len(known) < 2:
        return None
    return min(known) if word == "min" else max(known)


def _as_many_decimals(error: float, text: str) -> str:
    """Format a standard error with the decimals of its mean, but one significant digit at least."""
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    return f"{error:.{decimals}f}" if error >= 0.5 * 10.0**-decimals or error == 0.0 else f"{error:.1g}"


def _note(cells: Cells) -> str:
    counts = cells.count.to_numpy()
    fewer = any(0 < few < max(row) for row in counts for few in row)
    few = "*: fewer runs than the others of its row, as some failed or were not asked for."
    notes = [*([few] if fewer else []), *cells.notes]
    return "\n" + "\n\n".join(notes) + "\n" if notes else ""


def _escaped(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", text).replace("~", r"\textasciitilde{}").replace("^", r"\^{}")
