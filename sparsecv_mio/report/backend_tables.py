"""Tables of backends, single fits and comparisons of backends, for the screen, JSON, CSV and Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.adjusted import adjustment_columns
from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.digits import format_interval, format_number, interval_digits, several
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.files import with_inert_words, write_text
from sparsecv_mio.formulation.backends import BACKENDS, find_package_backends, get_backend
from sparsecv_mio.report.layout import cell, pair, print_table, say, say_codes, say_of_link
from sparsecv_mio.report.ratios import scatter_lines
from sparsecv_mio.report.record_tables import MEANING, print_model
from sparsecv_mio.words import LOSS_WORDS, Loss

if TYPE_CHECKING:
    from sparsecv_mio.batch.mio_comparison import CompareRow
    from sparsecv_mio.data.dataset import Dataset


@dataclass(frozen=True)
class BackendRow:
    """The facts about one backend on this machine.

    `formulations` maps the name of a formulation to the side constraints that it supports with squared-error loss;
    `logistic` and `poisson` do the same for these losses. A mapping is empty if the backend does not support the loss.
    """

    name: str
    usable: bool
    why: str
    version: str
    licence: str
    hint: str
    formulations: dict[str, list[str]]
    limits: list[str]
    warm_start: bool
    logistic: dict[str, list[str]]
    poisson: dict[str, list[str]]


def describe_backends() -> list[BackendRow]:
    """Return the facts about every registered backend."""
    rows = []
    for name in (*BACKENDS, *find_package_backends()):
        try:
            backend = get_backend(name)
        except BackendUnavailable as error:  # the backend belongs to another package
            rows.append(BackendRow(name, False, str(error), "", "", "", {}, [], False, {}, {}))
            continue
        here, can = backend.available(), backend.capabilities
        forms, *others = ({form: sorted(kinds) for form, kinds in can.of(loss).items()} for loss in Loss)
        told = here.usable, here.why, here.version, here.licence, here.hint
        rows.append(BackendRow(name, *told, forms, sorted(can.limits), can.warm_start, *others))
    return rows


def text_of_backends(rows: list[BackendRow]) -> str:
    """Return the facts as JSON."""
    return json.dumps({"schema": "sparsecv-backends/1", "backends": [asdict(row) for row in rows]}, indent=2) + "\n"


def print_backends(console: Console, rows: list[BackendRow]) -> None:
    """Print a row for each backend, then the constraints that its formulations support."""
    seen = [
        (row.name, row.usable, row.version, row.licence if row.usable else f"{row.why}. {row.hint}".rstrip(". "))
        for row in rows
    ]
    heads = ("backend", "usable", "version", "licence, or why not")
    print_table(console, heads, seen, text=heads, styles=["" if row.usable else "dim" for row in rows])
    takes = [
        (row.name, loss, form, ", ".join(kinds) or "none", ", ".join(row.limits))
        for row in rows
        for loss, forms in zip(Loss, (row.formulations, row.logistic, row.poisson), strict=True)
        for form, kinds in forms.items()
    ]
    words = ("backend", "loss", "formulation", "side constraints", "limits")
    print_table(console, words, takes, text=words)


def print_fit(console: Console, record: FitRecord, brief: bool = False, data: Dataset | None = None) -> None:
    """Print the record of one MIO.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : FitRecord
        Record of the MIO.
    brief : bool
        True to print only the answer, without work and rounding allowance.
    data : Dataset, optional
        Data of the record, for odds and rate ratios per standard deviation and for the deviance.
    """
    digits = interval_digits([(record.lower, record.upper)])
    title, reason, colour = MEANING[record.status]
    box = record.assumed_box
    condition = "" if box is None else f", given that every coefficient is within {box:g} of zero"
    word = f"certified best subset{condition}" if not reason else f"best subset so far ({reason}; not certified)"
    console.print(Text.assemble((f"{word}: ", f"bold {colour}"), pair(record.tau, record.gamma)))
    ends = format_interval(record.lower, record.upper, digits)
    losses = LOSS_WORDS[record.loss].losses
    say(console, f"objective {format_number(record.objective, digits)} ({losses} plus penalty)")
    among = "" if box is None else " of such models"
    say(console, f"minimum objective{among}: in {ends} (certified, relative gap {format_number(record.gap, 2)})")
    if record.side is not None and (words := record.side.words()):
        say(console, f"models compared: {words}")
    say_of_link(console, record)
    adjusted = adjustment_columns(record)
    print_model(console, record.coefficients, record.intercept, record.loss, data=data, adjusted=adjusted)
    say_codes(console, record.data)
    for line in scatter_lines(record, record, data):
        say(console, line)
    if brief:
        return
    effort = f"{record.raw_status}, {several(record.nodes, 'node')}, {several(record.cuts, 'cut')}"
    seconds = f"{record.seconds:.3f} s in the solver, {record.setup_seconds:.3f} s outside it"
    say(console, f"work: {record.backend} {record.formulation}: {effort}, {seconds}", "dim")
    if record.allowance > 0.0:
        allowance = format_number(record.allowance, 3)
        say(console, f"allowance {allowance}: subtracted from the bound of the solver to cover its tolerances", "dim")


SOLVED = ("optimal",)
COLUMNS = ("data", "fold", "tau", "gamma", "backend", "status", "seconds", "nodes", "cuts", "objective", "lower")


def write_csv(rows: Sequence[CompareRow], path: Path) -> None:
    """Write one line for each row, with the environment in every line."""
    import pandas as pd

    from sparsecv_mio.batch.mio_comparison import CompareRow

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
        lines.append((*which, row.status.partition(":")[0], *work, *ends, row.same_support))
    names = (*COLUMNS, "gap", "true gap", "agrees")
    print_table(console, names, lines, text=("data", "backend", "status"))
    _print_comparison_summary(console, rows)
    for text in dict.fromkeys(row.status for row in rows if ":" in row.status):
        say(console, text)


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
        lines.append(f"| {' | '.join(map(cell, (*which, row.status, *work, *ends, row.same_support)))} |")
    return "\n".join(lines) + "\n"
