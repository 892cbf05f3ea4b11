"""Figures of many runs: performance profiles, box plots, and plots of means and standard errors against a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.batch.run_tables import REPEATS, list_settings, present, settings_columns, standard_errors, varying
from sparsecv_mio.report.figures import FAINT, HANDLE, INK, LETTER, literal, panels, set_integer_ticks, write_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    ax.set(
        xlabel=literal(f"{value}, divided by the best value of the problem"),
        ylabel="share of problems",
        ylim=(0.0, 1.03),
    )
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
                finite, at = mine[value].astype(float).replace([np.inf, -np.inf], np.nan), mine[against].astype(float)
                means = finite.groupby(at).mean().dropna()
                if means.empty:
                    continue
                errors = standard_errors(finite.to_frame(value), [at], mine)[0][value][means.index].fillna(0.0)
                label = literal(f"{name} {value}".strip() if len(values) > 1 else name or value)
                place = names.index(name) * len(values) + list(values).index(value)
                style = STYLES[place // len(COLOURS) % len(STYLES)]
                ax.errorbar(
                    means.index.to_numpy(), means.to_numpy(), errors.to_numpy(), label=label,
                    color=COLOURS[place % len(COLOURS)], marker=MARKS[place % len(MARKS)], markersize=4, linewidth=1.4,
                    linestyle=style, capsize=2,
                )  # fmt: skip
                seen.append(means.to_numpy())
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
