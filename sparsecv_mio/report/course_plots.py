"""The figure of the progress of a search: the bounds on the CV error over time, and the interval of every tau."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.report import figures
from sparsecv_mio.report.layout import POINT_WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Moment = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class TraceCourse:
    """A trace as arrays; inf for an unknown upper bound.

    Attributes
    ----------
    head : mapping
        First line of the trace: method, gammas, taus.
    moments : sequence of mapping
        The m following lines, one for each moment.
    seconds, lower, upper : (m,) arrays
        Times, and bounds on the minimum CV error.
    low, high : (m, T) arrays
        Intervals of every tau at its best gamma: smallest lower bound, smallest upper bound.
    estimate : (m, T) array
        CV errors at the supports known so far, certified or not; NaN if there are none.
    """

    head: Moment
    moments: Sequence[Moment]
    seconds: FloatArray
    lower: FloatArray
    upper: FloatArray
    low: FloatArray
    high: FloatArray
    estimate: FloatArray

    @classmethod
    def from_moments(cls, head: Moment, moments: Sequence[Moment]) -> TraceCourse:
        """Return the arrays of the lines of a trace."""
        taus, gammas = len(head["taus"]), head["gammas"]
        shape = (len(moments), 1 if gammas is None else len(gammas), taus)
        ends = np.array([[[a, _number(b)] for a, b in moment["pairs"]] for moment in moments], dtype=float)
        low, high = (ends[:, :, side].reshape(shape).min(axis=1) for side in (0, 1))
        upper = np.array([_number(moment["upper"]) for moment in moments])
        none = [None] * taus  # missing in traces of older versions
        estimate = np.array([[_number(h) for h in moment.get("estimates", none)] for moment in moments])
        if gammas is None and not np.isfinite(upper).any():
            upper = np.array([_number(moment["estimate"]) for moment in moments])
        seconds = np.array([moment["seconds"] for moment in moments])
        lower = np.array([moment["lower"] for moment in moments])
        return cls(head, moments, seconds, lower, upper, low, high, np.where(np.isfinite(estimate), estimate, np.nan))

    @property
    def is_descent(self) -> bool:
        """True if the trace is that of a descent, which moves gamma."""
        return self.head["gammas"] is None

    @property
    def has_estimated_upper(self) -> bool:
        """True if the upper curve is an estimate."""
        return self.is_descent and not any(moment["upper"] is not None for moment in self.moments)

    @property
    def top(self) -> float:
        """Upper limit of the vertical axes.

        It puts the best value at about a third of the height, unless all values fit below that.
        """
        finite = self.estimate[-1][np.isfinite(self.estimate[-1])]
        guess = float(finite.min()) if finite.size else float(self.low[-1].max())
        last = self.upper[-1] if np.isfinite(self.upper[-1]) else guess or 1.0
        shown = np.concatenate((self.high[-1][:0] if self.has_estimated_upper else self.high[-1], finite))
        highest = float(np.max(shown[np.isfinite(shown)], initial=last))
        return 1.08 * min(max(highest, 1.2 * last), 2.6 * last) or 1.0


def _number(value: float | None) -> float:
    return np.inf if value is None else float(value)


def plot_trace(head: Moment, moments: Sequence[Moment], out: str) -> None:
    """Draw a trace and write the figure.

    Parameters
    ----------
    moments : sequence of mapping
        Lines of the trace; like `head`, from :func:`sparsecv_mio.search.observers.read_trace`.
    out : str
        Output file, `.png`, `.svg` or `.pdf`.
    """
    from matplotlib.figure import Figure

    course = TraceCourse.from_moments(head, moments)
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    course_axes, right = figure.subplots(1, 2, width_ratios=(5, 6))
    _course(course_axes, course)
    _taus(right, course)
    now, low, high = moments[-1], course.lower[-1], course.upper[-1]
    gap = (
        f"gap {max(high - low, 0.0) / high:.2g}" if not course.has_estimated_upper and 0.0 < high < np.inf else "gap ?"
    )
    words = [f"{now['mios']:,} MIOs", f"{now['nodes']:,} nodes", *([] if course.has_estimated_upper else [gap])]
    figure.suptitle(f"{head['method']}:  " + "   ".join(words), fontsize=11, color=figures.INK)
    for axes in (course_axes, right):
        figures.tidy(axes)
        figures.draw_outer_legend(axes)
    figures.save(figure, out)


def _course(axes: Axes, course: TraceCourse) -> None:
    """Draw the bounds on the minimum CV error over time."""
    t, low, high = course.seconds, course.lower, course.upper
    last = max(float(course.seconds[-1]), float(course.seconds[0]) + 1e-3)
    began = float(course.seconds[0]) if len(course.seconds) > 1 else 0.0
    axes.set(xlim=(began, last), xlabel="seconds", ylabel="CV error")
    word = "estimate" if course.has_estimated_upper else "upper bound"
    axes.step(t, high, where="post", color=figures.UPPER, linewidth=1.8, label=word)
    axes.plot(t[-1:], high[-1:], "o", color=figures.UPPER, markersize=4, clip_on=False)
    if course.is_descent:
        _moves(axes, course)
        return
    axes.fill_between(t, low, np.minimum(high, course.top), step="post", color=figures.LOWER, alpha=0.10, linewidth=0)
    axes.step(t, low, where="post", color=figures.LOWER, linewidth=1.8, label="lower bound")
    axes.plot(t[-1:], low[-1:], "o", color=figures.LOWER, markersize=4, clip_on=False)
    if not np.isfinite(high[-1]):
        scored = np.isfinite(course.estimate).any(axis=1)
        least = np.nanmin(course.estimate[scored], axis=1, initial=np.inf)
        if scored.any():
            axes.step(
                t[scored], least, where="post", color=figures.UPPER, linewidth=1.2, linestyle=":", label="estimate"
            )
        else:
            axes.text(0.5, 0.5, "no bound is known yet", transform=axes.transAxes, ha="center", color=figures.INK)
    axes.set(ylim=(0.0, course.top))
    figures.write_title(axes, "best pair of the grid")


def _moves(axes: Axes, course: TraceCourse) -> None:
    """Draw an enlarged view of the range in which a descent improved, with vertical lines at the moves."""
    finite = course.upper[np.isfinite(course.upper)]
    ends = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, course.top)
    room = 0.15 * (ends[1] - ends[0]) or 0.05 * ends[1] or 1.0
    steps = np.array([moment["steps"] for moment in course.moments])
    for at in np.flatnonzero(np.diff(steps) > 0).tolist():
        axes.axvline(float(course.seconds[at + 1]), color=figures.FAINT, linewidth=0.8, zorder=0)
    axes.set(ylim=(max(ends[0] - room, 0.0), ends[1] + room))
    word = "estimate" if course.has_estimated_upper else "certified upper bound"
    figures.write_title(axes, f"best so far ({word}), after {int(steps[-1])} moves")


def _taus(axes: Axes, course: TraceCourse) -> None:
    """Draw the interval of every tau in front of the interval before branching."""
    taus, top = np.array(course.head["taus"]), course.top
    proved = course.moments[-1].get("proved")
    if proved is not None and proved[0] is not None:
        axes.axvspan(
            taus[0] - 0.6,
            proved[0] + 0.5,
            color=figures.PROVED,
            alpha=0.12,
            linewidth=0,
            label="certified within this group",
        )
    low, high, estimate = course.low[-1], course.high[-1], course.estimate[-1]
    first = int(np.argmax(np.isfinite(course.high).all(axis=1))) if np.isfinite(course.high).all(axis=1).any() else 0
    if not course.is_descent and first < len(course.moments) - 1:
        _bars_by_tau(
            axes,
            taus,
            course.low[first],
            np.minimum(course.high[first], top),
            figures.FAINT,
            0.45,
            "interval at the start",
        )
    if not course.has_estimated_upper:
        _bars_by_tau(axes, taus, low, np.minimum(high, top), figures.LOWER, 0.3, "certified interval")
        axes.hlines(low, taus - 0.45, taus + 0.45, color=figures.LOWER, linewidth=1.2)
        inside = high <= top
        axes.hlines(high[inside], taus[inside] - 0.45, taus[inside] + 0.45, color=figures.UPPER, linewidth=1.2)
    guessed = np.isfinite(estimate) & (estimate <= top) & (high > low * (1.0 + POINT_WIDTH))
    size = 4.5 if len(taus) <= figures.MANY_MARKS else 2.5
    if guessed.any():
        axes.plot(
            taus[guessed], estimate[guessed], "o", mfc="none", color=figures.UPPER, markersize=size, label="estimate"
        )
    values = np.where(np.isfinite(high), high, estimate) if np.isfinite(high).any() else estimate
    if np.isfinite(values).any():
        best = int(np.nanargmin(values))
        axes.axhline(values[best], color=figures.BEST, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        axes.plot(
            taus[best], values[best], "o", mfc="none", mec=figures.BEST, markersize=11, mew=1.4, label="best so far"
        )
    axes.set(ylim=(0.0, top), xlabel="tau (features)")
    figures.whole_numbers(axes, taus.tolist())
    title = "interval of every tau, at its best gamma"
    if course.is_descent:
        title = f"every tau at gamma = {course.moments[-1]['gamma']:.4g}"
    elif len(course.head["gammas"]) == 1:
        title = f"interval of every tau, gamma = {course.head['gammas'][0]:.4g}"
    figures.write_title(axes, title)


def _bars_by_tau(
    axes: Axes, taus: FloatArray, low: FloatArray, high: FloatArray, colour: str, alpha: float, label: str
) -> None:
    """Draw a bar for each tau, with gaps between integers."""
    axes.bar(taus, high - low, bottom=low, width=0.9, color=colour, alpha=alpha, linewidth=0, label=label)
