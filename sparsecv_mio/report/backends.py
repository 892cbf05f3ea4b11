"""Backends and single fits on the screen and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.record import FitRecord
from sparsecv_mio.formulation.backends import BACKENDS, get_backend
from sparsecv_mio.report.layout import Row, print_table, say
from sparsecv_mio.report.numbers import interval_digits, pair, shown
from sparsecv_mio.report.tables import MEANING, print_model


@dataclass(frozen=True)
class BackendRow:
    """What is known of one backend on this machine; `formulations` maps a name to the side constraints it takes."""

    name: str
    usable: bool
    why: str
    version: str
    licence: str
    hint: str
    formulations: dict[str, list[str]]
    limits: list[str]
    warm_start: bool


def describe_backends() -> list[BackendRow]:
    """Ask every registered backend."""
    rows = []
    for name in BACKENDS:
        backend = get_backend(name)
        here, can = backend.available(), backend.capabilities
        rows.append(
            BackendRow(
                name=name,
                usable=here.usable,
                why=here.why,
                version=here.version,
                licence=here.licence,
                hint=here.hint,
                formulations={form: sorted(kinds) for form, kinds in can.formulations.items()},
                limits=sorted(can.limits),
                warm_start=can.warm_start,
            )
        )
    return rows


def text_of_backends(rows: list[BackendRow]) -> str:
    """Return the rows as JSON."""
    return json.dumps({"schema": "sparsecv-backends/1", "backends": [asdict(row) for row in rows]}, indent=2) + "\n"


def print_backends(console: Console, rows: list[BackendRow]) -> None:
    """Print a row for each backend, then what its formulations take."""
    seen = []
    for row in rows:
        told = row.licence if row.usable else f"{row.why}. {row.hint}".rstrip(". ")
        cells = row.name, "yes" if row.usable else "no", row.version, told
        seen.append(Row(cells, None if row.usable else "dim"))
    heads = ("backend", "usable", "version", "licence, or why not")
    print_table(console, heads, seen, text=heads)
    forms = [
        Row((row.name, form, ", ".join(kinds) or "none", ", ".join(row.limits)))
        for row in rows
        for form, kinds in row.formulations.items()
    ]
    heads = ("backend", "formulation", "side constraints", "limits")
    print_table(console, heads, forms, text=heads)


def print_fit(console: Console, record: FitRecord, brief: bool = False) -> None:
    """Print the record of one MIO.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : FitRecord
        What was found.
    brief : bool
        Only the answer: no work, no allowance.
    """
    digits = interval_digits([(record.lower, record.upper)])
    word, colour = MEANING[record.status]
    box = record.assumed_box
    given = "" if box is None else f", given that every coefficient is within {box:g} of zero"
    console.print(Text.assemble((word + given, f"bold {colour}"), f"   {pair(record.tau, record.gamma)}"))
    ends = f"[{shown(record.lower, digits)}, {shown(record.upper, digits)}], gap {shown(record.gap, 3)}"
    objective = f"objective {shown(record.objective, digits)} (training errors and penalty)"
    told = "certified" if box is None else "certified among such models"
    say(console, f"{objective}   {told}: the least is in {ends}")
    if record.side is not None and (words := record.side.words()):
        say(console, f"models compared: {words}")
    print_model(console, record.coefficients, record.intercept)
    if brief:
        return
    effort = f"{record.raw_status}, {record.nodes:,} nodes, {record.cuts:,} cuts"
    seconds = f"{record.seconds:.3f} s in the solver, {record.setup_seconds:.3f} s around it"
    say(console, f"work: {record.backend} {record.formulation}: {effort}, {seconds}", "dim")
    if record.allowance > 0.0:
        doubt = shown(record.allowance, 3)
        say(console, f"allowance {doubt}: subtracted from the solver's bound, for its tolerances", "dim")
