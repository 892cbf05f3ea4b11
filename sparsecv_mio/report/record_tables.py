"""Answers on the screen: first the pair and its model, then the table by tau, then the work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate import accuracy, fit_records, records
from sparsecv_mio.certificate.adjusted import adjusted_for
from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.digits import aligned, ends_of, first_named, interval_digits, quoted_name, several, share, shown
from sparsecv_mio.model_space import NONE, factors_of, word_of_factor, words_of_terms
from sparsecv_mio.report import layout, record_words
from sparsecv_mio.report.ratios import ratio_columns, scatter_lines
from sparsecv_mio.report.source_tables import print_plan, print_sources
from sparsecv_mio.words import LOSS_WORDS, Loss

if TYPE_CHECKING:
    from sparsecv_mio.certificate.accuracy import ClassQuality, FitQuality
    from sparsecv_mio.certificate.checked_fields import VerifyReport
    from sparsecv_mio.certificate.fit_records import FitRecord
    from sparsecv_mio.data.dataset import Dataset


RULES = {  # by their names: the pair that they choose
    "the one-standard-error rule": "one-standard-error pair",
    "the weight of the instability": "stable pair",
    "the least CV error": "the pair",
}
SCREEN_ROWS, KEPT_ROWS = 15, 10  # of a table; one with more than a screen holds is cut to the second number
MEANING = {
    "proved": ("proved", "green"),
    "limit": ("limit reached: best answer so far, bounds valid", "yellow"),
    "interrupted": ("interrupted: best answer so far, bounds valid", "yellow"),
    "doubtful": ("in doubt: a refit by other arithmetic disagrees, the ends of those folds are withdrawn", "red"),
}


def print_answer(
    console: Console,
    record: records.Record,
    brief: bool = False,
    held_out: FitQuality | ClassQuality | accuracy.CountQuality | None = None,
    full: bool = False,
    data: Dataset | None = None,
) -> None:
    """Print a cross-validation record.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : Record
        What was found.
    brief : bool
        Only the answer: no table by tau, no work, no hints.
    held_out : FitQuality, optional
        Of the predictions of held-out rows that go to a file, where they were made.
    full : bool
        Every coefficient and every tau, where they are more than a screen holds; and why the search went as it did:
        its plan, and what each source of bounds cost and brought.
    data : Dataset, optional
        Of the record, for odds and rate ratios per standard deviation, and for how far counts scatter.
    """
    word, colour = meaning(record)
    if _says_nothing(record):
        word = word.replace("bounds valid", "nothing proved yet")
    _print_pair(console, record, word, colour)
    print_restrictions(console, record)
    for line in _error_lines(record):
        layout.say(console, line)
    if held_out is not None:
        of = "" if record.average is None else " of the pair"
        layout.say(console, f"held-out predictions{of} in the file: {error_line(held_out)}")
    if record.nested is not None:
        for line in nested_lines(record, record.nested):
            layout.say(console, line)
    _print_coefficients(console, record, full, data)
    if brief:
        return
    if record.nested is not None:
        _print_outer_folds(console, record.nested)
    layout.say(console, best_gamma_title(record), "bold")
    rows = _print_taus(console, record, full)
    for line in _marks_explained(record, rows):
        layout.say(console, line, "dim")
    if full:
        print_plan(console, record)
        print_sources(console, record)
    for hint in record_words.hints(record):
        console.print(Text.assemble(("hint: ", "bold"), hint))


def meaning(
    record: records.Record | fit_records.PathRecord | fit_records.NearRecord | fit_records.CommonRecord,
) -> tuple[str, str]:
    """Return the status of a record in words, and a colour for it."""
    word, colour = MEANING[record.status]
    return word.replace("limit reached", "ended without a proof") if record_words.ended_by_itself(
        record
    ) else word, colour


def _print_pair(console: Console, record: records.Record, word: str, colour: str) -> None:
    """Print the reported pair; where another pair has the minimum CV error, that pair and its interval before it."""
    if not record.is_settled and record.status == "proved":
        word, colour = f"minimum CV error certified, {RULES[record.rule]} not certified", MEANING["limit"][1]
    elif pairs := record_words.pairs_left(record):
        word = f"minimum CV error certified, {record_words.what_ended(record)} with {pairs:,} of {len(record.table):,}"
        word, colour = f"{word} pairs undecided", MEANING["limit"][1]
    reported = layout.pair(record.tau, record.gamma)
    if (least := record.least) is None:
        console.print(Text.assemble((word, f"bold {colour}"), f"   {reported}"))
        return
    error = layout.marked(shown(least.cv_error, _digits(record)), least.estimate)
    minimum = f"minimum CV error {_searched_over(record)}: {error} at {layout.pair(least.tau, least.gamma)}"
    console.print(Text.assemble((word, f"bold {colour}"), f"   {minimum}"))
    layout.say(console, f"reported by {record.rule}: {reported}")


def _digits(record: records.Record) -> int:
    """Return how many digits tell the ends of the intervals of a record apart."""
    least = record.certificate
    return interval_digits([(record.lower, record.upper), (least.lower, least.upper)])


def interval_lines(record: records.Record) -> list[str]:
    """Return a line on the partition of the interval of gamma that was searched, nothing where it was a grid."""
    continuous = record.continuous
    if continuous is None:
        return []
    easy = sum(piece.supports is None for piece in continuous.pieces)
    count = len(continuous.pieces)
    return [f"{count} intervals of gamma, over all tau, each with its bound; {easy} by training losses alone"]


def print_restrictions(
    console: Console,
    record: records.Record | fit_records.PathRecord | fit_records.CommonRecord | fit_records.NearRecord,
) -> None:
    """Say which models were compared, where not all."""
    if words := compared(record):
        layout.say(console, f"models compared: {words}")


def compared(
    record: records.Record | fit_records.PathRecord | fit_records.CommonRecord | fit_records.NearRecord,
) -> str:
    """Return which models were compared, nothing where all subsets of the columns of the file were."""
    limits, adjusted = record.request.restrictions, adjusted_for(record)
    said = [limits.words(record.data.p)] if limits else []
    if not (limits and limits.count):
        factors = factors_of(name for name in record.data.names if name not in adjusted)
        words = first_named([word_of_factor(columns) for columns in factors])
        said += [f"each level of {words} counts as a feature"] if factors else []
    return "; ".join(said)


def _error_lines(record: records.Record) -> list[str]:
    """Return lines on the error of the reported pair, its bounds, a refined gamma and the moves of a descent."""
    digits = _digits(record)
    error = layout.marked(shown(record.cv_error, digits), record.estimate)
    meaning = LOSS_WORDS[record.loss].cv_error
    lines = [f"CV error {error} ({meaning}); on held-out rows {record.accuracy_line()}"]
    if record.classes is not None:
        lines.append(
            f"certified is the log loss alone, the others are only reported; predicted is the probability of "
            f"{record.classes.positive!r}"
        )
    if record.counts is not None:
        lines.append(
            "certified is the half deviance; predicted is the expected count, the coefficients are in log rates"
        )
    if record.data.class_weight is not None:
        lines.append("both classes weigh the same in all of these and in the fits (--class-weight balanced)")
    lines += _certified_lines(record, digits)
    lines += record_words.region_lines(record)
    lines += interval_lines(record)
    lines += _estimate_lines(record)
    better = record.refined
    if better is not None:
        better_error = layout.marked(shown(better.cv_error, digits), better.estimate)
        lines.append(
            f"refined at the same tau: gamma = {shown(better.gamma)}, CV error {better_error} in "
            f"{ends_of(better.lower, better.upper, digits)}"
        )
    if record.descent:
        taken = [step for step in record.descent if step.accepted]
        path = " -> ".join(f"({shown(step.gamma, 4)}, {step.tau}) {shown(step.cv_error)}" for step in taken)
        refused = len(record.descent) - len(taken)
        lines.append(f"descent over (gamma, tau): {path}; moves turned down: {refused}")
    return lines


def _certified_lines(record: records.Record, digits: int) -> list[str]:
    """Return lines on the interval of the least CV error of the grid, and on that of the reported pair's own."""
    scope, certificate = _searched_over(record), record.certificate
    own = own_line(record, digits)
    if _says_nothing(record):
        return [f"certified: no bound on the minimum CV error {scope} yet"]
    ends = ends_of(certificate.lower, certificate.upper, digits)
    loosest = record.loosest
    others = loosest is not None and (loosest.tau, loosest.gamma) != (certificate.tau, certificate.gamma)
    by = f", held open by {layout.pair(loosest.tau, loosest.gamma)}" if loosest is not None and others else ""
    line = f"certified: the least CV error {scope} is in {ends}, gap {shown(certificate.gap, 3)}{by}"
    return list(filter(None, (own, line) if record.least is not None else (line, own)))


def _searched_over(record: records.Record) -> str:
    """Say of what the least CV error is certified."""
    if (continuous := record.continuous) is not None:
        return f"over every gamma from {shown(continuous.low)} to {shown(continuous.high)}"
    return "of every tau at this gamma" if record.descent else "of the grid"


def own_line(record: records.Record, digits: int) -> str:
    """Return what is certified of the CV error of the reported pair, where that says more than the grid's interval.

    Parameters
    ----------
    digits : int
        Of the numbers.
    """
    row = record.own_row
    if words := record_words.fold_models(record):
        return f"certified: the fold models of this pair are {words}"
    decided = row is None or row.folds_decided == row.folds
    if row is None or (decided if record.least is not None else row.upper <= record.upper):
        return ""
    if not math.isfinite(row.upper) and not row.lower > 0.0:
        return "certified: nothing yet of the CV error of this pair"
    if not math.isfinite(row.upper):
        return f"certified: the CV error of this pair is at least {shown(row.lower, digits)}"
    return f"certified: the CV error of this pair is in {ends_of(row.lower, row.upper, digits)}"


def error_line(found: FitQuality | ClassQuality | accuracy.CountQuality) -> str:
    """Return what is known of the errors of predictions."""
    if isinstance(found, accuracy.ClassQuality):
        auc = "unknown" if math.isnan(found.auc) else f"{found.auc:.4f}"
        right = f"accuracy {100.0 * found.accuracy:.1f}%, AUC {auc}, Brier score {found.brier:.4f}"
        return f"log loss {shown(found.log_loss)}, {right}"
    if isinstance(found, accuracy.CountQuality):
        of_null = "unknown" if math.isnan(found.explained) else share(found.explained)
        return f"half deviance {shown(found.half_deviance)}, MAE {shown(found.mae)}, share of the deviance {of_null}"
    explained = "unknown" if math.isnan(found.r_squared) else share(found.r_squared)
    return f"RMSE {shown(found.rmse)}, MAE {shown(found.mae)}, R^2 {explained}"


def error_lines(
    record: records.Record | fit_records.CommonRecord | FitRecord,
    found: FitQuality | ClassQuality | accuracy.CountQuality,
) -> list[str]:
    """Return lines on the errors of predictions, beside those of the cross-validation that chose the model."""
    alike = " (rows count alike here, not by their weights)" if record.data.weights or record.data.class_weight else ""
    lines, averaged = [f"errors: {error_line(found)}{alike}"], getattr(record, "average", None) is not None
    of_pair = " of the best pair, not of the averaged model that predicts" if averaged else ""
    if isinstance(record, records.Record) and record.classes is not None:
        error = layout.marked(shown(record.cv_error), record.estimate)
        lines.append(f"in cross-validation: log loss {error}{of_pair}, {record.accuracy_line()}")
    elif isinstance(record, records.Record) and record.counts is not None:
        error = layout.marked(shown(record.cv_error), record.estimate)
        lines.append(f"in cross-validation: half deviance {error}{of_pair}, {record.accuracy_line()}")
    elif isinstance(record, records.Record):
        root = layout.marked(shown(math.sqrt(record.cv_error)), record.estimate)
        square = f"the square root of the CV error {shown(record.cv_error)}"
        lines.append(f"in cross-validation: RMSE {root}, {square}{of_pair}")
    elif isinstance(record, fit_records.CommonRecord):
        root = f"RMSE {shown(record.rmse)}, the square root of {shown(record.cv_error)}"
        losses = {Loss.LOGISTIC: "log loss", Loss.POISSON: "half deviance"}
        loss = losses.get(record.loss)
        lines.append(f"in cross-validation: {root if loss is None else f'{loss} {shown(record.cv_error)}'}")
    return lines


def coverage_lines(
    ends: FloatArray, level: float, y: FloatArray | None, record: records.Record | None = None
) -> list[str]:
    """Return lines on prediction intervals: their width, where targets are known how many they hold, and what is wrong.

    Parameters
    ----------
    record : Record, optional
        Whose they are.
    """
    low, high = ends.T
    lines = [f"intervals of level {level:g} (CV+): {shown(float((high - low).mean()))} wide on average"]
    if y is not None:
        lines[0] += f", {100.0 * float(((low <= y) & (y <= high)).mean()):.1f}% of these rows lie in theirs"
    if record is not None and (words := record.likely("too narrow")):
        lines.append(f"intervals are {words}")
    return lines


def nested_lines(record: records.Record, nested: records.Nested) -> list[str]:
    """Return lines on the error of the whole procedure, beside the CV error that was minimised."""
    done, k = len(nested.folds), nested.outer.k
    spread = "" if nested.standard_error is None else f", standard error {shown(nested.standard_error, 3)}"
    of = f"{k} outer folds" if done == k else f"the {done} of {k} outer folds that were done"
    averaged = sum(outer.average is not None for outer in nested.folds)
    missing = "" if averaged == done else f" ({averaged} of {done} outer folds; pairs predict in the others)"
    models = f" and its averaged model{missing}" if averaged else ""
    lines = [f"honest error of the whole procedure{models}: {shown(nested.error)}{spread}, by nested CV over {of}"]
    if nested.optimism is not None:
        much = f"{abs(nested.optimism):.1f}% {'less' if nested.optimism < 0.0 else 'more'}"
        lines.append(f"that is {much} than the CV error of this pair, {shown(record.cv_error)}")
    if nested.classes is not None:
        quality = nested.classes
        auc = "" if quality.auc is None else f", AUC {quality.auc:.3f}"
        said = f"accuracy {100.0 * quality.accuracy:.1f}%{auc}, Brier score {quality.brier:.4f}"
        lines.append(
            f"there: {said}; the log loss of these models is certified in {ends_of(quality.lower, quality.upper)}"
        )
    return lines


def _print_outer_folds(console: Console, nested: records.Nested) -> None:
    """Print what was chosen without each outer fold."""
    layout.say(console, "models chosen without an outer fold", "bold")
    rows = [
        (outer.fold + 1, outer.tau, outer.gamma, outer.cv_error, outer.error, outer.status) for outer in nested.folds
    ]
    averaged = any(outer.average is not None for outer in nested.folds)
    on_it = "error of the averaged model on it" if averaged else "error on it"
    layout.print_table(console, ("outer fold", "tau", "gamma", "CV error without it", on_it, "status"), rows)


def _says_nothing(record: records.Record) -> bool:
    """Whether the interval of the least CV error says nothing: from 0 to an unknown number."""
    return record.certificate.lower <= 0.0 and not math.isfinite(record.certificate.upper)


def _estimate_lines(record: records.Record) -> list[str]:
    """Return lines on how much of the reported pair is proved, and on pairs without any CV error."""
    lines, own = [], record.own_row
    if record.estimate and own is not None:
        lines.append(estimate_line(own.folds_decided, own.folds, record.likely("too low")))
    scored = [row for row in record.table if math.isfinite(row.cv_error)]
    if record.estimate and not record.descent and len(scored) < len(record.table):
        gammas = {row.gamma for row in scored}
        where = f", all at gamma = {shown(record.gamma)}" if len(gammas) == 1 < len(record.request.gammas) else ""
        lines.append(f"chosen among {len(scored)} of {len(record.table)} pairs{where}; the others have no estimate")
    return lines


def estimate_line(decided: int, folds: int, too_low: str = "") -> str:
    """Say why a CV error is an estimate.

    Parameters
    ----------
    decided, folds : int
    too_low : str
        What the record says where it is likely too low.

    Examples
    --------
    >>> estimate_line(0, 10)
    '~ an estimate: no fold has its best subset proved yet, each uses the best one found so far'
    >>> estimate_line(7, 10)
    '~ an estimate: 7 of 10 folds have their best subset proved, the others use the best one found so far'
    """
    if not decided:
        some, others = "no fold has its best subset proved yet", "each uses"
    else:
        some, others = f"{decided:,} of {folds:,} folds have their best subset proved", "the others use"
    mark = f", {too_low};" if too_low else ":"
    return f"{layout.ESTIMATE} an estimate{mark} {some}, {others} the best one found so far"


def _print_coefficients(console: Console, record: records.Record, full: bool, data: Dataset | None) -> None:
    """Print the model fitted on all rows, below the pair it belongs to."""
    refit = record.refit
    proof = "proved" if refit.proved else f"not proved, objective in {ends_of(refit.lower, refit.upper)}"
    console.print()
    for line in rule_lines(record):
        layout.say(console, line)
    where = f"tau = {refit.tau}, gamma = {shown(refit.gamma)}"
    subset = "the best subset" if refit.proved else "the best subset found"
    layout.say(console, f"coefficients: {subset} on all rows at {where} ({proof})")
    loss, adjusted = record.loss, adjusted_for(record)
    print_model(console, record.coefficients, record.intercept, loss, full, data, adjusted)
    layout.say_codes(console, record.data)
    for line in scatter_lines(record, record, data):
        layout.say(console, line)
    if lines := record_words.stability_lines(record):
        for line in lines:
            layout.say(console, line)
        console.print()
    for line in record_words.average_lines(record):
        layout.say(console, line)
    if record.average is not None:
        model = record.average.model
        print_model(console, model.coefficients, model.intercept, loss, full, data, adjusted)


def rule_lines(record: records.Record) -> list[str]:
    """Return lines on the rule that chose the pair; nothing where that is the least CV error.

    While CV errors are not all known well enough the one-standard-error rule counts only pairs proved to be within.
    """
    one_se, least = record.one_se, record.certificate
    if one_se is None:
        return record_words.choice_lines(record)
    bar = layout.marked(f"{shown(least.cv_error)} + {shown(one_se.standard_error)}", least.estimate)
    within = f"a CV error of at most {bar}, the least one and its standard error"
    if not one_se.estimate:
        return [f"one-standard-error rule: the smallest tau, then the largest gamma, with {within}"]
    which = "no simpler pair than that of the least CV error" if record.least is None else "the simplest pair that"
    return [f"one-standard-error rule, not settled: {which} is proved so far to have {within}"]


def print_model(
    console: Console, coefficients: Mapping[str, float], intercept: float, loss: Loss = Loss.SQUARED,
    full: bool = True, data: Dataset | None = None, adjusted: Sequence[str] = (),
) -> None:  # fmt: skip
    """Print the coefficients of a model, those of columns that it adjusts for in a block of their own.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    coefficients : mapping of str to float
        By the names of the features, in units of the file.
    intercept : float
        In units of the target.
    loss : Loss
        Of two classes and counts odds and rate ratios stand beside.
    full : bool
        Every coefficient, where they are more than a screen holds; else the first ones.
    data : Dataset, optional
        For ratios per standard deviation.
    adjusted : sequence of str
        Columns that the model adjusts for.
    """
    heads, beside = ratio_columns(loss, coefficients, data)
    rows: list[tuple[object, ...]] = [
        (name, value, *beside.get(name, ())) for name, value in coefficients.items() if name not in adjusted
    ]
    hidden = 0 if full or len(rows) <= SCREEN_ROWS else len(rows) - KEPT_ROWS
    rows, empty = rows[: len(rows) - hidden], [""] * len(heads)
    styles = [""] * len(rows)
    if adjusted:
        rows += [
            ("adjusted for", "", *empty),
            *((name, coefficients[name], *beside.get(name, empty)) for name in adjusted),
        ]
        styles += ["dim", *[""] * len(adjusted)]
    rows, styles = [*rows, ("(intercept)", intercept, *empty)], [*styles, "dim"]
    layout.print_table(console, ("feature", "coefficient", *heads), rows, text=("feature",), styles=styles)
    _say_left_out(console, hidden, "coefficient")


def _say_left_out(console: Console, count: int, what: str) -> None:
    """Say how much of a table was left out, if anything, and where it is."""
    if count:
        layout.say(console, f"{several(count, 'more ' + what)} by --full, or --json", "dim")


def _marks_explained(record: records.Record, rows: Sequence[records.TableRow]) -> list[str]:
    """Return lines that explain the marks of the rows that were printed, and say how much work was done."""
    cells = sum(row.folds for row in record.table)
    lines = []
    if any(row.estimate and math.isfinite(row.cv_error) for row in rows):
        why = "open folds use the best subset found so far, often found with the rows that they hold out"
        lines.append(f"{layout.ESTIMATE} an estimate, likely too low: {why}; lower and upper are certified")
    if any(not math.isfinite(end) for row in rows for end in (row.cv_error, row.upper)):
        lines.append(layout.NOT_KNOWN)
    many = f"{cells:,} cells" if cells > 1 else "1 cell"
    lines.append(f"work: {many} (a cell: one pair of tau and gamma, one fold left out)")
    return [*lines, work_line(record.work, record.request.threads)]


def best_by_tau(record: records.Record) -> list[records.TableRow]:
    """Return for every tau the row with the least CV error, decided or estimated; of its own tau that of the answer.

    Parameters
    ----------
    record : Record
        Of the tau of the least CV error found it is that pair's row.
    """
    best: dict[int, records.TableRow] = {}
    own, least = (record.gamma, record.tau), (record.certificate.gamma, record.certificate.tau)

    def rank(row: records.TableRow) -> tuple[bool, bool, float, float]:
        return (row.gamma, row.tau) != own, (row.gamma, row.tau) != least, row.cv_error, row.upper

    for row in record.table:
        if row.tau not in best or rank(row) < rank(best[row.tau]):
            best[row.tau] = row
    return [best[tau] for tau in sorted(best)]


def best_gamma_title(record: records.Record) -> str:
    """Name the rows of `best_by_tau`."""
    if record.continuous is not None:
        return "every tau at this gamma"
    return "best gamma of every tau" + ("" if record.least is None else f", the chosen one of tau = {record.tau}")


def _folded(rows: Sequence[records.TableRow], chosen: tuple[float, int]) -> list[tuple[str, records.TableRow]]:
    """Make one row of neighbouring taus of which no fold is decided: the least of each number, and the taus it is of.

    The reported pair keeps its own row. Of more rows than a screen holds those with the least CV errors are returned.
    """

    def kind(row: records.TableRow) -> int:
        return row.tau if row.folds_decided or (row.gamma, row.tau) == chosen else -1

    folded = []
    for name, same in layout.alike(rows, kind):
        lower, upper = min(row.lower for row in same), min(row.upper for row in same)
        least = min(same, key=lambda row: row.cv_error)
        folded.append((name, replace(least, lower=lower, upper=upper)))
    if len(folded) > SCREEN_ROWS:
        order = sorted(folded, key=lambda one: ((one[1].gamma, one[1].tau) != chosen, one[1].cv_error))
        folded = sorted(order[:KEPT_ROWS], key=lambda entry: entry[1].tau)
    return folded


def _print_taus(console: Console, record: records.Record, full: bool) -> list[records.TableRow]:
    """Print the best row of every tau, of many the best ones; returns those that were printed."""
    every = best_by_tau(record)
    rows = [(str(row.tau), row) for row in every]
    if not full and len(rows) > SCREEN_ROWS:
        rows = _folded(every, (record.gamma, record.tau))
    digits = interval_digits((row.lower, row.upper) for _, row in rows)
    lines = [
        (taus, row.gamma, layout.marked(aligned(row.cv_error, digits), row.estimate),
         aligned(row.lower, digits), aligned(row.upper, digits), f"{row.folds_decided:,}/{row.folds:,}")
        for taus, row in rows
    ]  # fmt: skip
    styles = ["bold" if (row.gamma, row.tau) == (record.gamma, record.tau) else "" for _, row in rows]
    layout.print_table(console, ("tau", "gamma", "CV error", "lower", "upper", "folds decided"), lines, styles=styles)
    if any(not taus.isdecimal() for taus, _ in rows):
        layout.say(
            console, "taus of which nothing is decided share a row: the least of their numbers, each by itself", "dim"
        )
    _say_left_out(console, len(every) - len(rows), "row")
    return [row for _, row in rows]


def work_line(work: Work, threads: int | None) -> str:
    """Say how many best subsets were found by branch-and-bound, with how many nodes, in what time, and how.

    Examples
    --------
    >>> work_line(Work(1200, 340, 1.5, "enumerate 1200, per-fold 0"), 2)
    '1,200 best subsets (MIOs) found by branch-and-bound with 340 nodes, 1.50 s on 2 threads, engine enumerate'
    >>> work_line(Work(1, 1, 0.5, "enumerate 1200, per-fold 34"), None)
    '1 best subset (MIO) found by branch-and-bound with 1 node, 0.50 s, engines enumerate (1,200 cells), per-fold (34)'
    """
    on = "" if threads is None else f" on {several(threads, 'thread')}"
    subsets = "1 best subset (MIO)" if work.mios == 1 else f"{work.mios:,} best subsets (MIOs)"
    nodes = f"{subsets} found by branch-and-bound with {several(work.nodes, 'node')}"
    return f"{nodes}, {work.seconds:.2f} s{on}, {_engine(work.engine)}"


def _engine(engine: str) -> str:
    """Name the engines that decided cells, and how many where there are several."""
    parts = [text.rpartition(" ") for text in engine.split(", ")]
    if not all(name and count.isdigit() for name, _, count in parts):
        return f"engine {engine}"
    used = [(name, int(count)) for name, _, count in parts if int(count)]
    if len(used) < 2:
        return f"engine {used[0][0] if used else parts[0][0]}"
    return "engines " + ", ".join(f"{name} ({count:,}{' cells' * (i == 0)})" for i, (name, count) in enumerate(used))


def subsets_of_piece(surface: fit_records.Surface, piece: fit_records.SurfacePiece) -> str:
    """Return the best subsets of a piece as a text: several where they are tied or cross."""
    return " or ".join(layout.listed(surface.supports[place]) or "none" for place in piece.supports) or "not known"


def print_verification(console: Console, report: VerifyReport, brief: bool = False, full: bool = False) -> None:
    """Print the verdict, with what could not be proved; what was recomputed or bounded, only read, what disagrees.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    report : VerifyReport
        What `verify` found.
    brief : bool
        Only the verdict and what disagrees.
    full : bool
        List every field that is bounded with its bound, not only their number.
    """
    console.print(_verdict(report))
    if not brief:
        for words in report.verified:
            console.print(Text.assemble(("verified   ", "green"), words))
        for words in _bounded_fields(report, full):
            console.print(Text.assemble(("bounded    ", "green"), words))
        for words in report.reread:
            console.print(Text.assemble(("only read  ", "yellow"), words if full else _fields_named(words)))
    for failure in report.failures:
        console.print(Text.assemble(("disagrees  ", "bold red"), f"{failure.field}: {failure.message}"))


def _verdict(report: VerifyReport) -> Text:
    caveat = f"; {report.caveat}" if report.caveat else ""
    if report.failures:
        return Text(f"the record does not hold{caveat}", "bold red")
    if caveat:
        return Text(f"the record holds{caveat}", "bold yellow")
    return Text("the record holds: its answer and its bounds are computed and proved again", "bold green")


def _bounded_fields(report: VerifyReport, full: bool) -> list[str]:
    """Name the fields that are bounded, with their bounds, or only say how many they are."""
    bounded = [(how, names) for how, names in report.fields if how not in ("recomputed", "read")]
    if full:
        return [f"{', '.join(names)}: {how.removeprefix('bounded: ')}" for how, names in bounded]
    count = sum(len(names) for _, names in bounded)
    return [f"{count} more fields are within what bounds them (--full lists both)"] if bounded else []


def _fields_named(fields: str) -> str:
    """Return a list of fields, those of the request last and without its name."""
    names = fields.split(", ")
    options = [name.removeprefix("request.") for name in names if name.startswith("request.")]
    others = [name for name in names if not name.startswith("request.")]
    return ", ".join([*others, *([f"what was asked ({', '.join(options)})"] if options else [])])


FEW_REPLACEMENTS = 5  # of a size, printed without --full; and models as rows of a table that is cut
VALUE = {"cv": "CV error", "objective": "training objective"}


def print_near(console: Console, record: fit_records.NearRecord, brief: bool = False, full: bool = False) -> None:
    """Print a near-optimal list: for every size the models, and which features all or none of them have.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    brief : bool
        Do not say how much work was done.
    full : bool
        Every model, not the ten best of a size.
    """
    word, colour = meaning(record)
    objective = "CV error, the same features in every fold" if record.by == "cv" else "training objective on all rows"
    chosen = "" if record.chosen is None else " chosen by cross-validation"
    if not record.models:
        word = word.replace("best answer so far, bounds valid", "no model yet")
    console.print(Text.assemble((word, f"bold {colour}"), f"   gamma = {shown(record.gamma)} (ridge weight){chosen}"))
    print_restrictions(console, record)
    layout.say(console, f"models within {100.0 * record.within:g}% of the least {objective}")
    by_tau = {tau: list(models) for tau, models in groupby(record.models, key=lambda model: model.tau)}
    for size in record.sizes:
        _print_size(console, record, size, by_tau.get(size.tau, []), full)
    if not brief and record.by == "cv" and record.models:
        said = "these CV errors rank subsets, each the same in every fold, with the held-out rows in view: do not"
        layout.say(console, f"{said} compare them with the CV error of `solve`, whose folds choose their own", "dim")
    if not brief:
        layout.say(console, f"work: {several(record.work.nodes, 'node')}, {record.work.seconds:.2f} s", "dim")


def _print_size(
    console: Console,
    record: fit_records.NearRecord,
    size: fit_records.NearSize,
    models: list[fit_records.NearModel],
    full: bool,
) -> None:
    count = several(size.models, "model")
    layout.say(console, f"\n{several(size.tau, 'feature')}: {count}, {_how_complete(record, size)}", "bold")
    if not models:
        by_itself = record_words.ended_by_itself(record)
        limit = "no model was evaluated before the limit: give a longer --time-limit"
        layout.say(
            console, "rounding error hides the value of every model: give a larger --gamma" if by_itself else limit
        )
        return
    factors = (record.request.restrictions or NONE).count
    firsts = {columns[0]: word_of_factor(columns) for columns in factors}
    _print_near_models(console, VALUE[record.by], models, factors, full)
    if len(models) > KEPT_ROWS and not full:
        layout.say(console, f"--full or --json: {len(models) - KEPT_ROWS:,} more", "dim")
    below = "" if size.complete else f" with a {VALUE[record.by]} below {shown(size.complete_to)}"
    if size.always or size.never or size.complete:
        layout.say(console, f"in every model{below}: {_features_named(words_of_terms(size.always, factors))}")
        layout.say(console, f"in none{below}: {_features_named(words_of_terms(size.never, factors))}")
    if size.replacements:
        some = size.replacements[:FEW_REPLACEMENTS]
        pairs = [
            f"{quoted_name(firsts.get(swap.feature, swap.feature))} or "
            f"{quoted_name(firsts.get(swap.other, swap.other))} ({swap.pairs})"
            for swap in some
        ]
        layout.say(console, f"models that differ in one feature (how many such pairs of models): {', '.join(pairs)}")


def _print_near_models(
    console: Console, value: str, models: list[fit_records.NearModel], factors: tuple[tuple[str, ...], ...], full: bool
) -> None:
    """Print the models of a size, each by what it has beside the features that all of them have, factors by a word."""
    best = models[0].value
    digits = interval_digits([(models[0].value, models[-1].value)])
    supports = [words_of_terms(model.support, factors) for model in models]
    shared = set(supports[0]).intersection(*supports)
    rows = []
    for model, support in list(zip(models, supports, strict=True))[: None if full else KEPT_ROWS]:
        excess = f"+{100.0 * (model.value / best - 1.0):.3g}%" if best > 0.0 else "+0%"
        own = [name for name in support if name not in shared]
        rows.append((aligned(model.value, digits), excess, layout.listed(own) or "-"))
    name = "features" if not shared else f"features besides the {len(shared)} that all these models have"
    layout.print_table(console, (value, "above the best", name), rows, text=(name,))


def _how_complete(record: fit_records.NearRecord, size: fit_records.NearSize) -> str:
    """Say up to which value no model is missing, and why there is an end to it."""
    value = VALUE[record.by]
    if size.complete:
        return f"certified to be all that have a {value} up to {shown(size.threshold)}"
    if record.most is not None and size.models >= record.most:
        best = f"the best ones (--most {record.most:,})"
        return f"{best}, certified to include all with a {value} below {shown(size.complete_to)}"
    cut = "cut by rounding error" if record_words.ended_by_itself(record) else "cut by the limit"
    if size.models and size.complete_to > size.best:
        return f"{cut}, certified to include all with a {value} below {shown(size.complete_to)}"
    return f"{cut}: models that are not listed may have a {value} as low as {shown(size.lower)}"


def _features_named(names: tuple[str, ...]) -> str:
    return first_named([quoted_name(name) for name in names]) or "no feature"


def best_common_by_tau(record: fit_records.CommonRecord) -> list[fit_records.CommonRow]:
    """Return for every tau the row with the least CV error of a subset that all folds share.

    Parameters
    ----------
    record : CommonRecord
    """
    order = sorted(record.table, key=lambda row: (row.tau, row.cv_error))
    return [next(rows) for _, rows in groupby(order, key=lambda row: row.tau)]


def print_common(console: Console, record: fit_records.CommonRecord, brief: bool = False, full: bool = False) -> None:
    """Print the best common subset: the pair, its certified CV error, its model and the best of every size.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    brief : bool
        Only the answer: no table by tau, no work.
    full : bool
        Every coefficient, where they are more than a screen holds.
    """
    word, colour = meaning(record)
    console.print(Text.assemble((word, f"bold {colour}"), f"   {layout.pair(record.tau, record.gamma)}"))
    print_restrictions(console, record)
    digits = interval_digits([(record.lower, record.upper)])
    layout.say(console, f"CV error {shown(record.cv_error, digits)} of one subset for all folds, {record.beside_error}")
    ends = ends_of(record.lower, record.upper, digits)
    layout.say(
        console, f"certified: the least CV error of any subset of these sizes is in {ends}, gap {shown(record.gap, 3)}"
    )
    adjusted = adjusted_for(record)
    print_model(console, record.coefficients, record.intercept, record.loss, full, adjusted=adjusted)
    layout.say_codes(console, record.data)
    layout.say(console, record_words.common_stability(record))
    if brief:
        return
    console.print()
    layout.say(console, "best gamma of every tau", "bold")
    best = best_common_by_tau(record)
    rows = [(row.tau, shown(row.gamma, 4), aligned(row.cv_error, digits), row.support) for row in best]
    styles = ["bold" if row.tau == record.tau else "" for row in best]
    layout.print_table(console, ("tau", "gamma", "CV error", "features"), rows, text=("features",), styles=styles)
    said = "a row is the best subset found of its size; the certified interval above is of all sizes and gammas"
    layout.say(console, said, "dim")
    layout.say(console, f"work: {several(record.work.nodes, 'node')}, {record.work.seconds:.2f} s", "dim")
