"""Tables of full-data fits (`path`, `fit`) and of the backends, for the screen and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.accuracy import Scatter
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord, Surface
from sparsecv_mio.certificate.records import PathRow
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.digits import format_interval, format_number, format_with_zeros, interval_digits, quoted_name, several
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.fits.criteria import Criteria, GlmCriteria, criteria
from sparsecv_mio.formulation.backends import BACKENDS, find_package_backends, get_backend
from sparsecv_mio.model_space import NONE
from sparsecv_mio.report.coefficients import PEARSON, model_of_ratios, overdispersion_note, scatter_lines
from sparsecv_mio.report.layout import POINT_WIDTH, pair, print_table, say, say_codes, say_of_link
from sparsecv_mio.report.record_tables import (
    MEANING,
    meaning,
    print_model,
    print_restrictions,
    subsets_of_piece,
    work_line,
)
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset


FITS = ("R^2", "adjusted", "Cp", "BIC")  # column headers: the fields of `Criteria`
GLM_FITS = ("deviance", "explained", "AIC", "BIC")  # the fields of `GlmCriteria` except the dispersion of counts
UNDEFINED = (
    "?: undefined, because the residual consists of rounding errors or there are too few rows (Cp also needs the "
    "residual "
    "of the model of all features, which is not computed for very large data)"
)
PREFERENCES = (("adjusted", -1.0, "adjusted R^2"), ("cp", 1.0, "Cp"), ("aic", 1.0, "AIC"), ("bic", 1.0, "BIC"))


def print_path(
    console: Console, record: PathRecord, data: Dataset | None = None, brief: bool = False, full: bool = False
) -> None:
    """Print a path record: the best subset of every size, and its goodness of fit.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : PathRecord
        Record to print.
    data : Dataset, optional
        Data of the record, for R^2 and similar measures.
    brief : bool
        True to omit the work.
    full : bool
        True to print a table with every model for each gamma; a single gamma always has one. With several gammas the
        default is the subset at the smallest gamma.
    """
    word, colour = meaning(record)
    word = "certified best subsets" if record.status == "proved" else word.replace("best answer", "best subsets")
    console.print(Text(word, f"bold {colour}"))
    say_of_link(console, record)
    print_restrictions(console, record)
    gammas = sorted({row.gamma for row in record.path})
    if record.surface is not None and not full:
        ends = f"{format_number(record.surface.low)} to {format_number(record.surface.high)}"
        console.print(f"\nbest subsets on all rows, every gamma (ridge weight) from {ends}")
        _print_surface(console, record.surface)
        gammas = []
    short = len(gammas) > 1 and not full
    for gamma in gammas[:1] if short else gammas:
        rows = [row for row in record.path if row.gamma == gamma]
        fits = [] if data is None else criteria(
            rows, data, record.data.intercept != Intercept.NONE, record
        )  # fmt: skip
        least = f", the smallest of {len(gammas)}" if short else ""
        say(console, f"\nbest subsets on all rows, gamma = {format_number(gamma)} (ridge weight{least})")
        _print_models(console, rows, fits, record, record.path if short else ())
        if not short:
            _print_ratios(console, rows, record, data)
    say_codes(console, record.data)
    if short:
        say(
            console, "for coefficients, objectives and bounds, add --gamma G (one gamma) or --full (every gamma)", "dim"
        )
    if not brief:
        subsets = several(len(record.path), "best subset")
        say(console, f"{subsets}; {work_line(record.work, record.request.threads)}", "dim")


def _print_models(
    console: Console, rows: Sequence[PathRow], fits: Sequence[Criteria] | Sequence[GlmCriteria],
    record: PathRecord, path: Sequence[PathRow],
) -> None:  # fmt: skip
    """Print a row for each size: its model or, for several gammas in `path`, its subset at the smallest gamma."""
    digits, lines = interval_digits((row.lower, row.upper) for row in rows), list[tuple[object, ...]]()
    adjusted = adjustment_columns(record)
    criteria_of: list[Criteria | GlmCriteria] = [*fits]
    for row, fit in zip_longest(rows, criteria_of):
        good = [] if fit is None else _shares(fit._asdict())
        lines.append((row.tau, *good, *(_gamma_cells(row, path) if path else _model_cells(row, digits, adjusted))))
    heads = ("up to gamma", "proved", "features") if path else ("objective", "lower", "proved", "model")
    shares = _heads(fits)
    print_table(console, ("tau", *shares, *heads), lines, text=heads[-1:])
    if len(rows) > 1 and (chosen := best_sizes([row.tau for row in rows], fits)):
        say(console, f"{chosen} (assumes a small gamma: {_degrees(record)})", "dim")
    if any(math.isnan(getattr(fit, name, 0.0)) for fit in fits for name in ("adjusted", "cp", "bic")):
        say(console, UNDEFINED, "dim")
    if fits and isinstance(fits[0], GlmCriteria):
        say(console, "explained: explained share of the deviance of the model without features", "dim")
        _explain_scatter(console, [fit.scatter for fit in fits if isinstance(fit, GlmCriteria)])


def _degrees(record: PathRecord) -> str:
    """Return the definition of degrees of freedom in the criteria."""
    if not (record.request.restrictions or NONE).count:
        return "each feature counts as one degree of freedom"
    levels = "" if record.data.intercept == Intercept.NONE else ", and a factor of k levels as k - 1"
    return f"each column counts as one degree of freedom{levels}"


def _heads(fits: Sequence[Criteria] | Sequence[GlmCriteria]) -> tuple[str, ...]:
    """Return the column headers of some criteria."""
    if not fits or not isinstance(fits[0], GlmCriteria):
        return FITS if fits else ()
    return GLM_FITS if fits[0].scatter is None else (*GLM_FITS, "scatter")


def _explain_scatter(console: Console, scatters: Sequence[Scatter | None]) -> None:
    """Print the meaning of the dispersion of counts, and of a value well above 1 in the best model."""
    there = [scatter for scatter in scatters if scatter is not None and not math.isnan(scatter.ratio)]
    if not there:
        return
    say(console, f"scatter: {PEARSON}", "dim")
    least = min(there, key=lambda scatter: scatter.ratio)
    for line in overdispersion_note(least):
        say(console, line)


def _print_ratios(console: Console, rows: Sequence[PathRow], record: PathRecord, data: Dataset | None) -> None:
    """Print odds or rate ratios, one row for each size."""
    if not (word := record.loss.target.ratio):
        return
    say(console, f"{word}s of the features", "bold")
    adjusted, of_models = adjustment_columns(record), [row for row in rows if row.coefficients]
    lines = [(row.tau, *model_of_ratios(record.loss, row, data, adjusted)) for row in of_models]
    heads = [f"{word}s per unit", *([] if data is None else [f"{word}s per standard deviation"])]
    print_table(console, ("tau", *heads), lines, text=heads)


def _shares(fit: Mapping[str, Any]) -> list[str]:
    """Return criteria as text; fractions have four decimals."""
    shares, scatter = ("r_squared", "adjusted", "mcfadden"), fit.get("scatter")
    numbers = {name: value for name, value in fit.items() if name != "scatter"}
    told = [f"{value:.4f}" if name in shares else format_number(value, 5) for name, value in numbers.items()]
    return told if scatter is None else [*told, format_number(scatter.ratio, 4)]


def _model_cells(row: PathRow, digits: int, adjusted: Sequence[str]) -> tuple[object, ...]:
    """Return the last cells of a row; chosen features of the model come before adjustment columns."""
    names = sorted(row.coefficients, key=lambda name: name in adjusted)
    model = "".join(f"  {row.coefficients[name]:+.5g} {quoted_name(name)}" for name in names)
    return (
        format_with_zeros(row.objective, digits),
        format_with_zeros(row.lower, digits),
        row.proved,
        f"{format_number(row.intercept, 5)}{model}",
    )


def _gamma_cells(row: PathRow, path: Sequence[PathRow]) -> tuple[object, ...]:
    """Return the gamma up to which the subset at the smallest gamma is best, and the number of proved gammas."""
    mine = [path_row for path_row in path if path_row.tau == row.tau]
    alike = list(takewhile(lambda one: one.support == row.support, mine))
    return format_number(alike[-1].gamma, 4), f"{sum(path_row.proved for path_row in mine)}/{len(mine)}", row.support


def best_sizes(taus: Sequence[int], fits: Sequence[Criteria] | Sequence[GlmCriteria]) -> str:
    """Return the size that each criterion prefers as text; empty if none is known.

    Parameters
    ----------
    taus : sequence of int
        Support sizes.
    fits : sequence of Criteria
        Criteria for each size.

    Examples
    --------
    >>> best_sizes([1, 2], [Criteria(0.5, 0.4, 3.0, -2.0), Criteria(0.6, 0.5, math.nan, -1.0)])
    'best tau by adjusted R^2: 2, by BIC: 1'
    """
    best = []
    for field, sign, name in PREFERENCES:
        values = [
            (sign * getattr(fit, field), tau) for fit, tau in zip(fits, taus, strict=False) if hasattr(fit, field)
        ]
        if values and not any(math.isnan(value) for value, _ in values):
            best.append(f"by {name}: {min(values)[1]}")
    return f"best tau {', '.join(best)}" if best else ""


def _print_surface(console: Console, surface: Surface) -> None:
    """Print every piece except those around crossings that are too narrow to distinguish."""
    lines = [
        (piece.tau, piece.low, piece.high, subsets_of_piece(surface, piece))
        for piece in surface.pieces
        if piece.high > piece.low * (1.0 + POINT_WIDTH) or not piece.proved
    ]
    print_table(console, ("tau", "gamma from", "to", "features"), lines, text=("features",))


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
    heads = ("backend", "usable", "version", "licence, or reason why it cannot be used")
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
    seconds = f"{record.seconds:.3f} s in the solver, {record.setup_seconds:.3f} s outside of it"
    say(console, f"work: {record.backend} {record.formulation}: {effort}, {seconds}", "dim")
    if record.allowance > 0.0:
        allowance = format_number(record.allowance, 3)
        say(
            console,
            f"the lower bound is {allowance} below that of the solver, to cover the tolerances of the solver",
            "dim",
        )
