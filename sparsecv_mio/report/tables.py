"""The answer on the screen: first the pair and its model, then the table by tau, then the work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.near_records import CommonRecord, NearRecord
from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.certificate.record import (
    Nested,
    OneSe,
    PathRecord,
    PathRow,
    Record,
    Surface,
    SurfacePiece,
    TableRow,
)
from sparsecv_mio.report.hints import ended_by_itself, hints
from sparsecv_mio.report.layout import Row, listed, print_table, say
from sparsecv_mio.report.numbers import ESTIMATE, aligned, interval_digits, marked, pair, shown
from sparsecv_mio.report.region import region_lines
from sparsecv_mio.report.stability import choice_lines, stability_lines

if TYPE_CHECKING:
    from sparsecv_mio.certificate.checks import VerifyReport
    from sparsecv_mio.certificate.model import Accuracy
    from sparsecv_mio.certificate.record import FitRecord

NARROW = 1e-5  # relative width of a piece around a crossing, below which its ends look alike
MEANING = {
    "proved": ("proved", "green"),
    "limit": ("limit reached: best answer so far, bounds valid", "yellow"),
    "interrupted": ("interrupted: best answer so far, bounds valid", "yellow"),
}


def print_answer(console: Console, record: Record, brief: bool = False, held_out: Accuracy | None = None) -> None:
    """Print a cross-validation record.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : Record
        What was found.
    brief : bool
        Only the answer: no table by tau, no work, no hints.
    held_out : Accuracy, optional
        Of the predictions of held-out rows that go to a file, where they were made.
    """
    word, colour = _meaning(record)
    if _unbounded(record):
        word = word.replace("bounds valid", "nothing proved yet")
    for line in _print_pairs(console, record, word, colour):
        say(console, line)
    print_restrictions(console, record)
    for line in _error_lines(record):
        say(console, line)
    if held_out is not None:
        say(console, f"held-out predictions in the file: {error_line(held_out)}")
    if record.nested is not None:
        for line in nested_lines(record, record.nested):
            say(console, line)
    _print_coefficients(console, record)
    if brief:
        return
    if record.nested is not None:
        _print_outer_folds(console, record.nested)
    say(console, "best gamma of every tau" if record.continuous is None else "every tau at this gamma", "bold")
    _print_taus(console, record)
    for line in _legend(record):
        say(console, line, "dim")
    for hint in hints(record):
        console.print(Text.assemble(("hint: ", "bold"), hint))


def _meaning(record: Record | PathRecord) -> tuple[str, str]:
    word, colour = MEANING[record.status]
    return word.replace("limit reached", "ended without a proof") if ended_by_itself(record) else word, colour


def _print_pairs(console: Console, record: Record, word: str, colour: str) -> list[str]:
    """Print the pair of the model; return a line on that of the least CV error, where it is another one."""
    model, least = record.model_pair, pair(record.tau, record.gamma)
    if (model.tau, model.gamma) == (record.tau, record.gamma):
        console.print(Text.assemble((word, f"bold {colour}"), f"   {least}"))
        return []
    stable = record.stability if model is record.stability else None
    if record.status == "proved" and stable is not None and stable.chosen is not None and not stable.chosen.proved:
        word, colour = "least CV error proved, stable pair not", MEANING["limit"][1]
    rule = "by the one-standard-error rule" if stable is None else "the stable pair"
    console.print(Text.assemble((word, f"bold {colour}"), f"   {pair(model.tau, model.gamma)}, {rule}"))
    return [f"least CV error: {least}"]


def interval_lines(record: Record) -> list[str]:
    """Return a line on the partition of the interval of gamma that was searched, nothing where it was a grid."""
    found = record.continuous
    if found is None:
        return []
    easy = sum(piece.supports is None for piece in found.pieces)
    count = len(found.pieces)
    return [f"{count} intervals of gamma, over all tau, each with its bound; {easy} by training losses alone"]


def print_restrictions(console: Console, record: Record | PathRecord | CommonRecord | NearRecord) -> None:
    """Say which models were compared, where not all."""
    if words := compared(record):
        say(console, f"models compared: {words}")


def compared(record: Record | PathRecord | CommonRecord | NearRecord) -> str:
    """Return which models were compared, nothing where all were."""
    limits = record.request.restrictions
    return limits.words(record.data.p) if limits else ""


def _error_lines(record: Record) -> list[str]:
    """Return lines on the error of the reported pair, its bounds, a refined gamma and the moves of a descent."""
    digits = interval_digits([(record.lower, record.upper)])
    error = marked(shown(record.cv_error, digits), record.estimate)
    lines = [f"CV error {error} (mean squared error); on held-out rows {record.accuracy_line()}"]
    lines.append(_certified_line(record, digits))
    lines += region_lines(record)
    lines += interval_lines(record)
    lines += _estimate_lines(record)
    better = record.refined
    if better is not None:
        found = marked(shown(better.cv_error, digits), better.estimate)
        lines.append(
            f"refined at the same tau: gamma = {shown(better.gamma)}, CV error {found} in "
            f"[{shown(better.lower, digits)}, {shown(better.upper, digits)}]"
        )
    if record.descent:
        taken = [step for step in record.descent if step.accepted]
        path = " -> ".join(f"({shown(step.gamma, 4)}, {step.tau}) {shown(step.cv_error)}" for step in taken)
        refused = len(record.descent) - len(taken)
        lines.append(f"descent over (gamma, tau): {path}; moves turned down: {refused}")
    return lines


def _certified_line(record: Record, digits: int) -> str:
    """Return the interval of the least CV error; its upper end is another pair's where the reported one has a worse."""
    what = "of every tau at this gamma" if record.descent else "of the grid"
    if record.continuous is not None:
        what = f"over every gamma from {shown(record.continuous.low)} to {shown(record.continuous.high)}"
    if _unbounded(record):
        return f"certified: nothing yet, no bound of the least CV error {what} is proved"
    known = _least_upper(record)
    other = record.status != "proved" and known.upper < record.upper
    upper = known.upper if other else record.upper
    line = f"certified: the least CV error {what} is in [{shown(record.lower, digits)}, {shown(upper, digits)}]"
    if not other:
        return f"{line}, gap {shown(record.gap, 3)}"
    own = f"at most {shown(record.upper, digits)}" if math.isfinite(record.upper) else "not bounded yet"
    where = f"tau = {known.tau}, gamma = {shown(known.gamma)}"
    return f"{line}: the upper end is that of {where}; the CV error of the reported pair is {own}"


def _least_upper(record: Record) -> TableRow:
    """Return the pair with the least certified upper bound, which may be another than the reported one."""
    return min(record.table, key=lambda row: row.upper)


def error_line(found: Accuracy) -> str:
    """Return what is known of the errors of predictions."""
    explained = "unknown" if math.isnan(found.r_squared) else f"{found.r_squared:.4f}"
    return f"RMSE {shown(found.rmse)}, MAE {shown(found.mae)}, R^2 {explained}"


def error_lines(record: Record | CommonRecord | FitRecord, found: Accuracy) -> list[str]:
    """Return lines on the errors of predictions, beside those of the cross-validation that chose the model."""
    lines = [f"errors: {error_line(found)}"]
    if isinstance(record, Record):
        chosen = record.model_pair
        root = marked(shown(math.sqrt(chosen.cv_error)), chosen.estimate)
        lines.append(f"in cross-validation: RMSE {root}, the square root of the CV error {shown(chosen.cv_error)}")
    elif isinstance(record, CommonRecord):
        lines.append(f"in cross-validation: RMSE {shown(record.rmse)}, the square root of {shown(record.cv_error)}")
    return lines


def nested_lines(record: Record, nested: Nested) -> list[str]:
    """Return lines on the error of the whole procedure, beside the CV error that was minimised."""
    done, k = len(nested.folds), nested.outer.k
    spread = "" if nested.standard_error is None else f" +- {shown(nested.standard_error, 3)} (standard error)"
    of = f"{k} outer folds" if done == k else f"the {done} of {k} outer folds that were done"
    lines = [f"honest error of the whole procedure: {shown(nested.error)}{spread}, by nested CV over {of}"]
    if nested.optimism is not None:
        chosen = record.model_pair.cv_error
        side = "below" if nested.optimism < 0.0 else "above"
        lines.append(f"that is {abs(nested.optimism):.1f}% {side} the CV error of the model's pair, {shown(chosen)}")
    return lines


def _print_outer_folds(console: Console, nested: Nested) -> None:
    """Print what was chosen without each outer fold."""
    say(console, "models chosen without an outer fold", "bold")
    rows = [
        Row((str(one.fold + 1), str(one.tau), shown(one.gamma), shown(one.cv_error), shown(one.error), one.status))
        for one in nested.folds
    ]
    print_table(console, ("outer fold", "tau", "gamma", "CV error inside", "error there", "status"), rows)


def _unbounded(record: Record) -> bool:
    """Whether the interval of the least CV error says nothing: from 0 to an unknown number."""
    return record.lower <= 0.0 and not math.isfinite(min(record.upper, _least_upper(record).upper))


def _estimate_lines(record: Record) -> list[str]:
    """Return lines on how much of the reported pair is proved, and on pairs without any CV error."""
    lines = []
    chosen = [row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau)]
    if record.estimate and chosen:
        decided = f"in {chosen[0].folds_decided} of {chosen[0].folds} folds"
        lines.append(f"{ESTIMATE} an estimate: the support is proved to be the best one {decided}")
    scored = [row for row in record.table if math.isfinite(row.cv_error)]
    if record.estimate and not record.descent and len(scored) < len(record.table):
        gammas = {row.gamma for row in scored}
        where = f", all at gamma = {shown(record.gamma)}" if len(gammas) == 1 < len(record.request.gammas) else ""
        lines.append(f"chosen among {len(scored)} of {len(record.table)} pairs{where}; the others have no estimate")
    return lines


def _print_coefficients(console: Console, record: Record) -> None:
    """Print the model fitted on all rows, below the pair it belongs to."""
    one, refit = record.one_se, record.refit
    proof = "proved" if refit.proved else f"not proved, objective in [{shown(refit.lower)}, {shown(refit.upper)}]"
    console.print()
    if one is not None:
        error = marked(shown(one.cv_error), one.estimate)
        width = marked(shown(one.standard_error), one.estimate)
        say(console, f"{_rule(one, record)} within one standard error ({width}) of the least")
        say(console, f"{pair(one.tau, one.gamma)}, CV error {error} in [{shown(one.lower)}, {shown(one.upper)}]")
    for line in choice_lines(record):
        say(console, line)
    where = f"tau = {refit.tau}, gamma = {shown(refit.gamma)}"
    found = "the best subset" if refit.proved else "the best subset found"
    say(console, f"coefficients: {found} on all rows at {where} ({proof})")
    print_model(console, record.coefficients, record.intercept)
    if lines := stability_lines(record):
        for line in lines:
            say(console, line)
        console.print()


def _rule(one: OneSe, record: Record) -> str:
    """State the one-standard-error rule; while errors are not all proved it counts only pairs proved to be within."""
    if not one.estimate:
        return "one-standard-error rule: the smallest tau, then the largest gamma, with a CV error"
    alone = (one.gamma, one.tau) == (record.gamma, record.tau)
    which = "no simpler pair than the best is" if alone else "the simplest pair"
    return f"one-standard-error rule, not settled: {which} proved so far to be"


def print_model(console: Console, coefficients: Mapping[str, float], intercept: float) -> None:
    """Print the coefficients of a model.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    coefficients : mapping of str to float
        By the names of the features, in units of the file.
    intercept : float
        In units of the target.
    """
    rows = [Row((name, shown(value))) for name, value in coefficients.items()]
    rows.append(Row(("(intercept)", shown(intercept)), "dim"))
    print_table(console, ("feature", "coefficient"), rows, text=("feature",))


def _legend(record: Record) -> list[str]:
    """Return lines that explain the marks of the table and say how much work was done."""
    cells = sum(row.folds for row in record.table)
    work = record.work
    lines = []
    if any(row.estimate for row in record.table):
        lines.append(f"{ESTIMATE} an estimate: not every fold's support is proved to be the best; lower and upper hold")
    lines.append(
        f"work: {cells:,} cell{'' if cells == 1 else 's'} (a pair of tau and gamma, one fold left out), "
        + _work(work, record.request.threads)
    )
    return lines


def best_by_tau(rows: Iterable[TableRow], chosen: tuple[float, int]) -> list[TableRow]:
    """Return for every tau the row with the least CV error, decided or estimated; the reported pair for its own tau.

    Parameters
    ----------
    rows : iterable of TableRow
    chosen : (float, int)
        gamma and tau of the reported pair.
    """
    best: dict[int, TableRow] = {}

    def rank(row: TableRow) -> tuple[bool, float, float]:
        return (row.gamma, row.tau) != chosen, row.cv_error, row.upper

    for row in rows:
        if row.tau not in best or rank(row) < rank(best[row.tau]):
            best[row.tau] = row
    return [best[tau] for tau in sorted(best)]


def _print_taus(console: Console, record: Record) -> None:
    rows = best_by_tau(record.table, (record.gamma, record.tau))
    digits = interval_digits((row.lower, row.upper) for row in rows)
    lines = []
    for row in rows:
        lower, upper = aligned(row.lower, digits), aligned(row.upper, digits)
        cells = str(row.tau), shown(row.gamma), marked(aligned(row.cv_error, digits), row.estimate), lower, upper
        chosen = (row.gamma, row.tau) == (record.gamma, record.tau)
        lines.append(Row((*cells, f"{row.folds_decided}/{row.folds}"), "bold" if chosen else None))
    names = ("tau", "gamma", "CV error", "lower", "upper", "folds decided")
    print_table(console, names, lines)


def _work(work: Work, threads: int | None) -> str:
    on = "" if threads is None else f" on {threads} thread{'' if threads == 1 else 's'}"
    mios = f"{work.mios:,} MIO{'' if work.mios == 1 else 's'} (best subsets found by branch-and-bound)"
    return f"{mios}, {work.nodes:,} nodes, {work.seconds:.2f} s{on}, engine {work.engine}"


def subsets_of(surface: Surface, piece: SurfacePiece) -> str:
    """Return the best subsets of a piece as a text: several where they are tied or cross.

    Parameters
    ----------
    surface : Surface
    piece : SurfacePiece
    """
    return " or ".join(listed(surface.supports[place]) or "none" for place in piece.supports) or "not known"


def _print_surface(console: Console, surface: Surface) -> None:
    """Print every piece, but for those around crossings that are too narrow to tell their ends apart."""
    lines = [
        Row((str(piece.tau), shown(piece.low), shown(piece.high), subsets_of(surface, piece)))
        for piece in surface.pieces
        if piece.high > piece.low * (1.0 + NARROW) or not piece.proved
    ]
    print_table(console, ("tau", "gamma from", "to", "features"), lines, text=("features",))


def print_path(console: Console, record: PathRecord, brief: bool = False, full: bool = False) -> None:
    """Print a path record: which subset is the best of its size at which gammas; or every model.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : PathRecord
        What was found.
    brief : bool
        Do not say how much work was done.
    full : bool
        A table per gamma with every model; a single gamma has it anyway.
    """
    word, colour = _meaning(record)
    console.print(Text(word, f"bold {colour}"))
    print_restrictions(console, record)
    gammas = sorted({row.gamma for row in record.path})
    if full or len(gammas) == 1:
        for gamma in gammas:
            say(console, f"\nbest subsets on all rows, gamma = {shown(gamma)} (ridge weight)")
            _print_models(console, [row for row in record.path if row.gamma == gamma])
    elif record.surface is not None:
        ends = f"{shown(record.surface.low)} to {shown(record.surface.high)}"
        console.print(f"\nbest subsets on all rows, every gamma (ridge weight) from {ends}")
        _print_surface(console, record.surface)
    else:
        console.print("\nbest subsets on all rows: tau features, and the gammas (ridge weights) they are best at")
        _print_subsets(console, record.path)
        say(console, "--full or --json: objectives, bounds and coefficients of every gamma", "dim")
    if not brief:
        say(console, f"work: {_work(record.work, record.request.threads)}", "dim")


def _print_models(console: Console, rows: list[PathRow]) -> None:
    digits = interval_digits((row.lower, row.upper) for row in rows)
    lines = []
    for row in rows:
        model = "".join(f"  {value:+.5g} {name}" for name, value in row.coefficients.items())
        numbers = aligned(row.objective, digits), aligned(row.lower, digits)
        proved = "yes" if row.proved else "no"
        lines.append(Row((str(row.tau), *numbers, proved, f"{row.intercept:.5g}{model}")))
    print_table(console, ("tau", "objective", "lower", "proved", "model"), lines, text=("model",))


def _print_subsets(console: Console, path: Iterable[PathRow]) -> None:
    """Print a row for each subset and the range of neighbouring gammas at which it is the best of its size."""
    lines = []
    for tau, of_tau in groupby(sorted(path, key=lambda row: (row.tau, row.gamma)), key=lambda row: row.tau):
        first = True
        for support, alike in groupby(of_tau, key=lambda row: row.support):
            same = list(alike)
            low, high = shown(same[0].gamma, 4), shown(same[-1].gamma, 4)
            gammas = low if len(same) == 1 else f"{low} .. {high}"
            proved = f"{sum(row.proved for row in same)}/{len(same)}"
            lines.append(Row((str(tau) if first else "", gammas, proved, listed(support) or "(intercept alone)")))
            first = False
    print_table(console, ("tau", "gamma", "proved", "features"), lines, text=("features",))


def print_verification(console: Console, report: VerifyReport, brief: bool = False, full: bool = False) -> None:
    """Print what a verification could not prove, what it recomputed or bounded, what it only read, what disagrees.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    report : VerifyReport
        What `verify` found.
    brief : bool
        Only what could not be proved and what disagrees.
    full : bool
        List every field that is bounded with its bound, not only their number.
    """
    if report.caveat:
        console.print(Text(report.caveat, "bold yellow"))
    for part in () if brief else report.verified:
        console.print(Text.assemble(("verified   ", "green"), part))
    bounded = [(how, names) for how, names in report.fields if how not in ("recomputed", "read") and not brief]
    for how, names in bounded if full else ():
        limit = how.removeprefix("bounded: ")
        console.print(Text.assemble(("bounded    ", "green"), f"{', '.join(names)}: {limit}"))
    if bounded and not full:
        count = sum(len(names) for _, names in bounded)
        console.print(Text.assemble(("bounded    ", "green"), f"{count} more fields within limits (--full lists them)"))
    for part in () if brief else report.reread:
        console.print(Text.assemble(("only read  ", "yellow"), part))
    for failure in report.failures:
        console.print(Text.assemble(("disagrees  ", "bold red"), f"{failure.field}: {failure.message}"))
