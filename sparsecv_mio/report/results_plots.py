"""The results of many runs as figures: performance profiles, critical differences, boxes, lines against a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.report.figures import ENTRY, FAINT, INK, counted, panels, titled
from sparsecv_mio.report.results_table import present, standard_errors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (4.6, 3.4)  # inches
MOST_COLUMNS = 3
COLOURS = (
    "#0b6e8a", "#b3541e", "#3b8b3b", "#7b4fa3", "#c9a100", "#111111", "#c2407a", "#5a8fd6", "#8a6d3b", "#6b7280",
)  # fmt: skip
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
WIDE = 30.0  # ratio of the largest to the least value from which an axis is logarithmic


def profiles(tables: Mapping[str, pd.DataFrame], value: str, larger: bool = False) -> Figure:
    """Draw performance profiles: for every method, in which share of the problems it is within a factor of the best.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        A row for every problem, a column for every method, NaN where it has no value: it is then within no factor.
    value : str
        Its name.
    larger : bool
        Whether larger values are better: the factor is then that of the best to the method's.
    """
    names = list(dict.fromkeys(str(column) for table in tables.values() for column in table))
    figure, axes = _figure(len(tables))
    for ax, (title, table) in zip(axes, tables.items(), strict=False):
        ratios = performance_ratios(table, larger)
        known = [float(ratio) for ratio in ratios.to_numpy().ravel() if math.isfinite(ratio)]
        end = 1.05 * max([1.05, *known])
        for name in ratios:
            finite = np.sort(ratios[name][np.isfinite(ratios[name])].to_numpy())
            steps = np.concatenate([[1.0], finite, [end]])
            share = np.concatenate([[0.0], np.arange(1.0, len(finite) + 1.0), [float(len(finite))]]) / len(ratios)
            ax.step(steps, share, where="post", label=str(name), color=_colour(names, str(name)), linewidth=1.6)
        ax.set(xlabel=f"{value}: factor of the best", ylabel="share of problems", ylim=(0.0, 1.03), xlim=(1.0, end))
        if end > WIDE:
            ax.set_xscale("log")
        titled(ax, f"{title} ({len(ratios)} problems)".strip())
    _legend(figure)
    return figure


def performance_ratios(table: pd.DataFrame, larger: bool = False) -> pd.DataFrame:
    """Return every value over the best of its problem, or the best over it; inf where there is no positive value.

    Parameters
    ----------
    table : pandas.DataFrame
        A row for every problem, a column for every method.
    larger : bool
        Whether larger values are better.
    """
    known = table.where(table > 0.0)
    ratios = known.rdiv(known.max(axis=1), axis=0) if larger else known.div(known.min(axis=1), axis=0)
    return ratios.fillna(np.inf)


def critical_difference(
    mean: Mapping[str, float], groups: Sequence[Sequence[str]], difference: float, words: str
) -> Figure:
    """Draw mean ranks on a line; a bar joins methods that do not differ (Demsar, 2006).

    Parameters
    ----------
    mean : mapping of method to its mean rank
    groups : sequence of sequences of methods
        Those that a bar joins.
    difference : float
        Between two mean ranks that are significantly apart.
    words : str
        The title.
    """
    order = sorted(mean, key=lambda name: mean[name])
    half, most = (len(order) + 1) // 2, len(order)
    height = 0.35 * (half + len(groups)) + 1.1
    figure, axes = panels(1, 1, (7.0, height))
    ax = axes[0, 0]
    ax.axis("off")
    top = -0.35 * len(groups)
    ax.plot([1, most], [0, 0], color=INK, linewidth=1)
    for rank in range(1, most + 1):
        ax.plot([rank, rank], [0, 0.12], color=INK, linewidth=1)
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=8.5, color=INK)
    for place, name in enumerate(order):
        left = place < half
        level = top - 0.35 * (place + 1 if left else most - place)
        end = 1 - 0.15 if left else most + 0.15
        ax.plot([mean[name], mean[name], end], [0, level, level], color=INK, linewidth=0.9)
        aside = f"{name}  {mean[name]:.2f}" if left else f"{mean[name]:.2f}  {name}"
        ax.text(end, level, f" {aside} ", ha="right" if left else "left", va="center", fontsize=9, color=INK)
    for place, group in enumerate(groups, start=1):
        ends = [mean[group[0]] - 0.04, mean[group[-1]] + 0.04]
        ax.plot(ends, [-0.35 * place + 0.1] * 2, color=COLOURS[0], linewidth=4, solid_capstyle="butt")
    ax.plot([1, 1 + difference], [0.85, 0.85], color=COLOURS[1], linewidth=2)
    ax.text(1 + difference, 0.85, f"  critical difference {difference:.2f}", va="center", fontsize=8.5, color=INK)
    room = 0.18 * max(map(len, order)) * max(1.0, (most - 1) / 6.0)
    ax.set(xlim=(1 - room, most + room), ylim=(top - 0.35 * (half + 1), 1.2))
    titled(ax, words)
    return figure


def boxes(tables: Mapping[str, pd.DataFrame], value: str, by: pd.Series, words: str = "") -> Figure:
    """Draw a box of the values of every label: quartiles, whiskers of 1.5 their range, the runs beyond as points.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        Runs.
    value : str
        Column.
    by : pandas.Series
        Label of every run.
    words : str
        What the value is called; its column by default.
    """
    names = present(by)
    figure, axes = _figure(len(tables), 0.35 * len(names))
    for ax, (title, table) in zip(axes, tables.items(), strict=False):
        mine = by[table.index]
        found = {name: table[value].astype(float)[mine == name].dropna().to_numpy() for name in names}
        known = [name for name, numbers in found.items() if len(numbers)]
        runs = [found[name] for name in known]
        drawn = ax.boxplot(runs, orientation="horizontal", patch_artist=True, widths=0.6, tick_labels=known)
        for name, box, median in zip(known, drawn["boxes"], drawn["medians"], strict=True):
            box.set(facecolor=_colour(names, name), alpha=0.55, edgecolor=INK)
            median.set(color=INK, linewidth=1.6)
        ax.invert_yaxis()
        ax.set_xlabel(words or value)
        _spread(ax, np.concatenate(runs) if runs else np.zeros(0), "x")
        titled(ax, title)
    return figure


def lines(tables: Mapping[str, pd.DataFrame], values: Sequence[str], by: pd.Series, against: str) -> Figure:
    """Draw the mean of values against a parameter, a line for every label, bars of one standard error.

    Parameters
    ----------
    tables : mapping of title to pandas.DataFrame
        Runs.
    values : sequence of str
        Columns.
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
                known = mine[value].astype(float).replace([np.inf, -np.inf], np.nan)
                at = [mine[against].astype(float)]
                found = known.groupby(at).agg(["mean"]).dropna(subset="mean")
                found["sem"] = standard_errors(known.to_frame(value), at, mine)[0][value]
                if found.empty:
                    continue
                label = f"{name} {value}".strip() if len(values) > 1 else name or value
                place = names.index(name) * len(values) + list(values).index(value)
                ax.errorbar(
                    found.index.to_numpy(), found["mean"].to_numpy(), found["sem"].fillna(0.0).to_numpy(), label=label,
                    color=COLOURS[place % len(COLOURS)], marker=MARKS[place % len(MARKS)], markersize=4, linewidth=1.4,
                    capsize=2,
                )  # fmt: skip
                seen.append(found["mean"].to_numpy())
                across |= set(map(float, found.index))
        ax.set(xlabel=against, ylabel=values[0] if len(values) == 1 else "")
        _spread(ax, np.array(sorted(across)), "x")
        _spread(ax, np.concatenate(seen) if seen else np.zeros(0), "y")
        titled(ax, title)
    _legend(figure)
    return figure


def _figure(count: int, height: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Make panels, and take those away that are too many."""
    columns = min(count, MOST_COLUMNS)
    rows = -(-count // columns)
    wide = max(6.4, PANEL[0] * columns)
    figure, axes = panels(rows, columns, (wide, max(PANEL[1], height + 1.2) * rows))
    found = list(axes.flat)
    for ax in found[count:]:
        ax.remove()
    return figure, found[:count]


def _legend(figure: Figure) -> None:
    """Name what any panel shows, once, below all of them."""
    found: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()), list(found), loc="outside lower left", ncols=max(1, int(figure.get_figwidth() / ENTRY)),
        frameon=False, fontsize=8.5, labelcolor=INK,
    )  # fmt: skip


def _spread(ax: Axes, numbers: FloatArray, which: str) -> None:
    """Make an axis logarithmic where positive numbers spread widely; whole numbers get whole ticks."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return
    if known.min() > 0.0 and known.max() > WIDE * known.min():
        getattr(ax, f"set_{which}scale")("log")
    elif np.all(known == np.round(known)):
        counted(getattr(ax, f"{which}axis"))
    ax.grid(axis="both", color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)


def _colour(names: Sequence[str], name: str) -> str:
    return COLOURS[names.index(name) % len(COLOURS)]
