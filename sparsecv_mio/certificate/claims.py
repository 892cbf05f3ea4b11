"""Checks of the claims of a record: the bounds, gap, status and table, the choice of a pair, and the target.

For the target, the module checks the class names, the error of a constant model, and the accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.accuracy import class_quality, tie_width
from sparsecv_mio.certificate.checked_fields import SAME, Checks, are_nearly_equal
from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.certificate.parts import ChosenFolds, GridRequest, SearchRequest, relative_gap
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import (
    CertifiedSoFar,
    Classes,
    DescentStep,
    Least,
    NestedClasses,
    OneSe,
    PathRow,
    Record,
    Refined,
    Region,
    TableRow,
    find_loosest_pair,
    least_upper,
)  # fmt: skip
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.loss_targets import resolve_class
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.digits import several
from sparsecv_mio.problem.glm_objective import compare_with_null_model, explained_share, null_error_of_folds
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.targets import DEFAULT_LOSS, FIELDS_OF_VALUES
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, FOLLOWS_RTOL, SO_FAR_GAP, TINY, WORST_ROUNDING
from sparsecv_mio.words import Method, Model, Oracle

MAE_BOUND_RTOL = 10.0 * FOLLOWS_RTOL  # tolerance of bounds by squared errors, given their agreement with residuals
MOVE_PROGRESS = 1e-8  # minimum relative decrease of an accepted move of a descent
CERTIFIED_DESCENT = "descent, certified rows"


@dataclass(frozen=True)
class ReportedPair:
    """A pair whose folds the record stores: the reported pair, or another pair that has the minimum CV error.

    `name` is the field of the folds; `path` is the prefix of the fields of the pair in messages.
    """

    known: Record | Least
    folds: ChosenFolds
    name: str = "chosen_folds"
    path: str = ""

    @property
    def words(self) -> str:
        """Name of the pair if it is not the answer."""
        return " of the pair with the minimum CV error" if self.path else ""


def reported_pairs(record: Record) -> list[ReportedPair]:
    """Return the pairs whose folds a record stores; the last one has the minimum CV error found."""
    pairs = [ReportedPair(record, record.chosen_folds)]
    if record.least is not None and record.least_folds is not None:
        pairs.append(ReportedPair(record.least, record.least_folds, "least_folds", "least."))
    return pairs


def find_row(claim: Record | Least | Region | DescentStep, table: Sequence[TableRow]) -> TableRow | None:
    """Return the row of a table with the pair of a claim."""
    return next((row for row in table if (row.gamma, row.tau) == (claim.gamma, claim.tau)), None)


def check_against_table(
    checks: Checks, claim: Record | Least | Region | Refined, row: TableRow, names: Sequence[str], path: str = ""
) -> None:
    """Check that a claim about a pair has the same numbers as the row of the pair.

    Parameters
    ----------
    names : sequence of str
        Names of the fields that both have.
    path : str
        Prefix of the fields of the claim in messages.
    """
    for name in names:
        said, tabled = getattr(claim, name), getattr(row, name)
        checks.require_same(f"{path}{name}", said, tabled, "the table says")


def check_gap(checks: Checks, claim: Record | Least | FitRecord, path: str = "") -> None:
    """Check the relative gap of two bounds.

    Parameters
    ----------
    path : str
        Prefix of the field in messages.
    """
    gap = relative_gap(claim.lower, claim.upper)
    checks.mark_recomputed_fields(f"{path}gap")
    checks.require_same(f"{path}gap", claim.gap, gap, "lower and upper give")


def check_grid(checks: Checks, request: GridRequest, rows: Sequence[TableRow] | Sequence[PathRow], name: str) -> None:
    """Check the requested gap, and that a table has exactly the requested grid.

    Parameters
    ----------
    name : str
        Field with the rows.
    """
    checks.require(0.0 <= request.gap < 1.0, "request.gap", f"{request.gap!r} is not in [0, 1)")
    pairs = {(row.gamma, row.tau) for row in rows}
    is_grid = pairs == {(gamma, tau) for gamma in request.gammas for tau in request.taus} and len(pairs) == len(rows)
    checks.require(is_grid, name, "must contain each (tau, gamma) pair of the requested grid once")
    checks.mark_bounded_fields(f"{name}[].gamma", f"{name}[].tau", "request.gammas", "request.taus")


def check_requested_grid(checks: Checks, request: GridRequest, p: int) -> None:
    """Check that a requested grid names every gamma and tau once, and no tau beyond the `p` features."""
    for name, values in (("gammas", request.gammas), ("taus", request.taus)):
        is_set = 0 < len(values) == len(set(values))
        checks.require(is_set, f"request.{name}", "must have at least one value, and each value once")
    fits = all(tau <= p for tau in request.taus)
    checks.require(fits, "request.taus", f"has a size above the number of features, {p}")


def rows_in_region(region: Region, table: Sequence[TableRow]) -> list[TableRow]:
    """Return the rows of a table in a region, including its best pair."""
    top, from_gamma, best = region.up_to_tau, region.from_gamma, (region.gamma, region.tau)
    inside = [
        (top is not None and row.tau <= top)
        or (from_gamma is not None and row.gamma >= from_gamma)
        or (row.gamma, row.tau) == best
        for row in table
    ]
    return [row for row, covered in zip(table, inside, strict=True) if covered]


def check_claims(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> None:
    """Check everything that follows from other fields of the record.

    Parameters
    ----------
    dataset : Dataset
        Data for R^2 and the row weights.
    """
    scored = Scored.of(dataset, plan)
    _method(checks, record.request)
    _words(checks, record)
    _table(checks, record)
    _check_headline(checks, record)
    _check_statuses(checks, record)
    _standard_errors(checks, record, scored)
    if record.region is not None:
        _region(checks, record, record.region, record.request.gap, "region.")
    if record.so_far is not None:
        _check_so_far(checks, record, record.so_far)
    said = record.r_squared
    if checks.require((said is None) == math.isinf(record.cv_error), "r_squared", _null(said)) and said is not None:
        checks.mark_recomputed_fields("r_squared")
        share = explained_share(dataset, plan, record.cv_error, record.null_error)
        checks.require_same("r_squared", said, share, "cv_error gives", 1.0)
    if record.mae is not None:
        _mae(checks, record, record.mae, plan)
    _check_rule(checks, record)
    own = [(pair.known.gamma, pair.known.tau) for pair in reported_pairs(record)]
    n_open = sum(row.folds_decided < row.folds and (row.gamma, row.tau) not in own for row in record.table)
    if n_open:
        words = f"CV errors, standard errors and solved folds of {several(n_open, 'unsolved pair')} of the table"
        checks.read_numbers.append(words)
    checks.mark_bounded_fields("gamma", "tau", "status", "request.one_se")
    if record.status != "proved":
        checks.leaves("not checked: whether a limit ended the run", "status")
    checks.end_part("bounds, gap, status and R^2 agree with each other and with the table")
    one_se = record.one_se
    if one_se is not None and record.request.one_se:
        _one_se(checks, record, one_se, scored)
        checks.end_part("one-standard-error pair")
    if record.descent or record.work.engine.startswith("descent"):
        _check_descent(checks, record)
        checks.end_part(f"the {len(record.descent)} moves of the descent agree with each other and with the answer")


def _mae(checks: Checks, record: Record, said: float, plan: FoldPlan) -> None:
    """Check a mean absolute error against the squared errors of the folds, which determine it for single-row folds."""
    if record.data.weights is not None and record.data.total_weight is None:
        return  # a record of 0.1, in which a row of weight k is k rows
    if not record.loss.is_quadratic or record.data.weights is not None:
        checks.require(False, "mae", "must be null, because it requires squared-error loss without weights")
        return
    roots, rows = np.sqrt(np.maximum(record.chosen_folds.error, 0.0)), float(plan.sizes.sum())
    least, most = float(roots.sum()) / rows, float((roots * np.sqrt(plan.sizes)).sum()) / rows
    inside = least * (1.0 - MAE_BOUND_RTOL) <= said <= most * (1.0 + MAE_BOUND_RTOL)
    checks.require(inside, "mae", f"is {said!r}, but the errors of the folds imply a value from {least!r} to {most!r}")


def _null(value: object) -> str:
    return "must be given in this record" if value is None else "must be null, because it was not requested"


def _method(checks: Checks, request: SearchRequest) -> None:
    """Check that the method is a valid one, the resolution of `auto`, and that the method supports the backend."""
    used = request.method_used
    if used is None:  # missing in older records
        return
    allowed = used in set(Method) - {Method.AUTO} and request.method in (used, Method.AUTO)
    if request.method != Method.AUTO or not allowed:  # the choice of `auto` is only read
        checks.require(allowed, "request.method_used", f"is {used!r}, but {request.method!r} was requested")
    if request.backend != "native" and used not in (Method.JOINT, Method.ALGORITHM1, Method.GRID):
        checks.require(False, "request.backend", f"is {request.backend!r}, but method {used} does not use a backend")
    checks.mark_bounded_fields("request.method")


def _words(checks: Checks, record: Record) -> None:
    """Check the requested keywords, if the record has them; older records have None."""
    request = record.request
    requested = (request.loss or DEFAULT_LOSS) == record.loss
    checks.require(requested, "request.loss", f"is {request.loss!r}, but the record has loss {record.loss}")
    checks.require(request.model is None or request.model in set(Model), "request.model", _list_allowed_values(Model))
    of_average = not request.own_error or request.model == str(Model.AVERAGE)
    checks.require(of_average, "request.own_error", "must be null, because the averaged model was not requested")
    of_classes = record.classes is not None or request.positive is None
    checks.require(of_classes, "request.positive", "must be null, because the loss is not logistic")
    checks.require(set(request.oracles or ()) <= set(Oracle), "request.oracles", _list_allowed_values(Oracle))
    checks.mark_bounded_fields("request.loss", "data.loss", "request.model")


def _list_allowed_values(words: Iterable[str]) -> str:
    return f"must be {' or '.join(words)}"


def _table(checks: Checks, record: Record) -> None:
    check_grid(checks, record.request, record.table, "table")
    for i, row in enumerate(record.table):
        place = f"table[{i}]."
        words = f"is {row.folds}, but the record has {record.folds.k} folds"
        checks.require(row.folds == record.folds.k, f"{place}folds", words)
        checks.require(0 <= row.folds_decided <= row.folds, f"{place}folds_decided", f"must be from 0 to {row.folds}")
        checks.require_between(f"{place}cv_error", row.cv_error, row.lower, row.upper, SAME)
        open_folds = row.folds_decided < row.folds
        words = f"must be {str(open_folds).lower()}, because {row.folds_decided} of {row.folds} folds are solved"
        checks.require(row.estimate == open_folds, f"{place}estimate", words)
        bounded = open_folds or math.isfinite(row.upper)
        checks.require(bounded, f"{place}upper", "must be a number, because every fold of the pair is solved")


def _check_headline(checks: Checks, record: Record) -> None:
    """Check the reported pairs against their rows, and the certificate of the grid."""
    own, path = None, ""
    for pair in reported_pairs(record):
        claim, path = pair.known, pair.path
        words = "the pair `least`" if pair.path else f"the reported pair (gamma {claim.gamma!r}, tau {claim.tau})"
        own = find_row(claim, record.table)
        if not checks.has_value(own, f"{path}gamma", f"{words} is not in the table"):
            return
        _check_against_row(checks, pair, own)
        if claim is record:
            unsolved = record.training_gap is None or own.folds_decided < own.folds
            words = "must be null, because every fold of the reported pair is solved"
            checks.require(unsolved, "training_gap", words)
        if claim is not record.certificate:
            check_against_table(checks, claim, own, ("lower", "upper"))
            check_gap(checks, claim)
            _check_widths(checks, claim, own)
    assert own is not None
    _certificate(checks, record, own, path)
    if record.loosest is not None:
        right = record.loosest == find_loosest_pair(record.table)
        checks.require(right, "loosest", "must be the first pair of the table with the smallest lower bound")
        checks.mark_bounded_fields("loosest.gamma", "loosest.tau")


def _check_against_row(checks: Checks, pair: ReportedPair, row: TableRow) -> None:
    """Check the claims about a pair and its folds against its row."""
    claim, path, decided = pair.known, pair.path, int(np.count_nonzero(pair.folds.decided))
    check_against_table(checks, claim, row, ("cv_error",), path)
    checks.require_equal(f"{path}estimate", claim.estimate, row.estimate)
    words = f"is true in {decided} folds, but the table has {row.folds_decided} solved folds"
    checks.require(decided == row.folds_decided, f"{pair.name}.decided", words)
    checks.mark_bounded_fields(f"{pair.name}[].decided", f"{path}tau")


def _certificate(checks: Checks, record: Record, row: TableRow, path: str) -> None:
    """Check the pair with the minimum CV error, its row, and the interval of the minimum CV error of the grid."""
    claim = record.certificate
    lower, upper, error = (min(getattr(row, name) for row in record.table) for name in ("lower", "upper", "cv_error"))
    if record.continuous is not None:
        over_interval = min(row.cv_error, *(piece.lower for piece in record.continuous.pieces))
        lower = over_interval if claim.lower > lower else min(lower, over_interval)  # version 0.3 states the latter
    checks.require_same(f"{path}lower", claim.lower, lower, "the smallest lower bound is")
    checks.require_same(f"{path}upper", claim.upper, least_upper(row, record.table), "the table gives")
    least = row.upper == upper or row.upper <= upper * (1.0 + CROSSING_RTOL)
    tied = record.status != "proved" and row.cv_error <= error * (1.0 + CROSSING_RTOL)
    words = f"another pair has the smaller upper bound {upper!r}; this pair has {row.upper!r}"
    checks.require(least or tied, f"{path}gamma", words)
    check_gap(checks, claim, path)
    # `proved`, and the ties and rounding it rests on: those of the pair with the least lower bound
    _check_widths(checks, claim, _lowest(record.table), path)
    _check_rounding(checks, record, claim, path)
    if record.status == "proved":
        _check_gap(checks, claim, record.request.gap, "status")
        if record.continuous is None:
            _check_ties(checks, claim, record.table, record.request.gap, path)
    else:
        _check_open_pair(checks, record, claim)


def _check_open_pair(checks: Checks, record: Record, claim: Record | Least) -> None:
    """Check that a pair, or an interval of gamma, of a record that is not certified is open."""
    if record.request.stability is not None or record.request.method_used == Method.DESCENT:
        return
    bar, pieces = (1.0 - record.request.gap) * claim.upper, getattr(record.continuous, "pieces", ())
    is_open = any(row.folds_decided < row.folds and row.lower < bar for row in record.table)
    is_open |= any(piece.lower < bar for piece in pieces) or not math.isfinite(claim.upper)
    words = f"is {record.status!r}, but every pair that may be better by more than the gap is solved"
    checks.require(is_open, "status", words)


def _check_gap(checks: Checks, claim: Record | Least | Region, gap: float, name: str) -> None:
    width = gap * claim.upper + claim.tie_width + claim.allowance
    closed = claim.upper - claim.lower <= width * (1.0 + SAME)
    checks.require(closed and math.isfinite(claim.upper), name, f"upper - lower exceeds the gap {gap!r}")


def _check_rule(checks: Checks, record: Record) -> None:
    """Check that the fields of a rule exist if it was requested, and that another pair needs a rule."""
    one_se, least = record.one_se, record.least
    checks.require((one_se is not None) == record.request.one_se, "one_se", _null(one_se))
    weighed = record.stability is not None and record.stability.chosen is not None
    has_rule = record.request.one_se or (record.request.stability is not None and weighed)
    checks.require(least is None or has_rule, "least", _null(least))
    checks.require((least is None) == (record.least_folds is None), "least_folds", _null(record.least_folds))
    differs = least is None or (least.gamma, least.tau) != (record.gamma, record.tau)
    checks.require(differs, "least", "is the reported pair, but must be null or another pair")


def _check_statuses(checks: Checks, record: Record) -> None:
    """Check the status of every pair in the table; older records have no statuses."""
    least = min((row.upper for row in record.table), default=math.inf)
    bar, proved = (1.0 - record.request.gap) * least, record.status == "proved"
    told = any(row.status for row in record.table)
    for i, row in enumerate(record.table if told else ()):
        beaten = row.upper > least and (proved or row.lower >= bar)
        status = "decided" if row.folds_decided == row.folds else "excluded" if beaten else "open"
        words = f"is {row.status!r}, but the bounds and folds of the pair imply {status!r}"
        checks.require(row.status == status, f"table[{i}].status", words)


def _standard_errors(checks: Checks, record: Record, scored: Scored) -> None:
    """Check the standard errors of pairs with stored folds; others must be nonnegative, and None for a single fold."""
    stored = {(pair.known.gamma, pair.known.tau): pair.folds for pair in reported_pairs(record)}
    told = any(row.standard_error is not None for row in record.table)  # missing in older records
    for i, row in enumerate(record.table):
        said, place = row.standard_error, f"table[{i}].standard_error"
        if said is None:
            known = stored.get((row.gamma, row.tau))
            expected = told and scored.has_standard_error and known is not None and np.isfinite(known.error).all()
            checks.require(not expected, place, "must be given, because the folds of the pair are given")
            continue
        right = said >= 0.0 and scored.has_standard_error
        needed = "at least 0" if scored.has_standard_error else "null, because a single fold has no standard error"
        checks.require(right, place, f"is {said!r}, but must be {needed}")
        folds = stored.get((row.gamma, row.tau))
        if scored.has_standard_error and folds is not None:
            spread = standard_error(folds.error, scored.by_fold, scored.times)
            checks.require_same(place, said, spread, "the folds give", row.cv_error)


def _check_so_far(checks: Checks, record: Record, so_far: CertifiedSoFar) -> None:
    """Check the results certified without a complete proof against the rows of the table."""
    for name, status in (("solved", "decided"), ("excluded", "excluded"), ("open", "open")):
        said, count = getattr(so_far, name), sum(row.status == status for row in record.table)
        checks.require(said == count, f"so_far.{name}", f"is {said}, but the table has {count} pairs with this status")
    if so_far.region is not None:
        _region(checks, record, so_far.region, max(record.request.gap, SO_FAR_GAP), "so_far.region.")


def _region(checks: Checks, record: Record, region: Region, gap: float, path: str) -> None:
    """Check that the best pair of a region is certified to a gap by the bounds of the pairs in it."""
    request, top, from_gamma = record.request, region.up_to_tau, region.from_gamma
    checks.require(top is None or top in request.taus, f"{path}up_to_tau", f"{top} is not a requested tau")
    in_grid = from_gamma is None or from_gamma in request.gammas
    checks.require(in_grid, f"{path}from_gamma", f"{from_gamma!r} is not a requested gamma")
    inside = rows_in_region(region, record.table)
    checks.mark_bounded_fields(f"{path}tau")
    words = "is null and from_gamma is null, but one of the two must be given"
    checks.require(top is not None or from_gamma is not None, f"{path}up_to_tau", words)
    own = find_row(region, inside)
    if not checks.has_value(own, f"{path}gamma", "the best pair of the region is not in the table"):
        return
    check_against_table(checks, region, own, ("cv_error", "upper"), path)
    lowest, upper = _lowest(inside), min(row.upper for row in inside)
    checks.require_same(f"{path}lower", region.lower, lowest.lower, "the smallest lower bound of the region is")
    words = f"another pair of the region has the smaller upper bound {upper!r}"
    checks.require(region.upper <= upper * (1.0 + CROSSING_RTOL), f"{path}gamma", words)
    _check_widths(checks, region, lowest, path)
    _check_rounding(checks, record, region, path)
    _check_gap(checks, region, gap, f"{path}upper")
    _check_ties(checks, region, inside, gap, path)


def _lowest(rows: Sequence[TableRow]) -> TableRow:
    """Return the row with the smallest lower bound, of equal ones that with the most solved folds."""
    return min(rows, key=lambda row: (row.lower, -row.folds_decided))


def _check_ties(
    checks: Checks, claim: Record | Least | Region, rows: Sequence[TableRow], gap: float, path: str
) -> None:
    """Check that a claim that rests on ties has solved every pair that may be better: a tie may hide a difference."""
    slack = claim.allowance + CROSSING_RTOL * claim.upper
    if claim.upper - claim.lower > gap * claim.upper + slack:
        bar = (1.0 - gap) * claim.upper - slack
        unsolved = [row for row in rows if row.lower < bar and row.folds_decided < row.folds]
        words = f"does not explain the gap, because {len(unsolved)} unsolved pairs may be better than the reported pair"
        checks.require(not unsolved, f"{path}tie_width", words)


def _check_rounding(checks: Checks, record: Record, claim: Record | Least | Region, path: str) -> None:
    """Check the allowance where supports are fitted by Newton's method; `optimality` checks it for squared error.

    A held-out partial likelihood is a difference of numbers of the size of the training objective, which its intervals
    may lose by rounding however small the difference is.
    """
    if not record.loss.is_quadratic and math.isfinite(claim.upper):
        room = 2.0 * WORST_ROUNDING * claim.upper
        if record.loss.target.has_times and record.refit is not None and record.data.total_weight is not None:
            room += ACCURATE_RTOL * (record.refit.objective or 0.0) / record.data.total_weight
        words = f"the largest width that rounding may give to the intervals of solved folds, {room!r}"
        checks.require_at_most(f"{path}allowance", claim.allowance, room, words)


def _check_widths(checks: Checks, claim: Record | Least | Region, lowest: TableRow, path: str = "") -> None:
    """Check ties and rounding of a claim: at most the width of the interval with the smallest lower bound.

    Both are sums over solved folds, so they are 0 up to rounding if no fold of this pair is solved.
    """
    width = lowest.upper - lowest.lower if lowest.folds_decided else 0.0
    room = width + CROSSING_RTOL * claim.upper
    for name in ("tie_width", "allowance"):
        said = getattr(claim, name)
        checks.require(0.0 <= said < math.inf, path + name, f"{said!r} is not a finite number of at least 0")
        checks.require_at_most(path + name, said, room, "upper - lower of the pair with the smallest lower bound")


def _one_se(checks: Checks, record: Record, one: OneSe, scored: Scored) -> None:
    """Check the rule: the simplest pair whose upper bound is within one standard error of the minimum CV error."""
    words = "must be null, because a single fold has no standard error"
    if not checks.require(scored.has_standard_error, "one_se", words):
        return
    best, folds = record.certificate, record.least_folds or record.chosen_folds
    error = standard_error(folds.error, scored.by_fold, scored.times)
    checks.require_same("one_se.standard_error", one.standard_error, error, "the folds give", best.cv_error)
    row = find_row(record, record.table)
    if row is None:
        return
    limit = best.cv_error + error
    within = row.upper <= limit * (1.0 + SAME) or best is record
    words = f"the upper bound {row.upper!r} exceeds the minimum CV error plus one standard error, {limit!r}"
    checks.require(within, "tau", words)
    for near in record.table:
        in_every_fold = near.folds_decided == near.folds or near.standard_error is not None
        inside = in_every_fold and near.upper <= limit * (1.0 - SAME)
        if _is_simpler(near, record) and (inside or (near.gamma, near.tau) == (best.gamma, best.tau)):
            simpler = f"tau {near.tau} at gamma {near.gamma!r} is simpler than this pair and within one standard error"
            checks.require(False, "tau", f"is not the smallest: {simpler}")
            break
    _sure_of_one_se(checks, record, one, limit)


def _is_simpler(row: TableRow, record: Record) -> bool:
    return row.tau < record.tau or (row.tau == record.tau and row.gamma > record.gamma)


def _sure_of_one_se(checks: Checks, record: Record, one: OneSe, limit: float) -> None:
    """Check `estimate` of the rule: whether an open pair could change the choice, or is the choice."""
    best, top = record.certificate, find_row(record.certificate, record.table)
    open_rows, missing = [row for row in record.table if row.folds_decided < row.folds], []
    for row in open_rows:
        reported = (row.gamma, row.tau) in ((best.gamma, best.tau), (record.gamma, record.tau))
        below = top is not None and row.lower < top.upper * (1.0 - SAME)
        if reported or below or (_is_simpler(row, record) and row.lower <= limit * (1.0 - SAME)):
            missing.append(f"gamma {row.gamma!r}, tau {row.tau}")
    words = f"must be true, because {missing[0]} is not solved and could change the choice" if missing else ""
    checks.require(one.estimate or not missing, "one_se.estimate", words)
    checks.require(not one.estimate or bool(open_rows), "one_se.estimate", "must be false if all pairs are solved")


def _check_descent(checks: Checks, record: Record) -> None:
    """Check that a descent starts at a row, only moves to better pairs, and ends at the reported pair."""
    steps, certified = record.descent, record.work.engine == CERTIFIED_DESCENT
    words = f"must be null, because the engine {record.work.engine!r} is not a descent"
    checks.require(record.work.engine.startswith("descent"), "descent", words)
    if not steps:  # the limit may come before the first row of the grid
        checks.require(record.status != "proved", "descent", "must have moves, because the engine is a descent")
        return
    at = -1  # index of the last accepted move
    for i, step in enumerate(steps):
        _check_move(checks, i, step, None if at < 0 else steps[at], certified)
        checks.require(step.tau in record.request.taus, f"descent[{i}].tau", f"{step.tau} is not a requested tau")
        at = i if step.accepted else at
    if not checks.require(at >= 0, "descent[0].accepted", "must be true, because a descent accepts its initial pair"):
        return
    checks.leaves("not checked: moves before the last accepted move", "descent[].gamma")
    _end_of_descent(checks, record, at)


def _check_move(checks: Checks, i: int, step: DescentStep, before: DescentStep | None, certified: bool) -> None:
    """Check that a move of a descent has a known kind, and is accepted if it improves on its start."""
    place, moves = f"descent[{i}].", ("start",) if i == 0 else ("gamma", "line")
    checks.require(step.move in moves, f"{place}move", f"{step.move!r} is not one of {', '.join(moves)}")
    value = step.upper if certified else step.cv_error
    best = math.inf if before is None else before.upper if certified else before.cv_error
    goes = before is None or (step.move == "gamma" and value < best * (1.0 - SAME))
    words = "must be false, because the move does not lower the CV error"
    checks.require(goes or not step.accepted, f"{place}accepted", words)
    if step.move == "gamma":
        stays = not value < best * (1.0 - MOVE_PROGRESS)
        checks.require(stays or step.accepted, f"{place}accepted", "must be true, because the move lowers the CV error")
    if certified:
        words = f"the upper bound {step.upper!r} of the same move"
        checks.require_at_most(f"{place}cv_error", step.cv_error, step.upper * (1.0 + SAME), words)


def _end_of_descent(checks: Checks, record: Record, at: int) -> None:
    """Check that the answer is the result of the last accepted move, number `at`."""
    here = record.descent[at]
    # under a limit another pair may be reported, and the one-SE rule has more of the row decided after its move
    final = record.status == "proved" and not record.request.one_se
    for name in ("gamma", "tau") if final else ("gamma",):
        said, answered = getattr(here, name), getattr(record.certificate, name)
        words = f"is {said!r} in the last accepted move, but {answered!r} in the record"
        checks.require(said == answered, f"descent[{at}].{name}", words)
    row = find_row(here, record.table)
    if row is None:
        return
    falls = row.upper <= here.upper * (1.0 + SAME)
    words = f"is {here.upper!r} in the last accepted move, but {row.upper!r} in the table"
    checks.require(falls and (are_nearly_equal(here.upper, row.upper) or not final), f"descent[{at}].upper", words)
    words = f"is {here.cv_error!r} in the last accepted move, but {row.cv_error!r} in the table"
    checks.require(are_nearly_equal(here.cv_error, row.cv_error) or not final, f"descent[{at}].cv_error", words)


CERTAIN_TIE = 0.25  # share of the width of ties within which rounding separates no predictions


def check_target(checks: Checks, record: StoredRecord, dataset: Dataset, plan: FoldPlan | None = None) -> bool:
    """Check the names of two classes, and the loss of the best constant; False if the record lacks them.

    Parameters
    ----------
    plan : FoldPlan, optional
        Folds, for the error of held-out rows.
    """
    classes, counts = record.classes, record.counts
    for values, name in FIELDS_OF_VALUES.items():
        needed = record.loss.target.values is values
        words = f"must {'not be' if needed else 'be'} null with loss {record.loss}"
        if not checks.require((getattr(record, name) is not None) == needed, name, words):
            return False
    null_error, gain_error = None, None
    if plan is not None and isinstance(record, Record):
        null_error, gain_error = compare_with_null_model(dataset, record.loss, plan, record.chosen_folds.error)
    null_error = null_error_of_folds(dataset, record.loss, plan) if null_error is None else null_error
    if null_error is None:
        return True
    if record.data.null_error is not None:
        if isinstance(record, Record):
            checks.check_optional("gain_error", record.gain_error, gain_error, 1e-10 * (1.0 + null_error))
        checks.close("data.null_error", record.data.null_error, null_error, 1e-10 * (1.0 + null_error))
        checks.end_part(f"the events, and the error of {record.loss.target.null_model}")
    if counts is not None:
        checks.require_equal("counts.certified", counts.certified, "half_deviance")
        checks.close("counts.null_error", counts.null_error, null_error, 1e-10 * (1.0 + null_error))
        checks.end_part(f"the {record.null_name}")
    if classes is not None:
        checks.require_equal("classes.certified", classes.certified, "log_loss")
        for name, class_name in zip(("negative", "positive"), dataset.classes or (None, None), strict=True):
            checks.require_equal(f"classes.{name}", getattr(classes, name), class_name)
        checks.close("classes.null_error", classes.null_error, null_error, 1e-12)
        for name in () if isinstance(record, Record) else ("accuracy", "auc", "brier"):
            words = "must be null, because this record has no held-out predictions"
            checks.require(getattr(classes, name) is None, f"classes.{name}", words)
        word = record.request.positive if isinstance(record, Record) else None
        right = word is None or resolve_class(word, (classes.negative, classes.positive)) == classes.positive
        checks.require(right, "request.positive", f"is {word!r}, but the positive class is {classes.positive!r}")
        checks.end_part(f"the classes, and the {record.null_name}")
    return True


def check_quality(
    checks: Checks, said: Classes | NestedClasses, y: FloatArray, chances: FloatArray, weights: FloatArray | None,
    path: str,
) -> None:  # fmt: skip
    """Check accuracy, AUC and Brier score of some rows against their probabilities.

    Parameters
    ----------
    said : Classes or NestedClasses
        Part of the record with the measures.
    y, chances : (m,) arrays
        Classes 0 and 1, and probabilities of class 1.
    weights : (m,) array or None
        Row weights; None if each row counts once.
    path : str
        Prefix of the fields in messages.
    """
    quality, w = class_quality(y, chances, weights), np.ones(len(y)) if weights is None else weights
    open_to_rounding = {"accuracy": _uncertain_class_share(chances, w), "auc": _uncertain_order_share(y, chances, w)}
    for name in ("accuracy", "auc", "brier"):
        number = getattr(said, name)
        if number is not None:
            room = FOLLOWS_RTOL + open_to_rounding.get(name, 0.0)
            checks.close(f"{path}{name}", number, getattr(quality, name), room)


def _uncertain_class_share(chance: FloatArray, w: FloatArray) -> float:
    """Return the share of rows whose predicted class depends on rounding; probabilities of 1/2 are certainly below."""
    distance = np.abs(chance - 0.5)
    return float(np.average((distance > CERTAIN_TIE * tie_width(chance)) & (distance <= FOLLOWS_RTOL), weights=w))


def _uncertain_order_share(y: FloatArray, chance: FloatArray, w: FloatArray) -> float:
    """Return the share of pairs of a row of each class whose order of probabilities depends on rounding.

    Rows with the same features, and all rows of a fold without features, are certainly tied.
    """
    is_positive, order = y > 0.0, np.argsort(chance, kind="stable")
    zeros = order[~is_positive[order]]
    before, ones = np.concatenate([[0.0], np.cumsum(w[zeros])]), chance[is_positive]

    def weight_within(width: FloatArray) -> float:
        first = before[np.searchsorted(chance[zeros], ones - width, "left")]
        last = before[np.searchsorted(chance[zeros], ones + width, "right")]
        return float(w[is_positive] @ (last - first))

    close = weight_within(np.full(len(ones), FOLLOWS_RTOL)) - weight_within(CERTAIN_TIE * tie_width(ones))
    return close / max(float(w[is_positive].sum() * before[-1]), TINY)
