"""Figures of GLRU: what the bounds decide in leave-one-out, and the paper's Figure 4 for stepwise selection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
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
