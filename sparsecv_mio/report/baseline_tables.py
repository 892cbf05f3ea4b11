"""Comparison of a record with baselines: the table, the certified statement about them, and the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.digits import format_number, format_with_zeros, round_upward
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report import figures, layout
from sparsecv_mio.report.layout import mark_estimate
from sparsecv_mio.report.record_words import search_space
from sparsecv_mio.units import ACCURATE_RTOL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "baselines on the same folds; differences to the reported pair, with paired standard errors over the folds"
HEADS = ("method", "CV error", "difference", "standard error", "columns", "penalty", "seconds")
CAPTION = (
    "Baselines on the same folds, each at the penalty or size with its smallest CV error; the difference to the "
    "reported pair, its standard error over the folds, which are paired, and the number of columns of each model."
)
NAMES = {"lasso": "the lasso", "ridge": "ridge regression", "elasticnet": "the elastic net"}
ERROR_DIGITS = 6  # significant digits of a CV error


def baseline_rows(record: Record) -> list[tuple[str, ...]]:
    """Return a row for the reported pair and one for each baseline, under `HEADS`; no rows without baselines."""
    if record.baselines is None:
        return []
    error = mark_estimate(format_with_zeros(record.cv_error, ERROR_DIGITS), record.estimate)
    gamma, seconds = f"gamma = {format_number(record.gamma, 4)}", f"{record.work.seconds:.2f}"
    rows: list[tuple[str, ...]] = [("best subset", error, "", "", str(len(record.support)), gamma, seconds)]
    for entry in record.baselines.methods:
        difference = "?" if entry.difference is None else f"{entry.difference:+#.3g}"
        spread = "?" if entry.standard_error is None else format_with_zeros(entry.standard_error, 3)
        ratio = "" if entry.alpha is None or entry.l1_ratio in (0.0, 1.0) else f", l1_ratio = {entry.l1_ratio:g}"
        penalty = "none" if entry.alpha is None else f"alpha = {format_number(entry.alpha, 4)}{ratio}"
        rows.append((
            entry.method, format_with_zeros(entry.cv_error, ERROR_DIGITS), mark_estimate(difference, record.estimate),
            spread, str(len(entry.support)), penalty, f"{entry.seconds:.2f}",
        ))  # fmt: skip
    return rows


def print_baselines(console: Console, record: Record, brief: bool) -> None:
    """Print the comparison with baselines, if the record has them.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    brief : bool
        True to print only what is certified, without the table.
    """
    rows = () if brief else baseline_rows(record)
    if rows:
        layout.say(console, TITLE, style="bold")
        layout.print_table(console, HEADS, rows, text=("method", "penalty"))
    layout.say(console, *certified_lines(record))
    if rows:
        console.print()


def round_percentage(value: float, up: bool) -> float:
    """Return a positive percentage, rounded up or down to two significant digits.

    Parameters
    ----------
    value : float
        Percentage.
    up : bool
        True to round up, False to round down.

    Examples
    --------
    >>> round_percentage(1.1234, True), round_percentage(1.1234, False), round_percentage(34.2, True)
    (1.2, 1.1, 35.0)
    """
    return round_upward(value + ACCURATE_RTOL) if up else -round_upward(min(ACCURATE_RTOL - value, 0.0))


def certified_lines(record: Record) -> list[str]:
    """Return the statements about the baselines that the certified lower bound of the grid supports.

    A baseline has the CV error E, and no pair a CV error below L. If L < E, no pair is more than 100 (E - L) / E per
    cent better; otherwise every pair is at least 100 (L - E) / E per cent worse.
    """
    if record.baselines is None:
        return []
    if not record.certificate.lower > 0.0:
        return ["no certified lower bound on the CV error is known, so nothing is certified about the baselines"]
    below, above, never = list[str](), list[str](), list[str]()
    for entry in record.baselines.methods:
        name, gain = NAMES.get(entry.method, entry.method), entry.possible_gain or 0.0
        if gain > 0.0:
            below.append(f"{round_percentage(gain, True):g}% below that of {name}")
        elif share := round_percentage(-gain, False):
            above.append(f"{share:g}% above that of {name}")
        else:
            never.append(f"that of {name}")
    later = "" if record.status == "proved" else "; a longer search may lower these percentages"
    scope = f"certified {search_space(record)}{' within the restrictions' if record.request.restrictions else ''}"
    subject = "CV error of best-subset selection is"
    return [
        f"{scope}: {begin} {_join(phrases, conjunction)}{end}"
        for begin, phrases, conjunction, end in (
            (f"no {subject} more than", below, "or", later),
            (f"every {subject} at least", above, "and", ""),
            (f"no {subject} below", never, "or", ""),
        )
        if phrases
    ]


def _join(phrases: Sequence[str], conjunction: str) -> str:
    """Return phrases as a list whose last entry follows a conjunction."""
    return f" {conjunction} ".join(filter(None, (", ".join(phrases[:-1]), *phrases[-1:])))


def plot_baselines(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the CV errors of the reported pair and of the baselines, with the certified bounds of the grid.

    Parameters
    ----------
    record : Record
        Record with baselines.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes; bars are one standard error of the difference to the reported pair to each side.
    """
    if record.baselines is None:
        raise BadInput("panel baselines: requires a record of `solve --baselines`; choose another panel")
    ax, methods, best = figures.prepare_axes(ax), record.baselines.methods, record.certificate
    if best.lower > 0.0:
        ax.axvline(best.lower, color=figures.LOWER, linewidth=1.2, label="certified lower bound of every pair")
        if math.isfinite(best.upper):
            ax.axvspan(best.lower, best.upper, color=figures.LOWER, alpha=0.2, label="minimum over the grid, certified")
    if math.isfinite(record.cv_error):
        ax.plot([record.cv_error], [0], "*", color=figures.UPPER, markersize=13, zorder=5, label="reported pair")
    ax.errorbar([entry.cv_error for entry in methods], range(1, len(methods) + 1),
                xerr=[entry.standard_error or 0.0 for entry in methods], fmt="o", color=figures.INK, capsize=2.0,
                elinewidth=0.9, label="baseline ± standard error of the difference")  # fmt: skip
    figures.places(ax, "y", ["best subset", *(entry.method for entry in methods)])
    ax.invert_yaxis()
    ax.set_xlabel(f"CV error ({record.loss.target.cv_error})")
    figures.write_title(ax, "CV error of baselines on the same folds")
    figures.draw_outer_legend(ax)
    return ax
