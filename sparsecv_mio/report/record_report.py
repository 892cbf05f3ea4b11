"""The report of a record: answer, certified and open parts, figures, tables, data, folds, and how to verify it."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from sparsecv_mio.certificate.fit_records import CommonRecord, CommonRow, FitRecord, PathRecord
from sparsecv_mio.certificate.parts import DataInfo, GridRequest, ReadingInfo, versions
from sparsecv_mio.certificate.read_back import AnyRecord, came_from_python
from sparsecv_mio.certificate.records import NO_AVERAGE, Classes, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import (
    format_interval,
    format_number,
    format_share,
    format_with_zeros,
    interval_digits,
    several,
)
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import argument, write_text
from sparsecv_mio.model_space import NONE, word_of_factor
from sparsecv_mio.report import record_plots, record_tables, record_words, size_rows, source_tables
from sparsecv_mio.report.class_pictures import PredictedClasses, Reliability, draw_calibration, draw_roc
from sparsecv_mio.report.coefficients import against, factor_lines, ratio_columns, requested_references, scatter_lines
from sparsecv_mio.report.document import Block, Commands, Document, Facts, Picture, ReportTable, Section, Sentences
from sparsecv_mio.report.layout import join_names, mark_estimate
from sparsecv_mio.words import Model

INCHES = 4.8  # width of a figure in inches
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex"}


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
        from sparsecv_mio.report.record_plots import fitted_rows

        data = fitted_rows(record, data)
    record = against(record, requested_references(record))
    if isinstance(record, Record):
        body = _search_sections(record, data)
    else:
        body = _common(record, data) if isinstance(record, CommonRecord) else _fit_sections(record, data)
    warnings = (Sentences(tuple(record.warnings)),) if record.warnings else ()
    tail = (
        Section("Data", (Facts(_data_facts(record.data)), *warnings)),
        Section("How to verify it", _verify(record, name, file)),
        Section("Versions", (Facts(tuple({**record.versions, "this report": versions()["sparsecv_mio"]}.items())),)),
    )
    title = f"Best-subset {record.loss.target.model} regression of {record.data.target}"
    return Document(title, _answer(record), (*body, *tail))


def report_text(record: AnyRecord, kind: str, name: str, data: Dataset | None, file: str) -> str:
    """Return the report of a record as text.

    Parameters
    ----------
    kind : {"html", "md", "latex"}
        Format of the text.
    name, data, file
        Arguments as for `report_of`.
    """
    from sparsecv_mio.report.document import text_of  # imported here since it loads Jinja

    return text_of(report_of(record, name, data, file), kind)


def report_format(path: str) -> str:
    """Return the format of a report, `html`, `md` or `latex`, from the suffix; raise `BadInput` for others."""
    ending = ENDINGS.get(Path(path).suffix.lower())
    if ending is None:
        raise BadInput(f"report: {path} must end in {', '.join(ENDINGS)}")
    return ending


def write_report(record: AnyRecord, path: str | os.PathLike[str], data: Dataset | None = None) -> None:
    """Write the report of a record in the format given by the suffix of the file.

    Parameters
    ----------
    record : record of any command
        Record.
    path : path
        File name that ends with .html, .md, .tex or .txt.
    data : Dataset, optional
        Data as in `report_of`.

    Raises
    ------
    BadInput
        If the file cannot be written, or has another suffix.
    """
    kind = report_format(os.fspath(path))
    write_text(path, [report_text(record, kind, "RECORD", data, "DATA")], "report", through=True)


def _answer(record: AnyRecord) -> str:
    if isinstance(record, Record):
        root = mark_estimate(format_number(math.sqrt(record.cv_error)), record.estimate)
        model = f"tau = {several(record.tau, 'feature')}, gamma = {format_number(record.gamma)}"
        if record.classes is not None:
            error = mark_estimate(format_number(record.cv_error), record.estimate)
            measures = f"{model}: log loss of held-out rows {error}; {record.accuracy_line()}"
            predicted = f"the model predicts the probability that {record.data.target} is {record.classes.positive}"
            return f"{measures}; {predicted}{_whose(record)}"
        if not record.loss.is_quadratic:
            error = f"{record.loss.target.row_loss} of held-out rows "
            error += mark_estimate(format_number(record.cv_error), record.estimate)
            return f"{model}: {error}; {record.accuracy_line()}{_whose(record)}"
        error = f"{model}: predicts {record.data.target} on held-out rows with a root mean squared error of {root}"
        seen = " (an estimate, likely too low)" if record.seen_folds else ""
        return f"{error}{seen}{_whose(record)}"
    if isinstance(record, PathRecord):
        taus = sorted({row.tau for row in record.path})
        within = " within the restrictions" if record.request.restrictions else ""
        return f"the best subsets of {taus[0]} to {taus[-1]} features{within} on all rows"
    if isinstance(record, CommonRecord):
        model = f"{several(record.tau, 'feature')} common to all folds, gamma = {format_number(record.gamma)}"
        if not record.loss.is_quadratic:
            return f"{model}: CV error {format_number(record.cv_error)} of {record.data.target}, {record.beside_error}"
        error = f"on held-out rows with a root mean squared error of {format_number(record.rmse)}"
        return f"{model}: predicts {record.data.target} {error}"
    return f"the best subset of {record.tau} features on all rows, gamma = {format_number(record.gamma)}"


def _whose(record: Record) -> str:
    """Return a text on the model that the error refers to, where an averaged one was requested."""
    if record.average is None:
        return f"; {NO_AVERAGE}" if record.request.model == Model.AVERAGE else ""
    size, within = several(len(record.average.model.support), "feature"), record.average.within_folds
    squares = record.loss.is_quadratic  # the page also has their square root
    errors = "" if within is None else format_number(math.sqrt(within.error) if squares else within.error)
    measure = "root mean squared error" if squares else "error"
    own = (
        ""
        if within is None
        else f". With averaging repeated within every fold, the {measure} on held-out rows is {errors} (optimistic)"
    )
    return f"; this is the error of the pair, but the averaged model of {size} is used for predictions{own}"


def _search_sections(record: Record, data: Dataset | None) -> list[Section]:
    """Return the sections of a cross-validation that come before the data."""
    held_out = _held_out(record, data)
    return [
        Section("The answer", (
            Facts(_answer_facts(record)),
            *([] if record.nested is None else [_sentences(record_tables.nested_lines(record, record.nested))]),
            _sentences([*record_tables.rule_lines(record), *record_words.stability_lines(record, data),
                        *record_words.average_lines(record)]),
        )),
        Section("What is certified, and what is not", (
            Sentences(tuple(proved_sentences(record)), True), Sentences(tuple(open_sentences(record)), False),
        )),
        Section("Pictures", _pictures(record, data, held_out)),
        Section("The model", (*_model(record, data), *_average_section(record), *_calibration(record, held_out))),
        Section("Model sizes", (
            _tau_table(record),
            _grid_table(record),
        )),
        _folds(record),
        Section("The search", (Facts(_request_facts(record)), *_sources(record), *_hints(record))),
    ]  # fmt: skip


def _folds(record: Record | CommonRecord) -> Section:
    folds = record.folds
    facts = ("folds", record_words.describe_folds(folds)), ("digest", folds.digest)
    return Section("Folds", (Facts(facts),))


def _comparison_error(record: CommonRecord) -> tuple[str, str]:
    """Return the CV error with which the common subset is compared."""
    if record.null_error is not None:
        return f"{record.null_name} alone", format_number(record.null_error)
    return "RMSE, the square root of the CV error", format_number(record.rmse)


def _common(record: CommonRecord, data: Dataset | None) -> list[Section]:
    """Return the sections of the best common subset that come before the data."""
    digits, ask = interval_digits([(record.lower, record.upper)]), record.request
    low, high, done = (
        format_number(record.lower, digits),
        format_number(record.upper, digits),
        record.status == "proved",
    )
    error = record.loss.target.cv_error
    facts = (
        ("status", "certified" if done else f"not certified ({record.status}), gap {format_number(record.gap, 2)}"),
        *_comparison_facts(record),
        ("features, tau", str(record.tau)),
        ("ridge weight, gamma", format_number(record.gamma)),
        (f"CV error ({error}) of one subset for all folds", format_number(record.cv_error, digits)),
        (
            "minimum CV error over all subsets of these sizes",
            f"in {format_interval(record.lower, record.upper, digits)} (certified)",
        ),
        _comparison_error(record),
    )
    search = (
        *_grid_facts(ask), ("requested gap", format_number(ask.gap)), ("time limit", record_words.limit_words(ask)),
        ("work", f"{several(record.work.nodes, 'node')}, {record.work.seconds:.2f} s"),
    )  # fmt: skip
    sure = [f"No subset common to all folds, of these sizes and gammas, has a CV error below {low}."]
    sure += [
        f"The CV error of the reported subset is {high}"
        + ("; it is the best common subset, up to the gap." if done else ".")
    ]
    unsure = [] if done else ["That the reported subset is the best one: the search ended before the proof."]
    if done:
        unsure += [
            "The best subset of each other size: it is only certified that no subset of another size is better overall."
        ]
    best = record_tables.best_common_by_tau(record)
    chosen = next((k for k, row in enumerate(best) if row.tau == record.tau), None)
    words = "The best subset found of each size, at its best gamma; the certified interval above covers all sizes."
    return [
        Section("The answer", (Facts(facts), _sentences([record_words.common_stability(record)]))),
        Section("What is certified, and what is not", (Sentences(tuple(sure), True), Sentences(tuple(unsure), False))),
        Section("Picture", (_coefficients(record, data),)),
        Section("The model", (_model_table(record, data), *_sentences_if_any(factor_lines(record)))),
        Section("Model sizes", (
            _common_table(best, words, chosen, digits),
            _common_table(record.table, f"All {several(len(record.table), 'pair')} of the grid.", None, digits, True),
        )),
        _folds(record),
        Section("The search", (Facts(search),)),
    ]  # fmt: skip


def _common_table(
    rows: Sequence[CommonRow], caption: str, chosen: int | None, digits: int, folded: bool = False
) -> ReportTable:
    lines = [
        (str(row.tau), format_number(row.gamma), format_with_zeros(row.cv_error, digits), join_names(row.support))
        for row in rows
    ]
    return ReportTable(caption, ("tau", "gamma", "CV error", "features"), tuple(lines), chosen=chosen, folded=folded)


def _sentences(lines: Sequence[str]) -> Sentences:
    return Sentences(tuple(f"{line[0].upper()}{line[1:]}." for line in lines))


def _sentences_if_any(lines: Sequence[str]) -> tuple[Sentences, ...]:
    return (_sentences(lines),) if lines else ()


def _answer_facts(record: Record) -> tuple[tuple[str, str], ...]:
    certificate, own = record.certificate, record.own_row
    digits = interval_digits([(record.lower, record.upper), (certificate.lower, certificate.upper)])
    error = mark_estimate(format_number(record.cv_error, digits), record.estimate)
    if own is not None and record_tables.own_line(record, digits):
        error += f", in {format_interval(own.lower, own.upper, digits)} (certified)"
    ends = f"in {format_interval(certificate.lower, certificate.upper, digits)} (certified)"
    if record.least is not None:
        least = mark_estimate(format_number(certificate.cv_error, digits), certificate.estimate)
        ends = f"{least} at tau = {certificate.tau}, gamma = {format_number(certificate.gamma)}, {ends}"
    certified = f"certified, gap {format_number(certificate.gap, 2)}"
    proof = (
        certified
        if record.status == "proved"
        else (f"not certified ({record.status}), gap {format_number(certificate.gap, 2)}")
    )
    facts = [
        ("status" if record.least is None else "status of the minimum CV error", proof),
        *_comparison_facts(record),
        ("features, tau", str(record.tau)),
        ("ridge weight, gamma", format_number(record.gamma)),
        *([] if record.least is None else [("chosen by", record.rule)]),
        (f"CV error ({record.loss.target.cv_error})", error),
        ("minimum CV error over the grid", ends),
    ]
    if record.loss.is_quadratic:
        facts.append(
            (
                "RMSE, the square root of the CV error",
                mark_estimate(format_number(math.sqrt(record.cv_error)), record.estimate),
            )
        )
    elif record.classes is not None:
        facts += _class_facts(record, record.classes)
    elif record.null_error is not None:
        facts.append((f"{record.null_name} alone", format_number(record.null_error)))
    if record.mae is not None:
        facts.append(("MAE of held-out rows", mark_estimate(format_number(record.mae), record.estimate)))
    if record.r_squared is not None:
        facts.append((record.loss.target.explained, mark_estimate(format_share(record.r_squared), record.estimate)))
    if record.refined is not None:
        facts.append(("gamma refined at this tau", format_number(record.refined.gamma)))
    return tuple(facts)


def _class_facts(record: Record, classes: Classes) -> list[tuple[str, str]]:
    """Return the classes and the quality of held-out predictions, of which only the log loss is certified."""
    facts = [
        (
            "classes",
            f"{classes.negative}, {classes.positive}; the model predicts the probability of {classes.positive}",
        ),
        ("log loss of the class frequencies alone", format_number(classes.null_error)),
    ]
    if classes.accuracy is not None:
        facts.append(("accuracy of held-out rows", mark_estimate(f"{100.0 * classes.accuracy:.1f}%", record.estimate)))
    for words, value in (("AUC of held-out rows", classes.auc), ("Brier score of held-out rows", classes.brier)):
        if value is not None:
            facts.append((words, mark_estimate(f"{value:.4f}", record.estimate)))
    return facts


def _comparison_facts(record: Record | PathRecord | CommonRecord) -> list[tuple[str, str]]:
    return [("models compared", words)] if (words := record_tables.describe_model_space(record)) else []


def proved_sentences(record: Record) -> list[str]:
    """Return a sentence for each statement that a record of a search certifies."""
    best, own = record.certificate, record.own_row
    digits = interval_digits([(best.lower, best.upper)])
    words = record_tables.describe_model_space(record)
    lines = [f"Models compared: {words}. The following statements are about these models."] if words else []
    lines += _state_bounds(record, digits)
    if words := record_words.fold_models(record):
        lines.append(
            f"The training objective of each of the {record.folds.k:,} fold models of the reported pair is {words}."
        )
    if own is not None and math.isfinite(own.upper) and record_tables.own_line(record, digits):
        lines.append(f"The CV error of the reported pair is at most {format_number(own.upper, digits)}.")
    if record.status == "proved":
        gap = f"up to a relative gap of {format_number(best.gap, 2)}" if best.gap > 0.0 else "up to rounding"
        lines.append(f"Therefore {_least_pair(record)} has the minimum CV error, {gap}.")
    if record.least is not None and record.is_settled:
        lines.append(f"The reported pair is the choice of {record.rule}.")
    lines.append(_describe_progress(record, bool(lines)))
    lines += _sentences(record_words.proved_region(record)).lines
    if record.refit.proved:
        limits = record.request.restrictions or NONE
        most = "at most " if limits else ""
        within = " within the restrictions" if replace(limits, count=()) else ""  # a count of factors forbids no model
        lines.append(f"The full-data model uses the best subset of {most}{record.refit.tau} features{within}.")
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
    lines = [f"No CV error {where} is below {format_number(best.lower, digits)}."] if best.lower > 0.0 else []
    if math.isfinite(best.upper):
        lines.append(f"The minimum CV error {where} is at most {format_number(best.upper, digits)}.")
    return lines


def _describe_progress(record: Record, more_is_said: bool) -> str:
    """Return a sentence on the number of solved subproblems."""
    decided = sum(row.folds_decided == row.folds for row in record.table)
    excluded = sum(row.status == "excluded" for row in record.table)
    cells = sum(row.folds_decided for row in record.table)
    total = sum(row.folds for row in record.table)
    more = f"; bounds exclude {excluded:,} other pairs" if excluded else ""
    solved = f"{cells:,} of {total:,} subproblems are solved; {several(decided, 'pair')} in every fold"
    if more_is_said or cells or more:
        return f"{solved}{more}."
    return f"No bound yet: none of {total:,} subproblems is solved."


def open_sentences(record: Record) -> list[str]:
    """Return a sentence for each statement that a record of a search does not certify."""
    return [
        *_open_choice_sentences(record),
        *_open_model_sentences(record),
        _state_error_on_new_rows(record),
    ]


def _open_choice_sentences(record: Record) -> list[str]:
    """Return the sentences on the pair with the minimum CV error, and on its CV error."""
    lines = []
    own, open_rows = record.own_row, record_words.open_rows(record)
    if record.status != "proved":
        lines.append(f"That {_least_pair(record)} has the minimum CV error: the search ended before the proof.")
    if record.estimate and own is not None:
        why = record_tables.estimate_line(own.folds_decided, own.folds, record.likely("too low"))
        lines.append(f"The CV error of the reported pair: it is {why.removeprefix('~ ')}.")
    if own is not None and not math.isfinite(own.upper):
        lines.append("The CV error of the reported pair from above: it has no upper bound yet.")
    if open_rows and record.status != "proved":
        lines.append(f"That none of {len(open_rows):,} other pairs has a smaller CV error: they are not excluded.")
    return lines


def _open_model_sentences(record: Record) -> list[str]:
    """Return the sentences on the full-data model, the rule that chose its pair, and the quality of its classes."""
    lines = []
    if not record.refit.proved:
        ends = format_interval(record.refit.lower, record.refit.upper)
        within = " within the restrictions" if record.request.restrictions else ""
        lines.append(f"That the full-data model uses the best subset{within}: the minimum objective is in {ends}.")
    if not record.is_settled:
        weighed = record.stability is not None and record.stability.chosen is not None
        numbers = "instabilities" if weighed else "CV errors"
        lines.append(f"The choice by {record.rule}: not all {numbers} that it compares are known precisely enough.")
    if record.classes is not None:
        lines.append("Accuracy, AUC, Brier score, ROC curve and calibration: they are reported without bounds.")
    return lines


def _state_error_on_new_rows(record: Record) -> str:
    """Return the sentence on the error on new rows, which no record certifies."""
    nested = "" if record.nested is None else (
        f" The nested CV error, {format_number(record.nested.error)}, is not minimised, but it is an estimate too."
    )  # fmt: skip
    between = "" if record.continuous is not None else " Values of gamma between those of the grid are not covered."
    chosen = (
        "the CV error was minimised over the grid, and is therefore likely to be slightly too small"
        if record.least is None
        else f"{record.rule} chose the pair by the CV errors of the grid, so its CV error may be slightly too small"
    )
    return f"The error on new rows: {chosen}.{nested}{between}"


def _pictures(record: Record, data: Dataset | None, rows: PredictedClasses | Sentences | None) -> tuple[Block, ...]:
    words = "CV error for each tau at its best gamma: dots with bars of one standard error over the folds, "
    words += "certified intervals as bands" + (
        ", estimates, likely too low, as hollow dots" if _has_estimates(record) else ""
    )
    if any(size_row.excluded for size_row in size_rows.best_by_tau(record)):
        words += ", lower bounds of excluded sizes as triangles"
    advice = size_rows.advise_full_curve(record)
    words += f"; {advice}." if advice else "."
    pictures = [Picture("cv-error", words, (INCHES, 4.1), partial(record_plots.plot_cv_error, record))]
    if record.continuous is not None:
        words = "CV error over the interval of gamma, with the certified bound of every piece. The CV error jumps "
        words += "where the best subset of a fold changes."
        pictures.append(Picture("every-gamma", words, (INCHES, 4.4), partial(record_plots.plot_every_gamma, record)))
    if len({row.tau for row in record.table}) > 1 < len({row.gamma for row in record.table}):
        states = {row.status for row in record.table}
        excluded = (
            "; hatched pairs are excluded by bound, and their colours may be too low" if "excluded" in states else ""
        )
        words = f"CV error of every pair of the grid{excluded}."
        pictures.append(Picture("grid", words, (INCHES, 4.1), partial(record_plots.plot_grid, record)))
        words = "Certified lower bound of every pair, in % above the smallest CV error found. Green pairs are "
        words += (
            "certified to be worse. Bounds of brown pairs are below that error; a brown pair is excluded as well if "
        )
        words += "its bound is lower by at most the gap."
        pictures.append(Picture("bounds", words, (INCHES, 4.3), partial(record_plots.plot_bounds, record)))
    features = {name for support in record.chosen_folds.supports for name in support} | set(record.support)
    words = (
        "Number of folds that select each feature at the reported pair. Features that only some folds select come first"
    )
    words += "." if all(record.chosen_folds.decided) else ". Pale bars: the best subset of the fold is not certified."
    size = INCHES, _height(len(features))
    pictures.append(Picture("features", words + _sign_note(record), size, partial(record_plots.plot_features, record)))
    return (*pictures, *_curves(record, rows), _coefficients(record, data))


def _has_estimates(record: Record) -> bool:
    return any(size_row.is_estimate for size_row in size_rows.best_by_tau(record))


def _held_out(record: Record, data: Dataset | None) -> PredictedClasses | Sentences | None:
    """Return the held-out rows of a logistic record, or sentences on what is needed for them."""
    if record.classes is None:
        return None
    try:
        if data is None:
            raise BadInput("to include them, give the data of the record (--data)")
        return PredictedClasses.from_record(record, data)
    except BadInput as error:
        return Sentences((f"ROC curve, calibration and odds ratios per standard deviation: {error}.",))


def _curves(record: Record, rows: PredictedClasses | Sentences | None) -> tuple[Block, ...]:
    """Return the ROC curve and the calibration plot of a logistic record."""
    if not isinstance(rows, PredictedClasses) or record.classes is None:
        return () if rows is None or isinstance(rows, PredictedClasses) else (rows,)
    size = INCHES, 4.6
    of_pair = "" if record.average is None else " of the pair (not the averaged model)"
    words = (
        f"ROC curve of held-out rows, each predicted by the model{of_pair} that was fitted without this row; the "
        "curve is "
        "not certified."
    )
    curve = Picture("roc", words, size, lambda ax: draw_roc(record, rows, ax))
    words = f"Calibration of held-out rows: observed share of {record.classes.positive} by tenths of the predicted "
    words += "probability, with 95% intervals and the number of rows."
    return curve, Picture("calibration", words, size, lambda ax: draw_calibration(record, rows, ax))


def _calibration(record: Record, rows: PredictedClasses | Sentences | None) -> tuple[ReportTable, ...]:
    """Return the numbers of the reliability curve."""
    if not isinstance(rows, PredictedClasses) or record.classes is None:
        return ()
    points = Reliability.from_predictions(rows)
    columns = points.predicted, points.observed, points.low, points.high
    lines = tuple((f"{count:,}", *(f"{number:.3f}" for number in numbers))
                  for count, *numbers in zip(points.counts.tolist(), *columns, strict=True))  # fmt: skip
    head = ("rows", "mean probability", f"observed share of {record.classes.positive}", "95% from", "to")
    return (ReportTable("Calibration of held-out rows, by tenths of the predicted probability.", head, lines),)


def _surface(record: PathRecord | FitRecord) -> tuple[Block, ...]:
    """Return the best subset of every size as a function of gamma, if an interval was requested."""
    surface = record.surface if isinstance(record, PathRecord) else None
    if surface is None or not isinstance(record, PathRecord):
        return ()
    words = "Best subset of each size as a function of gamma; the colour changes where the subset changes."
    size = INCHES, 1.7 + 0.3 * min(len(record.request.taus), record_plots.MOST_FEATURES)
    rows = tuple(
        (
            str(piece.tau),
            format_number(piece.low),
            format_number(piece.high),
            record_tables.subsets_of_piece(surface, piece),
        )
        for piece in surface.pieces
    )
    caption = (
        "Best subset for each interval of gamma. If several subsets are listed, they are tied, or their objectives "
        "cross "
    )
    caption += "and differ by a relative amount of at most 1e-9."
    table = ReportTable(caption, ("tau", "gamma from", "to", "features"), rows)
    return Picture("surface", words, size, partial(record_plots.plot_surface, record)), table


def _coefficients(record: AnyRecord, data: Dataset | None) -> Picture:
    path = isinstance(record, PathRecord) or (data is not None and isinstance(record, Record))
    words = "Coefficients of the full-data best subsets, by tau" if path else "Coefficients of the model"
    if data is not None and data.classes is not None:
        words += ", in log odds per standard deviation of the feature."
    elif data is not None and data.counts:
        words += ", in log rates per standard deviation of the feature."
    elif data is not None:
        words += ", for features and target scaled to standard deviation 1."
    else:
        words += (
            ", relative to the largest coefficient of the feature."
            if path
            else ", each in its unit (to standardise them, give --data)."
        )
    rows = record.data.p if isinstance(record, PathRecord) or path else len(record.coefficients)
    draw = partial(record_plots.plot_coefficients, record, data=data)
    return Picture("coefficients", words, (INCHES, _height(rows)), draw)


def _height(rows: int) -> float:
    return 1.7 + 0.23 * min(max(rows, record_plots.BAR_ROWS), record_plots.MOST_FEATURES)


def _sign_note(record: Record | FitRecord | CommonRecord) -> str:
    """Return the reason why a feature of every model may count in fewer folds."""
    limits = record.request.restrictions if isinstance(record, Record) else None
    if limits is None or not (limits.nonnegative or limits.nonpositive):
        return ""
    return " A fold is not counted for a feature if a sign constraint sets its coefficient to 0 in that fold."


def _model(record: Record | FitRecord, data: Dataset | None) -> tuple[Block, ...]:
    """Return the table of a model and, for logistic and Poisson loss, its fit to all rows."""
    lines = [*factor_lines(record), *scatter_lines(record, record, data)]
    return (_model_table(record, data), *_sentences_if_any(lines))


def _model_table(record: Record | FitRecord | CommonRecord, data: Dataset | None) -> ReportTable:
    search = record if isinstance(record, Record) else None
    adjusted = adjustment_columns(record)
    names = sorted(record.coefficients, key=lambda name: name in adjusted)
    rows = [[name, format_number(record.coefficients[name])] for name in names]
    head = ["feature", _coefficient_head(record)]
    heads, cells = ratio_columns(record.loss, record.coefficients, data)
    head += heads
    if cells:
        for row in rows:
            row += cells[row[0]]
    elif data is not None:
        unit = record_plots.standard_units(list(record.coefficients), data)
        for row in rows:
            row.append(format_number(unit[row[0]] * record.coefficients[row[0]], 3))
        head.append("standardised")
    if search is not None:
        decided, others = record_plots.selection_counts(search.chosen_folds)
        for row in rows:
            times = f"{decided[row[0]] + others[row[0]]:,} of {several(len(search.chosen_folds), 'fold')}"
            row.append("adjusted for" if row[0] in adjusted else times)
        head.append("selected in")
    rows.append(["(intercept)", format_number(record.intercept), *[""] * (len(head) - 2)])
    where = "" if search is None else f", tau = {search.refit.tau}, gamma = {format_number(search.refit.gamma)}"
    return ReportTable(
        f"Model refitted on all rows{where}.{_sign_note(record)}", tuple(head), tuple(map(tuple, rows)), words=1
    )


def _coefficient_head(record: Record | FitRecord | CommonRecord) -> str:
    """Return the unit of the coefficients."""
    return f"coefficient, in {record.loss.target.unit or f'units of {record.data.target}'} per unit of the feature"


def _average_section(record: Record) -> tuple[ReportTable, ...]:
    """Return the table of the averaged model, if there is one."""
    if record.average is None:
        return ()
    model = record.average.model
    rows = [
        (name, format_number(value)) for name, value in {**model.coefficients, "(intercept)": model.intercept}.items()
    ]
    head = ("feature", _coefficient_head(record))
    return (ReportTable("The averaged model, which is used for predictions.", head, tuple(rows), words=1),)


def _tau_table(record: Record) -> ReportTable:
    rows, title = size_rows.best_by_tau(record), size_rows.title_of_sizes(record)
    chosen = next(
        (k for k, size_row in enumerate(rows) if (size_row.row.gamma, size_row.tau) == (record.gamma, record.tau)), None
    )  # fmt: skip
    excluded = filter(None, (size_rows.advise_full_curve(record), size_rows.explain_excluded(record, rows)))
    notes = "".join((_estimate_note(size_row.is_estimate for size_row in rows), *(f"; {words}" for words in excluded)))
    return _pairs(record, rows, f"{title[0].upper()}{title[1:]}{notes}.", chosen)


def _grid_table(record: Record) -> ReportTable:
    """Return the table of all pairs; an excluded pair has only bounds on its CV error."""
    rows = size_rows.rows_of_pairs(record)
    notes = _estimate_note(size_row.is_estimate for size_row in rows)
    title = f"All {several(len(rows), 'pair')} of the grid{notes}."
    return _pairs(record, rows, title, None, folded=True)


def _estimate_note(estimates: Iterable[bool]) -> str:
    return "; ~ marks an estimate, likely too low" if any(estimates) else ""


def _pairs(
    record: Record, rows: Sequence[size_rows.SizeRow], caption: str, chosen: int | None, folded: bool = False
) -> ReportTable:
    digits = interval_digits((size_row.lower, size_row.upper) for size_row in rows if not size_row.excluded)
    explained = record.r_squared is not None and record.r_squared < 1.0 and math.isfinite(record.cv_error)
    spread = record.cv_error / (1.0 - record.r_squared) if explained and record.r_squared is not None else 0.0
    root_too = record.loss.is_quadratic
    head = ["tau", "gamma", "CV error", "standard error", *(["RMSE"] if root_too else []),
            *(["R^2"] if spread else []), "lower", "upper",
            "folds solved", "status"]  # fmt: skip
    lines = []
    for size_row in rows:
        row, many = size_row.row, size_row.excluded and not folded  # many: the bounds of all gammas of a tau
        lines.append((str(row.tau), "" if many else format_number(row.gamma), size_row.describe_error(digits),
                      *_measures(size_row, root_too, spread), format_with_zeros(size_row.lower, digits),
                      format_with_zeros(size_row.upper, digits), "" if many else f"{row.folds_decided:,}/{row.folds:,}",
                      "excluded" if size_row.excluded else row.status or ""))  # fmt: skip
    return ReportTable(caption, tuple(head), tuple(lines), chosen=chosen, folded=folded)


def _measures(one: size_rows.SizeRow, root_too: bool, spread: float) -> list[str]:
    """Return the standard error, the RMSE and R^2 of a row; empty for an excluded one, whose CV error is not known."""
    row, scored = one.row, math.isfinite(one.row.cv_error)
    count = 1 + root_too + (spread > 0.0)
    if one.excluded:
        return [""] * count
    width = "" if row.standard_error is None else mark_estimate(format_number(row.standard_error, 3), row.estimate)
    root = format_number(math.sqrt(row.cv_error)) if scored else "?"
    explained = mark_estimate(format_share(1.0 - row.cv_error / spread), row.estimate) if scored and spread else "?"
    return [width, *([mark_estimate(root, row.estimate)] if root_too else []), *([explained] if spread else [])]


def _data_facts(data: DataInfo) -> tuple[tuple[str, str], ...]:
    facts = [("rows", f"{data.n:,}"), ("feature columns", f"{data.p:,}"), ("target", data.target)]
    if data.weights is not None:
        facts.append(("weights", data.weights))
    if data.exposure is not None:
        facts.append(("exposures", data.exposure))
    if data.class_weight is not None:
        facts.append(("class weight", f"{data.class_weight}: both classes have equal weight"))
    if data.reading is not None:
        facts.append(("read with", _describe_reading(data.reading)))
        facts += [(f"codes of {column}", codes) for column, codes in data.reading.rank_labels.items()]
    facts += [("scale of the penalty", data.scale), ("intercept", data.intercept)]
    return (*facts, ("fingerprint", data.fingerprint))


def _describe_reading(read: ReadingInfo) -> str:
    facts = [f"missing values: {read.na}", f"{several(read.left_out, 'row')} dropped"]
    filled = "" if read.filled is None else f" of {several(len(read.filled), 'column')}"
    facts += [f"missing values{filled} imputed by the {read.na}"] if read.means else []
    facts += [f"{several(len(read.marked), 'column')} with an indicator of missing values"] if read.marked else []
    unranked = set(read.levels) - set(read.ranked_levels)
    facts += [f"{several(len(unranked), 'text column')} encoded as {read.encode}"] if unranked else []
    facts += [f"dates as {', '.join(read.dates)}"] if read.dates else []
    facts += [f"missing-value codes: {', '.join(read.na_values)}"] if read.na_values else []
    facts += ["NA, none and similar words are text"] if not read.keep_default_na else []
    facts += [f"skipped lines: {read.skip_lines}"] if read.skip_lines else []
    facts += [f"separator {read.sep!r}"] if read.sep is not None else []
    facts += [f"decimal mark {read.decimal!r}"] if read.decimal != "." else []
    facts += [f"thousands separator {read.thousands!r}"] if read.thousands not in (None, "none") else []
    return ", ".join([*facts, f"encoding {read.encoding}"])


def _grid_facts(ask: GridRequest) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the numbers and the ranges of the requested gammas and sizes."""
    gammas, taus = sorted(set(ask.gammas)), sorted(set(ask.taus))
    ends = format_number(gammas[0]), format_number(gammas[-1])
    return (
        ("gammas", ends[0] if len(gammas) == 1 else f"{len(gammas)} values from {ends[0]} to {ends[1]}"),
        ("taus", str(taus[0]) if len(taus) == 1 else f"{len(taus)} sizes from {taus[0]} to {taus[-1]}"),
    )


def _request_facts(record: Record) -> tuple[tuple[str, str], ...]:
    ask, work = record.request, record.work
    facts = [
        *_grid_facts(ask),
        ("requested gap", format_number(ask.gap)),
        ("time limit", record_words.limit_words(ask)),
        ("method", ask.method_used or ask.method or "not recorded"),
        ("subproblems", record_tables.subproblems_line(record)),
        ("solved by", record_tables.methods_line(work.engine).partition(": ")[2]),
    ]
    rows = {None: "all rows, including held-out rows", "folds": "the training rows of each fold"}
    if record.data.reading is not None and record.data.reading.means:
        facts.append(("missing values imputed by", f"the {record.data.reading.na} over {rows[ask.na_within]}"))
    if record.data.scale != "none":
        facts.append(("scales of columns computed from", rows[ask.scale_within]))
    if ask.restrictions is not None:
        for field in fields(ask.restrictions):
            value = getattr(ask.restrictions, field.name)
            if field.name == "count":
                value = tuple(map(word_of_factor, value))
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            facts += [(field.name.replace("_", " "), text)] if value else []
    return tuple(facts)


def _sources(record: Record) -> tuple[Block, ...]:
    """Return the cost and gain of each source of bounds, if the record has them."""
    rows = tuple(source_tables.source_rows(record))
    blocks: list[Block] = [ReportTable(source_tables.CAPTION, source_tables.HEADS, rows, 1)] if rows else []
    if record.work.course:
        words = "Relative gap of the grid over time, coloured by the bounding method at work."
        blocks.append(Picture("sources", words, (INCHES, 3.6), partial(source_tables.plot_sources, record)))
    return tuple(blocks)


def _hints(record: Record) -> tuple[Block, ...]:
    lines = tuple(f"Hint: {hint}" for hint in record_words.hints(record))
    return (Sentences(lines),) if lines else ()


def _fit_sections(record: PathRecord | FitRecord, data: Dataset | None) -> list[Section]:
    """Return the sections of full-data fits that come before the data."""
    stated = _sentences_if_any(factor_lines(record) if isinstance(record, PathRecord) else [])
    picture = Section("Picture", (*_surface(record), _coefficients(record, data), *stated))
    if isinstance(record, FitRecord):
        facts = (
            ("objective", format_number(record.objective)),
            ("certified", f"in {format_interval(record.lower, record.upper)}"),
            ("gap", format_number(record.gap, 3)),
            ("backend", f"{record.backend} {record.formulation}"),
            ("seconds", f"{record.seconds:.3f}"),
            *((("models compared", words),) if record.side is not None and (words := record.side.words()) else ()),
        )
        word = "The support is the best of its size on all rows, within the side constraints, if there are any."
        lines = Sentences((word,), True) if record.status == "proved" else Sentences((
            "That the support is the best of its size: the solver stopped before the proof.",), False)  # fmt: skip
        model = Section("The model", _model(record, data))
        return [Section("The answer", (Facts(facts), lines)), model, picture]
    sure = sum(row.proved for row in record.path)
    within = " within the restrictions" if record.request.restrictions else ""
    first = f"{sure} of {len(record.path)} subsets are certified to be the best of their size{within} at their gamma."
    said: list[Block] = [Facts(tuple(_comparison_facts(record)))] if record.request.restrictions else []
    said.append(Sentences((first,), True))
    if sure < len(record.path):
        words = (
            f"The other {len(record.path) - sure} subsets may not be the best: the minimum objective is between "
            "`lower` and `objective`."
        )
        said.append(Sentences((words,), False))
    rows = tuple(
        (
            str(row.tau),
            format_number(row.gamma),
            format_with_zeros(row.objective, 6),
            format_with_zeros(row.lower, 6),
            "yes" if row.proved else "no",
            join_names(row.support),
        )
        for row in record.path
    )
    head = ("tau", "gamma", "objective", "lower", "certified", "features")
    losses = record.loss.target.losses
    table = ReportTable(f"Objective: {losses} on the training rows plus the penalty.", head, rows)
    return [Section("What is certified, and what is not", tuple(said)), picture, Section("Every size", (table,))]


def _verify(record: AnyRecord, name: str, file: str) -> tuple[Block, ...]:
    words = (
        "`verify` rebuilds the folds, refits every support and recomputes the errors, by a program that shares no code "
        "with the search. With at most 15 features it tries every subset. It reports whether each field was "
        "recomputed. With more features, `--proof PROOF` of `solve` writes a proof that no pair is better; "
        "the command `check` verifies it."
    )
    if isinstance(record, Record | CommonRecord) and came_from_python(record.folds):
        lines = (
            "import sparsecv_mio as sc",
            f"sc.verify(sc.read_record({name!r}), data, folds=folds).raise_if_failed()",
        )
        return Sentences((words, "The folds came from Python; pass them again, as given to `solve`.")), Commands(
            "python", lines
        )
    return Sentences((words,)), Commands("sh", (shlex.join(["sparsecv", "verify", argument(name), argument(file)]),))
