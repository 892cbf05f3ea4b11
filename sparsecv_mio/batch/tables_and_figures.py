"""Tables and figures of many runs, in the formats that papers use."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.oracle_tasks import ORACLES
from sparsecv_mio.batch.results import settings_columns, varying
from sparsecv_mio.digits import format_with_zeros
from sparsecv_mio.files import inert
from sparsecv_mio.report.document import markdown_text, tex
from sparsecv_mio.report.figures import FAINT, HANDLE, INK, LETTER, literal, panels, set_integer_ticks, write_title
from sparsecv_mio.targets import Loss

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SMALLER = re.compile(
    r"(.*_)?error|(.*_)?brier|seconds|relative_risk|relative_test_error|mae|gap|mios|nodes|upper"
)  # values that are better if they are smaller
LARGER = re.compile(r"f1|variance_explained|test_r_squared|lower|(.*_)?(accuracy|auc)")
MISSING = "-"
OF_LOSS = re.compile(r"(.*_)?(cv|test)_error|null_error")
ON_TEST_ROWS = re.compile(r"(?!relative_)(.*_)?test_(error|r_squared|accuracy|auc|brier)")
REPEATS = ("design_draw", "split", "seed", "folds", "test")  # settings of runs that repeat one another
DIFFER = ("data", *REPEATS)  # settings in which the runs of a cell may differ


@dataclass(frozen=True)
class TableCells:
    """The numbers of a table.

    Attributes
    ----------
    centre, spread, count : pandas.DataFrame
        Tables with a row for every row and columns by (label, value); `spread` holds standard errors, NaN if there are
        none.
    values : tuple of str
        Names of the values.
    notes : tuple of str
        Notes: the settings over which standard errors are computed, and other settings in which the runs of a cell
        differ.
    """

    centre: pd.DataFrame
    spread: pd.DataFrame
    count: pd.DataFrame
    values: tuple[str, ...]
    notes: tuple[str, ...] = ()


def summarise(
    frame: pd.DataFrame, rows: pd.Series, columns: pd.Series, values: tuple[str, ...], aggregate: str = "mean-se"
) -> TableCells:
    """Return a summary of the runs of every cell.

    Parameters
    ----------
    rows, columns : pandas.Series
        Labels of every run.
    values : tuple of str
        Names of numeric columns.
    aggregate : {"mean-se", "mean", "median", "min", "max", "sum", "count"}
        Summary statistic; missing numbers are ignored.

    Returns
    -------
    TableCells
        The table; rows and columns are in the order of the categories, or of their first appearance.
    """
    numbers = frame[list(values)].astype(float)
    cell = [rows.astype(str).rename("row"), columns.astype(str).rename("column")]
    groups = numbers.groupby(cell, sort=False)
    word = "mean" if aggregate == "mean-se" else aggregate
    centre, count = getattr(groups, word)(), groups.count()
    if word == "sum":
        centre = centre.where(count > 0)
    spread, notes = standard_errors(numbers, cell, frame) if aggregate == "mean-se" else (centre * np.nan, ())
    over = {name for name in DIFFER if spread.notna().to_numpy().any()}  # the note on the errors names these settings
    settings = [name for name in settings_columns(frame) if name not in over]
    if pooled := varying(frame, cell, settings):
        how = "name these settings in --rows or --columns, or choose runs with --where"
        notes = (*notes, f"cells combine runs that differ in {list_settings(pooled)}; {how}")
    notes = (*notes, *describe_losses(frame, values), *describe_missing_values(frame, values))
    order = [(label, value) for label in present(columns) for value in values]

    def wide(found: pd.DataFrame) -> pd.DataFrame:
        table: pd.DataFrame = found.unstack("column")  # type: ignore[assignment]  # of a frame: a frame
        return table.swaplevel(axis=1).reindex(index=present(rows))[order]

    return TableCells(wide(centre), wide(spread), wide(count).fillna(0).astype(int), values, notes)


def describe_losses(frame: pd.DataFrame, values: Sequence[str]) -> Iterator[str]:
    """Yield notes on the loss behind the errors, if searches and peers use another loss than squared error.

    Parameters
    ----------
    frame : pandas.DataFrame
        Runs with their `estimator`, and their `loss` unless it is squared error.
    values : sequence of str
        Names of numeric columns.
    """
    errors = [value for value in values if OF_LOSS.fullmatch(value)]
    if errors and {"estimator", "loss"} <= {*frame}:
        losses = dict.fromkeys(frame.loc[~frame["estimator"].isin(ORACLES), "loss"].dropna().astype(str).str.lower())
        for loss in [loss for loss in Loss if loss in losses]:
            yield f"{', '.join(errors)} with loss {loss}: {loss.target.cv_error}"


def describe_missing_values(frame: pd.DataFrame, values: Sequence[str]) -> Iterator[str]:
    """Yield the reason why an estimator lacks a value that others have: it reports none, or all its runs failed.

    Parameters
    ----------
    frame : pandas.DataFrame
        Runs with their `estimator` and, from `collect`, their `state`.
    values : sequence of str
        Names of numeric columns.
    """
    if "estimator" not in frame:
        return
    ended = frame["state"] != "failed" if "state" in frame else frame["estimator"].notna()
    estimators = dict.fromkeys(frame["estimator"].astype(str))
    fitted = {name: frame[ended & (frame["estimator"].astype(str) == name)] for name in estimators}
    if failed := [name for name in estimators if fitted[name].empty]:
        yield f"{MISSING}: every run of {', '.join(failed)} failed"
    for value in values:
        silent = [name for name, runs in fitted.items() if len(runs) and runs[value].isna().all()]
        if 0 < len(silent) < len(estimators) - len(failed):
            yield f"{MISSING}: {', '.join(silent)} {'reports' if len(silent) == 1 else 'report'} no {value}"


def list_settings(settings: Mapping[str, int]) -> str:
    """Return a list of settings in words, each with the number of its values.

    Examples
    --------
    >>> list_settings({"seed": 2, "method": 3})
    'seed (2 values), method (3)'
    """
    first, *others = (f"{name} ({count}" for name, count in settings.items())
    return ", ".join([f"{first} values)", *(f"{word})" for word in others)])


def standard_errors(
    numbers: pd.DataFrame, cell: list[pd.Series], frame: pd.DataFrame
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the standard errors of the cells, and the settings over which they are computed.

    Errors on test rows vary with the rows, so runs on one test set, identified by the fingerprint of the other rows,
    count as one.

    Parameters
    ----------
    numbers : pandas.DataFrame
        Numbers of every run.
    cell : list of pandas.Series
        Columns that identify a cell.
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
                alone.append(
                    f"{value}: no ±, because the runs have one test set; vary split for more (seed changes "
                    "only the folds)"
                )
    if not spread.notna().to_numpy().any():
        return spread, tuple(alone)
    several = [name for name in DIFFER if name in frame and (frame[name].groupby(cell).nunique() > 1).any()]
    over = f"±: standard error of the mean over runs{' that differ in ' if several else ''}{', '.join(several)}"
    means = "fingerprint" in frame and any(spread[value].notna().any() for value in on_tests)
    return spread, (over + ("; for errors on test rows, over test sets" if means else ""), *alone)


def present(labels: pd.Series) -> list[str]:
    """Return the labels that occur, in the order of their categories or of the runs."""
    present_labels = dict.fromkeys(map(str, labels))
    return (
        [name for name in labels.cat.categories if name in present_labels]
        if labels.dtype == "category"
        else list(present_labels)
    )


def with_overall(cells: TableCells, geometric: bool = False) -> TableCells:
    """Return the table with a last row: the mean over all rows, for columns that have a value in every row.

    Parameters
    ----------
    geometric : bool
        True for the geometric mean, which suits ratios.
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
    return TableCells(add(centre, mean), spread, count, cells.values, cells.notes)


def optimum_kind(value: str, word: str = "auto") -> str:
    """Return whether the smallest or the largest value is the best: min, max or none.

    Examples
    --------
    >>> optimum_kind("test_error"), optimum_kind("f1"), optimum_kind("tau")
    ('min', 'max', 'none')
    """
    if word != "auto":
        return word
    return "min" if SMALLER.fullmatch(value) else "max" if LARGER.fullmatch(value) else "none"


def markdown(cells: TableCells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in Markdown, with padded columns so that it is readable as plain text.

    Parameters
    ----------
    best : {"auto", "min", "max", "none"}
        Number in bold in each row.
    digits : int
        Number of significant digits.
    """
    body = _texts(cells, best, digits, lambda text: f"**{text}**", " ± ")
    head = ["", *(_head(cells, *column) for column in _column_heads(cells))]
    lines = [list(map(markdown_text, head))]
    lines += [[markdown_text(str(name)), *row] for name, row in zip(cells.centre.index, body, strict=True)]
    width = [max(3, *(len(line[j]) for line in lines)) for j in range(len(head))]
    padded = [[lines[0][j].ljust(width[j]) for j in range(len(head))]]
    padded.append(["-" * width[0], *("-" * (wide - 1) + ":" for wide in width[1:])])
    padded += [[line[0].ljust(width[0]), *(line[j].rjust(width[j]) for j in range(1, len(head)))] for line in lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in padded) + "\n" + _note(cells)


def latex(cells: TableCells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in LaTeX, for the package booktabs.

    Parameters
    ----------
    cells, best, digits
        Arguments as for :func:`markdown`.
    """
    body = _texts(cells, best, digits, lambda text: rf"\textbf{{{text}}}", r" $\pm$ ")
    labels, many = list(dict.fromkeys(label for label, _ in _column_heads(cells))), len(cells.values)
    lines = [rf"\begin{{tabular}}{{l{'r' * cells.centre.shape[1]}}}", r"\toprule"]
    lines.append(" & ".join(["", *(rf"\multicolumn{{{many}}}{{c}}{{{tex(label)}}}" for label in labels)]) + r" \\")
    if many > 1:
        lines.append(" & ".join(["", *(tex(value) for _, value in _column_heads(cells))]) + r" \\")
    lines.append(r"\midrule")
    names = [tex(str(name)) for name in cells.centre.index]
    lines += [" & ".join([name, *row]) + r" \\" for name, row in zip(names, body, strict=True)]
    notes = [f"% {note}".replace("±", r"$\pm$") for note in _note(cells).split("\n") if note]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, ""])


def csv(cells: TableCells) -> str:
    """Return the table as CSV with full precision; each row has the number of runs and standard errors, if any."""
    import pandas as pd

    spread = bool(cells.spread.notna().to_numpy().any())
    columns: dict[str, pd.Series] = {}
    for column in cells.centre.columns:
        name = " ".join(map(str, column)).strip()
        columns[name] = cells.centre[column]
        if spread:
            columns[f"{name} standard error"] = cells.spread[column]
        columns[f"{name} runs"] = cells.count[column]
    table = pd.DataFrame(columns).rename(index=lambda label: inert(str(label)), columns=inert)
    return table.rename_axis("row").to_csv(lineterminator="\n")


def _column_heads(cells: TableCells) -> list[tuple[str, str]]:
    return [(str(column[0]), str(column[1])) for column in cells.centre.columns]


def _head(cells: TableCells, label: str, value: str) -> str:
    return label or value if len(cells.values) == 1 else f"{label} {value}".strip()


def _texts(cells: TableCells, best: str, digits: int, bold: Callable[[str], str], between: str) -> list[list[str]]:
    """Return the texts of the cells of every row; the best number of each value is bold."""
    rows, integer_values = [], {value for value in cells.values if _are_whole(cells, value)}
    for position in range(len(cells.centre)):
        row, spread, count = cells.centre.iloc[position], cells.spread.iloc[position], cells.count.iloc[position]
        marked = {}
        for value in cells.values:
            numbers = {column: float(row[column]) for column in row.index if column[1] == value}
            texts = {column: _text(number, digits, value in integer_values) for column, number in numbers.items()}
            winning = _winning_text(list(numbers.values()), list(texts.values()), optimum_kind(value, best))
            most_runs = max(int(count[column]) for column in numbers)
            for column, text in texts.items():
                error = float(spread[column])
                shown = bold(text) if text == winning else text
                if np.isfinite(error):
                    shown += between + _as_many_decimals(error, text)
                fewer = "*" if 0 < int(count[column]) < most_runs else ""
                marked[column] = MISSING if np.isnan(numbers[column]) else shown + fewer
        rows.append([marked[column] for column in row.index])
    return rows


def _winning_text(numbers: list[float], texts: list[str], kind: str) -> str | None:
    """Return the text of the best number; None if they need no comparison or all texts are equal."""
    winner = _winner(numbers, kind)
    return None if winner is None or len(set(texts)) == 1 else texts[numbers.index(winner)]


def _are_whole(cells: TableCells, value: str) -> bool:
    """Return True if all numbers of a value are integers and none is a mean with a standard error."""
    numbers = cells.centre.xs(value, axis=1, level=1).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    return (
        bool(np.all(finite == np.round(finite))) and not cells.spread.xs(value, axis=1, level=1).gt(0).to_numpy().any()
    )


def _text(number: float, digits: int, whole: bool) -> str:
    return f"{number:.0f}" if whole and np.isfinite(number) else format_with_zeros(number, digits)


def _winner(numbers: list[float], word: str) -> float | None:
    """Return the best of several numbers, or None if they need no comparison."""
    finite = [number for number in numbers if np.isfinite(number)]
    if word == "none" or len(finite) < 2:
        return None
    return min(finite) if word == "min" else max(finite)


def _as_many_decimals(error: float, text: str) -> str:
    """Return a standard error with the decimals of its mean, but at least one significant digit."""
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    return f"{error:.{decimals}f}" if error >= 0.5 * 10.0**-decimals or error == 0.0 else f"{error:.1g}"


def _note(cells: TableCells) -> str:
    counts = cells.count.to_numpy()
    fewer = any(0 < few < max(row) for row in counts for few in row)
    few = "*: fewer runs than other cells of the row, because some runs failed or were not requested."
    notes = [*([few] if fewer else []), *cells.notes]
    return "\n" + "\n\n".join(notes) + "\n" if notes else ""


PANEL = (4.6, 3.4)  # inches
PANELS_IN_A_ROW = 3
COLOURS = (
    "#0b6e8a", "#b3541e", "#3b8b3b", "#7b4fa3", "#c9a100", "#111111", "#c2407a", "#5a8fd6", "#8a6d3b", "#6b7280",
)  # fmt: skip
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
STYLES = ("-", "--", ":", "-.")  # line styles beyond the number of colours
ENTRY = 2.0  # minimum width of a legend entry below all panels, in inches
LOGARITHMIC_RATIO = 30.0  # ratio of largest to smallest value, from which an axis is logarithmic


def profiles(tables: Mapping[str, pd.DataFrame], value: str) -> Figure:
    """Return a figure of performance profiles: the share of problems for which a method is within a factor of the best.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        Tables with a row for every problem and a column for every method; NaN counts as outside every factor.
    value : str
        Name of the value.
    """
    names = list(dict.fromkeys(str(column) for table in tables.values() for column in table))
    figure, axes = _figure(len(tables))
    for ax, (title, table) in zip(axes, tables.items(), strict=False):
        draw_profile(ax, table, value, names)
        write_title(ax, f"{title} ({len(table)} problems)".strip())
    _legend(figure)
    return figure


def draw_profile(ax: Axes, table: pd.DataFrame, value: str, names: Sequence[str]) -> None:
    """Draw one performance profile.

    Parameters
    ----------
    table, value
        Arguments as for :func:`profiles`.
    names : sequence of str
        Names of all methods, in the order of their colours.
    """
    ratios = performance_ratios(table)
    finite_ratios = [float(ratio) for ratio in ratios.to_numpy().ravel() if math.isfinite(ratio)]
    end = 1.05 * max([1.05, *finite_ratios])
    for name in ratios:
        finite = np.sort(ratios[name][np.isfinite(ratios[name])].to_numpy())
        steps = np.concatenate([[1.0], finite, [end]])
        share = np.concatenate([[0.0], np.arange(1.0, len(finite) + 1.0), [float(len(finite))]]) / max(len(ratios), 1)
        ax.step(steps, share, where="post", label=literal(str(name)), color=_colour(names, str(name)), linewidth=1.6)
    ax.set(xlabel=literal(f"{value}: factor of the best"), ylabel="share of problems", ylim=(0.0, 1.03))
    ax.set_xlim(1.0, end)
    if end > LOGARITHMIC_RATIO:
        ax.set_xscale("log")


def performance_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return every value divided by the smallest one of its problem; inf without a positive value.

    Parameters
    ----------
    table : pandas.DataFrame
        Table with a row for every problem and a column for every method.
    """
    positive = table.where(table > 0.0)
    return positive.div(positive.min(axis=1), axis=0).fillna(np.inf)


def boxes(tables: Mapping[str, pd.DataFrame], value: str, by: pd.Series, words: str = "") -> Figure:
    """Return box plots by label: quartiles, whiskers of 1.5 times their range, and points beyond them.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        Runs of each panel.
    value : str
        Column of the value.
    by : pandas.Series
        Label of every run.
    words : str
        Name of the value; its column by default.
    """
    names = present(by)
    figure, axes = _figure(len(tables), 0.35 * len(names))
    for ax, (title, table) in zip(axes, tables.items(), strict=False):
        mine = by[table.index]
        by_name = {name: table[value].astype(float)[mine == name].dropna().to_numpy() for name in names}
        drawn_names = [name for name, numbers in by_name.items() if len(numbers)]
        runs = [by_name[name] for name in drawn_names]
        ticks = list(map(literal, drawn_names))
        drawn = ax.boxplot(runs, orientation="horizontal", patch_artist=True, widths=0.6, tick_labels=ticks)
        for name, box, median in zip(drawn_names, drawn["boxes"], drawn["medians"], strict=True):
            box.set(facecolor=_colour(names, name), alpha=0.55, edgecolor=INK)
            median.set(color=INK, linewidth=1.6)
        ax.invert_yaxis()
        ax.set_xlabel(literal(words or value))
        _spread(ax, np.concatenate(runs) if runs else np.zeros(0), "x")
        write_title(ax, title)
    return figure


def lines(tables: Mapping[str, pd.DataFrame], values: Sequence[str], by: pd.Series, against: str) -> Figure:
    """Return a figure of the means of values against a parameter, one line for each label, with standard errors.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        Runs of each panel.
    values : sequence of str
        Columns of the values.
    by : pandas.Series
        Label of every run.
    against : str
        Column of the horizontal axis.
    """
    names = present(by)
    figure, axes = _figure(len(tables))
    for ax, (title, table) in zip(axes, tables.items(), strict=False):
        seen, across = [], set[float]()
        for value in values:
            for name in names:
                mine = table[by[table.index] == name]
                finite = mine[value].astype(float).replace([np.inf, -np.inf], np.nan)
                at = [mine[against].astype(float)]
                means = finite.groupby(at).agg(["mean"]).dropna(subset="mean")
                means["sem"] = standard_errors(finite.to_frame(value), at, mine)[0][value]
                if means.empty:
                    continue
                label = literal(f"{name} {value}".strip() if len(values) > 1 else name or value)
                place = names.index(name) * len(values) + list(values).index(value)
                style = STYLES[place // len(COLOURS) % len(STYLES)]
                ax.errorbar(
                    means.index.to_numpy(), means["mean"].to_numpy(), means["sem"].fillna(0.0).to_numpy(), label=label,
                    color=COLOURS[place % len(COLOURS)], marker=MARKS[place % len(MARKS)], markersize=4, linewidth=1.4,
                    linestyle=style, capsize=2,
                )  # fmt: skip
                seen.append(means["mean"].to_numpy())
                across |= set(map(float, means.index))
        ax.set(xlabel=literal(against), ylabel=literal(values[0]) if len(values) == 1 else "")
        _spread(ax, np.array(sorted(across)), "x")
        _spread(ax, np.concatenate(seen) if seen else np.zeros(0), "y")
        write_title(ax, title)
    _legend(figure)
    return figure


def distinguishing_settings(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the settings that distinguish runs without merely repeating them.

    Parameters
    ----------
    axes : sequence of str
        Columns of the axis and of the panels.

    Returns
    -------
    list of str
        The estimator, other settings that differ between runs at one position of the axes, and the data unless their
        settings distinguish them.
    """
    chosen, drawn = ["estimator"], [name for name in ("design_draw",) if name in frame]
    others = [name for name in settings_columns(frame) if name not in (*REPEATS, *axes, "data", "estimator")]
    for name in (*others, *(["data"] if "data" not in axes else [])):
        apart = [*axes, *chosen, *(drawn if name == "data" else [])]
        if name in frame and varying(frame, [frame[column] for column in apart], [name]):
            chosen.append(name)
    return chosen


def add_pooling_note(figure: Figure, frame: pd.DataFrame, cells: Sequence[pd.Series], words: str) -> Figure:
    """Return a figure with a note on the settings in which pooled runs differ.

    Parameters
    ----------
    cells : sequence of pandas.Series
        Columns that identify what is drawn.
    words : str
        Name of the pooled quantity.
    """
    if pooled := varying(frame, cells, settings_columns(frame)):
        text = f"{words} combines runs that differ in {list_settings(pooled)}"
        figure.suptitle(literal(text), fontsize=8, color=INK, x=0.01, ha="left", wrap=True)
    return figure


def _figure(count: int, height: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels, without the unused ones."""
    columns = min(count, PANELS_IN_A_ROW)
    rows = -(-count // columns)
    wide = max(6.4, PANEL[0] * columns)
    figure, axes = panels(rows, columns, (wide, max(PANEL[1], height + 1.2) * rows))
    every_axes = list(axes.flat)
    for ax in every_axes[count:]:
        ax.remove()
    return figure, every_axes[:count]


def _legend(figure: Figure) -> None:
    """Add one legend for all panels, below them."""
    named: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    entry = max(ENTRY, HANDLE + 1.15 * LETTER * max(map(len, named), default=0) + 0.25)  # including the gap after it
    figure.legend(
        list(named.values()), list(named), loc="outside lower left", ncols=max(1, int(figure.get_figwidth() / entry)),
        frameon=False, fontsize=8.5, labelcolor=INK,
    )  # fmt: skip


def _spread(ax: Axes, numbers: FloatArray, which: str) -> None:
    """Make an axis logarithmic if positive numbers spread widely; integers get integer ticks."""
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return
    if finite.min() > 0.0 and finite.max() > LOGARITHMIC_RATIO * finite.min():
        getattr(ax, f"set_{which}scale")("log")
    elif np.all(finite == np.round(finite)):
        set_integer_ticks(getattr(ax, f"{which}axis"))
    ax.grid(axis="both", color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)


def _colour(names: Sequence[str], name: str) -> str:
    return COLOURS[names.index(name) % len(COLOURS)]
