"""The bounds of a run closing: a figure of its whole course, or an animation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAMES, FPS = 80, 12
BLUE, GREY = "#1f5fa8", "#9aa5b1"
ENDINGS = (".png", ".gif", ".svg", ".pdf")


def plot_trace(head: Mapping[str, Any], moments: Sequence[Mapping[str, Any]], out: str) -> None:
    """Draw a trace.

    Parameters
    ----------
    head, moments
        From :func:`sparsecv_mio.search.trace.read_trace`.
    out : str
        `.gif` for the animation; `.png`, `.svg` or `.pdf` for the figure.

    Raises
    ------
    BadInput
        Another ending, or a file that cannot be written.
    """
    if Path(out).suffix.lower() not in ENDINGS:
        raise BadInput(f"--out: {out} must end in one of {', '.join(ENDINGS)}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    top = _top(moments)
    try:
        if Path(out).suffix.lower() != ".gif":
            _course(left, moments, len(moments), top)
            _pairs(right, head, moments[-1], top)
            figure.savefig(out, dpi=150)
            return
        from matplotlib.animation import PillowWriter

        writer = PillowWriter(fps=FPS)
        shown = np.unique(np.linspace(1, len(moments), min(FRAMES, len(moments))).astype(int)).tolist()
        with writer.saving(figure, out, dpi=100):
            for count in [*shown, *[len(moments)] * FPS]:  # the end stays for a second
                left.clear()
                right.clear()
                _course(left, moments, count, top)
                _pairs(right, head, moments[count - 1], top)
                writer.grab_frame()
    except OSError as error:
        raise BadInput(f"--out: {out} cannot be written: {error.strerror}") from None


def _top(moments: Sequence[Mapping[str, Any]]) -> float:
    """Upper end of both axes: a little above what the pairs end at."""
    ends = [high for _, high in moments[-1]["pairs"] if high is not None]
    final = moments[-1]["upper"] or max((low for low, _ in moments[-1]["pairs"]), default=1.0) or 1.0
    return float(1.1 * min(max(ends, default=final), 3.0 * final))


def _course(axes: Axes, moments: Sequence[Mapping[str, Any]], count: int, top: float) -> None:
    seconds = [moment["seconds"] for moment in moments[:count]]
    lower = [moment["lower"] for moment in moments[:count]]
    upper = [np.inf if moment["upper"] is None else moment["upper"] for moment in moments[:count]]
    axes.fill_between(seconds, lower, np.minimum(upper, top), step="post", color=BLUE, alpha=0.15, linewidth=0)
    axes.step(seconds, lower, where="post", color=BLUE, label="lower bound")
    axes.step(seconds, upper, where="post", color=BLUE, linestyle="--", label="upper bound")
    first, last = moments[0]["seconds"], moments[-1]["seconds"]
    axes.set(xlim=(first, max(last, first + 1e-3)), ylim=(0.0, top), xlabel="seconds", ylabel="best CV error")
    now = moments[count - 1]
    axes.set_title(f"{now['mios']} MIOs, {now['nodes']} nodes", fontsize=10)
    axes.legend(frameon=False, loc="lower right")


def _pairs(axes: Axes, head: Mapping[str, Any], moment: Mapping[str, Any], top: float) -> None:
    """For every tau the interval of its best gamma: least lower end, least upper end."""
    from matplotlib.ticker import MaxNLocator

    taus = head["taus"]
    ends = np.array([[low, np.inf if high is None else high] for low, high in moment["pairs"]])
    low, high = ends.reshape(len(head["gammas"]), len(taus), 2).min(axis=0).T
    axes.vlines(taus, low, np.minimum(high, top), color=GREY, linewidth=4)
    axes.plot(taus, low, "_", color=BLUE)
    axes.plot(taus, np.where(high <= top, high, np.nan), "_", color=BLUE)
    axes.axhline(moment["lower"], color=BLUE, linewidth=0.8)
    if moment["upper"] is not None:
        axes.axhline(moment["upper"], color=BLUE, linewidth=0.8, linestyle="--")
    axes.set(ylim=(0.0, top), xlim=(min(taus) - 0.5, max(taus) + 0.5))
    axes.set(xlabel="tau", ylabel="CV error at the best gamma")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("certified interval of every tau", fontsize=10)
