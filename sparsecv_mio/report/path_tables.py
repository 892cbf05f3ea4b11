"""Screen tables of `sparsecv path`: criteria and model of each size, and best subsets for intervals of gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.accuracy import Scatter
from sparsecv_mio.certificate.fit_records import PathRecord, Surface
from sparsecv_mio.certificate.records import PathRow
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.digits import format_number, format_with_zeros, interval_digits, quoted_name, several
from sparsecv_mio.fits.criteria import Criteria, GlmCriteria, criteria
from sparsecv_mio.model_space import NONE
from sparsecv_mio.report.layout import POINT_WIDTH, print_table, say, say_codes, say_of_link
from sparsecv_mio.report.ratios import PEARSON, model_of_ratios, overdispersion_note
from sparsecv_mio.report.record_tables import meaning, print_restrictions, subsets_of_piece, work_line
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset

FITS = ("R^2", "adjusted", "Cp", "BIC")  # column headers: the fields of `Criteria`
GLM_FITS = ("deviance", "explained", "AIC", "BIC")  # the fields of `GlmCriteria` except the dispersion of counts
UNDEFINED = (
    "?: undefined, because the residual is only rounding error or there are too few rows (Cp uses the residual of the "
    "model of all features, which is not computed for very large data)"
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
        say(console, "coefficients, objectives and bounds: --gamma G for one gamma, --full for every gamma", "dim")
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
        say(console, f"{chosen} ({_degrees(record)}: for a small gamma)", "dim")
    if any(math.isnan(getattr(fit, name, 0.0)) for fit in fits for name in ("adjusted", "cp", "bic")):
        say(console, UNDEFINED, "dim")
    if fits and isinstance(fits[0], GlmCriteria):
        say(console, "explained: share of the deviance of the model without features", "dim")
        _explain_scatter(console, [fit.scatter for fit in fits if isinstance(fit, GlmCriteria)])


def _degrees(record: PathRecord) -> str:
    """Return the definition of degrees of freedom in the criteria."""
    if not (record.request.restrictions or NONE).count:
        return "each feature counts as one degree of freedom"
    levels = "" if record.data.intercept == Intercept.NONE else ", a factor of k levels as k - 1"
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
