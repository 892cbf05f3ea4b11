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
        Intervals of every tau over all gammas: smallest lower bound, smallest upper bound.
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
        gammas, unknown = head["gammas"], [None] * len(head["taus"])  # traces of older versions have no estimates
        estimate = np.array([moment.get("estimates", unknown) for moment in moments], dtype=float)
        names = "seconds", "lower", "upper", "pairs"
        seconds, lower, upper, ends = (np.array([moment[name] for moment in moments], dtype=float) for name in names)
        if gammas is None and np.isnan(upper).all():
            upper = np.array([moment["estimate"] for moment in moments], dtype=float)
        upper, ends = (np.where(np.isnan(bounds), np.inf, bounds) for bounds in (upper, ends))
        shape = (len(moments), 1 if gammas is None else len(gammas), len(unknown))
        low, high = (ends[:, :, side].reshape(shape).min(axis=1) for side in (0, 1))
        return cls(head, moments, seconds, lower, upper, low, high, estimate)

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


def plot_trace(head: Moment, moments: Sequence[Moment], out: str) -> None:
    """Draw a trace and write the figure.

    Parameters
    ----------
    moments : sequence of mapping
        Lines of the trace; like `head`, from :func:`sparsecv_mio.search.observers.read_trace`.
    out : str
        Output file, `.png`, `.svg` or `.pdf`.
    """
    course = TraceCourse.from_moments(head, moments)
    figure, axes = figures.panels(1, 2, (10.0, 4.2))
    axes[0, 0].get_gridspec().set_width_ratios((5, 6))
    _course(axes[0, 0], course)
    _taus(axes[0, 1], course)
    now, low, high = moments[-1], course.lower[-1], course.upper[-1]
    words = [f"{now['mios']:,} MIOs", f"{now['nodes']:,} nodes at the end of the trace"]
    if not course.has_estimated_upper:
        words.append(f"gap {max(high - low, 0.0) / high:.2g}" if 0.0 < high < np.inf else "gap ?")
    figure.suptitle(f"{head['method']}:  {'   '.join(words)}", fontsize=11, color=figures.INK)
    for ax in axes.flat:
        figures.draw_outer_legend(ax)
    figures.save(figure, out)


def _course(axes: Axes, course: TraceCourse) -> None:
    """Draw the bounds on the minimum CV error over time."""
    t, low, high = course.seconds, course.lower, course.upper
    began = float(t[0]) if len(t) > 1 else 0.0
    axes.set(xlim=(began, max(float(t[-1]), float(t[0]) + 1e-3)), xlabel="seconds", ylabel="CV error")

    def draw_bound(bound: FloatArray, colour: str, label: str) -> None:
        axes.step(t, bound, where="post", color=colour, linewidth=1.8, label=label)
        axes.plot(t[-1:], bound[-1:], "o", color=colour, markersize=4, clip_on=False)

    draw_bound(high, figures.UPPER, "estimate" if course.has_estimated_upper else "upper bound")
    if course.is_descent:
        _moves(axes, course)
        return
    axes.fill_between(t, low, np.minimum(high, course.top), step="post", color=figures.LOWER, alpha=0.10, linewidth=0)
    draw_bound(low, figures.LOWER, "lower bound")
    scored = np.isfinite(course.estimate).any(axis=1)
    if not np.isfinite(high[-1]) and scored.any():
        least = np.nanmin(course.estimate[scored], axis=1, initial=np.inf)
        axes.step(t[scored], least, where="post", color=figures.UPPER, linewidth=1.2, linestyle=":", label="estimate")
    elif not np.isfinite(high[-1]):
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
    figures.write_title(axes, f"smallest CV error so far ({word}), after {int(steps[-1])} moves")


def _taus(axes: Axes, course: TraceCourse) -> None:
    """Draw the interval of every tau in front of the interval before branching."""
    taus, top = np.array(course.head["taus"]), course.top
    low, high, estimate = course.low[-1], course.high[-1], course.estimate[-1]
    proved = course.moments[-1].get("proved")
    if proved is not None and proved[0] is not None:
        axes.axvspan(taus[0] - 0.6, proved[0] + 0.5, color=figures.PROVED, alpha=0.12, linewidth=0,
                     label="certified within this group")  # fmt: skip

    def draw_intervals(moment: int, colour: str, alpha: float, label: str) -> None:
        height = np.minimum(course.high[moment], top) - course.low[moment]
        axes.bar(taus, height, bottom=course.low[moment], width=0.9, color=colour, alpha=alpha, linewidth=0,
                 label=label)  # fmt: skip

    first = int(np.argmax(np.isfinite(course.high).all(axis=1)))  # 0 if there is no such moment
    if not course.is_descent and first < len(course.moments) - 1:
        draw_intervals(first, figures.FAINT, 0.45, "interval at the start")
    if not course.has_estimated_upper:
        draw_intervals(-1, figures.LOWER, 0.3, "certified interval")
        inside = high <= top
        axes.hlines(low, taus - 0.45, taus + 0.45, color=figures.LOWER, linewidth=1.2)
        axes.hlines(high[inside], taus[inside] - 0.45, taus[inside] + 0.45, color=figures.UPPER, linewidth=1.2)
    guessed = np.isfinite(estimate) & (estimate <= top) & (high > low * (1.0 + POINT_WIDTH))
    mark: dict[str, Any] = {"marker": "o", "linestyle": "none", "markerfacecolor": "none"}
    if guessed.any():
        size = 4.5 if len(taus) <= figures.MANY_MARKS else 2.5
        axes.plot(taus[guessed], estimate[guessed], color=figures.UPPER, markersize=size, label="estimate", **mark)
    values = np.where(np.isfinite(high), high, estimate) if np.isfinite(high).any() else estimate
    if np.isfinite(values).any():
        best = int(np.nanargmin(values))
        axes.axhline(values[best], color=figures.BEST, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        axes.plot(taus[best], values[best], markeredgecolor=figures.BEST, markersize=11, markeredgewidth=1.4,
                  label="smallest upper bound" if np.isfinite(high[best]) else "smallest estimate", **mark)  # fmt: skip
    axes.set(ylim=(0.0, top), xlabel="tau (features)")
    figures.whole_numbers(axes, taus.tolist())
    title = "smallest bounds of every tau over all gammas"
    if course.is_descent:
        title = f"every tau at gamma = {course.moments[-1]['gamma']:.4g}"
    elif len(course.head["gammas"]) == 1:
        title = f"interval of every tau, gamma = {course.head['gammas'][0]:.4g}"
    figures.write_title(axes, title)
