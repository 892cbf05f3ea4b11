"""Tables of a comparison of backends, for the screen, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from rich.console import Console

from sparsecv_mio.batch.mio_comparison import CompareRow
from sparsecv_mio.digits import format_number
from sparsecv_mio.files import with_inert_words, write_text
from sparsecv_mio.report.layout import cell, print_table, say

SOLVED = ("optimal",)
COLUMNS = ("data", "fold", "tau", "gamma", "backend", "status", "seconds", "nodes", "cuts", "objective", "lower")


def write_csv(rows: Sequence[CompareRow], path: Path) -> None:
    """Write one line for each row, with the environment in every line."""
    import pandas as pd

    places = sorted({key for row in rows for key in row.environment})
    lines = [asdict(row) | {"support": " ".join(row.support)} | row.environment for row in rows]
    plain = [f.name for f in fields(CompareRow) if f.name not in ("support", "environment")]
    table = pd.DataFrame(lines, columns=[*plain, "support", *places])
    write_text(path, [with_inert_words(table).to_csv(index=False, lineterminator="\n")])


def print_compare(console: Console, rows: Sequence[CompareRow]) -> None:
    """Print every row, then a summary of each backend."""
    lines = []
    for row in rows:
        which = row.data, "all" if row.fold < 0 else row.fold, row.tau, row.gamma, row.backend
        work = format_number(row.seconds, 3), row.nodes, row.cuts
        ends = (
            format_number(row.objective, 9),
            format_number(row.lower, 9),
            format_number(row.gap, 2),
            format_number(row.true_gap, 2),
        )
        lines.append((*which, row.status.partition(":")[0], *work, *ends, _agreement(row)))
    names = (*COLUMNS, "gap", "true gap", "agrees")
    print_table(console, names, lines, text=("data", "backend", "status"))
    _print_comparison_summary(console, rows)
    for text in dict.fromkeys(row.status for row in rows if ":" in row.status):
        say(console, text)


def _agreement(row: CompareRow) -> bool | str:
    """Return whether a backend found the best objective; an empty text if it found no objective."""
    return row.same_support if np.isfinite(row.objective) else ""


def _print_comparison_summary(console: Console, rows: Sequence[CompareRow]) -> None:
    lines: list[tuple[object, ...]] = []
    for name in dict.fromkeys(row.backend for row in rows):
        mine = [row for row in rows if row.backend == name]
        ran = [row for row in mine if np.isfinite(row.seconds)]
        if not ran:
            lines.append((name, 0, len(mine), "", "", "", ""))
            continue
        seconds = [row.seconds for row in ran]
        counts = sum(row.status in SOLVED for row in ran), len(mine)
        times = format_number(float(np.median(seconds)), 3), format_number(float(np.sum(seconds)), 3)
        agree = f"{sum(row.same_support for row in ran)}/{len(ran)}"
        lines.append((name, *counts, *times, format_number(max(row.true_gap for row in ran), 2), agree))
    names = ("backend", "solved", "of", "median s", "total s", "largest true gap", "supports agree")
    print_table(console, names, lines, text=("backend",))


def markdown(rows: Sequence[CompareRow], command: str) -> str:
    """Return the comparison as a Markdown page, with the command that produced it."""
    names = ("data", "fold", "tau", "gamma", "backend", "formulation", "status", "seconds", "setup", "nodes", "cuts",
             "objective", "lower", "gap", "true gap", "agrees")  # fmt: skip
    lines = ["# Backend comparison", "", f"`{command}`", ""]
    environment = rows[0].environment if rows else {}
    keep = ("machine", "cores", "threads", "python", "numpy", "sparsecv_mio")
    lines += [", ".join(f"{key} {environment[key]}" for key in keep if key in environment) + "; " + ", ".join(
        dict.fromkeys(f"{row.backend.partition(':')[0]} {row.environment.get('backend_version', '')}" for row in rows)
    ), ""]  # fmt: skip
    lines += [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]
    for row in rows:
        which = row.data, "all" if row.fold < 0 else row.fold, row.tau, row.gamma, row.backend, row.formulation
        work = format_number(row.seconds, 3), format_number(row.setup_seconds, 3), row.nodes, row.cuts
        ends = (
            format_number(row.objective, 10),
            format_number(row.lower, 10),
            format_number(row.gap, 2),
            format_number(row.true_gap, 2),
        )
        lines.append(f"| {' | '.join(map(cell, (*which, row.status, *work, *ends, _agreement(row))))} |")
    return "\n".join(lines) + "\n"
