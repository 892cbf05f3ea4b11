"""Parts that all figures share: colours, axes, panels and output formats."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.certificate.predicting import FIGURE_SUFFIXES
from sparsecv_mio.digits import CONTROLS
from sparsecv_mio.errors import BadInput, SparseCVWarning, need_extra
from sparsecv_mio.files import check_writable, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from sparsecv_mio.arrays import BoolArray, FloatArray

DPI = 150
LOWER, UPPER, BEST, FAINT, INK, PROVED = "#0b6e8a", "#b3541e", "#111111", "#c9ced6", "#3a3f47", "#3b8b3b"
BELOW = 40.0  # points between the axes and a legend, for tick labels and the axis label
TICK_LINE = 12.5  # height of a line of a tick label, in points
LETTER, HANDLE = 0.062, 0.55  # inches in a legend: a letter, and the handle of an entry with its gap
MANY_MARKS = 40  # values on an axis, from which markers would overlap
MOST_LABELS = 16  # maximum number of labels on a categorical axis
MISSING_GLYPH = re.compile(r"Glyph (\d+) .* missing from")  # warning text of matplotlib
MOST_MISSING = 12  # maximum number of characters in a warning
BAR_ROWS = 4  # minimum number of rows, so that bars are not too thick
MOST_FEATURES = 24  # maximum number of features with a separate row
MOST_LETTERS = 48  # maximum number of letters of labels below axes, gaps included


def check_plot(path: str, option: str) -> None:
    """Raise :class:`BadInput` before any work if a plot file cannot be written or drawn."""
    need_extra("plot", option)
    if Path(path).suffix.lower() not in FIGURE_SUFFIXES:
        raise BadInput(f"{option}: {path} must end in {' or '.join(FIGURE_SUFFIXES)}")
    check_writable(path, option)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, which is independent of pyplot, so it needs no display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Return a figure with `rows` times `columns` panels.

    Parameters
    ----------
    rows, columns : int
        Number of panels.
    size : (float, float)
        Width and height of the figure in inches.

    Returns
    -------
    figure : matplotlib Figure
        The figure, from `new_figure`.
    axes : (rows, columns) array of matplotlib Axes
        Axes of the panels.
    """
    figure = new_figure(*size)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        tidy(ax)
    return figure, axes


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, PDF or SVG, by the suffix of `path`; text in an SVG stays text.

    Characters that the font lacks appear as boxes in PNG and PDF, with one warning.
    """
    from matplotlib import rc_context

    with (
        replacing(path, "figure") as temporary,
        rc_context({"svg.fonttype": "none"}),
        collect_missing_glyphs() as missing,
    ):
        figure.savefig(temporary, dpi=DPI)
    if missing and Path(path).suffix.lower() != ".svg":
        letters = "".join(dict.fromkeys(missing))
        shown = letters[:MOST_MISSING] + ("..." if len(letters) > MOST_MISSING else "")
        words = (
            f"the font of figures lacks the characters {shown}: {path} shows boxes in their place; an .svg file keeps "
            "the characters as text"
        )
        warnings.warn(words, SparseCVWarning, stacklevel=2)


@contextmanager
def collect_missing_glyphs() -> Iterator[list[str]]:
    """Yield a list that collects characters missing in the font, instead of one matplotlib warning for each."""
    missing: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield missing
    for warning in caught:
        if (glyph := MISSING_GLYPH.match(str(warning.message))) is not None:
            missing.append(chr(int(glyph[1])))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def prepare_axes(ax: Axes | None, size: tuple[float, float] = (7.0, 4.2)) -> Axes:
    """Return the given axes, or those of a new pyplot figure, in the common style."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "spines"):
        raise BadInput(f"ax: a {type(ax).__name__} is not matplotlib Axes; give Axes, or pass data as data=...")
    tidy(ax)
    return ax


def tidy(ax: Axes) -> None:
    """Apply the common style to axes: no frame at the top and right, small labels in one colour."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[:].set_color(INK)
    ax.tick_params(color=INK, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set(color=INK, size=10)
    ax.yaxis.label.set(color=INK, size=10)


def write_title(ax: Axes, title: str) -> None:
    """Write a title above the left edge of axes."""
    ax.set_title(literal(title), fontsize=10, color=INK, loc="left", wrap=True)


def whole_numbers(ax: Axes, values: Sequence[int]) -> None:
    """Set ticks of the horizontal axis at integers only, with half a step of margin."""
    set_integer_ticks(ax.xaxis)
    ax.set_xlim(min(values) - 0.6, max(values) + 0.6)


def set_integer_ticks(axis: Axis) -> None:
    """Set ticks of an axis at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def places(ax: Axes, which: str, labels: Sequence[str]) -> None:
    """Give every value a position of equal width on an axis, and label as many of them as fit.

    Parameters
    ----------
    which : {"x", "y"}
        Axis.
    """
    longest = max(map(len, labels)) if which == "x" else 0
    step = max(-(-len(labels) // MOST_LABELS), -(-len(labels) * (longest + 1) // MOST_LETTERS))
    ticks = [*range(0, len(labels) - step, step), len(labels) - 1]  # the last value is always labelled
    getattr(ax, f"set_{which}ticks")(ticks, [labels[k] for k in ticks])
    getattr(ax, f"set_{which}lim")(-0.5, len(labels) - 0.5)


def draw_outer_legend(ax: Axes, more_lines: int = 0) -> None:
    """Put the legend below the axes, where it hides no data; do nothing without labels.

    Parameters
    ----------
    ax : Axes
        Axes with labels.
    more_lines : int
        Number of lines of each tick label of the horizontal axis, without the first one.
    """
    from matplotlib.transforms import ScaledTranslation

    labels, figure, spec = ax.get_legend_handles_labels()[1], ax.get_figure(), ax.get_subplotspec()
    if not labels or figure is None:
        return
    share = 1.0 if spec is None else len(spec.colspan) / spec.get_gridspec().ncols
    inches = share * figure.bbox.width / figure.get_dpi() - 0.7  # approximate width of the axes
    columns = max(1, min(3, len(labels), int(inches / (HANDLE + LETTER * max(map(len, labels))))))
    down = ScaledTranslation(0.0, -(BELOW + TICK_LINE * more_lines) / 72.0, figure.dpi_scale_trans)
    ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=ax.transAxes + down, ncols=columns,
        frameon=False, fontsize=8.5, labelcolor=INK, borderaxespad=0.0, borderpad=0.0, columnspacing=1.2,
    )  # fmt: skip


def literal(text: str) -> str:
    r"""Return a text of the data that matplotlib shows unchanged.

    It has no `$` that starts a formula, no leading `_` that hides a legend entry, and no control code for an SVG file.

    Examples
    --------
    >>> literal("$ per $"), literal("_total")
    ('\\$ per \\$', ' _total')
    """
    return f"{' ' if text.startswith('_') else ''}{text}".replace("$", r"\$").translate(CONTROLS)


def shorten_names(names: Sequence[str], most: int = 26) -> list[str]:
    """Return names shortened in the middle to a maximum length; names that would look the same are numbered.

    The names are also escaped by `literal`.

    Examples
    --------
    >>> shorten_names(["age", "systolic blood pressure in mmHg", "systolic blood pressure at night in mmHg"], 18)
    ['age', 'systolic blo… (2)', 'systolic blo… (3)']
    """
    end = most // 3
    cut = [name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}" for name in names]
    twice = {name for name, count in Counter(cut).items() if count > 1}
    return [
        literal(f"{name[: most - 6].rstrip()}… ({place})" if shown in twice else shown)
        for place, (name, shown) in enumerate(zip(names, cut, strict=True), start=1)
    ]


def prepare_rows(
    ax: Axes | None, features: Sequence[str], columns: Sequence[str], title: str, height: float = 1.4
) -> tuple[Axes, list[str]]:
    """Return axes with a row for each of the first features, from the top, and the names of these features.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Axes to draw on, as for `prepare_axes`.
    features : sequence of str
        Names of the features in the order of the rows.
    columns : sequence of str
        Names of all columns, among which shortened names differ.
    title : str
        Title; the number of features without a row follows.
    height : float
        Height of a new figure without its rows, in inches.
    """
    names = list(features[:MOST_FEATURES])
    ax = prepare_axes(ax, (7.0, height + 0.22 * max(len(names), BAR_ROWS)))
    labels = dict(zip(columns, shorten_names(columns), strict=True)) if names else {}
    ax.set_yticks(range(len(names)), [labels[name] for name in names])
    ax.set_ylim(max(len(names), BAR_ROWS) - 0.5, -0.5)
    if not names:
        ax.text(0.5, 0.5, "no feature: the intercept alone", transform=ax.transAxes, ha="center", color=INK)
    omitted = f" ({len(names)} of {len(features)} features)" if len(names) < len(features) else ""
    write_title(ax, f"{title}{omitted}")
    return ax, names


def draw_feature_bars(ax: Axes, lengths: FloatArray, is_in_model: BoolArray) -> None:
    """Draw a bar for each row of a feature; the colours and the legend show the features of the full-data model."""
    for mine, colour, words in ((is_in_model, LOWER, "in"), (~is_in_model, FAINT, "not in")):
        label = f"{words} the full-data model" if mine.any() else None
        ax.barh(mine.nonzero()[0], lengths[mine], color=colour, height=0.7, label=label)
