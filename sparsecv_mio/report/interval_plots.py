"""Figures over an interval of gamma: the CV error with its certified bounds, and the best subset of every size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.certificate.record import Continuous, PathRecord, Record, Surface
from sparsecv_mio.report.figures import FAINT, INK, LOWER, UPPER, counted, legend_below, tidy, titled
from sparsecv_mio.report.numbers import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 1.2  # times the least CV error: what lies beyond is cut at the frame
COLOURS = 20  # of a qualitative map


def plot_every_gamma(record: Record, ax: Axes) -> Axes:
    """Draw the CV error of the reported tau over the interval of gamma, and the bound of every piece.

    Parameters
    ----------
    record : Record
        With an interval of gamma.
    ax : matplotlib Axes

    Returns
    -------
    matplotlib Axes
        The band lies between what is proved and what was found; jumps are where the best subset of a fold changes.
    """
    tidy(ax)
    found = record.continuous
    assert found is not None
    for i, tau in enumerate({piece.tau for piece in found.pieces} - {record.tau}):
        _bounds(ax, found, tau, FAINT, "_" * bool(i) + "bounds of other tau")
    _bounds(ax, found, record.tau, LOWER, f"bound at tau = {record.tau}")
    gammas, errors = np.array(found.curve_gammas), np.array(found.curve_errors)
    for i, run in enumerate(_runs(gammas, found)):
        label = "_" * bool(i) + f"CV error at tau = {record.tau}"
        ax.plot(gammas[run], errors[run], color=UPPER, linewidth=1.2, label=label)
    ax.plot([record.gamma], [record.cv_error], "*", color=INK, markersize=12, label="the choice", zorder=5)
    top = min(float(errors.max(initial=record.cv_error)), FAR * record.cv_error)
    room = max(top - record.lower, 1e-3 * record.cv_error)
    ax.set(xscale="log", xlabel="gamma (ridge weight)", ylabel="CV error", xlim=(found.low, found.high))
    if np.isfinite(top):
        ax.set_ylim(record.lower - 0.15 * room, top + 0.1 * room)
    titled(ax, f"CV error, every gamma from {shown(found.low, 3)} to {shown(found.high, 3)}")
    legend_below(ax)
    return ax


def _bounds(ax: Axes, found: Continuous, tau: int, colour: str, label: str) -> None:
    pieces = [piece for piece in found.pieces if piece.tau == tau]
    lows, highs = [piece.low for piece in pieces], [piece.high for piece in pieces]
    ax.hlines([piece.lower for piece in pieces], lows, highs, color=colour, linewidth=1.4, label=label)


def _runs(gammas: Any, found: Continuous) -> list[Any]:
    """Return the points of the curve in runs that the curve is known throughout: not across pieces that hold none."""
    if not len(gammas):
        return []
    step = 3.0 * np.log(found.high / found.low) / max(len(gammas), 200)
    return np.split(np.arange(len(gammas)), np.flatnonzero(np.diff(np.log(gammas)) > step) + 1)


def plot_surface(record: PathRecord, ax: Axes) -> Axes:
    """Draw for every tau which subset is best at which gamma: a colour a subset, a line where it changes.

    Parameters
    ----------
    record : PathRecord
        With an interval of gamma.
    ax : matplotlib Axes

    Returns
    -------
    matplotlib Axes
    """
    import matplotlib as mpl

    tidy(ax)
    surface: Surface | None = record.surface
    assert surface is not None
    colours, taus = mpl.colormaps["tab20"], sorted({piece.tau for piece in surface.pieces})
    for tau in taus:
        order: dict[int, int] = {}
        for piece in (one for one in surface.pieces if one.tau == tau):
            place = order.setdefault(piece.supports[0], len(order)) if piece.proved else -1
            colour = "white" if place < 0 else colours((3 * tau + 2 * place) % COLOURS)
            ax.fill_between([piece.low, piece.high], tau - 0.4, tau + 0.4, color=colour, linewidth=0.0)
            ax.vlines(piece.high, tau - 0.4, tau + 0.4, color=INK, linewidth=0.6)
    ax.set(xscale="log", xlabel="gamma (ridge weight)", ylabel="tau (features)", xlim=(surface.low, surface.high))
    counted(ax.yaxis)
    ax.set_ylim(taus[0] - 0.6, taus[-1] + 0.6)
    titled(ax, "best subset of every size: a colour changes where the subset does")
    return ax
