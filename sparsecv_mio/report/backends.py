"""Backends and single fits on the screen and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparsecv_mio.certificate.fit_record import FitRecord
from sparsecv_mio.formulation.backends import BACKENDS, get_backend
from sparsecv_mio.report.tables import MEANING, _coefficient_table, interval_digits, shown


@dataclass(frozen=True)
class BackendRow:
    """One backend as seen here; `formulations` maps a name to the side constraints it takes."""

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
    """The rows as JSON."""
    return json.dumps({"schema": "sparsecv-backends/1", "backends": [asdict(row) for row in rows]}, indent=2) + "\n"


def print_backends(console: Console, rows: list[BackendRow]) -> None:
    """Print one row a backend, then what each takes."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("backend", "usable", "version", "licence, or why not"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        told = row.licence if row.usable else f"{row.why}. {row.hint}".rstrip(". ")
        word = Text("yes", style="green") if row.usable else Text("no", style="red")
        table.add_row(row.name, word, row.version, Text(told))
    console.print(table)
    wide = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("backend", "formulation", "side constraints", "limits"):
        wide.add_column(heading, overflow="fold")
    for row in rows:
        for form, kinds in row.formulations.items():
            wide.add_row(row.name, form, ", ".join(kinds) or "none", ", ".join(row.limits))
    console.print(wide)


def print_fit(console: Console, record: FitRecord, brief: bool = False) -> None:
    """Print the record of one MIO."""
    digits = interval_digits([(record.lower, record.upper)])
    word, colour = MEANING[record.status]
    console.print(Text.assemble((word, f"bold {colour}"), f"   tau = {record.tau}, gamma = {shown(record.gamma)}"))
    console.print(
        f"objective {shown(record.objective, digits)} in [{shown(record.lower, digits)}, "
        f"{shown(record.upper, digits)}], gap {shown(record.gap, 3)} (allowance {shown(record.allowance, 3)})",
        markup=False,
    )
    console.print(_coefficient_table(record.coefficients, record.intercept))
    if not brief:
        console.print(
            f"{record.backend} {record.formulation}: {record.raw_status}, {record.nodes} nodes, {record.cuts} cuts, "
            f"{record.seconds:.3f} s in the solver, {record.setup_seconds:.3f} s around it",
            markup=False,
        )
