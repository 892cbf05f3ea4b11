"""The report of a record: answer, certified and open parts, figures, tables, data, folds, and verification."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from sparsecv_mio.certificate.checked_fields import MOST_FITS
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, PathRecord
from sparsecv_mio.certificate.parts import NESTED_WARNING, DataInfo, GridRequest, ReadingInfo, versions
from sparsecv_mio.certificate.read_back import AnyRecord, is_from_python
from sparsecv_mio.certificate.records import EITHER_SIDE, NO_AVERAGE, Record, format_gain
from sparsecv_mio.certificate.refits import has_proof
from sparsecv_mio.certificate.restrictions import adjustment_columns, restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import (
    format_interval,
    format_lower,
    format_number,
    format_share,
    format_upper,
    format_with_zeros,
    interval_digits,
    several,
)
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.files import argument, write_text
from sparsecv_mio.model_space import NONE, word_of_factor
from sparsecv_mio.report import figures, optional_parts, record_plots, record_tables, record_words, size_rows
from sparsecv_mio.report.class_pictures import PredictedClasses, Reliability, draw_calibration, draw_roc, format_rows
from sparsecv_mio.report.coefficients import (
    against,
    bound_lines,
    factor_lines,
    find_levels,
    ratio_columns,
    requested_references,
    scatter_lines,
)
from sparsecv_mio.report.document import (
    Block,
    Commands,
    Document,
    Facts,
    Picture,
    ReportTable,
    Section,
    Sentences,
    facts,
    report_table,
    text_of,
)
from sparsecv_mio.report.layout import mark_estimate
from sparsecv_mio.report.time_pictures import (
    NO_WALD,
    NOT_CERTIFIED,
    ONE_TIME,
    FittedHazards,
    HeldOutTimes,
    describe_concordance,
    describe_fitted_hazards,
    describe_held_out_times,
    draw_baseline,
    draw_hazards,
    draw_risk_groups,
    draw_survival_calibration,
)
from sparsecv_mio.words import Intercept, Model, Scale

INCHES = 4.8  # width of a figure in inches
PALE_BARS = ". Pale bars: the best subset of the fold is not certified."
STYLES = ("report", "publication")
PUBLICATION = STYLES[1]
ENDINGS = {
    STYLES[0]: {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex"},
    PUBLICATION: {".tex": "latex", ".csv": "csv", ".md": "md"},
}  # formats by the suffix of the file, for each style


def report_of(record: AnyRecord, name: str = "RECORD", data: Dataset | None = None, file: str = "DATA") -> Document:
    """Return the report of a record.

    Parameters
    ----------
    record : record of any command
        Record.
    name : str
        File name of the record, for the command that verifies it.
    data : Dataset, optional
        Data of the record; they add coefficients by tau in comparable units.
    file : str
        File name of the data, for the command that verifies the record.
    """
    if data is not None:
        data = record_plots.fitted_rows(record, data)
    record = against(record, requested_references(record))
    if isinstance(record, Record):
        body = _search_sections(record, data)
    elif isinstance(record, CommonRecord):
        body = _common(record, data)
    else:
        body = _path_sections(record, data) if isinstance(record, PathRecord) else _fit_sections(record, data)
    hints = record_words.hints(record) if isinstance(record, Record) else []  # printed in their own section
    notes = [words for words in record.warnings if words not in hints and not words.startswith(NESTED_WARNING)]
    tail = (
        Section(
            "Data",
            (
                _data_facts(record.data),
                *_sentences(record_words.event_lines(record, data)),
                *((Sentences(tuple(notes)),) if notes else ()),
            ),
        ),
        Section("How to verify it", _verify(record, name, file)),
        Section("Versions", (facts(*record.versions.items(), ("this report", versions()["sparsecv_mio"])),)),
    )
    title = f"Best-subset {record.wording.model} regression of {record.data.target}"
    return Document(title, _answer(record), (*body, *tail))


def report_text(
    record: AnyRecord, kind: str, name: str, data: Dataset | None, file: str, style: str = STYLES[0]
) -> str:
    """Return the report of a record as text.

    Parameters
    ----------
    kind : {"html", "md", "latex", "csv"}
        Format of the text.
    name, data, file
        Arguments as for `report_of`.
    style : {"report", "publication"}
        The whole report, or the table and the texts for a paper.
    """
    if style == PUBLICATION:
        from sparsecv_mio.report.publication import publication_text

        return publication_text(record, kind, data)
    return text_of(report_of(record, name, data, file), kind)


def report_format(path: str, style: str = STYLES[0]) -> str:
    """Return the format of a report from the suffix; raise `BadInput` for one that the style does not have.

    Parameters
    ----------
    path : str
        File name.
    style : {"report", "publication"}
        Style of the report.
    """
    endings, suffix = ENDINGS[style], Path(path).suffix.lower()
    if suffix not in endings:
        other = next((f"; {suffix} needs style {name}" for name in STYLES if suffix in ENDINGS[name]), "")
        raise BadInput(f"report: {path} must end in {' or '.join(endings)} with style {style}{other}")
    return endings[suffix]


def write_report(
    record: AnyRecord, path: str | os.PathLike[str], data: Dataset | None = None, style: str = STYLES[0]
) -> None:
    """Write the report of a record in the format given by the suffix of the file.

    Parameters
    ----------
    record : record of any command
        Record.
    path : path
        File name that ends with .html, .md or .tex; with style `publication` .tex, .csv or .md.
    data : Dataset, optional
        Data as in `report_of`.
    style : {"report", "publication"}
        Style as in `report_text`.

    Raises
    ------
    BadInput
        If the file cannot be written, or has another suffix.
    """
    kind = report_format(os.fspath(path), match_keyword(style, STYLES, "style"))
    write_text(path, [report_text(record, kind, "RECORD", data, "DATA", style)], "report", through=True)


def _answer(record: AnyRecord) -> str:
    """Return the answer of a record in one line."""
    unit = restrictions_of(record).unit_of_tau
    if isinstance(record, Record):
        return f"{_answer_of_search(record)}{_whose(record)}"
    if isinstance(record, PathRecord):
        taus = sorted({row.tau for row in record.path})
        within = record_words.within_restrictions(record)
        return f"the best subsets of {taus[0]} to {taus[-1]} {unit}s{within} on all rows"
    if isinstance(record, CommonRecord):
        model = f"{several(record.tau, unit)} common to all folds, gamma = {format_number(record.gamma)}"
        if not record.loss.is_quadratic:
            return f"{model}: CV error of {record.data.target}: {format_number(record.cv_error)}, {record.beside_error}"
        root = format_number(record.rmse)
        return f"{model}: predicts {record.data.target} on held-out rows with a root mean squared error of {root}"
    return f"the best subset of {several(record.tau, unit)} on all rows, gamma = {format_number(record.gamma)}"


def _answer_of_search(record: Record) -> str:
    """Return the reported pair and the error of its predictions."""
    pair = f"tau = {several(record.tau, restrictions_of(record).unit_of_tau)}, gamma = {format_number(record.gamma)}"
    target = record.data.target
    if record.loss.is_quadratic:
        root = mark_estimate(format_number(record.rmse), record.estimate)
        seen = f" (an estimate, perhaps {EITHER_SIDE})" if record.seen_folds else ""
        return f"{pair}: predicts {target} on held-out rows with a root mean squared error of {root}{seen}"
    error = mark_estimate(format_number(record.cv_error), record.estimate)
    measures = f"{pair}: {record.wording.held_out_error} of held-out rows {error}; {record.accuracy_line()}"
    if record.classes is None:
        return measures
    return f"{measures}; the model predicts the probability that {target} is {record.classes.positive}"


def _whose(record: Record) -> str:
    """Return a text on the model that the error refers to, where an averaged one was requested."""
    if record.average is None:
        return f"; {NO_AVERAGE}" if record.request.model == Model.AVERAGE else ""
    size, within, own = several(len(record.average.model.support), "feature"), record.average.within_folds, ""
    if within is not None:
        measure, error = "error", within.error
        if record.loss.is_quadratic:  # the page also has the square root of the CV error
            measure, error = "root mean squared error", math.sqrt(within.error)
        own = f". With averaging repeated within every fold, the {measure} on held-out rows is {format_number(error)}"
        own += " (optimistic)"
    return f"; this is the error of the pair, but the averaged model of {size} is used for predictions{own}"


def _search_sections(record: Record, data: Dataset | None) -> list[Section]:
    """Return the sections of a cross-validation that come before the data."""
    curves, calibration = _class_blocks(record, data)
    nested = [] if record.nested is None else record_tables.nested_lines(record, record.nested)
    nested += [words for words in record.warnings if words.startswith(NESTED_WARNING)]
    choice = [*record_tables.rule_lines(record), *record_words.stability_lines(record, data)]
    hints = tuple(f"Hint: {hint}" for hint in record_words.hints(record))
    return [
        Section("The answer", (
            _answer_facts(record), *_sentences(nested), *_sentences([*choice, *record_words.average_lines(record)]),
        )),
        Section("What is certified, and what is not", (
            Sentences(tuple(proved_sentences(record)), True), Sentences(tuple(open_sentences(record)), False),
        )),
        Section("Pictures", (*_pictures(record), *curves, _coefficients(record, data))),
        Section("The model", (*_model(record, data), *_average_section(record), *calibration)),
        *_list_draw_sections(record, data),
        Section("Model sizes", (_tau_table(record), _grid_table(record))),
        *_baseline_section(record),
        _folds(record),
        Section("The search", (_request_facts(record), *_sources(record), *((Sentences(hints),) if hints else ()))),
    ]  # fmt: skip


def _list_draw_sections(record: Record, data: Dataset | None) -> list[Section]:
    """Return the sections on the bootstrap, stability selection and inference by splits, with their pictures."""
    pictures = list[Picture]()
    if record.bootstrap is not None:
        height, level = _height(len(record.bootstrap.features)), f"{100.0 * record.bootstrap.level:g}%"
        words = f"Share of bootstrap draws that choose each feature, with {level} binomial intervals."
        pictures.append(_picture("inclusion", words, height, optional_parts.plot_inclusion, record))
        words = f"{level} percentile intervals of the coefficients over all draws; dots: the reported model."
        words += "" if data is not None else " Each row has its own scale; for a common one give --data."
        if record.bootstrap.has_percentiles:
            draw = partial(optional_parts.plot_intervals, data=data)
            pictures.append(_picture("intervals", words, height, draw, record))
    return [
        Section(summary.title[0].upper() + summary.title[1:], (
            *_sentences(summary.lines), *summary.tables, *(pictures if place == 0 else ()),
        )) for place, summary in enumerate(optional_parts.summarise_draws(record))
    ]  # fmt: skip


def _baseline_section(record: Record) -> list[Section]:
    """Return the section that compares the answer with baselines, if the record has them."""
    if (table := optional_parts.baseline_table(record)) is None:
        return []
    words = "CV errors of the baselines, with bars of one standard error of the difference from the reported pair."
    picture = _picture("baselines", words, 3.2, optional_parts.plot_baselines, record)
    lines = [*optional_parts.certified_lines(record), *optional_parts.nested_lines(record)]
    return [Section("Baselines", (*_sentences(lines), table, picture))]


def _folds(record: Record | CommonRecord) -> Section:
    folds = record.folds
    return Section("Folds", (facts(("folds", record_words.describe_folds(folds)), ("digest", folds.digest)),))


def _common(record: CommonRecord, data: Dataset | None) -> list[Section]:
    """Return the sections of the best common subset that come before the data."""
    digits, ask, done = interval_digits([(record.lower, record.upper)]), record.request, record.status == "proved"
    root = "RMSE, the square root of the CV error", format_number(record.rmse)
    null = None if record.null_error is None else (record.null_name, format_number(record.null_error))
    answer = facts(
        ("status", _status(record.status, record.gap)),
        ("models compared", record_tables.describe_model_space(record)),
        (f"{restrictions_of(record).unit_of_tau}s, tau", str(record.tau)),
        ("ridge weight, gamma", format_number(record.gamma)),
        (f"CV error ({record.wording.cv_error}) of one subset for all folds",
         format_number(record.cv_error, digits)),
        ("minimum CV error over all subsets, the same in every fold, of the requested sizes and gammas",
         f"in {format_interval(record.lower, record.upper, digits)} (certified)"),
        null or root,
    )  # fmt: skip
    search = facts(
        *_grid_facts(ask), ("requested gap", format_number(ask.gap)), ("time limit", record_words.limit_words(ask)),
        ("work", f"{several(record.work.nodes, 'node')}, {record_tables.describe_duration(record.work)}"),
    )  # fmt: skip
    sure = (
        "At these sizes and gammas, no common subset (the same in all folds) has a CV error below "
        f"{format_lower(record.lower, digits)}.",
        f"The CV error of the reported subset is at most {format_upper(record.upper, digits)}"
        f"{'; it is the best common subset, up to the gap.' if done else '.'}",
    )
    unsure = "The reported subset may not be the best one: the search ended before the proof."
    if done:
        unsure = (
            "For every other size, the best subset found may not be the best of its size. Only one statement on other "
            "sizes is proved: none of their subsets has a smaller CV error than the reported one, up to the gap."
        )
    best = record_tables.best_common_by_tau(record)
    words = "The best subset found of each size, at its best gamma; the certified interval above covers all sizes."
    every = f"All {several(len(record.table), 'pair')} of the grid."
    stated = Sentences(sure, True), Sentences((unsure,), False)
    return [
        Section("The answer", (answer, *_sentences([record_words.common_stability(record)]))),
        Section("What is certified, and what is not", stated),
        Section("Picture", (_coefficients(record, data),)),
        Section("The model", (_model_table(record, data), *_sentences(factor_lines(record)))),
        Section("Model sizes", (
            record_tables.common_table(best, words, digits, record.tau),
            replace(record_tables.common_table(record.table, every, digits), folded=True),
        )),
        _folds(record),
        Section("The search", (search,)),
    ]  # fmt: skip


def _sentences(lines: Sequence[str]) -> tuple[Sentences, ...]:
    """Return lines as sentences; no block without a line."""
    return (Sentences(tuple(f"{line[0].upper()}{line[1:]}." for line in lines)),) if lines else ()


def _status(status: str, gap: float) -> str:
    """Return the status of a search as text."""
    word = "certified" if status == "proved" else f"not certified ({status})"
    return f"{word}, gap {format_number(gap, 2)}"


def _answer_facts(record: Record) -> Facts:
    """Return the reported pair, its error and the certified bounds."""
    certificate, own, least, target = record.certificate, record.own_row, record.least, record.wording

    def marked(value: float | None, text: Callable[[float], str] = format_number) -> str:
        return "" if value is None else mark_estimate(text(value), record.estimate)

    digits = interval_digits([(record.lower, record.upper), (certificate.lower, certificate.upper)])
    error = marked(record.cv_error, partial(format_number, digits=digits))
    if own is not None and record_tables.own_line(record, digits):
        error += f", in {format_interval(own.lower, own.upper, digits)} (certified)"
    ends = f"in {format_interval(certificate.lower, certificate.upper, digits)} (certified)"
    if least is not None:
        minimum = mark_estimate(format_number(certificate.cv_error, digits), certificate.estimate)
        ends = f"{minimum} at tau = {certificate.tau} and gamma = {format_number(certificate.gamma)}; {ends}"
    quality, gain = [], ""
    if record.null_error is not None and not target.is_sum_over_rows:
        gain = format_gain(record.cv_error, record.null_error, "~" if record.estimate else "", record.gain_error)
    if (classes := record.classes) is not None:
        predicted = f"the model predicts the probability of {classes.positive}"
        quality = [
            ("accuracy of held-out rows", marked(classes.accuracy, lambda share: f"{100.0 * share:.1f}%")),
            ("AUC of held-out rows", marked(classes.auc, "{:.4f}".format)),
            ("Brier score of held-out rows", marked(classes.brier, "{:.4f}".format)),
        ]
    return facts(
        ("status" if least is None else "status of the minimum CV error", _status(record.status, certificate.gap)),
        ("models compared", record_tables.describe_model_space(record)),
        (f"{restrictions_of(record).unit_of_tau}s, tau", str(record.tau)),
        ("ridge weight, gamma", format_number(record.gamma)),
        ("chosen by", "" if least is None else record.rule),
        (f"CV error ({target.cv_error})", error),
        ("minimum CV error over the grid", ends),
        ("RMSE, the square root of the CV error", marked(record.rmse) if record.loss.is_quadratic else ""),
        ("classes", "" if classes is None else f"{classes.negative}, {classes.positive}; {predicted}"),
        (record.null_name, "" if record.null_error is None else format_number(record.null_error)),
        ("gain over it per event", gain),
        *quality,
        ("MAE of held-out rows", marked(record.mae)),
        (target.explained, marked(record.r_squared, format_share)),
        ("gamma refined at this tau", "" if record.refined is None else format_number(record.refined.gamma)),
    )


def proved_sentences(record: Record) -> list[str]:
    """Return a sentence for each statement that a record of a search certifies."""
    best, own = record.certificate, record.own_row
    digits = interval_digits([(best.lower, best.upper)])
    words = record_tables.describe_model_space(record)
    lines = [f"Models compared: {words}. The following statements are about these models."] if words else []
    lines += _state_bounds(record, digits)
    if words := record_words.fold_models(record):
        k = record.folds.k
        lines.append(f"The training objective of each of the {k:,} fold models of the reported pair is {words}.")
    if own is not None and math.isfinite(own.upper) and record_tables.own_line(record, digits):
        lines.append(f"The CV error of the reported pair is at most {format_upper(own.upper, digits)}.")
    if record.status == "proved":
        gap = f"up to a relative gap of {format_number(best.gap, 2)}" if best.gap > 0.0 else "up to rounding"
        ties = ", which is due to tied subsets" if record.has_wide_ties else ""
        lines.append(f"Therefore {_least_pair(record)} has the minimum CV error, {gap}{ties}.")
    if record.least is not None and record.is_settled:
        lines.append(f"The reported pair is the choice of {record.rule}.")
    lines.append(_describe_progress(record, bool(lines)))
    lines += [line for block in _sentences(record_words.proved_region(record)) for line in block.lines]
    if record.refit.proved:
        most = "at most " if record.request.restrictions else ""
        size = several(record.refit.tau, restrictions_of(record).unit_of_tau)
        within = record_words.within_restrictions(record)
        lines.append(f"The full-data model uses the best subset of {most}{size}{within}.")
    return lines


def _least_pair(record: Record) -> str:
    """Return the name of the pair with the minimum CV error."""
    least = record.least
    return "the reported pair" if least is None else f"tau = {least.tau}, gamma = {format_number(least.gamma)}"


def _state_bounds(record: Record, digits: int) -> list[str]:
    """Return the certified statements on the minimum CV error over the requested pairs."""
    best, interval = record.certificate, record.continuous
    where = "of any tau at this gamma" if record.descent else f"of the {several(len(record.table), 'pair')} of the grid"
    if interval is not None:
        where = f"of any tau at any gamma from {format_number(interval.low)} to {format_number(interval.high)}"
    lines = [f"No CV error {where} is below {format_lower(best.lower, digits)}."] if best.lower > 0.0 else []
    if math.isfinite(best.upper):
        lines.append(f"The minimum CV error {where} is at most {format_upper(best.upper, digits)}.")
    return lines


def _describe_progress(record: Record, has_bounds: bool) -> str:
    """Return a sentence on the number of solved subproblems."""
    decided = sum(row.folds_decided == row.folds for row in record.table)
    excluded = sum(row.status == "excluded" for row in record.table)
    subproblems = sum(row.folds_decided for row in record.table)
    total = sum(row.folds for row in record.table)
    if not (has_bounds or subproblems or excluded):
        return f"No bound yet: none of {total:,} subproblems is solved."
    more = f"; bounds exclude {excluded:,} other pairs" if excluded else ""
    pairs = f"{decided:,} of {several(len(record.table), 'pair')} solved in every fold"
    return f"{subproblems:,} of {total:,} subproblems are solved, with {pairs}{more}."


def open_sentences(record: Record) -> list[str]:
    """Return a sentence for each statement that a record of a search does not certify."""
    return [*_open_choice_sentences(record), *_open_model_sentences(record), _state_error_on_new_rows(record)]


def _open_choice_sentences(record: Record) -> list[str]:
    """Return the sentences on the pair with the minimum CV error, and on its CV error."""
    lines = []
    own, open_rows = record.own_row, record_words.open_rows(record)
    if record.status != "proved":
        lines.append(f"It is not proved that {_least_pair(record)} has the minimum CV error: the search was cut short.")
    if record.estimate and own is not None:
        why = record_words.estimate_line(own.folds_decided, own.folds, record.likely(EITHER_SIDE))
        lines.append(f"The CV error of the reported pair is {why.removeprefix('~ ')}.")
    if own is not None and not math.isfinite(own.upper):
        lines.append("No upper bound on the CV error of the reported pair is known yet.")
    if open_rows and record.status != "proved":
        pairs, are = several(len(open_rows), "other pair"), "is" if len(open_rows) == 1 else "are"
        lines.append(f"{pairs} {are} not excluded and may have a smaller CV error.")
    return lines


def _open_model_sentences(record: Record) -> list[str]:
    """Return the sentences on the full-data model, the rule that chose its pair, and the quality of its classes."""
    lines = []
    if not record.refit.proved:
        ends = format_interval(record.refit.lower, record.refit.upper)
        within = record_words.within_restrictions(record)
        lines.append(f"The full-data model may not use the best subset{within}: the minimum objective is in {ends}.")
    if not record.is_settled:
        numbers = "instabilities" if record.stability is not None and record.stability.chosen else "CV errors"
        lines.append(f"The choice by {record.rule} compares {numbers} that are not all known precisely enough.")
    if record.classes is not None:
        lines.append("Accuracy, AUC, Brier score, ROC curve and calibration are reported without bounds.")
    if record.wording.has_times:
        words = "Concordance, survival curves, calibration and the check of proportional hazards are reported "
        words = "Concordance is reported " if record.data.has_matched_sets else words
        lines.append(f"{words}without bounds. The certificate is about the {record.wording.cv_error}.")
    return lines


def _state_error_on_new_rows(record: Record) -> str:
    """Return the sentence on the error on new rows, which no record certifies."""
    chosen = f"{record.rule} chose the pair by comparing CV errors, so its CV error may be slightly too small"
    if record.least is None:
        chosen = "the CV error was minimised over the grid, and is therefore likely to be slightly too small"
    if record.estimate:
        chosen = f"the CV error of the reported pair is only an estimate, which may be {EITHER_SIDE}"
    nested = between = ""
    if record.nested is not None:
        error = format_number(record.nested.error)
        nested = f" The nested CV error, {error}, is not a minimum over pairs, but it is also an estimate."
    if record.continuous is None:
        between = " The certificate covers only the values of gamma of the grid."
    return f"The error on new rows is not bounded: {chosen}.{nested}{between}"


def _picture(name: str, caption: str, height: float, draw: Callable[..., object], *drawn: object) -> Picture:
    """Return a figure of a record, and of its rows if they are given, with the width of a report."""
    return Picture(name, caption, (INCHES, height), partial(draw, *drawn))


def _pictures(record: Record) -> list[Picture]:
    """Return the figures of a search, without those of classes and of coefficients."""
    sizes, states = size_rows.best_by_tau(record), {row.status for row in record.table}
    words = f"CV error for each tau {size_rows.words_of_gamma(record)}: dots with bars of one standard error over the "
    words += "folds, "
    words += "certified intervals as bands"
    if any(size_row.is_estimate for size_row in sizes):
        words += f", estimates, perhaps {EITHER_SIDE}, as hollow dots"
    if any(size_row.excluded for size_row in sizes):
        words += ", lower bounds of excluded sizes as triangles"
        words += ", their estimates as crosses" if any(size_row.has_estimate_and_bound for size_row in sizes) else ""
    words = "; ".join(filter(None, (words, size_rows.advise_full_curve(record))))
    pictures = [_picture("cv-error", f"{words}.", 4.1, record_plots.plot_cv_error, record)]
    if record.continuous is not None:
        words = "CV error over the interval of gamma, with certified bounds for every part of the interval. The CV "
        words += "error jumps where the best subset of a fold changes."
        pictures.append(_picture("every-gamma", words, 4.4, record_plots.plot_every_gamma, record))
    if len(sizes) > 1 < len({row.gamma for row in record.table}):
        excluded = "; hatched pairs are excluded by bound, and their CV errors may be higher than their colours show"
        words = f"CV error of every pair of the grid{excluded if 'excluded' in states else ''}."
        pictures.append(_picture("grid", words, 4.1, record_plots.plot_grid, record))
        words = "Certified lower bound of every pair, in % above the smallest CV error found. Green pairs are "
        words += "certified to have a larger CV error. The bound of a brown pair is below the smallest CV error found; "
        words += "the pair is excluded nevertheless if the difference is at most the gap."
        pictures.append(_picture("bounds", words, 4.3, record_plots.plot_bounds, record))
    features = {name for support in record.chosen_folds.supports for name in support} | set(record.support)
    words = "Number of folds that select each feature at the reported pair. Features that only some folds select come "
    words += f"first{'.' if all(record.chosen_folds.decided) else PALE_BARS}{_sign_note(record)}"
    return [*pictures, _picture("features", words, _height(len(features)), record_plots.plot_features, record)]


def _class_blocks(record: Record, data: Dataset | None) -> tuple[list[Block], list[Block]]:
    """Return the ROC curve and the calibration plot of a logistic record, and the numbers of the calibration."""
    if record.wording.has_times:
        return _time_blocks(record, data)
    if record.classes is None:
        return [], []
    try:
        if data is None:
            raise BadInput("to include them, give the data of the record (--data)")
        rows = PredictedClasses.from_record(record, data)
    except BadInput as error:
        words = f"The ROC curve, the calibration and the odds ratios per standard deviation are not shown: {error}."
        return [Sentences((words,))], []
    positive, of_pair = (
        record.classes.positive,
        "" if record.average is None else " of the pair (not the averaged model)",
    )
    words = f"ROC curve of held-out rows, each predicted by the model{of_pair} that was fitted without this row; the "
    curve = _picture("roc", f"{words}curve is not certified.", 4.6, draw_roc, record, rows)
    of_rows = f"Calibration of held-out {rows.unit}s"
    words = f"{of_rows}: share of {positive} in bins of width 0.1 of the predicted probability, with Wilson's 95% "
    words += f"intervals and the number of {rows.unit}s."
    calibration = _picture("calibration", words, 4.6, draw_calibration, record, rows)
    points = Reliability.from_predictions(rows)
    shares = points.predicted, points.observed, points.low, points.high
    lines = [
        (format_rows(count), *(f"{share:.3f}" for share in shares_of_bin))
        for count, *shares_of_bin in zip(points.counts.tolist(), *shares, strict=True)
    ]
    caption = f"{of_rows}, in bins of width 0.1 of the predicted probability, with Wilson's 95% intervals."
    if rows.has_repeats:
        caption += " If several folds score a row, its predictions share the weight of one row."
    heads = (f"{rows.unit}s", "mean probability", f"observed share of {positive}", "95% from", "to")
    more = [(name, f"{value:.3f}") for name, value in rows.measure().items()]
    measures = report_table(f"Further measures of held-out {rows.unit}s.", ("measure", "value"), more, words=1)
    return [curve, calibration], [report_table(caption, heads, lines), measures]


def _time_blocks(record: Record, data: Dataset | None) -> tuple[list[Block], list[Block]]:
    """Return the pictures and the tables of a record with Cox loss."""
    pictures, tables = list[Block](), list[Block]((Sentences((NO_WALD.format(record.wording.ratio),)),))
    try:
        if data is None:
            raise BadInput("to include them, give the data of the record (--data)")
        if record.data.has_matched_sets:
            concordance = describe_concordance(HeldOutTimes.from_record(record, data))
            return [], [concordance, Sentences((ONE_TIME,)), *tables]
        model = FittedHazards.from_record(record, data)
        words = f"Survival of a row with the mean of each feature, by the model of all rows. {NOT_CERTIFIED}"
        pictures.append(_picture("baseline", words, 4.1, draw_baseline, record, model))
        if model.names:
            words = (
                "Log hazard ratios over time, from scaled Schoenfeld residuals: with proportional hazards, each curve "
            )
            words += f"is close to its dashed line, its mean over all events. {NOT_CERTIFIED}"
            pictures.append(_picture("hazards", words, 4.1, draw_hazards, record, model))
        tables += describe_fitted_hazards(model)
        rows = HeldOutTimes.from_record(record, data)
    except BadInput as error:
        words = "Risk groups, calibration and concordance of held-out rows"
        if not pictures:
            words += ", baseline survival, the check of proportional hazards and hazard ratios per standard deviation"
        return pictures, [*tables, Sentences((f"{words} are not shown: {error}.",))]
    words = (
        "Kaplan-Meier curves of three risk groups of held-out rows, with 95% intervals. A row is in the low, medium "
    )
    words += "or high third of the log hazard ratios of the training rows, by the model that was fitted without this "
    groups = _picture("risk-groups", f"{words}row. {NOT_CERTIFIED}", 4.4, draw_risk_groups, record, rows)
    tables = [*describe_held_out_times(rows), *tables]
    if not rows.calibrate():
        return [groups, *pictures], tables
    words = (
        "Survival of held-out rows, predicted and observed, in groups of similar predictions. The time is the median "
    )
    words += f"event time. {NOT_CERTIFIED}"
    return [groups, _picture("calibration", words, 4.6, draw_survival_calibration, record, rows), *pictures], tables


def _surface(record: PathRecord) -> tuple[Block, ...]:
    """Return the best subset of every size as a function of gamma, if an interval was requested."""
    if record.surface is None:
        return ()
    words = "Best subset of each size as a function of gamma; the colour changes where the subset changes."
    height = 1.7 + 0.3 * min(len(record.request.taus), figures.MOST_FEATURES)
    caption = (
        "Best subset for each interval of gamma. If several subsets are listed, they are tied, or their objectives "
    )
    caption += "cross and differ by a relative amount of at most 1e-9."
    rows = record_tables.surface_rows(record.surface, record.surface.pieces)
    table = report_table(caption, record_tables.SURFACE_HEADS, rows)
    return _picture("surface", words, height, record_plots.plot_surface, record), table


def _coefficients(record: AnyRecord, data: Dataset | None) -> Picture:
    """Return the figure of the coefficients."""
    path = isinstance(record, PathRecord) or (data is not None and isinstance(record, Record))
    words = "Coefficients of the full-data best subsets, by tau" if path else "Coefficients of the model"
    unit = record.wording.unit
    if data is not None and unit:
        words += f", in {unit} per standard deviation of the feature."
    elif data is not None:
        words += ", for features and target scaled to standard deviation 1."
    elif path:
        words += ", relative to the largest coefficient of the feature."
    else:
        words += ", each in its unit (to standardise them, give --data)."
    rows, draw = record_plots.count_coefficient_rows(record, data), partial(record_plots.plot_coefficients, data=data)
    return _picture("coefficients", words, _height(rows), draw, record)


def _height(rows: int) -> float:
    return 1.7 + 0.23 * min(max(rows, figures.BAR_ROWS), figures.MOST_FEATURES)


def _sign_note(record: AnyRecord) -> str:
    """Return the reason why a feature of every model may count in fewer folds."""
    limits = record.request.restrictions if isinstance(record, Record) else None
    if limits is None or not (limits.nonnegative or limits.nonpositive):
        return ""
    return " A fold is not counted for a feature if a sign constraint sets its coefficient to 0 in that fold."


def _model(record: Record | FitRecord, data: Dataset | None) -> tuple[Block, ...]:
    """Return the table of a model and, for logistic and Poisson loss, its fit to all rows."""
    lines = [*factor_lines(record), *bound_lines(record), *scatter_lines(record, record, data)]
    return (_model_table(record, data), *_sentences(lines))


def _model_table(record: Record | FitRecord | CommonRecord, data: Dataset | None) -> ReportTable:
    """Return the table of the coefficients of a model, adjustment columns last."""
    adjusted, coefficients, where = adjustment_columns(record), record.coefficients, ""
    heads, ratios = ratio_columns(record.wording, coefficients, data)
    columns = {_coefficient_head(record): coefficients} | {
        head: {name: cells[at] for name, cells in ratios.items()} for at, head in enumerate(heads)
    }
    if data is not None and not heads:
        unit, levels = record_plots.standard_units(list(coefficients), data), find_levels(data.names)
        columns["standardised (SDs of the target per SD)"] = {
            name: "" if name in levels else format_number(unit[name] * value, 3) for name, value in coefficients.items()
        }
    if isinstance(record, Record):
        decided, others = record_plots.selection_counts(record.chosen_folds)
        of = several(len(record.chosen_folds), "fold")
        columns["selected in"] = {
            name: "adjusted for" if name in adjusted else f"{decided[name] + others[name]:,} of {of}"
            for name in coefficients
        }
        where = f", tau = {record.refit.tau}, gamma = {format_number(record.refit.gamma)}"
    names = sorted(coefficients, key=lambda name: name in adjusted)
    rows = [(name, *(column[name] for column in columns.values())) for name in names]
    if record.wording.has_intercept:
        rows.append(("(intercept)", record.intercept, *[""] * (len(columns) - 1)))
    caption = f"Model refitted on all rows{where}.{_sign_note(record)}"
    return report_table(caption, (restrictions_of(record).unit_of_tau, *columns), rows, words=1)


def _coefficient_head(record: Record | FitRecord | CommonRecord) -> str:
    """Return the unit of the coefficients."""
    unit = record.wording.unit or f"units of {record.data.target}"
    return f"coefficient, in {unit} per unit of the {restrictions_of(record).unit_of_tau}"


def _average_section(record: Record) -> tuple[ReportTable, ...]:
    """Return the table of the averaged model, if there is one."""
    if record.average is None:
        return ()
    model = record.average.model
    rows = [*model.coefficients.items(), ("(intercept)", model.intercept)]
    caption = "The averaged model, which is used for predictions."
    head = restrictions_of(record).unit_of_tau, _coefficient_head(record)
    return (report_table(caption, head, rows, words=1),)


def _tau_table(record: Record) -> ReportTable:
    """Return the table of the best pair of each size."""
    rows, title = size_rows.best_by_tau(record), size_rows.title_of_sizes(record)
    excluded = filter(None, (size_rows.advise_full_curve(record), size_rows.explain_excluded(record, rows)))
    caption = "; ".join((f"{title[0].upper()}{title[1:]}{_estimate_note(rows)}", *excluded))
    table = _pairs(record, rows, f"{caption}.")
    chosen = [k for k, size_row in enumerate(rows) if size_row.is_pair(record)]
    return replace(table, chosen=next(iter(chosen), None))


def _grid_table(record: Record) -> ReportTable:
    """Return the table of all pairs; an excluded pair has only bounds on its CV error."""
    rows = size_rows.rows_of_pairs(record)
    return _pairs(record, rows, f"All {several(len(rows), 'pair')} of the grid{_estimate_note(rows)}.", folded=True)


def _estimate_note(rows: Sequence[size_rows.SizeRow]) -> str:
    return f"; ~ marks an estimate, perhaps {EITHER_SIDE}" if any(size_row.is_estimate for size_row in rows) else ""


def _error_of_null_model(record: Record) -> float:
    """Return the CV error that R^2 compares with; 0 if it is not known."""
    if record.r_squared is None or record.r_squared >= 1.0 or not math.isfinite(record.cv_error):
        return 0.0
    return record.cv_error / (1.0 - record.r_squared)


def _pairs(record: Record, rows: Sequence[size_rows.SizeRow], caption: str, folded: bool = False) -> ReportTable:
    """Return a table of pairs, without the gamma and the folds of bounds that hold for all gammas of a tau."""
    digits = size_rows.digits_of_sizes(rows)
    spread = _error_of_null_model(record)
    lines = []
    for size_row in rows:
        row = size_row.row
        deviation = "" if row.standard_error is None else format_number(row.standard_error, 3)
        measures = {"standard error": deviation}
        if record.loss.is_quadratic:
            measures["RMSE"] = format_number(math.sqrt(row.cv_error))
        if spread and record.wording.is_sum_over_rows:
            measures["R^2"] = format_share(1.0 - row.cv_error / spread)
        elif spread:
            measures["gain"] = format_with_zeros(spread - row.cv_error, 3)
        line = size_row.describe(digits, has_pair=folded or not size_row.excluded)
        for head, text in measures.items():
            line[head] = "" if size_row.excluded else mark_estimate(text, row.estimate and text != "")
        status = "solved" if row.status == "decided" else row.status or ""
        line["status"] = "excluded" if size_row.excluded else status
        heads = ("tau", "gamma", "CV error", *measures, "lower", "upper", "folds solved", "status")
        lines.append([line[head] for head in heads])
    return report_table(caption, heads, lines, folded=folded)


SCALES = {
    Scale.LENGTH: "for columns divided by their length",
    Scale.VARIANCE: "for columns divided by their standard deviation",
    Scale.NONE: "for columns that are not scaled",
}  # fmt: skip
INTERCEPTS = {
    Intercept.FOLD: "fitted in each training set, not penalised", Intercept.GLOBAL: "the mean of all rows",
    Intercept.NONE: "none",
}  # fmt: skip


def _data_facts(data: DataInfo) -> Facts:
    """Return the size of the data, how they were read, and the units of the penalty."""
    reading, weight = data.reading, data.class_weight
    return facts(
        (f"rows{' of outcomes' if data.trials else ''}", f"{data.n:,}"), ("feature columns", f"{data.p:,}"),
        ("target", data.target),
        ("events", data.event and f"{data.event} ({data.n_events:,} of {data.n:,} rows)"), ("entry times", data.entry),
        ("strata", data.strata), ("method for ties", data.ties),
        ("weights", data.weights), ("exposures", data.exposure), ("offset", data.offset), ("trials", data.trials),
        ("class weight", weight and f"{weight}: both classes have equal weight"),
        ("read with", None if reading is None else _describe_reading(reading)),
        *((f"codes of {column}", codes) for column, codes in (reading.code_labels if reading else {}).items()),
        ("penalty", SCALES[Scale(data.scale)]),
        ("intercept", "" if data.event else INTERCEPTS[Intercept(data.intercept)]),
        ("fingerprint", data.fingerprint),
    )  # fmt: skip


def _describe_reading(read: ReadingInfo) -> str:
    """Return how the file was read."""
    filled = "" if read.filled is None else f" of {several(len(read.filled), 'column')}"
    unranked = (set(read.levels) & set(read.columns)) - set(read.ranked_levels)  # the target may have levels too
    stated = {
        f"missing values: {read.na}": True,
        f"{several(read.left_out, 'row')} dropped": True,
        f"missing values{filled} imputed by the {read.na}": read.means,
        f"{several(len(read.marked), 'column')} with an indicator of missing values": read.marked,
        f"{several(len(unranked), 'text column')} encoded as {read.encode}": unranked,
        f"dates as {', '.join(read.dates)}": read.dates,
        f"missing-value codes: {', '.join(read.na_values)}": read.na_values,
        "NA, none and similar words are text": not read.keep_default_na,
        f"skipped lines: {read.skip_lines}": read.skip_lines,
        f"separator {read.sep!r}": read.sep is not None,
        f"decimal mark {read.decimal!r}": read.decimal != ".",
        f"thousands separator {read.thousands!r}": read.thousands not in (None, "none"),
        f"encoding {read.encoding}": True,
    }
    return ", ".join(words for words, holds in stated.items() if holds)


def _grid_facts(ask: GridRequest) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the numbers and the ranges of the requested gammas and sizes."""
    gammas, taus = sorted(set(ask.gammas)), sorted(set(ask.taus))
    ends = format_number(gammas[0]), format_number(gammas[-1])
    return (
        ("gammas", ends[0] if len(gammas) == 1 else f"{len(gammas)} values from {ends[0]} to {ends[1]}"),
        ("taus", str(taus[0]) if len(taus) == 1 else f"{len(taus)} sizes from {taus[0]} to {taus[-1]}"),
    )


def _request_facts(record: Record) -> Facts:
    """Return the request of a search, and the work for it."""
    ask, reading, restrictions = record.request, record.data.reading, list[tuple[str, str]]()
    rows = {None: "all rows, including held-out rows", "folds": "the training rows of each fold"}
    imputed = reading is not None and reading.means and f"the {reading.na} over {rows[ask.na_within]}"
    for field in fields(ask.restrictions or NONE):
        value = getattr(ask.restrictions or NONE, field.name)
        columns = map(word_of_factor, value) if field.name == "count" else value
        text = ", ".join(map(str, columns)) if isinstance(value, tuple) else str(value or "")
        restrictions.append((field.name.replace("_", " "), text))
    return facts(
        *_grid_facts(ask),
        ("requested gap", format_number(ask.gap)),
        ("time limit", record_words.limit_words(ask)),
        ("order of the search (--method)", ask.method_used or ask.method or "not recorded"),
        ("subproblems", record_tables.subproblems_line(record)),
        ("solved by", record_tables.methods_line(record.work.engine).partition(": ")[2]),
        ("missing values imputed by", imputed or ""),
        ("scales of columns computed from", "" if record.data.scale == "none" else rows[ask.scale_within]),
        *restrictions,
    )


def _sources(record: Record) -> list[Block]:
    """Return the cost and gain of each source of bounds, if the record has them."""
    table = optional_parts.source_table(record)
    blocks: list[Block] = [] if table is None else [table]
    if record.work.course:
        words = "Relative gap of the grid over time, coloured by the bounding method at work."
        blocks.append(_picture("sources", words, 3.6, optional_parts.plot_sources, record))
    return blocks


def _fit_sections(record: FitRecord, data: Dataset | None) -> list[Section]:
    """Return the sections of one full-data fit that come before the data."""
    answer = facts(
        ("objective", format_number(record.objective)),
        ("certified", f"in {format_interval(record.lower, record.upper)}"),
        ("gap", format_number(record.gap, 3)),
        ("backend", f"{record.backend} {record.formulation}"),
        ("seconds", f"{record.seconds:.3f}"),
        ("models compared", "" if record.side is None else record.side.words()),
    )
    is_proved = record.status == "proved"
    words = "The support may not be the best of its size: the solver stopped before the proof."
    if is_proved:
        words = "The support is the best of its size on all rows, within the side constraints, if there are any."
    return [
        Section("The answer", (answer, Sentences((words,), is_proved))),
        Section("The model", _model(record, data)),
        Section("Picture", (_coefficients(record, data),)),
    ]


def _path_sections(record: PathRecord, data: Dataset | None) -> list[Section]:
    """Return the sections of the best subsets of every size that come before the data."""
    n_open = sum(not row.proved for row in record.path)
    within = record_words.within_restrictions(record)
    compared = facts(("models compared", record_tables.describe_model_space(record)))
    sure = f"{len(record.path) - n_open} of {len(record.path)} subsets are certified to be the best of their size"
    stated: list[Block] = [compared] if record.request.restrictions else []
    stated.append(Sentences((f"{sure}{within} at their gamma.",), True))
    if n_open:
        words = f"The other {n_open} subsets may not be the best: the minimum objective is between `lower` and "
        stated.append(Sentences((f"{words}`objective`.",), False))
    rows = [
        (row.tau, row.gamma, format_with_zeros(row.objective, 6), format_lower(row.lower, 6, format_with_zeros),
         row.proved, row.support) for row in record.path
    ]  # fmt: skip
    heads = ("tau", "gamma", "objective", "lower", "certified", "features")
    caption = f"Objective: {record.wording.losses} on the training rows plus the penalty."
    return [
        Section("What is certified, and what is not", tuple(stated)),
        Section("Picture", (*_surface(record), _coefficients(record, data), *_sentences(factor_lines(record)))),
        Section("Every size", (report_table(caption, heads, rows),)),
    ]


def _verify(record: AnyRecord, name: str, file: str) -> tuple[Block, ...]:
    """Return how the record is verified."""
    subsets = (
        "With at most 12 non-constant features, it tries every subset at every pair; with 13 to 15 features, it does "
        "so at the reported pair and some other pairs."
        if record.loss.is_quadratic
        else f"It proves by branch and bound that subsets are optimal, if this takes at most {MOST_FITS:,} fits; "
        "otherwise, it states what is not verified."
    )
    words = (
        "`verify` computes folds, refits and errors again, without the search code, and reports whether each field "
        f"was recomputed. {subsets}"
    )
    if isinstance(record, Record) and has_proof(record):
        words += (
            " For any number of features, `solve --proof PROOF` writes a proof of the lower bound on the CV error of "
            "all pairs; the command `check` verifies this proof."
        )
    if isinstance(record, Record | CommonRecord) and is_from_python(record.folds):
        again = "The folds came from Python; pass them again, as given to `solve`."
        call = f"sc.verify(sc.read_record({name!r}), data, folds=folds).raise_if_failed()"
        return Sentences((words, again)), Commands("python", ("import sparsecv_mio as sc", call))
    command = shlex.join(["sparsecv", "verify", argument(name), argument(file)])
    return Sentences((words,)), Commands("sh", (command,))
