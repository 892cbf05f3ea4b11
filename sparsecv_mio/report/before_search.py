"""Screen output of `sparsecv inspect` (facts about a file) and of `sparsecv bounds` (bounds on CV errors)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from sparsecv_mio import model_space
from sparsecv_mio.data.table_facts import (
    DEFAULT_FOLDS,
    FACTORS_TOGETHER,
    MOST_CORRELATED,
    UNREADABLE,
    ColumnFacts,
    Inspection,
)
from sparsecv_mio.digits import (
    abbreviate_list,
    format_interval,
    format_lower,
    format_number,
    format_upper,
    format_with_zeros,
    quoted_name,
    several,
)
from sparsecv_mio.files import argument
from sparsecv_mio.report.layout import ESTIMATE, NOT_KNOWN, mark_estimate, pair, print_table, say
from sparsecv_mio.targets import Loss, Values, find_loss_of_values
from sparsecv_mio.thresholds import SMALL
from sparsecv_mio.words import Within

if TYPE_CHECKING:
    from sparsecv_mio.bounds.cv_error import BoundsTable, PrintedTable

IMPUTED_WITHIN = f"--na-within {Within.FOLDS}"
COLUMNS_SHOWN = 40  # maximum number of columns shown by default
HOPEFUL = 100  # features, up to which much of a default run is proved (results/speed.md)
MANY_LONE_FOLDS = 20  # folds with columns of their own, logistic loss; 70 took eight times as long as shared columns
EVENTS_PER_COLUMN = 10  # rows of the rarer class for each candidate, below which models are usually unstable
SURE_OF_CLASSES = 20  # features, logistic loss; on one core 30 took 29 s (breast cancer), 33 took 129 s (ionosphere)


def print_inspection(console: Console, inspection: Inspection, path: str | Path, full: bool = False) -> None:
    """Print the facts about a file and the options with which `solve` would read it.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    path : str or Path
        Path of the file, for the command.
    full : bool
        True to print every column; otherwise columns with notes come first and others may be omitted.
    """
    say(console, f"{inspection.rows:,} rows, {len(inspection.columns):,} columns", style="bold")
    listed = list(inspection.columns)
    if not full and len(listed) > COLUMNS_SHOWN:
        listed.sort(key=lambda one: not (one.missing or one.notes or one.name == inspection.target))
        listed = listed[:COLUMNS_SHOWN]
    names = ("column", "type", "missing", "min", "mean", "max", "sd", "notes")
    rows = [_row(column, column.name == inspection.target) for column in listed]
    print_table(console, names, rows, {"column", "type", "notes"})
    if hidden := len(inspection.columns) - len(listed):
        say(console, f"{several(hidden, 'more column')}: --full lists all", style="dim")
    say(console, *_findings(inspection))
    console.print()
    if not inspection.target:
        say(console, "give the column to predict (--target T) to see the proposed `solve` command")
        return
    for line in _plan(inspection, str(path)):
        console.print(Text(line), soft_wrap=line.startswith("sparsecv "))  # a truncated command could not be copied


def _row(one: ColumnFacts, target: bool) -> tuple[str, ...]:
    """Return the facts about a column as text."""
    sizes = one.least, one.mean, one.largest, one.spread
    notes = "; ".join([*(["the target"] if target else []), *one.notes])
    missing = f"{one.missing:,}" if one.missing else ""
    return one.name, one.kind, missing, *("" if value is None else format_number(value, 5) for value in sizes), notes


def _findings(inspection: Inspection) -> list[str]:
    """Return lines on missing values, unreadable columns, repeated rows and scales; empty ones do not apply."""
    n_incomplete, n_repeated = inspection.incomplete, inspection.duplicates
    unread = [quoted_name(one.name) for one in inspection.columns if one.drop and one.kind == UNREADABLE]
    spreads = [column.spread for column in inspection.columns if column.spread and column.name != inspection.target]
    skipped = next((option for option in inspection.options if option.startswith("--skip-lines")), "")
    findings = {
        f"{skipped}: leaves out lines with titles, units or totals, and rows without a subject": skipped,
        f"{n_incomplete:,} {'row has' if n_incomplete == 1 else 'rows have'} a missing value in a column that `solve` "
        "would use": n_incomplete,
        "--na-within folds: missing values are imputed from the training rows of each fold, without its held-out rows":
        IMPUTED_WITHIN in inspection.options,
        f"{abbreviate_list(unread)}: some values are not numbers, so --drop must leave the column out; to keep a "
        "column, correct these values as the notes on the column say": unread,
        f"{n_repeated:,} {'row repeats' if n_repeated == 1 else 'rows repeat'} an earlier row; remove copies of one "
        "observation. Random folds would train on one copy and predict the other, so that the CV error would be too "
        "small": n_repeated,
        "standard deviations of columns differ by a factor of more than a million; keep the default --scale "
        "length": spreads and max(spreads) > 1e6 * min(spreads),
        "correlations were not computed, because there are more than "
        f"{MOST_CORRELATED:,} columns": len(inspection.columns) > MOST_CORRELATED,
    }  # fmt: skip
    return [words for words, holds in findings.items() if holds]


def _plan(inspection: Inspection, path: str) -> list[str]:
    """Return the proposed command with the size of its search, or the reason why there is none."""
    if inspection.doubts:
        column, said = next(iter(inspection.doubts.items()))
        return [f"column {column!r}: {said}, and run `inspect` again"]
    if inspection.refused:
        return [f"`solve` cannot use this file yet: {inspection.refused}"]
    if inspection.n < 4 or inspection.p < 1:
        left = f"{several(inspection.n, 'row')} and {several(inspection.p, 'feature')} remain"
        return [f"{left}: too few to cross-validate"]
    command, lines = _proposed_command(inspection, path), [*filter(None, [inspection.about_target])]
    lines += [command, *_size_and_hope(inspection, inspection.loss)]
    lines += [
        f"add --weights {shlex.quote(name)} if {name!r} has the weights of the rows; the column is then not a feature"
        for name in inspection.weights
    ]
    lines += [
        f"if {name!r} marks the events of survival times, give its value of an event: --event {shlex.quote(name)}=VALUE"
        for name in inspection.event_columns
    ]
    if 0 < inspection.events < EVENTS_PER_COLUMN * inspection.p:
        rarer = "the rarer class has" if inspection.two_classes else "there are"
        what = "row" if inspection.two_classes else "event"
        lines.append(
            f"{rarer} {several(inspection.events, what)}, fewer than {EVENTS_PER_COLUMN} for each of the "
            f"{several(inspection.p, 'feature')}: choices and coefficients vary strongly; use fewer features"
        )
    lines += _as_successes(inspection, path)
    return [*lines, *_as_counts(inspection, path)] if inspection.counts else lines


def _proposed_command(inspection: Inspection, path: str) -> str:
    """Return the command that solves the file with the options of an inspection."""
    words = [word for option in inspection.options for word in shlex.split(option)]
    words += ["--folds", "loo"] if inspection.n < DEFAULT_FOLDS and "--folds" not in words else []
    target = [f"--target={inspection.target}"] if inspection.target.startswith("-") else ["--target", inspection.target]
    return shlex.join(["sparsecv", "solve", argument(path), *target, *words])


def _size_and_hope(inspection: Inspection, loss: Loss) -> tuple[str, str]:
    """Return lines on the number of subproblems of a search, and on the proof that can be expected."""
    shape = inspection.p, inspection.least_training or inspection.n - -(-inspection.n // inspection.folds)
    sizes, gammas = model_space.default_taus(*shape), model_space.default_gammas(*shape, loss=loss)
    size = f"{several(inspection.n, 'row')}, {several(inspection.p, 'feature')}; {inspection.folds} folds, "
    size += f"{len(gammas)} gammas from {gammas[0]:g} to {gammas[-1]:g}, tau from {sizes[0]} to {sizes[-1]}: "
    size += f"{len(gammas) * len(sizes) * inspection.folds:,} subproblems"
    if inspection.p > inspection.levels_together > 0:
        size += (
            f"; each level of a text column counts as a feature: to count each text column as one feature "
            f"({inspection.levels_together} features in total; slower), use {FACTORS_TOGETHER}"
        )
    squares = loss.is_quadratic
    if IMPUTED_WITHIN in inspection.options and not squares and inspection.folds > MANY_LONE_FOLDS:
        hope = (
            f"the time is not forecast: with --na-within folds, each of the {inspection.folds} folds is searched "
            "alone; fewer folds (such as groups:COLUMN:10), or imputation from all rows, shorten the run"
        )
    elif inspection.p <= (SMALL if squares else SURE_OF_CLASSES):
        first_run = " (later for the first run on a machine, which also compiles kernels)"
        hope = f"expect a certified choice {'in seconds' if squares else f'within a minute{first_run}'}"
    elif inspection.p <= HOPEFUL:
        short = "--tau 1:10 or --time-limit 60 shortens" if sizes[-1] > 10 else "--time-limit 60 shortens"
        hope = f"expect an answer in seconds and a certified choice for small tau; {short} the run"
    else:
        answer = "the answer states which part of the grid is certified after 60 s"
        hope = f"expect an estimate in seconds; with --time-limit 60 {answer}"
    return size, hope


def _as_successes(inspection: Inspection, path: str) -> list[str]:
    """Return the command that fits the target as successes of the trials in another column."""
    if not (name := inspection.trials):
        return []
    options = [option for option in inspection.options if option != FACTORS_TOGETHER]  # for squared error only
    given = f"--loss {find_loss_of_values(Values.CLASSES)}", f"--trials {shlex.quote(name)}"
    return [
        f"the target is at most {name!r} in every row; if it counts successes of {name!r} trials, this command fits "
        "their probability:",
        _proposed_command(replace(inspection, options=(*options, *given)), path),
    ]


def _as_counts(inspection: Inspection, path: str) -> list[str]:
    """Return the command that fits the target as counts, and columns that may be their exposures."""
    lines = list[str]()
    if not inspection.loss.target.has_counts:
        options = [option for option in inspection.options if option != FACTORS_TOGETHER]  # for squared error only
        loss = find_loss_of_values(Values.COUNTS)
        rates = replace(inspection, options=(*options, f"--loss {loss}"), p=inspection.levels_alone or inspection.p)
        lines += [
            "if the target is a count, this command fits a Poisson model of its rate:",
            _proposed_command(rates, path),
        ]
        lines += _size_and_hope(rates, loss)
    meaning = "is the time or the population over which each row was counted; the column is then not a feature"
    zeros = [column.name for column in inspection.columns if column.least == 0.0]
    correct = "; correct or remove the rows in which it is 0 first, because an exposure is above 0"
    return lines + [
        f"add --exposure {shlex.quote(name)} if {name!r} {meaning}{correct if name in zeros else ''}"
        for name in inspection.exposures
    ]


BOUND_DIGITS = 6


def print_bounds(
    console: Console,
    table: BoundsTable | PrintedTable,
    brief: bool = False,
    full: bool = False,
    seconds: float | None = None,
    estimated_at: str = "the solutions of the relaxations, moved into the bounds of each fold",
) -> None:
    """Print the interval of the minimum CV error, and that of the best gamma for every tau.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    table : BoundsTable or PrintedTable
        Certified bounds, or the estimates of the paper's formula as printed.
    brief : bool
        True to print only the interval of the minimum CV error.
    full : bool
        True to print a table for every gamma; a single gamma always has one.
    seconds : float, optional
        Wall time, for the last line.
    estimated_at : str
        Models whose CV error is the estimate.
    """
    from sparsecv_mio.bounds.cv_error import PrintedTable

    full = full or len(table.gammas) == 1
    if isinstance(table, PrintedTable):
        _print_paper_bounds(console, table, full)
        return
    least, is_finite, (g, t) = table.minimum(), math.isfinite(table.minimum().upper), table.best()
    places = list(np.ndindex(len(table.gammas), len(table.taus)))
    low_g, low_t = min(places, key=lambda place: table.cv_interval(*place).lower)
    where = f"smallest upper bound at {pair(table.taus[t], table.gammas[g])}"
    where += f", smallest lower bound at {pair(table.taus[low_t], table.gammas[low_g])}"
    say(
        console,
        f"minimum CV error over the grid: in {format_interval(least.lower, least.upper)} (certified)",
        where if is_finite else "no pair has an upper bound yet",
    )
    if brief:
        return
    console.print()
    if full:
        for place, gamma in enumerate(table.gammas):
            say(console, _title_of_gamma(gamma))
            _print_pairs(console, table, [(place, t) for t in range(len(table.taus))], is_summary=False)
    else:
        which = "gamma with the smallest upper bound for each tau" if is_finite else "smallest gamma for each tau"
        say(console, which, style="bold")
        _print_pairs(console, table, _best_gammas(table), is_summary=True)
    wall = "" if seconds is None else f"; answer after {seconds:.2f} s"
    subproblems = f"{several(table.lower.size, 'subproblem')} (tau x gamma x fold)"
    solved = int((table.left == 0).sum())
    say(
        console,
        f"{ESTIMATE} an estimate: the CV error at {estimated_at}",
        "bound: the bounding methods that give the lower and the upper bound in most folds" if full else "",
        "" if np.all(np.isfinite(table.upper)) else NOT_KNOWN,
        f"{subproblems}; {solved:,} solved by bounds alone, without branch and bound{wall}",
        "" if full else "for the bounds of every gamma, add --full or --json FILE",
        style="dim",
    )


def _best_gammas(table: BoundsTable) -> list[tuple[int, int]]:
    """Return the place of the gamma with the smallest upper bound for each tau, with that of this tau."""
    best, places = table.best(), []
    for t in range(len(table.taus)):
        ends = [table.cv_interval(g, t) for g in range(len(table.gammas))]
        g = best[0] if best[1] == t else min(range(len(ends)), key=lambda k: (ends[k].upper, ends[k].lower))
        places.append((g, t))
    return places


def _print_pairs(console: Console, table: BoundsTable, places: Iterable[tuple[int, int]], is_summary: bool) -> None:
    """Print bounds, estimate and number of solved folds of pairs; with gammas, or else with their bounding methods."""
    rows, styles = list[tuple[object, ...]](), list[str]()
    for g, t in places:
        ends, folds = table.cv_interval(g, t), f"{table.decided(g, t)}/{table.folds}"
        lower = format_lower(ends.lower, BOUND_DIGITS, format_with_zeros)
        upper = format_upper(ends.upper, BOUND_DIGITS, format_with_zeros)
        estimate = format_with_zeros(table.cv_estimate(g, t), BOUND_DIGITS)
        cells = lower, upper, mark_estimate(estimate, True), folds
        gamma, method = ((table.gammas[g],), ()) if is_summary else ((), (table.won(g, t),))
        rows.append((table.taus[t], *gamma, *cells, *method))
        styles.append("bold" if (g, t) == table.best() else "")
    bounds = ("lower", "upper", "estimate", "folds solved")
    heads = ("tau", "gamma", *bounds) if is_summary else ("tau", *bounds, "bound")
    print_table(console, heads, rows, text=("bound",), styles=styles)


def _print_paper_bounds(console: Console, table: PrintedTable, full: bool) -> None:
    """Print the estimates of the paper's formula for every gamma; without `full`, for the middle one only."""
    say(console, "estimates, not valid bounds: Corollary 2.7 as printed in the paper (Cory-Wright and Gomez)")
    places = range(len(table.gammas))
    for g in places if full else [len(places) // 2]:
        rows = [(tau, *table.cv_estimates(g, t)) for t, tau in enumerate(table.taus)]
        say(console, _title_of_gamma(table.gammas[g]))
        print_table(console, ("tau", "lower (estimate)", "upper (estimate)", "estimate"), rows)
    if not full:
        say(console, f"{several(len(places) - 1, 'more gamma')}: --full or --json FILE shows all", style="dim")


def _title_of_gamma(gamma: float) -> str:
    return f"gamma = {format_number(gamma)} (ridge weight)"
