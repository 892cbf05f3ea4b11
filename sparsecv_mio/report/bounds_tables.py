"""Bounds of the CV error on the screen."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.report.tables import shown


def print_bounds(
    console: Console, table: BoundsTable | PrintedTable, brief: bool = False, seconds: float | None = None
) -> None:
    """Print one table per gamma, a row per tau; brief: only the interval of the least CV error.

    Parameters
    ----------
    console : rich.console.Console
    table : BoundsTable or PrintedTable
    brief : bool
    seconds : float, optional
        Wall time, for the last line.
    """
    if isinstance(table, PrintedTable):
        console.print("the paper's Corollary 2.7 as printed: not valid, estimates only", markup=False)
        for g, gamma in enumerate(table.gammas):
            _print_printed(console, table, g, gamma)
        return
    least = table.minimum()
    g, t = table.best()
    if not brief:
        for place, gamma in enumerate(table.gammas):
            console.print(f"gamma = {shown(gamma)}", markup=False)
            console.print(_certified(table, place))
    console.print(
        f"the least CV error of the grid is in [{shown(least.lower)}, {shown(least.upper)}] (certified); "
        f"smallest upper bound at tau = {table.taus[t]}, gamma = {shown(table.gammas[g])}",
        markup=False,
    )
    if not brief:
        wall = "" if seconds is None else f" in {seconds:.2f} s"
        console.print(f"0 MIOs, {table.lower.size} cells{wall}, {_decided(table)} decided", markup=False)


def _decided(table: BoundsTable) -> int:
    return int((table.left == 0).sum())


def _certified(table: BoundsTable, g: int) -> Table:
    out = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("tau", "lower", "upper", "estimate", "folds decided"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("bound", no_wrap=True)
    best = table.best()
    for t, tau in enumerate(table.taus):
        ends = table.cv_interval(g, t)
        numbers = [shown(value) for value in (ends.lower, ends.upper, table.cv_estimate(g, t))]
        decided = f"{table.decided(g, t)}/{table.folds}"
        out.add_row(str(tau), *numbers, decided, table.won(g, t), style="bold" if (g, t) == best else None)
    return out


def _print_printed(console: Console, table: PrintedTable, g: int, gamma: float) -> None:
    console.print(f"gamma = {shown(gamma)}", markup=False)
    out = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("tau", "lower (estimate)", "upper (estimate)", "estimate"):
        out.add_column(name, justify="right", no_wrap=True)
    for t, tau in enumerate(table.taus):
        out.add_row(str(tau), *(shown(value) for value in table.cv_estimates(g, t)))
    console.print(out)
