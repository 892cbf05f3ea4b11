"""Coefficients of the levels of a factor as differences from a reference level, for tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sparsecv_mio.certificate.factor_levels import References
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.digits import quoted_name
from sparsecv_mio.model_space import abbreviate_names, word_of_factor
from sparsecv_mio.report.layout import say

if TYPE_CHECKING:
    from rich.console import Console

Shown = TypeVar("Shown")


def with_reference(record: Shown, levels: References) -> Shown:
    """Return a record that states the reference levels for its coefficients.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    levels : mapping of str to sequence of str
        Result of :func:`sparsecv_mio.certificate.factor_levels.reference_levels`.
    """
    if not levels:
        return record
    name = "side" if isinstance(record, FitRecord) else "request"
    request: Any = getattr(record, name)
    return replace(record, **{name: replace(request, reference=tuple(levels))})  # type: ignore[type-var]


def requested_references(record: Any) -> References:
    """Return the columns of each factor with a requested reference level, by this level."""
    request = _request(record)
    wanted = () if request is None or request.reference is None else request.reference
    return {name: columns for name in wanted for columns in _factors(record) if name in columns}


def _request(record: Any) -> Any:
    return record.side if isinstance(record, FitRecord) else record.request


def _factors(record: Any) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each factor that enters as one feature."""
    request = _request(record)
    return () if request is None or request.restrictions is None else request.restrictions.count


def factor_lines(record: Any) -> list[str]:
    """Return lines that explain the coefficients of factors that enter as one feature; empty if no model has any.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    """
    models = record.path if isinstance(record, PathRecord) else [record]
    used = {name for model in models for name in model.coefficients}
    factors = [columns for columns in _factors(record) if used.intersection(columns)]
    references, lines = requested_references(record), list[str]()
    shown = [level for level, columns in references.items() if columns in factors]
    if shown:
        levels = abbreviate_names(shown)
        lines.append(
            f"coefficients are differences from {levels}, whose effect is in the intercept; the record has deviations"
        )
    deviations = [
        columns for columns in factors if columns not in references.values() and not _is_coded(columns, record)
    ]
    if deviations and record.data.intercept != "none":
        words = abbreviate_names(list(map(word_of_factor, deviations)))
        lines.append(
            f"coefficients of {words} are deviations: two levels differ by the difference of their coefficients; "
            f"--reference {quoted_name(deviations[0][0])} shows differences from a level"
        )
    return lines


def _is_coded(columns: Sequence[str], record: Any) -> bool:
    """Return True if one level of a factor is in no model, so that it is the reference of the others."""
    word = word_of_factor(tuple(columns))
    return any(name.startswith(f"{word}=") for name in _request(record).restrictions.force_out)


def against(record: Shown, references: References) -> Shown:
    """Return a record with coefficients relative to reference levels, whose coefficients move to the intercept.

    Predictions do not change, since every row has exactly one level of a factor.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    references : mapping of str to sequence of str
        Columns of each factor, by reference level.
    """
    if not references:
        return record
    if isinstance(record, PathRecord):
        return replace(record, path=tuple(_shift_coefficients(row, references) for row in record.path))
    shifted = _shift_coefficients(record, references)
    if isinstance(record, Record) and record.average is not None:
        average = replace(record.average, model=_shift_coefficients(record.average.model, references))
        shifted = replace(shifted, average=average)
    return shifted


def _shift_coefficients(model: Any, references: References) -> Any:
    coefficients, intercept = dict(model.coefficients), model.intercept
    for level, columns in references.items():
        shift = coefficients.get(level, 0.0)
        coefficients |= {name: coefficients[name] - shift for name in columns if name in coefficients}
        intercept += shift
    return replace(model, coefficients=coefficients, intercept=intercept)


def make_printer(printer: Callable[[Console, Shown], None], record: Shown) -> Callable[[Console], None]:
    """Return a function that prints a record with coefficients relative to its reference levels, and a note.

    Parameters
    ----------
    printer : callable
        Function that prints a record on a console.
    record : Record, PathRecord or FitRecord
        Record.
    """

    def show(console: Console) -> None:
        printer(console, against(record, requested_references(record)))
        for line in factor_lines(record):
            say(console, line)

    return show
