"""The model of a record for a paper: a table with rounded numbers, a caption, notes, a methods text and references.

The caption states only what the record certifies. Text values use the symbols τ and γ; the LaTeX format writes them as
formulas.
"""

from __future__ import annotations

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import csv_lines, inert
from sparsecv_mio.model_space import NONE
from sparsecv_mio.report.coefficients import against, requested_references, spreads
from sparsecv_mio.report.document import Publication, ReportTable, text_of
from sparsecv_mio.report.journal_numbers import (
    format_column,
    format_limits,
    format_p_value,
    format_percent,
    format_ratios,
)
from sparsecv_mio.report.publication_text import find_citations, write_texts
from sparsecv_mio.report.references import find_references


def publication_of(record: Record, data: Dataset | None = None) -> Publication:
    """Return the table of the model of a record for a paper.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    data : Dataset, optional
        Data of the record, for the effect of one standard deviation of each term.
    """
    from sparsecv_mio.report.record_plots import fitted_rows

    if data is not None:
        data = fitted_rows(record, data)
    record = against(record, requested_references(record))
    columns = _columns(record, data)
    names = list(next(iter(columns.values())))
    rows = tuple((name, *(column.get(name, "") for column in columns.values())) for name in names)
    texts = write_texts(record, data)
    table = ReportTable(texts.caption, ("Term", *columns), rows, words=1)
    references = find_references(find_citations(texts), record.versions["sparsecv_mio"])
    return Publication(table, texts.notes, texts.methods, texts.results, tuple(references))


def publication_text(record: object, kind: str, data: Dataset | None = None) -> str:
    """Return the table of a model for a paper as text.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    kind : {"csv", "latex", "md"}
        Format. CSV has the table only, the other formats also the caption, the notes and the methods text.
    data : Dataset, optional
        Data of the record.

    Raises
    ------
    BadInput
        If the record is not a record of `solve`, or the data are not its data.
    """
    if not isinstance(record, Record):
        raise BadInput("report: --style publication needs a record of `solve` that chose a pair (tau, gamma)")
    made = publication_of(record, data)
    if kind != "csv":
        return text_of(made, kind)
    cells = ((inert(name), *numbers) for name, *numbers in made.table.rows)
    return "".join(csv_lines([made.table.head, *cells]))


def _columns(record: Record, data: Dataset | None) -> dict[str, dict[str, str]]:
    """Return the columns of the table, each with its cells by term: features, adjustment columns, intercept."""
    model, adjusted, loss = record.predictor, adjustment_columns(record), record.loss.target
    names = sorted(model.coefficients, key=lambda name: name in adjusted)
    values = [model.coefficients[name] for name in names]
    estimates = dict(zip(names, format_column(values), strict=True))
    (intercept,) = format_column([model.intercept])
    references = [level for level, factor in requested_references(record).items() if set(factor) & set(names)]
    columns = {"Estimate": estimates | {"(intercept)": intercept} | dict.fromkeys(references, "reference")}
    steps = None if data is None else list(spreads(data, names).values())
    shown = [name not in references for name in names]
    if loss.ratio:
        columns[loss.ratio.capitalize()] = _pick(names, format_ratios(values), shown)
    if steps is not None:
        effects = [value * step for value, step in zip(values, steps, strict=True)]
        head = f"{loss.ratio.capitalize()}, 1 SD" if loss.ratio else "Effect of 1 SD"
        columns[head] = _pick(names, format_ratios(effects) if loss.ratio else format_column(effects), shown)
    counts = {name: f"{count:,}" for name, count in record.chosen_in().items()}
    counts |= dict.fromkeys(_forced(record), "forced")
    counts |= dict.fromkeys(adjusted, "adjusted for")
    folds = [counts.get(name, "0") for name in names]
    columns[f"Folds (of {record.folds.k:,})"] = dict(zip(names, folds, strict=True))
    coded = {name for factor in requested_references(record).values() for name in factor}
    return columns | _columns_of_draws(record, [name for name in names if name not in coded])


def _columns_of_draws(record: Record, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the columns of the bootstrap and of stability selection, for features without a reference level."""
    columns, word = dict[str, dict[str, str]](), record.loss.target.ratio
    if (draws := record.bootstrap) is not None:
        found = {one.feature: one for one in draws.features if one.feature in names}
        columns["Inclusion"] = {
            name: "forced" if one.forced else format_percent(one.frequency) for name, one in found.items()
        }
        columns[f"{100.0 * draws.level:g}% bootstrap interval"] = {
            name: format_limits(one.coefficient_low, one.coefficient_high, bool(word)) for name, one in found.items()
        }
    if (halves := record.stability_selection) is not None:
        shares = {one.feature: format_percent(one.frequency) for one in halves.features if one.feature in names}
        columns["Halves"] = shares | dict.fromkeys(record.predictor.coefficients.keys() & _forced(record), "forced")
    return columns | _columns_of_tests(record, names)


def _columns_of_tests(record: Record, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the columns of the tests by splits of the rows; a term in no model has the p-value 1."""
    if (tests := record.inference) is None:
        return {}
    terms, is_ratio = {one.term: one for one in tests.terms}, bool(record.loss.target.ratio)
    factors = {name for factor in (record.request.restrictions or NONE).count for name in factor}  # one test for all
    tested = [name for name in names if name not in factors and name not in adjustment_columns(record)]
    return {
        f"{100.0 * tests.level:g}% split interval": {
            one.term: format_limits(one.interval_lower, one.interval_upper, is_ratio)
            for one in map(terms.get, tested)
            if one and one.interval_lower is not None and one.interval_upper is not None
        },
        "p": {name: format_p_value(terms[name].p_value if name in terms else 1.0) for name in tested},
    }


def _forced(record: Record) -> set[str]:
    """Return the columns that are in every model."""
    return set((record.request.restrictions or NONE).forced_columns)


def _pick(names: list[str], cells: list[str], shown: list[bool]) -> dict[str, str]:
    return {name: cell for name, cell, is_shown in zip(names, cells, shown, strict=True) if is_shown}
