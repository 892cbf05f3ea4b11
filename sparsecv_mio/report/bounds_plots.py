"""Bounds of the CV error against tau: the paper's Figure 1 (left)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.report.figures import INK, LOWER, UPPER, check_plot, panels, save, titled, whole_numbers


def draw_bounds(ax: Any, table: BoundsTable | PrintedTable, g: int) -> None:
    """Draw one gamma: a bar between the bounds, the relaxation's estimate, a dot where every fold is decided.

    Parameters
    ----------
    ax : matplotlib Axes
        Panel.
    table : BoundsTable or PrintedTable
        Certified bounds, or the estimates of the paper's formula as printed.
    g : int
        Position of the gamma in `table.gammas`.
    """
    taus = np.array(table.taus)
    if isinstance(table, BoundsTable):
        ends = [table.cv_interval(g, t) for t in range(len(taus))]
        low, high = np.array([end.lower for end in ends]), np.array([end.upper for end in ends])
        middle = np.array([table.cv_estimate(g, t) for t in range(len(taus))])
        label = "certified interval"
    else:
        low, high, middle = np.array([table.cv_estimates(g, t) for t in range(len(taus))]).T
        label = "as printed (not certified)"
    high = np.where(np.isfinite(high), high, np.nan)
    ax.bar(taus, high - low, bottom=low, width=0.9, alpha=0.25, linewidth=0, color=LOWER, label=label)
    for bound in (low, high):
        ax.hlines(bound, taus - 0.45, taus + 0.45, color=LOWER, linewidth=1)
    ax.plot(taus, middle, "o", color=UPPER, markerfacecolor="none", markersize=4, label="estimate of the relaxation")
    if isinstance(table, BoundsTable):
        done = np.array([table.decided(g, t) == table.folds for t in range(len(taus))])
        if done.any():
            ax.plot(taus[done], high[done], "o", color=LOWER, markersize=4, label="all folds decided")
    whole_numbers(ax, table.taus)
    titled(ax, f"gamma = {table.gammas[g]:g}")


def plot_bounds(table: BoundsTable | PrintedTable, path: str) -> None:
    """Write a figure with one panel per gamma (PNG, PDF or SVG by the ending).

    Raises
    ------
    BadInput
        From `check_plot`, if the file cannot be written.
    """
    check_plot(path)
    count = len(table.gammas)
    columns = min(count, 4)
    rows = -(-count // columns)
    figure, axes = panels(rows, columns, (max(4.2 * columns, 6.4), 3.2 * rows + 0.5), share=True)
    for g in range(count):
        draw_bounds(axes[g // columns][g % columns], table, g)
    for g in range(count, rows * columns):
        axes[g // columns][g % columns].set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("CV error")
    for g in range(max(count - columns, 0), count):
        axes[g // columns][g % columns].set_xlabel("tau (features)")
        axes[g // columns][g % columns].tick_params(labelbottom=True)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False, fontsize=8.5, labelcolor=INK)
    save(figure, path)
