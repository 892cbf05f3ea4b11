"""Comparison of a record with baselines: the table, the certified statement about them, and the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from sparsecv_mio.certificate.inference_parts import Baseline
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.digits import format_number, format_with_zeros
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report import figures, layout
from sparsecv_mio.report.layout import mark_estimate
from sparsecv_mio.report.record_words import search_space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "baselines on the same folds; differences to the reported pair, with paired standard errors over the folds"
HEADS = ("method", "CV error", "difference", "standard error", "features", "penalty", "seconds")
CAPTION = (
    "Baselines on the same folds, each at the penalty or size with its smallest CV error; the difference to the "
    "reported pair, and its standard error over the folds, which are paired."
)
NAMES = {"lasso": "the lasso", "ridge": "ridge regression", "elasticnet": "the elastic net"}
ERROR_DIGITS = 6  # significant digits of a CV error
PERCENT_DIGITS = 2  # significant digits of a certified percentage
PERCENT_ROUNDING = 1e-9  # allowance for the rounding of a percentage


def baseline_rows(record: Record) -> list[tuple[str, ...]]:
    """Return a row for the reported pair and one for each baseline, under `HEADS`; no rows without baselines."""
    if record.baselines is None:
        return []
    error = mark_estimate(format_with_zeros(record.cv_error, ERROR_DIGITS), record.estimate)
    gamma, seconds = f"gamma = {format_number(record.gamma, 4)}", f"{record.work.seconds:.2f}"
    rows: list[tuple[str, ...]] = [("best subset", error, "", "", str(len(record.support)), gamma, seconds)]
    for one in record.baselines.methods:
        difference = "?" if one.difference is None else f"{one.difference:+#.3g}"
        spread = "?" if one.standard_error is None else format_with_zeros(one.standard_error, 3)
        ratio = "" if one.alpha is None or one.l1_ratio in (0.0, 1.0) else f", l1_ratio = {one.l1_ratio:g}"
        penalty = "none" if one.alpha is None else f"alpha = {format_number(one.alpha, 4)}{ratio}"
        difference = mark_estimate(difference, record.estimate)
        numbers = format_with_zeros(one.cv_error, ERROR_DIGITS), difference, spread, str(len(one.support))
        rows.append((one.method, *numbers, penalty, f"{one.seconds:.2f}"))
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
    moved = value + PERCENT_ROUNDING if up else value - PERCENT_ROUNDING
    if moved <= 0.0:
        return 0.0
    unit = 10.0 ** (PERCENT_DIGITS - 1 - math.floor(math.log10(moved)))
    return (math.ceil if up else math.floor)(moved * unit) / unit


def certified_lines(record: Record) -> list[str]:
    """Return the statements about the baselines that the certified lower bound of the grid supports.

    A baseline has the CV error E, and no pair a CV error below L. If L < E, no pair is more than 100 (E - L) / E per
    cent better; otherwise every pair is at least 100 (L - E) / E per cent worse.
    """
    if record.baselines is None:
        return []
    methods, scope = record.baselines.methods, f"certified {search_space(record)}"
    scope += " within the restrictions" if record.request.restrictions else ""
    if not record.certificate.lower > 0.0:
        return ["no certified lower bound on the CV error is known, so nothing is certified about the baselines"]
    known = [(one, one.possible_gain) for one in methods if one.possible_gain is not None]
    below = [f"{round_percentage(gain, True):g}% below that of {_name(one)}" for one, gain in known if gain > 0.0]
    above = [(one, round_percentage(-gain, False)) for one, gain in known if gain <= 0.0]
    lines = []
    if below:
        later = "" if record.status == "proved" else "; a longer search may lower these percentages"
        lines.append(f"{scope}: no CV error of best-subset selection is more than {_join(below, 'or')}{later}")
    if at_least := [f"{gain:g}% above that of {_name(one)}" for one, gain in above if gain > 0.0]:
        lines.append(f"{scope}: every CV error of best-subset selection is at least {_join(at_least, 'and')}")
    never = [one for one, gain in above if gain == 0.0] + [one for one in methods if one.cv_error == 0.0]
    if never:
        names = _join([f"that of {_name(one)}" for one in never], "or")
        lines.append(f"{scope}: no CV error of best-subset selection is below {names}")
    return lines


def _join(words: Sequence[str], last: str) -> str:
    """Return words as a list whose last entry follows a conjunction."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _name(one: Baseline) -> str:
    return NAMES.get(one.method, one.method)


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
    errors, spreads = [one.cv_error for one in methods], [one.standard_error or 0.0 for one in methods]
    ax.errorbar(errors, range(1, len(methods) + 1), xerr=spreads, fmt="o", color=figures.INK, capsize=2.0,
                elinewidth=0.9, label="baseline ± standard error of the difference")  # fmt: skip
    figures.places(ax, "y", ["best subset", *(one.method for one in methods)])
    ax.invert_yaxis()
    ax.set_xlabel(f"CV error ({record.loss.target.cv_error})")
    figures.write_title(ax, "CV error of baselines on the same folds")
    figures.draw_outer_legend(ax)
    return ax
