"""Bounds of the CV error on the screen."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.report.layout import Row, print_table, say
from sparsecv_mio.report.numbers import ESTIMATE, aligned, marked, pair, shown

DIGITS = 6


def print_bounds(
    console: Console,
    table: BoundsTable | PrintedTable,
    brief: bool = False,
    full: bool = False,
    seconds: float | None = None,
) -> None:
    """Print the interval of the least CV error, and that of the best gamma of every tau.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    table : BoundsTable or PrintedTable
        Certified bounds, or the estimates of the paper's formula as printed.
    brief : bool
        Only the interval of the least CV error.
    full : bool
        A table per gamma; a single gamma has it anyway.
    seconds : float, optional
        Wall time, for the last line.
    """
    full = full or len(table.gammas) == 1
    if isinstance(table, PrintedTable):
        say(console, "the paper's Corollary 2.7 as printed: not valid, estimates only")
        _print_all(console, table.gammas, full, lambda g: _print_printed(console, table, g))
        return
    least = table.minimum()
    g, t = table.best()
    say(console, f"certified: the least CV error of the grid is in [{shown(least.lower)}, {shown(least.upper)}]")
    say(console, f"smallest upper bound at {pair(table.taus[t], table.gammas[g])}")
    if brief:
        return
    console.print()
    if full:
        _print_all(console, table.gammas, True, lambda place: _print_certified(console, table, place))
    else:
        console.print("gamma of the smallest upper bound of every tau", style="bold")
        _print_summary(console, table)
    wall = "" if seconds is None else f" in {seconds:.2f} s"
    cells, decided = table.lower.size, int((table.left == 0).sum())
    say(console, f"{ESTIMATE} an estimate: the CV error of the relaxations' own solutions", "dim")
    unit = "cells (a pair of tau and gamma, one fold left out)"
    say(console, f"work: {cells:,} {unit}, {decided:,} decided by bounds alone, 0 MIOs{wall}", "dim")
    if not full:
        say(console, "--full or --json: the bounds of every gamma", "dim")


def _print_all(console: Console, gammas: tuple[float, ...], full: bool, table: Callable[[int], None]) -> None:
    """Print a table for every gamma; without `full`, for the middle one only."""
    for place in range(len(gammas)) if full else [len(gammas) // 2]:
        say(console, f"gamma = {shown(gammas[place])} (ridge weight)")
        table(place)
    if not full:
        say(console, f"--full or --json: the other {len(gammas) - 1} gammas", "dim")


def _print_summary(console: Console, table: BoundsTable) -> None:
    rows = []
    best = table.best()
    for t in range(len(table.taus)):
        ends = [table.cv_interval(g, t) for g in range(len(table.gammas))]
        g = best[0] if best[1] == t else min(range(len(ends)), key=lambda k: (ends[k].upper, ends[k].lower))
        rows.append(_row(table, g, t, [shown(table.gammas[g])], best))
    names = ("tau", "gamma", "lower", "upper", "estimate", "folds decided")
    print_table(console, names, rows)


def _row(table: BoundsTable, g: int, t: int, gamma: list[str], best: tuple[int, int], *more: str) -> Row:
    ends = table.cv_interval(g, t)
    lower, upper = aligned(ends.lower, DIGITS), aligned(ends.upper, DIGITS)
    estimate = marked(aligned(table.cv_estimate(g, t), DIGITS), True)
    cells = (str(table.taus[t]), *gamma, lower, upper, estimate, f"{table.decided(g, t)}/{table.folds}", *more)
    return Row(cells, "bold" if (g, t) == best else None)


def _print_certified(console: Console, table: BoundsTable, g: int) -> None:
    best = table.best()
    rows = [_row(table, g, t, [], best, table.won(g, t)) for t in range(len(table.taus))]
    print_table(console, ("tau", "lower", "upper", "estimate", "folds decided", "bound"), rows, text=("bound",))


def _print_printed(console: Console, table: PrintedTable, g: int) -> None:
    rows = [Row((str(tau), *(shown(value) for value in table.cv_estimates(g, t)))) for t, tau in enumerate(table.taus)]
    names = ("tau", "lower (estimate)", "upper (estimate)", "estimate")
    print_table(console, names, rows)
