"""Tables of full-data fits (`path`, `fit`) and of the backends, for the screen and as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord, Surface
from sparsecv_mio.certificate.records import PathRow
from sparsecv_mio.certificate.restrictions import adjustment_columns, restrictions_of
from sparsecv_mio.digits import (
    format_interval,
    format_lower,
    format_number,
    format_with_zeros,
    interval_digits,
    quoted_name,
    several,
)
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.fits.criteria import Criteria, GlmCriteria, criteria
from sparsecv_mio.formulation.backends import BACKENDS, find_package_backends, get_backend
from sparsecv_mio.formulation.outcome import Availability, Capabilities
from sparsecv_mio.report import record_tables, record_words
from sparsecv_mio.report.coefficients import overdispersion_note, pearson_formula, ratio_columns, scatter_lines
from sparsecv_mio.report.layout import POINT_WIDTH, code_lines, link_lines, pair, print_table, say, say_titled
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.words import NATIVE, Intercept

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset


UNDEFINED = (
    "?: undefined, because the residual consists of rounding errors or there are too few rows; Cp also needs the "
    "residual of the model of all features, which is not computed for very large data"
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
    word, colour = record_tables.meaning(record)
    word = "certified best subsets" if record.status == "proved" else word.replace("best answer", "best subsets")
    console.print(Text(word, f"bold {colour}"))
    say(console, *record_words.event_lines(record), *link_lines(record), *record_tables.restriction_lines(record))
    gammas = sorted({row.gamma for row in record.path})
    if record.surface is not None and not full:
        _print_surface(console, record.surface)
        gammas = []
    short = len(gammas) > 1 and not full
    for gamma in gammas[:1] if short else gammas:
        rows = [row for row in record.path if row.gamma == gamma]
        fits = [] if data is None else criteria(rows, data, record.data.intercept != Intercept.NONE, record)
        least = f", the smallest of {len(gammas)}" if short else ""
        say(console, f"\nbest subsets on all rows, gamma = {format_number(gamma)} (ridge weight{least})")
        _print_models(console, rows, fits, record, record.path if short else ())
        if not short:
            _print_ratios(console, rows, record, data)
    say(console, *code_lines(record))
    more = "for coefficients, objectives and bounds, add --gamma G (one gamma) or --full (every gamma)" if short else ""
    work = f"{several(len(record.path), 'best subset')}; {record_tables.work_line(record.work, record.request.threads)}"
    say(console, more, "" if brief else work, style="dim")


def _print_models(
    console: Console, rows: Sequence[PathRow], fits: Sequence[Criteria] | Sequence[GlmCriteria],
    record: PathRecord, path: Sequence[PathRow],
) -> None:  # fmt: skip
    """Print a row for each size: its model or, for several gammas in `path`, its subset at the smallest gamma."""
    digits, adjusted = interval_digits((row.lower, row.upper) for row in rows), adjustment_columns(record)
    measures = [_measures(fit) for fit in fits] or [{} for _ in rows]
    has_intercept = record.wording.has_intercept
    models = (_gamma_cells(row, path) if path else _model_cells(row, digits, adjusted, has_intercept) for row in rows)
    lines = [(row.tau, *measured.values(), *cells) for row, measured, cells in zip(rows, measures, models, strict=True)]
    heads = ("up to gamma", "proved", "features") if path else ("objective", "lower", "proved", "model")
    print_table(console, ("tau", *measures[0], *heads), lines, text=heads[-1:])
    if len(rows) > 1:
        _print_best_sizes(console, [row.tau for row in rows], fits, record)
    if any(math.isnan(getattr(fit, name, 0.0)) for fit in fits for name in ("adjusted", "cp", "bic")):
        say(console, UNDEFINED, style="dim")
    _explain_glm_measures(console, [fit for fit in fits if isinstance(fit, GlmCriteria)], record)


def _print_best_sizes(
    console: Console, taus: list[int], fits: Sequence[Criteria] | Sequence[GlmCriteria], record: PathRecord
) -> None:
    """Print the best size by each criterion, and a warning if it is the largest size."""
    best = best_sizes(taus, fits)
    degrees = "(degrees of freedom: rank of the model matrix; exact only for gamma = 0)"
    say(console, f"{best} {degrees}" if best else "", style="dim")
    most = restrictions_of(record).n_selectable_features(record.data.p)
    if f": {taus[-1]}" in best and taus[-1] < most:
        say(console, f"tau = {taus[-1]} is the largest compared; larger models may be better", style="dim")


def _explain_glm_measures(console: Console, fits: Sequence[GlmCriteria], record: PathRecord) -> None:
    """Print the meaning of the criteria of logistic and Poisson models, and whether there is overdispersion."""
    if fits:
        own = f"deviance: {record.data.deviance} on all rows; " if record.data.trials else ""
        say(
            console,
            f"{own}explained: share of the null deviance (of the model without features) that the model explains",
            style="dim",
        )
    scatters = [fit.scatter for fit in fits if fit.scatter is not None and not math.isnan(fit.scatter.ratio)]
    if scatters:
        say(console, f"Pearson/df: {pearson_formula(record)}", style="dim")
        say(console, *overdispersion_note(min(scatters, key=lambda scatter: scatter.ratio), record.loss))


def _print_ratios(console: Console, rows: Sequence[PathRow], record: PathRecord, data: Dataset | None) -> None:
    """Print odds or rate ratios, one row for each size, adjustment columns last."""
    if not (word := record.wording.ratio):
        return
    say(console, f"{word}s of the features", style="bold")
    adjusted, lines = adjustment_columns(record), []
    for row in rows:
        _, cells = ratio_columns(record.wording, row.coefficients, data)
        names = sorted(cells, key=lambda name: name in adjusted)
        columns = zip(*(cells[name] for name in names), strict=True)
        models = (
            "  ".join(f"{cell} {quoted_name(name)}" for cell, name in zip(column, names, strict=True) if cell)
            for column in columns
        )
        if names:
            lines.append((row.tau, *models))
    heads = [f"{word}s per unit", *([] if data is None else [f"{word}s per standard deviation"])]
    print_table(console, ("tau", *heads), lines, text=heads)


def _model_cells(row: PathRow, digits: int, adjusted: Sequence[str], has_intercept: bool) -> tuple[object, ...]:
    """Return the last cells of a row; chosen features of the model come before adjustment columns."""
    names = sorted(row.coefficients, key=lambda name: name in adjusted)
    model = "".join(f"  {row.coefficients[name]:+.5g} {quoted_name(name)}" for name in names)
    return (
        format_with_zeros(row.objective, digits),
        format_lower(row.lower, digits, format_with_zeros),
        row.proved,
        f"{format_number(row.intercept, 5)}{model}" if has_intercept else model.strip() or "no features",
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
    ends = f"{format_number(surface.low)} to {format_number(surface.high)}"
    console.print(f"\nbest subsets on all rows, every gamma (ridge weight) from {ends}")
    pieces = [piece for piece in surface.pieces if piece.high > piece.low * (1.0 + POINT_WIDTH) or not piece.proved]
    heads = record_tables.SURFACE_HEADS
    print_table(console, heads, record_tables.surface_rows(surface, pieces), text=heads[-1:])


def describe_backends() -> list[dict[str, Any]]:
    """Return the facts about every registered backend, as its JSON text states them.

    `formulations` maps the name of a formulation to the side constraints that it supports with squared-error loss; the
    name of any other loss does the same for this loss. A mapping is empty if the backend does not support the loss.
    """
    rows = []
    for name in (*BACKENDS, *find_package_backends()):
        try:
            backend = get_backend(name)
            here, can = backend.available(), backend.capabilities
        except BackendUnavailable as error:  # the backend belongs to another package
            here, can = Availability(False, str(error)), Capabilities({}, frozenset(), warm_start=False)
        supported = {loss: {form: sorted(kinds) for form, kinds in can.of(loss).items()} for loss in Loss}
        forms = supported.pop(DEFAULT_LOSS)
        facts = {"formulations": forms, "limits": sorted(can.limits), "warm_start": can.warm_start}
        rows.append({"name": name, **asdict(here), **facts, **{str(loss): supported[loss] for loss in supported}})
    return rows


def print_backends(console: Console, rows: list[dict[str, Any]]) -> None:
    """Print a row for each backend, then the constraints that its formulations support."""
    reasons = [row["licence"] if row["usable"] else f"{row['why']}. {row['hint']}".rstrip(". ") for row in rows]
    seen = [(row["name"], row["usable"], row["version"], reason) for row, reason in zip(rows, reasons, strict=True)]
    heads = ("backend", "usable", "version", "licence, or reason why it cannot be used")
    print_table(console, heads, seen, text=heads, styles=["" if row["usable"] else "dim" for row in rows])
    takes = [
        (row["name"], loss, form, ", ".join(kinds) or "none", ", ".join(row["limits"]))
        for row in rows
        for loss in Loss
        for form, kinds in row["formulations" if loss.is_quadratic else loss].items()
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
    digits, box = interval_digits([(record.lower, record.upper)]), record.assumed_box
    _, reason, colour = record_tables.MEANING[record.status]
    condition = "" if box is None else f", given that every coefficient is within {box:g} of zero"
    reason = f"{_error_source(record)} or ties leave a gap" if reason and record.stop == "gap" else reason
    word = f"certified best subset{condition}" if not reason else f"best subset so far ({reason}; not certified)"
    say_titled(console, word, pair(record.tau, record.gamma, restrictions_of(record).unit_of_tau), colour)
    ends = format_interval(record.lower, record.upper, digits)
    among, words = "" if box is None else " of such models", "" if record.side is None else record.side.words()
    say(
        console,
        f"objective {format_number(record.objective, digits)} ({record.wording.losses} plus penalty)",
        f"minimum objective{among}: in {ends} (certified, relative gap {format_number(record.gap, 2)})",
        _describe_excess(record),
        f"models compared: {words}" if words else "",
        *record_words.event_lines(record),
        *link_lines(record),
    )
    record_tables.print_model(console, record, data=data)
    say(console, *code_lines(record), *scatter_lines(record, record, data))
    if brief:
        return
    effort = f"{record.raw_status}, {several(record.nodes, 'node')}, {several(record.cuts, 'cut')}"
    seconds = f"{record.seconds:.3f} s in the solver, {record.setup_seconds:.3f} s outside of it"
    say(console, f"work: {record.backend} {record.formulation}: {effort}, {seconds}", style="dim")
    if record.allowance > 0.0 and "lower bound is not used" not in record.raw_status:
        solver = "trees" if record.backend == NATIVE else "solver"
        allowance = f"{format_number(record.allowance, 3)} below that of the {solver}"
        say(console, f"the lower bound is {allowance}, to cover the {_error_source(record)}", style="dim")


def _error_source(record: FitRecord) -> str:
    """Return the kind of errors that keeps the bounds of a fit apart."""
    return "rounding errors" if record.backend == NATIVE else "tolerances of the solver"


def _describe_excess(record: FitRecord) -> str:
    """Return a line on a gap above the requested one, which the tolerances of the solver or rounding explain."""
    if record.status != "proved":
        remedy = "a larger --gamma" if record.backend == NATIVE else "--backend native"
        return f"{remedy} may close the gap" if record.stop == "gap" else ""
    if record.gap <= record.requested_gap:
        return ""
    share = format_number(100.0 * record.allowance / record.upper, 2)
    excess = f"the gap exceeds --gap {record.requested_gap:g}"
    if record.backend == NATIVE:
        return f"{excess} because of rounding errors, by at most {share}% of the objective"
    source = f"of the tolerances of {record.backend}, by at most {share}% of the objective"
    return f"{excess} because {source}; the native backend has no such tolerances"


def _measures(fit: Criteria | GlmCriteria) -> dict[str, str]:
    """Return the criteria of a fit as text, by column header; fractions have four decimals."""
    if isinstance(fit, Criteria):
        shares = {"R^2": f"{fit.r_squared:.4f}", "adjusted": f"{fit.adjusted:.4f}"}
        return shares | {"Cp": format_number(fit.cp, 5), "BIC": format_number(fit.bic, 5)}
    measures = {"deviance": format_number(fit.deviance, 5), "explained": f"{fit.mcfadden:.4f}"}
    measures |= {"AIC": format_number(fit.aic, 5), "BIC": format_number(fit.bic, 5)}
    return measures if fit.scatter is None else measures | {"Pearson/df": format_number(fit.scatter.ratio, 4)}
