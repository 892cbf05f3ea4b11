"""Tables of backends, of single fits and of comparisons of backends, for the screen, JSON, CSV and Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.digits import format_interval, format_number, interval_digits, several
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import BACKENDS, find_package_backends, get_backend
from sparsecv_mio.report.layout import pair, print_table, say, say_codes, say_of_link
from sparsecv_mio.report.ratios import scatter_lines
from sparsecv_mio.report.record_tables import MEANING, print_model
from sparsecv_mio.targets import Loss

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset


@dataclass(frozen=True)
class BackendRow:
    """The facts about one backend on this machine.

    `formulations` maps the name of a formulation to the side constraints that it supports with squared-error loss;
    `by_loss` does the same for every other loss. A mapping is empty if the backend does not support the loss.
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
    by_loss: dict[str, dict[str, list[str]]]


def describe_backends() -> list[BackendRow]:
    """Return the facts about every registered backend."""
    rows = []
    for name in (*BACKENDS, *find_package_backends()):
        try:
            backend = get_backend(name)
        except BackendUnavailable as error:  # the backend belongs to another package
            rows.append(BackendRow(name, False, str(error), "", "", "", {}, [], False, {}))
            continue
        here, can = backend.available(), backend.capabilities
        forms, *others = ({form: sorted(kinds) for form, kinds in can.of(loss).items()} for loss in Loss)
        by_loss = {str(loss): forms for loss, forms in zip([*Loss][1:], others, strict=True)}
        told = here.usable, here.why, here.version, here.licence, here.hint
        rows.append(BackendRow(name, *told, forms, sorted(can.limits), can.warm_start, by_loss))
    return rows


def text_of_backends(rows: list[BackendRow]) -> str:
    """Return the facts as JSON."""
    losses = [str(loss) for loss in Loss if not loss.is_quadratic]
    backends = [{**asdict(row), **{loss: row.by_loss.get(loss, {}) for loss in losses}} for row in rows]
    for backend in backends:
        del backend["by_loss"]
    return json.dumps({"schema": "sparsecv-backends/1", "backends": backends}, indent=2) + "\n"


def print_backends(console: Console, rows: list[BackendRow]) -> None:
    """Print a row for each backend, then the constraints that its formulations support."""
    seen = [
        (row.name, row.usable, row.version, row.licence if row.usable else f"{row.why}. {row.hint}".rstrip(". "))
        for row in rows
    ]
    heads = ("backend", "usable", "version", "licence, or reason why unusable")
    print_table(console, heads, seen, text=heads, styles=["" if row.usable else "dim" for row in rows])
    takes = [
        (row.name, loss, form, ", ".join(kinds) or "none", ", ".join(row.limits))
        for row in rows
        for loss, forms in {"squared": row.formulations, **row.by_loss}.items()
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
    losses = record.loss.target.losses
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
        say(
            console,
            f"the lower bound is {allowance} below that of the solver, to cover the tolerances of the solver",
            "dim",
        )
