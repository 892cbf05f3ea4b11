"""What a file holds, on the screen."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sparsecv_mio import grids
from sparsecv_mio.data.inspection import FOLDS, MOST_CORRELATED, ColumnFacts, Inspection
from sparsecv_mio.report.layout import Row, print_table, say

SHOWN = 40  # columns, unless all are asked for
SURE, HOPEFUL = 36, 100  # features up to which a default run is proved, or a good part of it (results/regions.md)


def print_inspection(console: Console, found: Inspection, path: str | Path, full: bool = False) -> None:
    """Print what a file holds, and what `solve` would do with it.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    found : Inspection
    path : str or Path
        The file, for the command.
    full : bool
        Every column; else, of many, those with something to say first.
    """
    say(console, f"{found.rows:,} rows, {len(found.columns):,} columns", "bold")
    listed = list(found.columns)
    if not full and len(listed) > SHOWN:
        listed = sorted(listed, key=lambda one: not (one.missing or one.notes or one.name == found.target))[:SHOWN]
    rows = [_row(one, one.name == found.target) for one in listed]
    names = ("column", "holds", "empty", "least", "mean", "largest", "sd", "notes")
    print_table(console, names, rows, {"column", "holds", "notes"})
    if len(listed) < len(found.columns):
        say(console, f"{len(found.columns) - len(listed):,} more columns: --full lists them", "dim")
    for line in _findings(found):
        say(console, line)
    console.print()
    if not found.target:
        say(console, "name the column to predict, --target T, to see what solve would do")
        return
    for line in _plan(found, str(path)):
        console.print(Text(line), soft_wrap=line.startswith("sparsecv "))  # a command that is cut could not be copied


def _row(one: ColumnFacts, target: bool) -> Row:
    sizes = ["" if value is None else f"{value:.5g}" for value in (one.least, one.mean, one.largest, one.spread)]
    notes = (["the target"] if target else []) + list(one.notes)
    return Row((one.name, one.kind, f"{one.missing:,}" if one.missing else "", *sizes, "; ".join(notes)))


def _findings(found: Inspection) -> list[str]:
    lines = []
    if found.incomplete:
        lines.append(f"{found.incomplete:,} rows have an empty cell in a column that would be used")
    if found.duplicates:
        lines.append(f"{found.duplicates:,} rows repeat an earlier one")
    spreads = [one.spread for one in found.columns if one.spread and one.name != found.target]
    if spreads and max(spreads) > 1e6 * min(spreads):
        lines.append("spreads differ by more than a million: keep the default --scale length")
    if len(found.columns) > MOST_CORRELATED:
        lines.append(f"correlations were not looked at: more than {MOST_CORRELATED:,} columns")
    return lines


def _plan(found: Inspection, path: str) -> list[str]:
    if found.doubts:
        column, said = next(iter(found.doubts.items()))
        return [f"column {column!r}: {said}, and inspect again"]
    if found.refused:
        return [f"solve would not take it yet: {found.refused}"]
    folds = found.folds
    if found.n < 4 or found.p < 1:
        return [f"what is left, {found.n:,} rows and {found.p:,} features, is too little to cross-validate"]
    shape = found.p, found.n - -(-found.n // folds)
    sizes, gammas = grids.default_taus(*shape), grids.default_gammas(*shape)
    cells = len(gammas) * len(sizes) * folds
    words = [word for option in found.options for word in shlex.split(option)]
    words += ["--folds", "loo"] if found.n < FOLDS and "--folds" not in words else []
    target = [f"--target={found.target}"] if found.target.startswith("-") else ["--target", found.target]
    path = f"./{path}" if path.startswith("-") else path
    command = shlex.join(["sparsecv", "solve", path, *target, *words])
    size = f"{found.n:,} rows, {found.p:,} features; {folds} folds, {len(gammas)} gammas from "
    size += f"{gammas[0]:g} to {gammas[-1]:g}, tau {sizes[0]} to {sizes[-1]}: {cells:,} best-subset problems"
    if found.p <= SURE:
        hope = "expect a proof in seconds"
    elif found.p <= HOPEFUL:
        short = "--tau 1:10 or --time-limit 60 keeps" if sizes[-1] > 10 else "--time-limit 60 keeps"
        hope = f"expect an answer in seconds and a proof for small tau; {short} it short"
    else:
        hope = "expect an estimate in seconds; give --time-limit 60 and see which part of the grid is proved"
    return [*([found.about_target] if found.about_target else []), command, size, hope]
