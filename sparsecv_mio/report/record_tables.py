"""Screen output of a record: the chosen pair (tau, gamma), its model, the table by tau, and the work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.text import Text

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate import accuracy, fit_records, records
from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.certificate.restrictions import adjustment_columns, restrictions_of
from sparsecv_mio.digits import (
    abbreviate_list,
    format_interval,
    format_lower,
    format_number,
    format_share,
    format_with_zeros,
    interval_digits,
    quoted_name,
    several,
)
from sparsecv_mio.model_space import find_factors, text_of_taus, word_of_factor, words_of_terms
from sparsecv_mio.report import layout, optional_parts, record_words, size_rows
from sparsecv_mio.report.coefficients import ratio_columns, scatter_lines, spreads
from sparsecv_mio.report.document import ReportTable, report_table
from sparsecv_mio.report.layout import mark_estimate, say, say_titled

if TYPE_CHECKING:
    from sparsecv_mio.certificate.checked_fields import VerifyReport
    from sparsecv_mio.data.dataset import Dataset

    OneModelRecord = records.Record | fit_records.CommonRecord | fit_records.FitRecord
    AnyMultiRecord = records.Record | fit_records.PathRecord | fit_records.CommonRecord | fit_records.NearRecord

SURFACE_HEADS = ("tau", "gamma from", "to", "features")
KEPT_ROWS = 10  # rows shown of a table that is longer
MAX_COEFFICIENTS = 40  # coefficients printed without --full
MEANING = {  # by status: title of the answer, reason why it is not certified, and colour
    "proved": ("certified answer", "", "green"),
    "limit": ("best answer so far", "limit reached", "yellow"),
    "interrupted": ("best answer so far", "interrupted", "yellow"),
    "doubtful": (
        "best answer so far",
        "an independent refit disagrees, so the folds concerned count as unsolved",
        "red",
    ),
}


def print_answer(
    console: Console,
    record: records.Record,
    brief: bool = False,
    held_out: accuracy.Quality | None = None,
    full: bool = False,
    data: Dataset | None = None,
) -> None:
    """Print a cross-validation record.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record to print.
    brief : bool
        True to print only the answer and hints on edges of the grid, without the table by tau and the work.
    held_out : Quality, optional
        Quality of the held-out predictions, if they are written to a file.
    full : bool
        True to print every coefficient and every tau, the plan of the search, its methods, and the cost and the gain of
        each bounding method.
    data : Dataset, optional
        Data of the record, for odds and rate ratios per standard deviation and for the dispersion of counts.
    """
    _print_pair(console, record)
    lines = record_words.data_line(record, data), *record_words.event_lines(record, data), *restriction_lines(record)
    say(console, *lines, *_error_lines(record))
    if held_out is not None:
        of = "" if record.average is None else " of the pair"
        of_fold = "" if record.wording.is_sum_over_rows else ", each pair in one fold"
        say(console, f"held-out predictions{of} in the file: {error_line(held_out)}{of_fold}")
    if record.nested is not None:
        say(console, *nested_lines(record, record.nested))
    _print_coefficients(console, record, full, data)
    optional_parts.print_baselines(console, record, brief)
    optional_parts.print_draws(console, record, brief, full)
    if brief:
        _print_hints(console, record_words.edge_hints(record))
        return
    if record.nested is not None:
        _print_outer_folds(console, record.nested)
    say(console, size_rows.title_of_sizes(record), style="bold")
    _print_sizes(console, record, full)
    optional_parts.print_external_solver(console, record)
    if full:
        say(console, methods_line(record.work.engine))
        optional_parts.print_plan(console, record)
        optional_parts.print_sources(console, record)
    _print_hints(console, record_words.hints(record))


def _print_hints(console: Console, hints: Iterable[str]) -> None:
    for hint in hints:
        console.print(Text.assemble(("hint: ", "bold"), hint))


def meaning(record: AnyMultiRecord) -> tuple[str, str]:
    """Return the title of the answer, with the status in brackets, and a colour."""
    title, _, colour = MEANING[record.status]
    reason = _uncertified_reason(record)
    return (f"{title} ({reason}; not certified)" if reason else title), colour


def _uncertified_reason(record: AnyMultiRecord) -> str:
    if not record_words.has_stopped_early(record):
        return MEANING[record.status][1]
    reason = record_words.reason_of_early_end(record) if isinstance(record, records.Record) else ""
    return reason or "search ended without a proof"


def _print_pair(console: Console, record: records.Record) -> None:
    """Print the reported pair, preceded by the pair with the minimum CV error if that is another one."""
    unit, least, reason = restrictions_of(record).unit_of_tau, record.least, _uncertified_reason(record)
    reported = layout.pair(record.tau, record.gamma, unit)
    gap, pairs = layout.gap_in_words(record.request.gap), record_words.n_unsolved_pairs(record)
    if record.has_wide_ties:
        gap += ", except for ties"
    colour = MEANING["limit" if pairs else record.status][2]
    if least is None:
        word = f"best pair so far ({reason}; choice not certified)" if reason else f"certified choice ({gap})"
    else:
        status = f"{reason}; not certified" if reason else f"certified, {gap}"
        minimum = f"pair with the minimum CV error {record_words.search_space(record)} ({status})"
        error = mark_estimate(format_number(least.cv_error, _digits(record)), least.estimate)
        say_titled(
            console,
            minimum,
            f"{layout.pair(least.tau, least.gamma, unit)}, CV error {error}",
            colour,
        )
        settled, colour = ("certified", "green") if record.is_settled else ("not certified", MEANING["limit"][2])
        word = f"reported by {record.rule} ({settled})"
    say_titled(console, word, reported, colour)
    if pairs:
        unsolved = f"{pairs:,} of {len(record.table):,} pairs are not solved, although --gap 0 requests every pair"
        say(console, f"{record_words.stop_reason(record)}: {unsolved}")


def _digits(record: records.Record) -> int:
    """Return the number of digits that distinguishes the bounds of the intervals of a record."""
    least = record.certificate
    return interval_digits([(record.lower, record.upper), (least.lower, least.upper)])


def interval_lines(record: records.Record) -> list[str]:
    """Return a line on the partition of the searched interval of gamma; empty for a grid."""
    if record.continuous is None:
        return []
    pieces = record.continuous.pieces
    open_ones, easy = sum(piece.lower <= 0.0 for piece in pieces), sum(piece.supports is None for piece in pieces)
    lines = [
        f"the interval of gamma is split into {several(len(pieces), 'piece')} (over all tau): {easy:,} with a lower "
        f"bound from training losses only{f', {open_ones:,} without a lower bound above 0' if open_ones else ''}"
    ]
    target = (1.0 - record.request.gap) * record.upper
    is_open = [piece for piece in pieces if piece.lower < target and record.status != "proved"]
    if is_open:
        ends = [end for piece in is_open for end in (piece.low, piece.high)]
        where = f"tau {record_words.span({piece.tau for piece in is_open})}, gamma {record_words.span(ends)}"
        lines.append(f"not excluded: {several(len(is_open), 'piece')} ({where})")
    return lines


def describe_model_space(record: AnyMultiRecord) -> str:
    """Return a description of the compared models; empty if all subsets of the columns of the file were compared."""
    limits, adjusted = record.request.restrictions, adjustment_columns(record)
    said = [limits.words(record.data.p)] if limits else []
    if not (limits and limits.count):
        said.append(describe_single_levels(name for name in record.data.names if name not in adjusted))
    return "; ".join(filter(None, said))


def describe_single_levels(names: Iterable[str]) -> str:
    """Return a statement that levels of factors count alone; empty if the features have no factor.

    Parameters
    ----------
    names : iterable of str
        Names of the features.

    Examples
    --------
    >>> describe_single_levels(["city=Bonn", "city=Oslo", "city=Rome", "age"]), describe_single_levels(["age"])
    ('each level of city counts as a feature', '')
    """
    factors = find_factors(names)
    words = abbreviate_list([word_of_factor(columns) for columns in factors])
    return f"each level of {words} counts as a feature" if factors else ""


def _error_lines(record: records.Record) -> list[str]:
    """Return lines on the error of the reported pair, its bounds, a refined gamma and the moves of a descent."""
    digits = _digits(record)
    error = mark_estimate(format_number(record.cv_error, digits), record.estimate)
    if _is_undefined(record):
        error = "undefined"
    own, spread = record.own_row, ""
    if own is not None and own.standard_error is not None and not _is_undefined(record):
        spread = f", standard error {mark_estimate(format_number(own.standard_error, 3), record.estimate)}"
    lines = [f"CV error {error} ({record.wording.cv_error}{spread}); on held-out rows: {record.accuracy_line()}"]
    if record.classes is not None:
        lines.append(
            "of these measures, only the log loss is certified; the model predicts the probability of "
            f"{record.classes.positive!r}"
        )
        if record.data.offset is None and record.null_error is not None:
            share = f"{100.0 * record_words.larger_class(record.null_error):.1f}%"
            lines[-1] += f"; always predicting the larger class has an accuracy of {share}"
    if record.counts is not None:
        lines.append(
            "only the half deviance is certified; the model predicts the expected count; coefficients are log rate "
            "ratios"
        )
    if record.data.class_weight is not None:
        lines.append("both classes have equal weight in these errors and in the fits (--class-weight balanced)")
    lines += _certified_lines(record, digits)
    lines += record_words.region_lines(record)
    lines += interval_lines(record)
    lines += _estimate_lines(record)
    if (better := record.refined) is not None:
        better_error = mark_estimate(format_number(better.cv_error, digits), better.estimate)
        found = f"gamma = {format_number(better.gamma)} with the CV error {better_error}"
        ends = format_interval(better.lower, better.upper, digits)
        lines.append(f"at the same tau, --refine found {found} in {ends}")
    return [*lines, *(_descent_lines(record) if record.descent else [])]


def _certified_lines(record: records.Record, digits: int) -> list[str]:
    """Return lines on the interval of the minimum CV error of the grid, and on that of the reported pair."""
    scope, certificate = record_words.search_space(record), record.certificate
    own = own_line(record, digits)
    if certificate.lower <= 0.0 and not math.isfinite(certificate.upper):
        return [f"minimum CV error {scope}: no certified bound"]
    ends = format_interval(certificate.lower, certificate.upper, digits)
    lines = [f"minimum CV error {scope}: in {ends} (certified, relative gap {format_number(certificate.gap, 2)})"]
    if record.has_wide_ties:
        lines.append(
            "ties: at the pair with the smallest lower bound, subsets whose training errors agree to 1e-9 change the "
            f"CV error by up to {format_number(certificate.tie_width, digits)}; the reported pair has the smallest "
            "upper bound, and a larger gamma may separate the subsets"
        )
    loosest = record.loosest
    if loosest is not None and (loosest.tau, loosest.gamma) != (certificate.tau, certificate.gamma):
        where = f"tau = {loosest.tau}, gamma = {format_number(loosest.gamma)}"
        lines.append(f"the lower bound is set by {where} (not yet excluded)")
    return list(filter(None, (own, *lines) if record.least is not None else (*lines, own)))


def own_line(record: records.Record, digits: int) -> str:
    """Return the certified bounds on the CV error of the reported pair, if they say more than those of the grid.

    Parameters
    ----------
    digits : int
        Number of digits.
    """
    row = record.own_row
    if words := record_words.fold_models(record):
        return f"training objective of each of the {record.folds.k:,} fold models of this pair: {words} (certified)"
    if row is None or (row.folds_decided == row.folds if record.least is not None else row.upper <= record.upper):
        return ""
    if not math.isfinite(row.upper) and not row.lower > 0.0:
        return "CV error of this pair: no certified bound"
    bounds = f"at least {format_lower(row.lower, digits)}"
    if math.isfinite(row.upper):
        bounds = f"in {format_interval(row.lower, row.upper, digits)}"
    return f"CV error of this pair: {bounds} (certified)"


def error_line(found: accuracy.Quality) -> str:
    """Return a line on the errors of predictions."""

    def known(value: float, text: Callable[[float], str]) -> str:
        return "unknown" if math.isnan(value) else text(value)

    if isinstance(found, accuracy.ClassQuality):
        at = "" if found.threshold is None else f" at threshold {format_number(found.threshold)}"
        right = f"accuracy {100.0 * found.accuracy:.1f}%{at}, AUC {known(found.auc, '{:.4f}'.format)}"
        return f"log loss {format_number(found.log_loss)}, {right}, Brier score {found.brier:.4f}"
    if isinstance(found, accuracy.CountQuality):
        explained = f"share of the deviance explained {known(found.explained, format_share)}"
        return f"half deviance {format_number(found.half_deviance)}, MAE {format_number(found.mae)}, {explained}"
    if isinstance(found, accuracy.TimeQuality):
        concordance = f"concordance {known(found.concordance, '{:.4f}'.format)} ({found.pairs:,.0f} pairs of rows)"
        if math.isnan(found.loss):
            return concordance
        loss = f"negative log partial likelihood {format_number(found.loss)} per event"
        return f"{loss}, {records.gain_in_words(found.loss, found.null_loss)}, {concordance}"
    explained = known(found.r_squared, format_share)
    return f"RMSE {format_number(found.rmse)}, MAE {format_number(found.mae)}, R^2 {explained}"


def error_lines(record: OneModelRecord, found: accuracy.Quality, null: float | None = None) -> list[str]:
    """Return lines on the errors of predictions, next to those of the cross-validation that chose the model.

    Parameters
    ----------
    null : float, optional
        Loss per row of the null model of the predicted rows.
    """
    is_weighted = record.data.weights or record.data.class_weight
    alike = " (without weights: every row counts the same here)" if is_weighted else ""
    has_null = null is not None and not isinstance(found, accuracy.TimeQuality)  # times name it with their gain
    of_null = f", {record.null_name} of these rows {format_number(null or 0.0)}" if has_null else ""
    lines = [f"errors: {error_line(found)}{of_null}{alike}"]
    if isinstance(record, fit_records.FitRecord):
        return lines
    is_estimate = isinstance(record, records.Record) and record.estimate
    of_pair = "" if getattr(record, "average", None) is None else " of the best pair, not of the averaged model"
    error = format_number(record.cv_error)
    if record.loss.is_quadratic:
        root = mark_estimate(format_number(record.rmse), is_estimate)
        words, more = f"RMSE {root}, the square root of the CV error {error}{of_pair}", ""
    else:
        words = f"{record.wording.held_out_error} {mark_estimate(error, is_estimate)}{of_pair}"
        more = f", {record.accuracy_line()}" if isinstance(record, records.Record) else ""
        if more and getattr(found, "threshold", None) is not None:
            more += "; this accuracy is at threshold 0.5"
    lines.append(f"in cross-validation of the training rows: {words}{more}")
    return lines


def coverage_lines(
    ends: FloatArray, level: float, y: FloatArray | None, record: records.Record | None = None
) -> list[str]:
    """Return lines on prediction intervals: width, coverage if targets are known, and problems.

    Parameters
    ----------
    y : (n,) array, optional
        Targets, NaN if they are missing.
    record : Record, optional
        Record of the model.
    """
    low, high = ends.T
    lines = [
        f"prediction intervals of level {level:g} (CV+): {format_number(float((high - low).mean()))} wide on average"
    ]
    if y is not None and (known := ~np.isnan(y)).any():
        share = 100.0 * float(((low <= y) & (y <= high))[known].mean())
        of = "the targets" if known.all() else f"the {several(int(known.sum()), 'known target')}"
        lines[0] += f", {share:.1f}% of {of} lie in their intervals"
    if record is not None and (words := record.likely("too narrow")):
        lines.append(f"the prediction intervals are {words}")
    return lines


def nested_lines(record: records.Record, nested: records.Nested) -> list[str]:
    """Return lines on the error of the whole procedure, in comparison with the minimised CV error."""
    done, averaged = len(nested.folds), sum(outer.average is not None for outer in nested.folds)
    spread = "" if nested.standard_error is None else f", standard error {format_number(nested.standard_error, 3)}"
    of = record_words.outer_folds(done, nested.outer.k)
    of += "" if nested.outer.seed is None else f" (drawn with --seed {nested.outer.seed})"
    missing = "" if averaged == done else f" (in {averaged} of {done} outer folds; the others use a single pair)"
    models = f" with its averaged model{missing}" if averaged else ""
    lines = [f"nested CV error of the whole procedure{models}: {format_number(nested.error)}{spread}, over {of}"]
    if nested.optimism is not None:
        much = f"{abs(nested.optimism):.1f}% {'smaller' if nested.optimism < 0.0 else 'larger'}"
        lines.append(f"the nested CV error is {much} than the CV error of this pair, {format_number(record.cv_error)}")
    if nested.null_error is not None:
        lines[0] += f"; {records.gain_in_words(nested.error, nested.null_error, '', nested.gain_error)}"
        lines.append(
            f"this pair in its own {record.folds.k:,} folds: {record.accuracy_line()}; compare the gains, not the "
            "CV errors, which grow with the number of folds"
        )
    if (quality := nested.classes) is not None:
        auc = "" if quality.auc is None else f", AUC {quality.auc:.3f}"
        measures = f"accuracy {100.0 * quality.accuracy:.1f}%{auc}, Brier score {quality.brier:.4f}"
        ends = format_interval(quality.lower, quality.upper)
        sums = f"the mean {record.wording.row_loss} of these models on these rows"
        lines.append(f"in the outer folds: {measures}; {sums}, computed up to rounding, is in {ends}")
    return lines


def _print_outer_folds(console: Console, nested: records.Nested) -> None:
    """Print the choice without each outer fold."""
    say(console, "models chosen with one outer fold held out", style="bold")
    rows = [
        (outer.fold + 1, outer.tau, outer.gamma, outer.cv_error, outer.error, outer.status) for outer in nested.folds
    ]
    averaged = any(outer.average is not None for outer in nested.folds)
    on_it = "error of the averaged model on the fold" if averaged else "error on the fold"
    layout.print_table(console, ("outer fold", "tau", "gamma", "CV error of the pair", on_it, "status"), rows)


def _is_undefined(record: records.Record) -> bool:
    """Return True if a held-out loss exceeds the largest number, so that more time gives no CV error."""
    return record_words.has_unknown_fold(record) and record_words.has_stopped_early(record)


def _estimate_lines(record: records.Record) -> list[str]:
    """Return lines on the solved folds of the reported pair, and on pairs without a CV error."""
    if _is_undefined(record):
        return []
    lines, own = [], record.own_row
    if record.estimate and own is not None:
        lines.append(record_words.estimate_line(own.folds_decided, own.folds, record.likely(records.EITHER_SIDE)))
    scored = [row for row in record.table if math.isfinite(row.cv_error)]
    if record.estimate and not record.descent and 0 < len(scored) < len(record.table):
        has_one_gamma = len({row.gamma for row in scored}) == 1 < len(record.request.gammas)
        each = "" if len(scored) == 1 else "all "
        where = f", {each}at gamma = {format_number(record.gamma)}" if has_one_gamma else ""
        pairs = f"{len(scored)} of {len(record.table)} pairs{where}"
        lines.append(f"chosen from {pairs}; the other pairs have no CV error yet")
    return lines


def _print_coefficients(console: Console, record: records.Record, full: bool, data: Dataset | None) -> None:
    """Print the model fitted to all rows, below its pair."""
    refit = record.refit
    proof = "subset certified optimal"
    if not refit.proved:
        proof = f"subset not certified, training objective in {format_interval(refit.lower, refit.upper)}"
    same = (refit.tau, refit.gamma) == (record.tau, record.gamma)
    where = "" if same else f" at tau = {refit.tau}, gamma = {format_number(refit.gamma)}"
    console.print()
    say(console, *rule_lines(record), f"model refitted on all rows{where} ({proof})")
    print_model(console, record, full, data)
    say(console, *layout.code_lines(record), *scatter_lines(record, record, data))
    if lines := record_words.stability_lines(record, data):
        say(console, *lines)
        console.print()
    say(console, *record_words.average_lines(record))
    if record.average is not None:
        print_model(console, record, full, data, record.average.model)


def rule_lines(record: records.Record) -> list[str]:
    """Return lines on the rule that chose the pair; empty for the minimum CV error.

    While some CV errors are not known accurately, the one-standard-error rule considers only pairs proved to be within
    one standard error.
    """
    one_se, least = record.one_se, record.certificate
    if one_se is None:
        return record_words.choice_lines(record)
    sum_of_both = f"{format_number(least.cv_error)} + {format_number(one_se.standard_error)}"
    cutoff = mark_estimate(sum_of_both, least.estimate)
    within = f"a CV error of at most {cutoff} (the minimum plus its standard error)"
    if not one_se.estimate:
        return [f"one-standard-error rule: the smallest tau, then the largest gamma, with {within}"]
    if record.least is None:
        return [f"one-standard-error rule (not certified): so far no simpler pair is certified to have {within}"]
    choice = "the reported pair is the simplest one certified so far to have"
    return [f"one-standard-error rule (not certified): {choice} {within}"]


def print_model(
    console: Console, record: OneModelRecord, full: bool = True, data: Dataset | None = None, model: Any = None
) -> None:
    """Print the coefficients of a model of a record, those of adjustment columns in a separate block.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record, CommonRecord or FitRecord
        Record; logistic and Poisson models are printed with odds or rate ratios.
    full : bool
        True to print every coefficient; otherwise at most a screen of them.
    data : Dataset, optional
        Data for ratios per standard deviation.
    model : object with coefficients and intercept, optional
        Model to print, such as the averaged one; by default that of the record.
    """
    model, adjusted = model or record, adjustment_columns(record)
    coefficients: dict[str, float] = model.coefficients
    heads, ratios = ratio_columns(record.wording, coefficients, data)
    features, empty = [name for name in coefficients if name not in adjusted], [""] * len(heads)
    shown = features if full else _largest_effects(features, coefficients, data)

    def line(name: str) -> tuple[object, ...]:
        return name, coefficients[name], *ratios.get(name, empty)

    rows, styles = [*map(line, shown)], [""] * len(shown)
    if adjusted:
        rows += [("adjusted for", "", *empty), *map(line, adjusted)]
        styles += ["dim", *[""] * len(adjusted)]
    if record.wording.has_intercept:
        rows, styles = [*rows, ("(intercept)", model.intercept, *empty)], [*styles, "dim"]
    unit = restrictions_of(record).unit_of_tau
    layout.print_table(console, (unit, "coefficient", *heads), rows, text=(unit,), styles=styles)
    smaller = "with smaller effects per standard deviation" if data is not None else "with smaller values"
    _say_left_out(console, len(features) - len(shown), "coefficient", f" {smaller}")


def _largest_effects(names: Sequence[str], coefficients: Mapping[str, float], data: Dataset | None) -> list[str]:
    """Return the names of the coefficients to print: all, or those with the largest effects per standard deviation."""
    if len(names) <= MAX_COEFFICIENTS:
        return list(names)
    scales = {} if data is None else spreads(data, names)
    order = sorted(names, key=lambda name: -abs(coefficients[name]) * scales.get(name, 1.0))
    largest = set(order[:MAX_COEFFICIENTS])
    return [name for name in names if name in largest]


def _say_left_out(console: Console, count: int, what: str, why: str = "") -> None:
    """Print the number of omitted rows of a table, if any, and the option that prints them."""
    if count:
        say(console, f"{several(count, 'more ' + what)}{why}: --full shows all", style="dim")


def _explain_marks(record: records.Record, rows: Sequence[size_rows.SizeRow]) -> list[str]:
    """Return lines that explain the marks of the printed rows."""
    lines = []
    if any(size_row.is_estimate and math.isfinite(size_row.cv_error) for size_row in rows):
        why = ", because unsolved folds use the best subsets found so far, which may depend on the held-out rows"
        mark = f"{layout.ESTIMATE} an estimate, perhaps {records.EITHER_SIDE}{'' if record.estimate else why}"
        lines.append(f"{mark}; lower and upper are certified bounds")
    lines += filter(None, (size_rows.advise_full_curve(record), size_rows.explain_excluded(record, rows)))
    if any(not math.isfinite(end) for size_row in rows for end in (size_row.cv_error, size_row.upper)):
        lines.append(layout.NOT_KNOWN)
    return lines


def subproblems_line(record: records.Record) -> str:
    """Return a line on the number of subproblems and the work for them."""
    subproblems = several(sum(row.folds for row in record.table), "subproblem")
    return f"{subproblems} (tau x gamma x fold); {work_line(record.work, record.request.threads)}"


def _is_settled_table(record: records.Record) -> bool:
    """Return True if every pair is solved, or excluded by a certified lower bound."""
    if record.status != "proved" or record.estimate or not record.is_settled or record_words.n_unsolved_pairs(record):
        return False
    return not any(size_row.is_estimate for size_row in size_rows.best_by_tau(record))


def _print_sizes(console: Console, record: records.Record, full: bool) -> None:
    """Print the best row of each tau, or of selected taus if there are many, and the work.

    Bounds and solved folds are printed unless every pair is solved or excluded.
    """
    every = size_rows.best_by_tau(record)
    taus = [size_row.tau for size_row in every]
    shown_taus = taus if full else size_rows.select_sizes(taus, {record.tau, record.certificate.tau})
    rows = [size_row for size_row in every if size_row.tau in shown_taus]
    digits, has_bounds = size_rows.digits_of_sizes(rows), full or not _is_settled_table(record)
    heads = ["tau", "gamma", "CV error", *(("lower", "upper", "folds solved") if has_bounds else ())]
    lines = []
    for size_row in rows:
        cells = size_row.describe(digits, has_pair=not size_row.excluded)
        cells["CV error"] = f"{cells['CV error']}{' (excluded)' if size_row.excluded else ''}"
        lines.append([cells[head] for head in heads])
    styles = ["bold" if size_row.is_pair(record) else "" for size_row in rows]
    layout.print_table(console, heads, lines, styles=styles)
    _say_left_out(console, len(every) - len(rows), "size")
    if has_bounds:
        say(console, *_explain_marks(record, rows), subproblems_line(record), style="dim")
    else:
        seconds = describe_duration(record.work, record.request.threads)
        notes = size_rows.advise_full_curve(record), size_rows.explain_excluded(record, rows)
        say(console, *notes, seconds, style="dim")


def work_line(work: Work, threads: int | None) -> str:
    """Return how many subproblems branch and bound solved, with how many nodes, and in what time.

    Parameters
    ----------
    work : Work
        The counts and the time of a record.
    threads : int or None
        The number of threads, if it is known.

    Examples
    --------
    >>> work_line(Work(1200, 340, 1.5, "enumerate 1200, per-fold 0"), 2)
    '1,200 solved by branch and bound, 340 nodes, search ended after 1.50 s on 2 threads'
    >>> work_line(Work(1, 1, 0.5, "enumerate 1200, per-fold 34"), None)
    '1 solved by branch and bound, 1 node, search ended after 0.50 s'
    """
    effort = f"{work.mios:,} solved by branch and bound, {several(work.nodes, 'node')}"
    return f"{effort}, {describe_duration(work, threads)}"


def methods_line(engine: str) -> str:
    """Return a line on the methods that solved subproblems, with their counts where there are several.

    Parameters
    ----------
    engine : str
        The field `work.engine` of a record.

    Examples
    --------
    >>> methods_line("enumerate 1200, per-fold 0")
    'solved by: enumerate'
    >>> methods_line("enumerate 1200, per-fold 34")
    'solved by: enumerate (1,200 subproblems), per-fold (34)'
    """
    parts = [text.rpartition(" ") for text in engine.split(", ")]
    if not all(name and count.isdigit() for name, _, count in parts):
        return f"solved by: {engine}"
    used = [(name, int(count)) for name, _, count in parts if int(count)]
    if len(used) < 2:
        return f"solved by: {used[0][0] if used else parts[0][0]}"
    counts = (f"{name} ({count:,}{' subproblems' * (at == 0)})" for at, (name, count) in enumerate(used))
    return "solved by: " + ", ".join(counts)


def print_verification(
    console: Console, report: VerifyReport, brief: bool = False, full: bool = False, hint: str = ""
) -> None:
    """Print the verdict with open claims, then recomputed, bounded, read and disagreeing fields.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    report : VerifyReport
        Report of `verify`.
    brief : bool
        True to print only the verdict and disagreements.
    full : bool
        True to list every bounded field with the checks that bound it, not only their number.
    hint : str
        Advice on another check of the record; empty if there is none.
    """
    colour = "red" if report.failures else "yellow" if report.caveat else "green"
    console.print(Text(report.verdict, f"bold {colour}"))
    read = report.reread if full else [f"{_describe_fields(words)} (not recomputed)" for words in report.reread]
    for title, style, lines in (
        ("verified", "green", () if brief else report.verified),
        ("bounded", "green", () if brief else _bounded_fields(report, full)),
        ("only read", "yellow", () if brief else read),
        ("hint", "bold", (hint,) if hint else ()),
        ("disagrees", "bold red", map(str, report.failures)),
    ):
        for words in lines:
            console.print(Text.assemble((f"{title:<11}", style), words))


def _bounded_fields(report: VerifyReport, full: bool) -> list[str]:
    """Return the bounded fields with the checks that bound them, or only their number."""
    bounded = [(how, names) for how, names in report.fields if how not in ("recomputed", "read")]
    if full:
        return [f"{', '.join(names)}; by: {how.removeprefix('bounded: ')}" for how, names in bounded]
    count = sum(len(names) for _, names in bounded)
    words = f"{count} more fields were only compared with bounds from these checks (--full lists all)"
    return [words] * bool(bounded)


def _describe_fields(fields: str) -> str:
    """Return a list of fields, with the options of the request and of reading last and under one name each."""
    names = fields.split(", ")
    for prefix, title in (("request.", "the request"), ("data.reading.", "the reading of the file")):
        options = ", ".join(name.removeprefix(prefix) for name in names if name.startswith(prefix))
        names = [name for name in names if not name.startswith(prefix)] + [f"{title} ({options})"] * bool(options)
    return ", ".join(names)


FEW_REPLACEMENTS = 5  # replacements printed for a size without --full
VALUE = {"cv": "CV error", "objective": "training objective"}


def print_near_optimal(
    console: Console, record: fit_records.NearRecord, brief: bool = False, full: bool = False
) -> None:
    """Print a near-optimal list: the models of every size, and the features that all or none of them have.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    brief : bool
        True to omit the work.
    full : bool
        True to print every model, not only the ten best of a size.
    """
    word, colour = meaning(record)
    objective = "CV error (same features in every fold)" if record.by == "cv" else "training objective (all rows)"
    chosen = "" if record.chosen is None else " chosen by cross-validation"
    if not record.models:
        word = word.replace("best answer so far", "no model yet")
    say_titled(console, word, f"gamma = {format_number(record.gamma)} (ridge weight){chosen}", colour)
    unit, taus = restrictions_of(record).unit_of_tau, [size.tau for size in record.sizes]
    sizes = several(taus[0], unit) if len(taus) == 1 else f"{text_of_taus(taus).replace(':', ' to ')} {unit}s"
    listed = f"models of {sizes} within {100.0 * record.within:g}% of the minimum {objective}"
    if len(taus) > 1:
        listed += " of their size"
    elif record.chosen is not None:
        listed += "; --tau lists other sizes"
    say(console, *restriction_lines(record), listed)
    by_tau = {tau: list(models) for tau, models in groupby(record.models, key=lambda model: model.tau)}
    for size in record.sizes:
        _print_size(console, record, size, by_tau.get(size.tau, []), full)
    n_terms = restrictions_of(record).n_selectable_features(record.data.p)
    if n_terms > 1 and taus == [n_terms]:
        smaller = text_of_taus(range(max(n_terms // 2, 1), n_terms))
        _print_hints(console, [f"a model of all {n_terms} {unit}s has no alternatives; --tau {smaller} lists others"])
    if brief:
        return
    if record.by == "cv" and record.models:
        optimism = (
            "these CV errors use one subset in all folds, chosen with the held-out rows: they are optimistic and not "
            "comparable with `solve`, which selects the subset again in every fold"
        )
        say(console, optimism, style="dim")
    _say_nodes(console, record.work)


def _print_size(
    console: Console,
    record: fit_records.NearRecord,
    size: fit_records.NearSize,
    models: list[fit_records.NearModel],
    full: bool,
) -> None:
    """Print the models of a size, the features of all or of none of them, and pairs of models that differ in one."""
    count = several(size.models, "model")
    unit, factors = restrictions_of(record).unit_of_tau, restrictions_of(record).count
    say(console, f"\n{several(size.tau, unit)}: {count}, {_how_complete(record, size)}", style="bold")
    if not models:
        reason = "no model was evaluated before the limit; give a longer --time-limit"
        if record_words.has_stopped_early(record):
            reason = "the rounding error exceeds the value of every model; give a larger --gamma"
        say(console, reason)
        return
    firsts = {columns[0]: word_of_factor(columns) for columns in factors}
    _print_near_models(console, record, models, factors, full)
    _say_left_out(console, 0 if full else max(len(models) - KEPT_ROWS, 0), "model")
    below = "" if size.complete else f" with a {VALUE[record.by]} below {format_lower(size.complete_to)}"
    if size.always or size.never or size.complete:
        for which, names in (("every", size.always), ("no", size.never)):
            words = abbreviate_list([quoted_name(name) for name in words_of_terms(names, factors)]) or f"no {unit}"
            say(console, f"in {which} model{below}: {words}")
    if size.replacements:
        some = size.replacements[: None if full else FEW_REPLACEMENTS]
        pairs = [
            f"{' or '.join(quoted_name(firsts.get(name, name)) for name in (swap.feature, swap.other))} "
            f"(in {several(swap.pairs, 'pair')} of models)"
            for swap in some
        ]
        found = f"{several(len(size.replacements), 'pair')} of {unit}s {'is' if len(size.replacements) == 1 else 'are'}"
        why = "interchangeable, as two listed models differ only in which of the two they contain"
        say(console, f"{found} {why}: {', '.join(pairs)}")
        _say_left_out(console, len(size.replacements) - len(some), "pair")


def _print_near_models(
    console: Console, record: fit_records.NearRecord, models: list[fit_records.NearModel],
    factors: tuple[tuple[str, ...], ...], full: bool,
) -> None:  # fmt: skip
    """Print the models of a size by their features other than the common ones; factors by name."""
    best, digits = models[0].value, interval_digits([(models[0].value, models[-1].value)])
    if is_likelihood := record.by == "objective" and not record.loss.is_quadratic:
        excess = f"a difference of {format_number(2.0 * record.within * best, 3)} in deviance plus penalty"
        narrower = f"; --within {format_number(200.0 / best, 2)}% lists differences of up to 4"
        narrower = narrower if record.within * best > 2.5 else ""
        say(console, f"{100.0 * record.within:g}% is {excess} (2 x training objective){narrower}")
    supports = [words_of_terms(model.support, factors) for model in models]
    shared = set(supports[0]).intersection(*supports)
    rows = []
    for model, support in list(zip(models, supports, strict=True))[: None if full else KEPT_ROWS]:
        excess = f"+{100.0 * (model.value / best - 1.0):.3g}%" if best > 0.0 else "+0%"
        if is_likelihood:
            excess = f"+{2.0 * (model.value - best):.3g}"
        own = [name for name in support if name not in shared]
        rows.append((format_with_zeros(model.value, digits), excess, layout.join_names(own) or "-"))
    name = "terms" if factors else "features"
    name += "" if not shared else f" in addition to the {len(shared)} that all these models share"
    heads = VALUE[record.by], "deviance plus penalty, above the best" if is_likelihood else "above the best", name
    layout.print_table(console, heads, rows, text=(name,))


def _how_complete(record: fit_records.NearRecord, size: fit_records.NearSize) -> str:
    """Return the value up to which the list is complete, and the reason for this limit."""
    value = VALUE[record.by]
    below = f"with a {value} below {format_lower(size.complete_to)}"
    if size.complete:
        return f"certified to be all models with a {value} up to {format_lower(size.threshold)}"
    if record.most is not None and size.models >= record.most:
        if size.complete_to <= size.best:
            return f"the best ones found (--most {record.most:,}); certified: no model {below} is missing"
        return f"the best ones (--most {record.most:,}), certified to include all models {below}"
    cut = f"list cut short by {'rounding errors' if record_words.has_stopped_early(record) else 'the limit'}"
    if size.models and size.complete_to > size.best:
        return f"{cut}, certified to include all models {below}"
    return f"{cut}: models that are not listed may have a {value} as low as {format_lower(size.lower)}"


def best_common_by_tau(record: fit_records.CommonRecord) -> list[fit_records.CommonRow]:
    """Return for every tau the row with the minimum CV error of a subset shared by all folds.

    Parameters
    ----------
    record : CommonRecord
        Record of a common subset.
    """
    order = sorted(record.table, key=lambda row: (row.tau, row.cv_error))
    return [next(rows) for _, rows in groupby(order, key=lambda row: row.tau)]


def print_common(
    console: Console,
    record: fit_records.CommonRecord,
    brief: bool = False,
    full: bool = False,
    data: Dataset | None = None,
) -> None:
    """Print the best common subset: the pair, its certified CV error, its model, and the best of every size.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    brief : bool
        True to print only the answer, without the table by tau and the work.
    full : bool
        True to print every coefficient, even if they do not fit on a screen.
    data : Dataset, optional
        Data of the record, for the numbers of rows of a class and the sum of counts.
    """
    word, colour = meaning(record)
    word = f"certified choice ({layout.gap_in_words(record.request.gap)})" if record.status == "proved" else word
    say_titled(console, word, layout.pair(record.tau, record.gamma, restrictions_of(record).unit_of_tau), colour)
    digits = interval_digits([(record.lower, record.upper)])
    ends = format_interval(record.lower, record.upper, digits)
    error = f"CV error {format_number(record.cv_error, digits)} of one subset for all folds, {record.beside_error}"
    gap = f"(certified, relative gap {format_number(record.gap, 2)})"
    minimum = f"minimum CV error over all subsets of the requested sizes: in {ends} {gap}"
    say(console, record_words.data_line(record, data), *restriction_lines(record), error, minimum)
    print_model(console, record, full)
    say(console, *layout.code_lines(record), record_words.common_stability(record))
    if brief:
        return
    console.print()
    say(console, "best gamma for each tau", style="bold")
    words = "each row has the best subset found of its size; the certified interval above covers all sizes"
    table = common_table(best_common_by_tau(record), words, digits, record.tau)
    styles = ["bold" if place == table.chosen else "" for place in range(len(table.rows))]
    layout.print_table(console, table.head, table.rows, text=("features",), styles=styles)
    say(console, words, style="dim")
    _say_nodes(console, record.work)


def restriction_lines(record: AnyMultiRecord) -> list[str]:
    """Return a line on the compared models; empty if all were compared."""
    words = describe_model_space(record)
    return [f"models compared: {words}"] if words else []


def _descent_lines(record: records.Record) -> list[str]:
    """Return lines on the moves of a descent."""
    taken = [step for step in record.descent if step.accepted]
    path = " -> ".join(f"({step.tau}, {format_number(step.gamma, 4)}) {format_number(step.cv_error)}" for step in taken)
    rejected = several(len(record.descent) - len(taken), "move")
    lines = [f"moves of the descent, as (tau, gamma) and CV error: {path}; {rejected} rejected"]
    best = record.certificate
    if taken and best.estimate and (taken[-1].gamma, taken[-1].tau) != (best.gamma, best.tau):
        lines.append("the best pair so far is from a step that was not completed; its CV error is an estimate")
    return lines


def describe_duration(work: Work, threads: int | None = None) -> str:
    """Return the time from the start to the answer, before nested cross-validation, draws and baselines.

    Parameters
    ----------
    work : Work
        Work of the search.
    threads : int, optional
        Number of threads, if the line is to state it.
    """
    on_threads = "" if threads is None else f" on {several(threads, 'thread')}"
    return f"search ended after {work.seconds:.2f} s{on_threads}"


def surface_rows(
    surface: fit_records.Surface, pieces: Iterable[fit_records.SurfacePiece]
) -> list[tuple[int, float, float, str]]:
    """Return a row for each piece, under `SURFACE_HEADS`; several subsets of a piece are tied or cross."""

    def subsets(piece: fit_records.SurfacePiece) -> str:
        return " or ".join(layout.join_names(surface.supports[place]) or "none" for place in piece.supports)

    return [(piece.tau, piece.low, piece.high, subsets(piece) or "not known") for piece in pieces]


def _say_nodes(console: Console, work: Work) -> None:
    say(console, f"work: {several(work.nodes, 'node')}, {describe_duration(work)}", style="dim")


def common_table(
    rows: Sequence[fit_records.CommonRow], caption: str, digits: int, tau: int | None = None
) -> ReportTable:
    """Return a table of subsets that all folds share.

    Parameters
    ----------
    rows : sequence of CommonRow
        Rows of the table.
    caption : str
        Sentence above the table.
    digits : int
        Number of digits of the CV errors.
    tau : int, optional
        Size of the row to highlight.
    """
    lines = [(row.tau, row.gamma, format_with_zeros(row.cv_error, digits), row.support) for row in rows]
    table = report_table(caption, ("tau", "gamma", "CV error", "features"), lines)
    return replace(table, chosen=next((place for place, row in enumerate(rows) if row.tau == tau), None))
