"""The answer on the screen: first what was asked for, then the evidence, then the work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparsecv_mio.certificate.record import PathRecord, PathRow, Record, TableRow, Work

if TYPE_CHECKING:
    from sparsecv_mio.certificate.checks import VerifyReport

MEANING = {
    "proved": ("proved", "green"),
    "limit": ("limit reached: best answer so far, bounds valid", "yellow"),
    "interrupted": ("interrupted: best answer so far, bounds valid", "yellow"),
}


def shown(value: float, digits: int = 6) -> str:
    """A number for the screen; an unknown bound is a question mark.

    Examples
    --------
    >>> shown(0.05), shown(123456.789), shown(float("inf"))
    ('0.05', '123457', '?')
    """
    return f"{value:.{digits}g}" if math.isfinite(value) else "?"


def aligned(value: float, digits: int) -> str:
    """As `shown`, with trailing zeros and without an exponent below 1e12: for a column of numbers of one size.

    Examples
    --------
    >>> aligned(2999.8, 6)
    '2999.80'
    >>> aligned(1762506.9, 6)
    '1762507'
    """
    if 10.0**digits <= abs(value) < 1e12:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".") if math.isfinite(value) else "?"


def interval_digits(rows: Iterable[tuple[float, float]]) -> int:
    """Digits that tell the ends of intervals apart, from 6 to 12; narrower than 1e-6 is a point on the screen."""
    ratios = [(high - low) / high for low, high in rows if 0.0 < low < high < math.inf]
    return min(12, max([6, *(2 - math.floor(math.log10(ratio)) for ratio in ratios if ratio > 1e-6)]))


def print_answer(console: Console, record: Record, brief: bool = False) -> None:
    """Print a cross-validation record.

    Parameters
    ----------
    console : rich.console.Console
    record : Record
    brief : bool
        Only the answer: no table by tau, no work.
    """
    digits = interval_digits([(record.lower, record.upper)])
    word, colour = MEANING[record.status]
    console.print(Text.assemble((word, f"bold {colour}"), f"   tau = {record.tau}, gamma = {shown(record.gamma)}"))
    console.print(
        f"CV error {shown(record.cv_error, digits)}   certified: the minimum over the grid is in "
        f"[{shown(record.lower, digits)}, {shown(record.upper, digits)}], gap {shown(record.gap, 3)}",
        markup=False,
    )
    if record.r_squared is not None:
        console.print(f"cross-validated R^2 {record.r_squared:.4f}")
    one = record.one_se
    if one is not None:
        console.print(
            f"one standard error ({shown(one.standard_error)}): tau = {one.tau}, gamma = {shown(one.gamma)}, CV error "
            f"{shown(one.cv_error)} in [{shown(one.lower)}, {shown(one.upper)}]",
            markup=False,
        )
    better = record.refined
    if better is not None:
        console.print(
            f"refined at the same tau: gamma = {shown(better.gamma)}, CV error {shown(better.cv_error, digits)} in "
            f"[{shown(better.lower, digits)}, {shown(better.upper, digits)}]",
            markup=False,
        )
    if record.descent:
        taken = [step for step in record.descent if step.accepted]
        path = " -> ".join(f"({shown(step.gamma, 4)}, {step.tau}) {shown(step.cv_error)}" for step in taken)
        refused = len(record.descent) - len(taken)
        console.print(f"descent over (gamma, tau): {path}; moves turned down: {refused}", markup=False)
    refit = record.refit
    proof = "proved" if refit.proved else f"objective in [{shown(refit.lower)}, {shown(refit.upper)}]"
    console.print(
        f"\nbest subset on all rows at tau = {refit.tau}, gamma = {shown(refit.gamma)} ({proof})", markup=False
    )
    console.print(_coefficient_table(record.coefficients, record.intercept))
    if not brief:
        console.print("best gamma of every tau")
        if any(row.folds_decided < row.folds for row in record.table):
            console.print("[dim]CV error where not all folds are decided: an estimate, within its bounds[/dim]")
        console.print(_tau_table(record))
        console.print(_work(record.work, record.request.threads), markup=False)


def _coefficient_table(coefficients: Mapping[str, float], intercept: float) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("feature", overflow="fold")
    table.add_column("coefficient", justify="right", no_wrap=True)
    for name, value in coefficients.items():
        table.add_row(Text(name), shown(value))
    table.add_row("(intercept)", shown(intercept), style="dim")
    return table


def best_by_tau(rows: Iterable[TableRow], chosen: tuple[float, int]) -> list[TableRow]:
    """For every tau the row with the least CV error, decided or estimated; the reported one goes first."""
    best: dict[int, TableRow] = {}

    def rank(row: TableRow) -> tuple[bool, float, float]:
        return (row.gamma, row.tau) != chosen, row.cv_error, row.upper

    for row in rows:
        if row.tau not in best or rank(row) < rank(best[row.tau]):
            best[row.tau] = row
    return [best[tau] for tau in sorted(best)]


def _tau_table(record: Record) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("tau", "gamma", "CV error", "lower", "upper", "folds decided"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = best_by_tau(record.table, (record.gamma, record.tau))
    digits = interval_digits((row.lower, row.upper) for row in rows)
    for row in rows:
        numbers = [aligned(value, digits) for value in (row.cv_error, row.lower, row.upper)]
        chosen = (row.gamma, row.tau) == (record.gamma, record.tau)
        decided = f"{row.folds_decided}/{row.folds}"
        table.add_row(str(row.tau), shown(row.gamma), *numbers, decided, style="bold" if chosen else None)
    return table


def _work(work: Work, threads: int | None) -> str:
    on = "" if threads is None else f" on {threads} thread{'' if threads == 1 else 's'}"
    return f"{work.mios} MIOs, {work.nodes} nodes, {work.seconds:.2f} s{on}, engine {work.engine}"


def print_path(console: Console, record: PathRecord, brief: bool = False) -> None:
    """Print a path record: one table per gamma, one row per tau."""
    word, colour = MEANING[record.status]
    console.print(Text(word, f"bold {colour}"))
    for gamma in sorted({row.gamma for row in record.path}):
        console.print(f"\nbest subsets on all rows, gamma = {shown(gamma)}")
        console.print(_path_table([row for row in record.path if row.gamma == gamma]))
    if not brief:
        console.print(_work(record.work, record.request.threads), markup=False)


def _path_table(rows: list[PathRow]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("tau", "objective", "lower", "proved"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("model", overflow="fold")
    digits = interval_digits((row.lower, row.upper) for row in rows)
    for row in rows:
        model = "".join(f"  {value:+.5g} {name}" for name, value in row.coefficients.items())
        numbers = aligned(row.objective, digits), aligned(row.lower, digits)
        table.add_row(str(row.tau), *numbers, "yes" if row.proved else "no", Text(f"{row.intercept:.5g}{model}"))
    return table


def print_verification(console: Console, report: VerifyReport, brief: bool = False) -> None:
    """Print what a verification could not prove, what it recomputed or bounded, what it only read, what disagrees.

    `brief`: only the first and the last of these.
    """
    if report.caveat:
        console.print(Text(report.caveat, "bold yellow"))
    for part in () if brief else report.verified:
        console.print(Text.assemble(("verified   ", "green"), part))
    for treatment, names in () if brief else report.fields:
        if treatment not in ("recomputed", "read"):
            how = treatment.removeprefix("bounded: ")
            console.print(Text.assemble(("bounded    ", "green"), f"{', '.join(names)}: {how}"))
    for part in () if brief else report.reread:
        console.print(Text.assemble(("only read  ", "yellow"), part))
    for failure in report.failures:
        console.print(Text.assemble(("disagrees  ", "bold red"), f"{failure.field}: {failure.message}"))
