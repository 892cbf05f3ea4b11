"""Bounds of the CV error against tau: the paper's Figure 1 (left)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.report.figures import check_plot, panels, save


def draw_bounds(ax: Any, table: BoundsTable | PrintedTable, g: int) -> None:
    """Draw one gamma: a band between the bounds, the relaxation's estimate, a dot where every fold is decided.

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
    order = np.argsort(taus)
    ax.fill_between(taus[order], low[order], high[order], alpha=0.25, color="tab:blue", label=label)
    ax.plot(taus[order], low[order], color="tab:blue", lw=1)
    ax.plot(taus[order], high[order], color="tab:blue", lw=1)
    ax.plot(taus[order], middle[order], "--", color="tab:orange", label="estimate of the relaxation")
    if isinstance(table, BoundsTable):
        done = np.array([table.decided(g, t) == table.folds for t in range(len(taus))])
        if done.any():
            ax.plot(taus[done], high[done], "o", color="black", ms=4, label="all folds decided")
    ax.set_title(f"gamma = {table.gammas[g]:g}")
    ax.set_xlabel("support size tau")
    ax.set_ylabel("CV error")


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
    figure, axes = panels(rows, columns, (4.2 * columns, 3.2 * rows))
    for g in range(count):
        draw_bounds(axes[g // columns][g % columns], table, g)
    for g in range(count, rows * columns):
        axes[g // columns][g % columns].set_visible(False)
    axes[0][0].legend(fontsize=8)
    save(figure, path)
