"""Figures of iterative approximate cross-validation in the form of the paper's Figures 1 to 4."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.data.dataset import FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_writable, replacing

if TYPE_CHECKING:
    from sparsecv_mio.oracles.iacv import Report

STYLE = {
    "baseline": ("Baseline", "tab:green", "-."),
    "ns": ("NS", "tab:red", "--"),
    "ij": ("IJ", "tab:blue", ":"),
    "iacv": ("IACV", "black", "-"),
    "exact": ("Exact CV", "tab:purple", "--"),
}
ROUNDING = 1e-10
FORMATS = (".png", ".pdf", ".svg")


def check_plot(path: str | None) -> None:
    """Raise :class:`BadInput` for a plot file that could not be written, before any work."""
    if path is None:
        return
    if Path(path).suffix.lower() not in FORMATS:
        raise BadInput(f"--plot: {path} must end in {', '.join(FORMATS)}")
    check_writable(path, "--plot")


def draw(ax: Any, iterations: IntArray, curves: Mapping[str, FloatArray], label: str, *, log: bool = True) -> None:
    """Draw one panel: a line per method; (repeats, m) curves as median with the band between the quartiles.

    Parameters
    ----------
    ax : matplotlib Axes
        Panel.
    iterations : (m,) int array
        Horizontal axis.
    curves : mapping of str to (m,) or (repeats, m) array
        Keys of `STYLE`.
    label : str
        Vertical axis.
    log : bool
        Both axes logarithmic, as the paper's error panels; linear for run times. Errors at rounding level beside the
        rest of their curve (the first step is exact) are then left out: they would set the axis.
    """
    for name, values in curves.items():
        text, colour, line = STYLE[name]
        rows = np.atleast_2d(values)
        if log:
            rows = np.where(rows > ROUNDING * rows.max(initial=0.0), rows, np.nan)
        ax.plot(iterations, np.median(rows, axis=0), line, color=colour, label=text)
        if rows.shape[0] > 1:
            low, high = np.quantile(rows, [0.25, 0.75], axis=0)
            ax.fill_between(iterations, low, high, color=colour, alpha=0.15, linewidth=0)
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel("iteration")
    ax.set_ylabel(label)
    ax.legend(fontsize="small")


def save(figure: Any, path: str | Path) -> None:
    """Write a figure and close it."""
    import matplotlib.pyplot as plt

    figure.tight_layout()
    with replacing(path, "figure") as temporary:
        figure.savefig(temporary, dpi=150)
    plt.close(figure)


def plot_report(report: Report, path: str | Path, title: str) -> None:
    """Draw one run.

    With the exact fits: approximation error, relative error of the loss, and run times. Without: the approximated
    loss along the iterations.

    Parameters
    ----------
    report : Report
        What :func:`sparsecv_mio.oracles.iacv.run` returned.
    path : str or Path
        File to write (PNG, PDF or SVG).
    title : str
        Title of the figure.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = [name for name in STYLE if name in report.traces]
    exact = report.cv_exact is not None
    figure, axes = plt.subplots(1, 3 if exact else 1, figsize=(13, 4) if exact else (6, 4), squeeze=False)
    figure.suptitle(title)
    if report.cv_exact is None or report.seconds_exact is None:
        losses = {name: report.traces[name].cv for name in order}
        draw(axes[0, 0], report.iterations, losses, "cross-validation loss")
        axes[0, 0].set_yscale("linear")
    else:
        errors, relative = {}, {}
        for name in order:
            trace = report.traces[name]
            if trace.err_approx is not None and trace.rel_err_cv is not None:
                errors[name], relative[name] = trace.err_approx, trace.rel_err_cv
        draw(axes[0, 0], report.iterations, errors, "approximation error")
        draw(axes[0, 1], report.iterations, relative, "relative error of the CV loss")
        times = {"exact": report.seconds_exact, "iacv": report.seconds}
        draw(axes[0, 2], report.iterations, times, "seconds", log=False)
    save(figure, path)
