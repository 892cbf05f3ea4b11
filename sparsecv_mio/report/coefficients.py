"""Tables of coefficients: odds ratios, rate ratios with the dispersion of counts, and differences between levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sparsecv_mio.certificate.accuracy import Scatter
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.certificate.restrictions import References, restrictions_of
from sparsecv_mio.digits import format_number, quoted_name
from sparsecv_mio.errors import GridEdgeWarning, SparseCVWarning
from sparsecv_mio.model_space import abbreviate_names, find_factors, word_of_factor
from sparsecv_mio.report.layout import say
from sparsecv_mio.report.record_words import NULL_IS_BETTER, edge_hints
from sparsecv_mio.targets import Loss, Target
from sparsecv_mio.units import ACCURATE_RTOL
from sparsecv_mio.words import Intercept, Scale

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.dataset import Dataset


Shown = TypeVar("Shown")
LARGEST_LOG_RATIO = math.log(1e6)  # larger ratios are not printed: no unit of the feature has such an effect
MAX_SEPARATION_CELLS = 1_000_000  # cells of the columns of a model, up to which the separation of the rows is tested


def ratio(coefficient: float, step: float = 1.0) -> str:
    """Return the factor on odds or rates for a step of a feature as text, with enough digits to differ from 1.

    Examples
    --------
    >>> ratio(0.5), ratio(-0.5, 2.0), ratio(900.0), ratio(-60.0), ratio(0.00031), ratio(0.0)
    ('1.649', '0.3679', '>1e6', '<1e-6', '1.00031', '1')
    """
    exponent = coefficient * step
    if abs(exponent) > LARGEST_LOG_RATIO:
        return ">1e6" if exponent > 0.0 else "<1e-6"
    finer = 2 - math.floor(math.log10(abs(exponent))) if exponent else 4  # two digits of the difference from 1
    return format_number(math.exp(exponent), min(max(4, finer), 12))


def spreads(data: Dataset, names: Sequence[str]) -> dict[str, float]:
    """Return the standard deviations of columns over the rows of the file (divisor n - 1, unweighted), by name.

    Parameters
    ----------
    data : Dataset
        Data set; the outcomes of a row with trials count once.
    names : sequence of str
        Names.
    """
    X = data.split_into_cases()[0].X
    return {name: float(X[:, data.names.index(name)].std(ddof=min(1, len(X) - 1))) for name in names}


def ratio_columns(
    target: Target, coefficients: Mapping[str, float], data: Dataset | None
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the odds, rate or hazard ratios of a model: the column headers, and the cells by feature.

    Ratios per standard deviation are empty for levels of a factor.

    Parameters
    ----------
    target : Target
        Terms for the model; squared-error loss has no ratios.
    coefficients : mapping of str to float
        Coefficients by feature.
    data : Dataset, optional
        Data for ratios per standard deviation; without data, ratios are per unit only.
    """
    if not (word := target.ratio):
        return [], {}
    heads, cells = [f"{word} per unit"], {name: [ratio(value)] for name, value in coefficients.items()}
    if data is not None:
        heads.append(f"{word} per standard deviation")
        units, levels = spreads(data, list(coefficients)), find_levels(data.names)
        for name, value in coefficients.items():
            cells[name].append("" if name in levels else ratio(value, units[name]))
    return heads, cells


def find_levels(names: Sequence[str]) -> set[str]:
    """Return the columns that are levels of a factor: one standard deviation of such a column has no meaning."""
    return set(chain.from_iterable(find_factors(names)))


def scatter_lines(
    record: Record | FitRecord | PathRecord, model: Record | FitRecord | PathRow,
    data: Dataset | None,
) -> list[str]:  # fmt: skip
    """Return lines on the fit of a logistic or Poisson model to all rows, and on overdispersion.

    Parameters
    ----------
    record : Record, FitRecord or PathRecord
        Record of the model.
    model : Record, FitRecord or PathRow
        Part of the record with the model.
    data : Dataset, optional
        Data of the record; without data, and with squared-error loss, there are no lines.
    """
    if data is None or record.loss.is_quadratic:
        return []
    from sparsecv_mio.fits.criteria import glm_criteria  # squared-error loss does not need this import

    (fit,) = glm_criteria([model], data, record.data.intercept != Intercept.NONE, record)
    separated = separation_lines(record, list(model.coefficients), data)
    line = f"on all rows: {record.data.deviance} {format_number(fit.deviance)}"
    line += "" if math.isnan(fit.mcfadden) else f", share of the deviance explained {fit.mcfadden:.4f}"
    if fit.scatter is None or math.isnan(fit.scatter.ratio):
        return [line, *separated]
    return [
        f"{line}, {pearson_formula(record)} {format_number(fit.scatter.ratio, 4)}",
        *overdispersion_note(fit.scatter, record.loss),
        *separated,
    ]


def separation_lines(record: Any, names: Sequence[str], data: Dataset | None) -> list[str]:
    """Return a line if the columns of a model separate the rows, so that its ratios depend on the ridge penalty.

    Parameters
    ----------
    record : Record, FitRecord or PathRecord
        Record of the model.
    names : sequence of str
        Columns of the model.
    data : Dataset, optional
        Data of the record; without data, and with very large data, there is no line.
    """
    target = record.wording
    if not target.separated or data is None or data.n * len(names) > MAX_SEPARATION_CELLS:
        return []
    from sparsecv_mio.problem.glm_refit import are_rows_separated

    constant = np.ones((data.n, int(record.data.intercept != Intercept.NONE)))
    columns = np.column_stack([constant, data.X[:, [data.names.index(name) for name in names]]])
    if not are_rows_separated(columns, data.y, record.loss):
        return []
    return [
        f"the terms of this model separate {target.separated}: the {target.ratio}s are finite only because of the "
        "ridge penalty"
    ]


def pearson_formula(record: Record | FitRecord | PathRecord) -> str:
    """Return Pearson's chi-square over its degrees of freedom as text; row weights replace the number n of rows.

    Parameters
    ----------
    record : Record, FitRecord or PathRecord
        Record with Poisson loss, or with trials.
    """
    return f"Pearson chi-square / ({'n' if record.data.weights is None else 'total weight'} - rank of the model matrix)"


def answer_notes(record: Record, data: Dataset) -> Iterator[tuple[type[SparseCVWarning], str]]:
    """Yield the notes of `solve` on an answer, overdispersion and edges of the grid, each with its class.

    Parameters
    ----------
    record : Record
        Record of a search.
    data : Dataset
        Data of the record.
    """
    if record.has_dispersion:
        scatter = record.pearson(data)
        for note in overdispersion_note(scatter, record.loss):
            yield SparseCVWarning, f"{pearson_formula(record)} {format_number(scatter.ratio, 4)}: {note}"
    for hint in edge_hints(record):
        yield SparseCVWarning if NULL_IS_BETTER in hint else GridEdgeWarning, hint


def overdispersion_note(scatter: Scatter, loss: Loss = Loss.POISSON) -> list[str]:
    """Return a note on counts or successes with a dispersion well above that of their distribution, or nothing.

    Examples
    --------
    >>> overdispersion_note(Scatter(1.04, 0.1)), overdispersion_note(Scatter(2.25, 0.1))[0][:79]
    ([], 'the counts are overdispersed (the ratio is 1 for a Poisson model): the certifie')
    """
    what, model = ("counts", "Poisson") if loss.target.has_counts else ("successes", "binomial")
    errors = f"standard errors of the {model} model are {scatter.ratio**0.5:.2f} times too small"
    note = (
        f"the {what} are overdispersed (the ratio is 1 for a {model} model): the certified {loss.target.row_loss} "
        f"remains valid, but {errors}, and AIC and BIC choose too many features"
    )
    return [note] if scatter.is_wide else []


def with_reference(record: Shown, levels: References) -> Shown:
    """Return a record that states the reference levels for its coefficients.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    levels : mapping of str to sequence of str
        Result of :func:`sparsecv_mio.certificate.restrictions.reference_levels`.
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
    """Return lines that state with what the coefficients of levels of factors compare; empty if no model has a level.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    """
    models = record.path if isinstance(record, PathRecord) else [record]
    used = {name for model in models for name in model.coefficients}
    factors = [columns for columns in _factors(record) if used.intersection(columns)]
    single = _factors_of_single_levels(record)
    whole = [columns for columns in single if any(model.coefficients.keys() >= set(columns) for model in models)]
    effects = f"coefficients and {record.wording.ratio}s" if record.wording.ratio else "coefficients"
    parts = [columns for columns in single if used.intersection(columns) and columns not in whole]
    return [
        *_reference_lines(record, factors),
        *_mean_lines(record, factors, whole, effects),
        *(
            f"{effects} of {abbreviate_names([name for name in columns if name in used])} compare with the levels of "
            f"{word_of_factor(columns)} that are not in the model"
            for columns in parts
        ),
    ]


def _reference_lines(record: Any, factors: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a line on the reference levels that were requested for some factors of the model."""
    shown = [level for level, columns in requested_references(record).items() if columns in factors]
    if not shown:
        return []
    verb = "effect is" if len(shown) == 1 else "effects are"
    ratio = f"with the {record.wording.ratio or 'ratio'} 1"
    part = f"whose {verb} part of the intercept" if record.wording.has_intercept else ratio
    return [
        f"coefficients are differences from {abbreviate_names(shown)}, {part}; the record stores deviations from "
        f"{_name_mean(record)}"
    ]


def _mean_lines(
    record: Any, factors: Sequence[tuple[str, ...]], whole: Sequence[tuple[str, ...]], effects: str
) -> list[str]:
    """Return a line on the factors whose levels are compared with the mean of all levels."""
    references = requested_references(record).values()
    free = [columns for columns in factors if columns not in references and not _is_coded(columns, record)]
    if not (free or whole) or (record.data.intercept == Intercept.NONE and record.wording.has_intercept):
        return []
    words = abbreviate_names(list(map(word_of_factor, [*free, *whole])))
    command = "path" if isinstance(record, PathRecord) else "fit" if isinstance(record, FitRecord) else "solve"
    more = "" if free else " --count factors"
    return [
        f"{effects} of {words} compare each level with {_name_mean(record)}; `{command}` with "
        f"--reference {quoted_name([*free, *whole][0][0])}{more} compares with one level"
    ]


def _factors_of_single_levels(record: Any) -> list[tuple[str, ...]]:
    """Return the columns of each encoded factor whose levels count as features."""
    reading = record.data.reading
    words = set() if reading is None else set(reading.levels) - set(map(word_of_factor, _factors(record)))
    return [columns for columns in find_factors(record.data.names) if word_of_factor(columns) in words]


def bound_lines(record: Any) -> list[str]:
    """Return a line on the coefficients that are at one of their bounds, other than 0; empty if none is."""
    if isinstance(record, PathRecord):
        return []
    limits = restrictions_of(record).bounds
    at_bound = [
        name for name, value in record.coefficients.items()
        if value != 0.0 and any(math.isclose(value, limit, rel_tol=ACCURATE_RTOL) for limit in limits.get(name, ()))
    ]  # fmt: skip
    if not at_bound:
        return []
    noun, verb = ("coefficient", "is") if len(at_bound) == 1 else ("coefficients", "are")
    return [f"the {noun} of {abbreviate_names(at_bound)} {verb} at a bound of --coef-bounds"]


def _name_mean(record: Any) -> str:
    """Return the name of the mean of the levels that the penalty gives the coefficients of a factor."""
    share = "weighted share" if record.data.weights or record.data.class_weight else "share"
    weights = f"weights p (1 - p), with p the {share} of the rows that have the level"
    return f"the mean of all levels ({'equal weights' if record.data.scale == Scale.NONE else weights})"


def _is_coded(columns: Sequence[str], record: Any) -> bool:
    """Return True if one level of a factor is in no model, so that it is the reference of the others."""
    word = word_of_factor(tuple(columns))
    return any(name.startswith(f"{word}=") for name in _request(record).restrictions.force_out)


def against(record: Shown, references: References) -> Shown:
    """Return a record with coefficients relative to reference levels, whose coefficients move to the intercept.

    Predictions do not change, since every row has exactly one level of a factor. The models of bootstrap draws change
    in the same way, and the percentiles of their coefficients are computed again. The shares of zeros do not change:
    they are those of draws without the feature.

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
    if isinstance(record, Record) and record.bootstrap is not None:
        from sparsecv_mio.certificate.inference_checks import (
            summarise_bootstrap,  # other records do not need this import
        )

        chosen = tuple(_shift_coefficients(model, references) for model in record.bootstrap.chosen)
        drawn, outside = record.bootstrap, {term.feature: term.zeros for term in record.bootstrap.features}
        drawn = summarise_bootstrap(record, replace(drawn, chosen=chosen))  # counts the differences of 0 as zeros
        features = tuple(replace(term, zeros=outside[term.feature]) for term in drawn.features)
        shifted = replace(shifted, bootstrap=replace(drawn, features=features))
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
        say(console, *factor_lines(record), *bound_lines(record))

    return show
