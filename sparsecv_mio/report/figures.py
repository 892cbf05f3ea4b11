"""Shared parts of all figures: colours, axes, panels and output formats; a figure file is complete or unchanged."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.digits import CONTROLS
from sparsecv_mio.errors import BadInput, need_extra
from sparsecv_mio.files import check_writable, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
DPI = 150
LOWER, UPPER, BEST, FAINT, INK, PROVED = "#0b6e8a", "#b3541e", "#111111", "#c9ced6", "#3a3f47", "#3b8b3b"
BELOW = 40.0  # points from the axes down to a legend: tick labels and the name of the axis are between
LETTER, HANDLE = 0.062, 0.55  # inches of a legend: a letter, and what stands before an entry with the gap after it
MANY_MARKS = 40  # values on an axis, from which on marks would run into each other
MOST_LABELS = 16  # on an axis with a place for every value
MISSING_GLYPH = re.compile(r"Glyph (\d+) .* missing from")  # a warning of matplotlib
MOST_MISSING = 12  # characters that a warning shows
MOST_LETTERS = 48  # of the labels below axes, with the gaps between them


def check_plot(path: str, option: str) -> None:
    """Raise :class:`BadInput` for a plot file that could not be written, or not drawn, before any work."""
    need_extra("plot", option)
    if Path(path).suffix.lower() not in FORMATS:
        raise BadInput(f"{option}: {path} must end in {', '.join(FORMATS)}")
    check_writable(path, option)


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Make a figure of `rows` times `columns` panels.

    Parameters
    ----------
    rows, columns : int
        Number of panels.
    size : (float, float)
        Width and height of the figure in inches.

    Returns
    -------
    figure : matplotlib Figure
        Independent of pyplot: nothing to close, and no display is needed.
    axes : (rows, columns) array of matplotlib Axes
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        tidy(ax)
    return figure, axes


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, PNG, PDF or SVG by the ending of `path`; text of an SVG stays text.

    Characters that the font lacks are boxes in PNG and PDF, and one warning says so.
    """
    from matplotlib import rc_context

    with replacing(path, "figure") as temporary, rc_context({"svg.fonttype": "none"}), missing_letters() as missing:
        figure.savefig(temporary, dpi=DPI)
    if missing and Path(path).suffix.lower() != ".svg":
        letters = "".join(dict.fromkeys(missing))
        shown = letters[:MOST_MISSING] + ("..." if len(letters) > MOST_MISSING else "")
        words = f"the font of figures has no {shown}: boxes stand for them in {path}; an .svg keeps them as text"
        warnings.warn(words, UserWarning, stacklevel=2)


@contextmanager
def missing_letters() -> Iterator[list[str]]:
    """Yield a list that gets the characters which the font lacks, in place of a warning of matplotlib for each."""
    missing: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield missing
    for warning in caught:
        if (glyph := MISSING_GLYPH.match(str(warning.message))) is not None:
            missing.append(chr(int(glyph[1])))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def axes_of(ax: Axes | None, size: tuple[float, float] = (7.0, 4.2)) -> Axes:
    """Return the axes that were given, or those of a new figure of pyplot, in the look of all figures."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
    tidy(ax)
    return ax


def tidy(ax: Axes) -> None:
    """Give axes the look of all figures: no frame above and to the right, small labels in one colour."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[:].set_color(INK)
    ax.tick_params(color=INK, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set(color=INK, size=10)
    ax.yaxis.label.set(color=INK, size=10)


def titled(ax: Axes, title: str) -> None:
    """Write a title above the left end of axes."""
    ax.set_title(literal(title), fontsize=10, color=INK, loc="left", wrap=True)


def whole_numbers(ax: Axes, values: Sequence[int]) -> None:
    """Let the horizontal axis have ticks at whole numbers only, and half a step of room beside the ends."""
    counted(ax.xaxis)
    ax.set_xlim(min(values) - 0.6, max(values) + 0.6)


def counted(axis: Axis) -> None:
    """Let an axis have ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def places(ax: Axes, which: str, labels: Sequence[str]) -> None:
    """Give every value a place of the same width on an axis, and as many of them a label as there is room for.

    Parameters
    ----------
    which : {"x", "y"}
    """
    longest = max(map(len, labels)) if which == "x" else 0
    step = max(-(-len(labels) // MOST_LABELS), -(-len(labels) * (longest + 1) // MOST_LETTERS))
    ticks = [*range(0, len(labels) - step, step), len(labels) - 1]  # the last one always has its own
    getattr(ax, f"set_{which}ticks")(ticks, [labels[k] for k in ticks])
    getattr(ax, f"set_{which}lim")(-0.5, len(labels) - 0.5)


def legend_below(ax: Axes) -> None:
    """Put the legend below the axes, where it hides no data; nothing where nothing has a label."""
    from matplotlib.transforms import ScaledTranslation

    labels, figure, spec = ax.get_legend_handles_labels()[1], ax.get_figure(), ax.get_subplotspec()
    if not labels or figure is None:
        return
    share = 1.0 if spec is None else len(spec.colspan) / spec.get_gridspec().ncols
    inches = share * figure.bbox.width / figure.get_dpi() - 0.7  # of the axes, about
    columns = max(1, min(3, len(labels), int(inches / (HANDLE + LETTER * max(map(len, labels))))))
    down = ScaledTranslation(0.0, -BELOW / 72.0, figure.dpi_scale_trans)
    ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=ax.transAxes + down, ncols=columns,
        frameon=False, fontsize=8.5, labelcolor=INK, borderaxespad=0.0, borderpad=0.0, columnspacing=1.2,
    )  # fmt: skip


def literal(text: str) -> str:
    r"""Return a text of the data so that matplotlib shows it as it is.

    A `$` begins no formula, a leading `_` hides no entry of a legend, and an SVG file holds no control code.

    Examples
    --------
    >>> literal("$ per $"), literal("_total")
    ('\\$ per \\$', ' _total')
    """
    return f"{' ' if text.startswith('_') else ''}{text}".replace("$", r"\$").translate(CONTROLS)


def short(names: Sequence[str], most: int = 26) -> list[str]:
    """Shorten names to so many characters, by the middle; those that would look the same get their number instead.

    The result is `literal`.

    Examples
    --------
    >>> short(["age", "systolic blood pressure in mmHg", "systolic blood pressure at night in mmHg"], 18)
    ['age', 'systolic blo… (2)', 'systolic blo… (3)']
    """
    end = most // 3
    cut = [name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}" for name in names]
    twice = {name for name, count in Counter(cut).items() if count > 1}
    return [
        literal(f"{name[: most - 6].rstrip()}… ({place})" if shown in twice else shown)
        for place, (name, shown) in enumerate(zip(names, cut, strict=True), start=1)
    ]
