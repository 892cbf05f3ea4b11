"""The model of a record for a paper: a table with rounded numbers, a caption, notes, a methods text and references.

The caption states only what the record certifies. Text values use the symbols τ and γ; the LaTeX format writes them as
formulas.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import quoted_name, several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import csv_lines, inert
from sparsecv_mio.report import record_tables, record_words
from sparsecv_mio.report.certified_text import (
    describe_results,
    pair_in_symbols,
    state_choice,
    state_error,
    state_subset,
)
from sparsecv_mio.report.coefficients import against, factor_lines, requested_references, spreads
from sparsecv_mio.report.document import Publication, ReportTable, text_of
from sparsecv_mio.report.journal_numbers import format_column, format_ratios
from sparsecv_mio.report.methods_text import describe_methods
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
    table = ReportTable(" ".join(caption_sentences(record)), ("Term", *columns), rows, words=1)
    methods = tuple(describe_methods(record, data))
    cited = find_references([key for statement in methods for key in statement.keys], record.versions["sparsecv_mio"])
    return Publication(table, tuple(_notes(record, data)), methods, tuple(describe_results(record, data)), tuple(cited))


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
    references = requested_references(record)
    columns = {"Estimate": estimates | {"(intercept)": intercept} | dict.fromkeys(references, "reference")}
    steps = None if data is None else list(spreads(data, names).values())
    shown = [name not in references for name in names]
    if loss.ratio:
        columns[loss.ratio.capitalize()] = _pick(names, format_ratios(values), shown)
    if steps is not None:
        effects = [value * step for value, step in zip(values, steps, strict=True)]
        head = f"{loss.ratio.capitalize()}, 1 SD" if loss.ratio else "Effect of 1 SD"
        columns[head] = _pick(names, format_ratios(effects) if loss.ratio else format_column(effects), shown)
    counts = record.chosen_in()
    folds = ["adjusted for" if name in adjusted else f"{counts.get(name, 0):,}" for name in names]
    columns[f"Folds (of {record.folds.k:,})"] = dict(zip(names, folds, strict=True))
    return columns


def _pick(names: list[str], cells: list[str], shown: list[bool]) -> dict[str, str]:
    return {name: cell for name, cell, is_shown in zip(names, cells, shown, strict=True) if is_shown}


def caption_sentences(record: Record) -> list[str]:
    """Return the caption: the model, how its pair was chosen, what is certified, and the errors.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    """
    compared = record_tables.describe_model_space(record)
    return [
        *_name_model(record),
        *([f"Models compared: {compared}."] if compared else []),
        *state_choice(record),
        state_error(record),
        *([state_subset(record)] if record.average is None else []),
    ]


def _name_model(record: Record) -> list[str]:
    """Return the sentence on the model of the table."""
    target, about, refit = record.loss.target, record.data, record.refit
    of = quoted_name(about.target)
    if record.classes is not None:
        of = f"the probability that {of} is {record.classes.positive}"
    if about.exposure is not None:
        of += f", with exposure {quoted_name(about.exposure)}"
    title = f"Best-subset {target.model} regression of {of}"
    pair = pair_in_symbols(refit.tau, refit.gamma)
    if record.average is None:
        return [f"{title}: the model with {pair}, refitted to all {about.n:,} rows."]
    used = several(len(record.average.used), "near-optimal pair")
    return [
        f"{title}: the average of {used}, approximated by {several(len(record.average.model.support), 'term')}.",
        f"The statements on CV errors are about the pair {pair}, not about this averaged model.",
    ]


def _notes(record: Record, data: Dataset | None) -> list[str]:
    """Return the notes below the table: the columns, and the terms that only folds chose."""
    target, about = record.loss.target, record.data
    unit = target.unit or f"units of {quoted_name(about.target)}"
    ratios = f"; {target.ratio}: its exponential" if target.ratio else ""
    shrunk = "Estimates are shrunk by the ridge penalty, and t" if record.refit.gamma > 0.0 else "T"
    lines = [
        "τ: maximum number of terms; γ: ridge weight.",
        f"Estimate: coefficient in {unit} per unit of the term{ratios}.",
        f"{shrunk}he same rows selected the terms: the usual standard errors, p-values and confidence intervals do not "
        "apply.",
    ]
    if data is not None:
        weighted = ", unweighted" if about.weights is not None else ""
        lines.append(f"1 SD: one standard deviation of the term over all rows{weighted}.")
        if any(_is_binary(data, name) for name in record.predictor.coefficients):
            lines.append("For a term with values 0 and 1, the estimate compares these two values.")
    lines.append(_explain_folds(record))
    lines += [f"{line[0].upper()}{line[1:]}." for line in factor_lines(record)]
    if about.reading is not None:
        lines += [f"Ranks of {column}: {codes}." for column, codes in about.reading.rank_labels.items()]
    return lines


def _is_binary(data: Dataset, name: str) -> bool:
    """Return True if a term has the values 0 and 1 only."""
    column = data.X[:, data.names.index(name)]
    return bool(np.isin(column, (0.0, 1.0)).all())


def _explain_folds(record: Record) -> str:
    """Return the meaning of the counts of folds, and the terms that folds chose but the model does not have."""
    k, undecided = record.folds.k, int((~record.chosen_folds.decided).sum())
    at = pair_in_symbols(record.tau, record.gamma)
    fitted = "on the rows before its fold" if record_words.is_in_time_order(record) else "without its fold"
    line = f"Folds: number of the {k:,} fold models at {at} (each fitted {fitted}) that contain the term. It is not an "
    line += "inclusion probability, since the training rows of the folds overlap."
    if undecided:
        line += f" The subsets of {several(undecided, 'fold')} are not certified to be the best."
    model = set(record.predictor.coefficients)
    others = [f"{quoted_name(name)} ({count:,})" for name, count in record.chosen_in().items() if name not in model]
    return line + (f" Other terms of fold models (number of folds): {', '.join(others)}." if others else "")
