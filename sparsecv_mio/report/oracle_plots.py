"""Figures of the oracles: what the bounds of GLRU decide, its paper's Figure 4, and Figures 1 to 4 of IACV's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.report.figures import (
    FAINT,
    INK,
    LOWER,
    UPPER,
    counted,
    legend_below,
    panels,
    save,
    titled,
    whole_numbers,
)  # fmt: skip

if TYPE_CHECKING:
    from sparsecv_mio.oracles.glru import LoocvResult, StepwiseResult
    from sparsecv_mio.oracles.glru.stepwise import Step
    from sparsecv_mio.oracles.iacv import IacvReport

STYLE = {
    "baseline": ("Baseline", "tab:green", "-."),
    "ns": ("NS", "tab:red", "--"),
    "ij": ("IJ", "tab:blue", ":"),
    "iacv": ("IACV", "black", "-"),
    "exact": ("Exact CV", "tab:purple", "--"),
}
ROUNDING = 1e-10



def plot_loocv(result: LoocvResult, y: FloatArray, path: str | Path, title: str) -> None:
    """Draw every leave-one-out interval, multiplied by the row's label: a positive prediction is right.

    Parameters
    ----------
    result : LoocvResult
        Of a run with bounds.
    y : (n,) array
        Labels -1 / +1.
    path : str or Path
        File to write (PNG, PDF or SVG).
    title : str
        Title of the figure.
    """
    figure, ((left, right),) = panels(1, 2, (11, 4), title)
    low, high = np.where(y > 0.0, result.lower, -result.upper), np.where(y > 0.0, result.upper, -result.lower)
    order = np.argsort(low + high)
    shown = np.isfinite(low[order]) & np.isfinite(high[order])
    place, kept = np.arange(len(y))[shown], order[shown]
    for rows, colour, label in (
        (~result.open, LOWER, "sign certain from the full fit"),
        (result.open, UPPER, "sign open"),
    ):
        chosen = rows[kept]
        left.vlines(place[chosen], low[kept[chosen]], high[kept[chosen]], color=colour, linewidth=0.8, label=label)
    left.axhline(0.0, color=INK, linewidth=0.6)
    left.set(xlabel="row, sorted", ylabel="y times leave-one-out prediction")
    legend_below(left)
    stages = ("prepare", "bounds", "train")
    right.bar(stages, [result.seconds[stage] for stage in stages], color=LOWER)
    right.set(ylabel="seconds")
    titled(right, f"{int(result.open.sum())} rows open, {result.trainings} trained")
    save(figure, path)


def plot_stepwise(result: StepwiseResult, path: str | Path, title: str) -> None:
    """Draw the first step as in the paper's Figure 4, and the errors along the steps.

    Parameters
    ----------
    result : StepwiseResult
        What to draw.
    path : str or Path
        File to write (PNG, PDF or SVG).
    title : str
        Title of the figure.
    """
    figure, ((left, right),) = panels(1, 2, (11, 4), title)
    if result.steps:
        _draw_step(left, result.steps[0])
    errors = [result.start_errors, *(step.errors for step in result.steps if step.column is not None)]
    right.plot(range(len(errors)), errors, "o", color=UPPER, markersize=4)
    right.set(xlabel="step", ylabel="validation errors")
    whole_numbers(right, range(len(errors)))
    counted(right.yaxis)
    save(figure, path)


def _draw_step(ax: Any, step: Step) -> None:
    order = np.lexsort((step.candidates, step.lower))
    place = np.arange(order.size)
    found = np.array([step.found.get(int(j), -1) for j in step.candidates[order]])
    ax.step(place, step.lower[order], where="mid", color=LOWER, label="lower bound")
    ax.plot(place[found >= 0], found[found >= 0], ".", color=UPPER, label="errors found")
    settled = np.flatnonzero(found >= 0)
    last = int(settled[-1]) if settled.size else -1
    if last + 1 < order.size:
        ax.axvspan(last + 0.5, order.size - 0.5, color=FAINT, alpha=0.4, label="no training needed")
    ax.set(xlabel="candidate, by lower bound", ylabel="validation errors")
    counted(ax.yaxis)
    titled(ax, "first step")
    legend_below(ax)


def draw(ax: Any, iterations: IntArray, curves: Mapping[str, FloatArray], label: str, *, log: bool = True) -> None:
    """Draw one panel: a line for each method; repeated runs as their median with a band between the quartiles.

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
        Both axes logarithmic, as in the paper's panels of errors; linear for run times. On a logarithmic axis, errors
        at rounding level (the first step is exact) are left out: they would stretch the axis.
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
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter("")  # labels between powers of ten would run into each other
    ax.set_xlabel("iteration")
    ax.set_ylabel(label)
    legend_below(ax)


def plot_report(report: IacvReport, path: str | Path, title: str) -> None:
    """Draw one run against the iterations.

    With the exact fits: approximation error, relative error of the loss, and run times. Without: the approximated
    loss.

    Parameters
    ----------
    report : IacvReport
        What :func:`sparsecv_mio.oracles.iacv.run` returned.
    path : str or Path
        File to write (PNG, PDF or SVG).
    title : str
        Title of the figure.
    """
    order = [name for name in STYLE if name in report.traces]
    exact = report.cv_exact is not None
    figure, axes = panels(1, 3, (13, 4), title) if exact else panels(1, 1, (6, 4), title)
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
