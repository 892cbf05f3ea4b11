"""Checks of the instability of a model, and of a pair (tau, gamma) chosen by a criterion that includes instability."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import MOST_ENUMERATED, Checks, EnumerationLevel
from sparsecv_mio.certificate.claims import find_row
from sparsecv_mio.certificate.design import Design, Pair
from sparsecv_mio.certificate.parts import InstabilityRow, Stability, StableChoice, WeighedModel
from sparsecv_mio.certificate.records import Record, TableRow
from sparsecv_mio.model_space import NONE
from sparsecv_mio.problem.objective import changes
from sparsecv_mio.units import FOLLOWS_RTOL, TIE_RTOL

STABILITY_NUMBERS = 5e8  # size of the refits of one pair, beyond which its instability is only read
LAST = 1e-11  # relative outward rounding of sums
BOUNDS = "stability.instability_lower", "stability.instability_upper"
BOUNDS_READ = "not checked: how far the stored bounds are from the recomputed instability"
INTERVAL_BOUNDS = "stability.chosen.intervals[].lower", "stability.chosen.intervals[].upper"


def check_stability(checks: Checks, record: Record, design: Design, level: EnumerationLevel) -> None:
    """Check the claims about the stability of the model, and about a choice by it.

    Parameters
    ----------
    design : Design
        Columns, folds and fits.
    level : EnumerationLevel
        Extent of the enumeration of supports.
    """
    stable, requested = record.stability, record.request.stability is not None
    if stable is None:
        needed = requested and record.status == "proved"
        checks.require(not needed, "stability", "must be given, because the request has a weight of the instability")
        return
    row = find_row(record, record.table)
    if row is None:
        return
    _check_fields(checks, record, stable, row)
    if stable.chosen is not None:
        _choice(checks, record, stable, stable.chosen)
    tried = level is not EnumerationLevel.NEIGHBOURS
    checks.mark_bounded_fields(*BOUNDS, "request.stability")
    if not tried:
        checks.leaves(BOUNDS_READ, *BOUNDS)
    chosen = ", and the pair chosen by --stability, agree" if requested else " agrees"
    if not checks.end_part(f"the instability{chosen} with the table"):
        return
    n_compared = 0
    if _check_refitted_changes(checks, record, design, stable, level) and tried:
        n_compared = _compare_instability_intervals(checks, record, design, stable, level)
    n_claimed = len(_claimed_intervals(record, stable))
    if stable.chosen is not None and n_compared < n_claimed:
        for name in INTERVAL_BOUNDS:
            checks.only_read(name, f"not checked for {n_claimed - n_compared} of {n_claimed} pairs")


def _check_fields(checks: Checks, record: Record, stable: Stability, row: TableRow) -> None:
    """Check which fields are given, the interval of the instability, and whether it is an estimate."""
    requested = record.request.stability is not None
    chosen = stable.chosen is not None
    needed = requested and record.status == "proved"
    given = "must be given, because the request has a weight of the instability"
    checks.require(chosen or not needed, "stability.chosen", given)
    ends = stable.instability_lower, stable.instability_upper
    checks.require_between("stability.instability", stable.instability, *ends)
    decided, proved = row.folds_decided == row.folds, record.refit.proved
    is_exact = decided and proved and stable.instability_upper - stable.instability_lower <= LAST * stable.instability
    exact = "must be false: all folds are solved, the refit is certified, and both bounds on the instability agree"
    for wrong, words in (
        (not decided and not stable.estimate, "must be true, because a fold of the pair is not solved"),
        (not proved and not stable.estimate, "must be true, because the full-data fit is not certified"),
        (is_exact and stable.estimate, exact),
    ):
        if wrong:  # otherwise the field is only read, because ties decide it
            checks.require(False, "stability.estimate", words)


def _choice(checks: Checks, record: Record, stable: Stability, chosen: StableChoice) -> None:
    """Check that the bounds of the criterion follow from the table and the intervals, and the pair from its bounds."""
    path, weight = "stability.chosen.", chosen.weight
    weights = record.request.stability or ()
    words = f"is {weight!r}, but must be the first weight of request.stability"
    checks.require(weight in weights[:1] and weight >= 0.0, f"{path}weight", words)
    words = "must have one interval for each row of the table"
    if not checks.require(len(chosen.intervals) == len(record.table), f"{path}intervals", words):
        return
    lower, upper = _criterion_bounds(record, chosen, weight)
    for i, interval in enumerate(chosen.intervals):
        words = "has a lower bound below 0 or above its upper bound"
        checks.require(0.0 <= interval.lower <= interval.upper, f"{path}intervals[{i}]", words)
    checks.mark_bounded_fields(*INTERVAL_BOUNDS)
    checks.mark_bounded_fields(f"{path}proved", f"{path}models[].weight", f"{path}models[].tau")
    here = next(i for i, row in enumerate(record.table) if (row.gamma, row.tau) == (record.gamma, record.tau))
    mine, slip = chosen.intervals[here], 1e-9 * stable.instability_upper
    inside = mine.lower <= stable.instability_lower + slip and stable.instability_upper <= mine.upper + slip
    checks.require(inside, f"{path}intervals[{here}]", "does not contain the interval of stability.instability")
    top = float(upper[here])
    for name, said, computed in (("lower", chosen.lower, float(lower.min())), ("upper", chosen.upper, top)):
        right = said == computed or abs(said - computed) <= LAST * max(abs(said), abs(computed))
        checks.require(right, f"{path}{name}", f"is {said!r}, but the table and the intervals give {computed!r}")
    room = _largest_allowance(record, lower, upper)
    words = f"is {chosen.allowance!r}, but must be from 0 to {room!r}, the width at the smallest lower bound"
    checks.require(0.0 <= chosen.allowance <= room, f"{path}allowance", words)
    closed = math.isfinite(top) and chosen.upper - chosen.lower <= record.request.gap * top + chosen.allowance
    _models(checks, record, chosen, f"{path}models", weights)
    if chosen.proved:
        checks.require(closed, f"{path}proved", "must be false, because upper - lower exceeds the requested gap")
        first = top <= float(upper.min()) * (1.0 + 2.0 * TIE_RTOL)
        checks.require(first, f"{path}upper", f"another pair has a smaller upper bound than {top!r}")


def _criterion_bounds(record: Record, chosen: StableChoice, weight: float) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of `h + weight * instability` by row of the table."""
    rows = list(zip(record.table, chosen.intervals, strict=True))
    lower = np.array([row.lower + weight * interval.lower for row, interval in rows])
    return lower, np.array([row.upper + (weight * interval.upper if weight else 0.0) for row, interval in rows])


def _largest_allowance(record: Record, lower: FloatArray, upper: FloatArray) -> float:
    """Return the width of the pair with the smallest lower bound if all its folds are solved, else 0."""
    lowest = int(lower.argmin())
    if record.table[lowest].folds_decided < record.table[lowest].folds:
        return 0.0
    return float(upper[lowest] - lower[lowest]) * (1.0 + FOLLOWS_RTOL) + LAST * abs(float(upper[lowest]))


def _models(checks: Checks, record: Record, chosen: StableChoice, path: str, asked: tuple[float, ...]) -> None:
    """Check that the models are for the requested weights, and that the first one is the answer."""
    for i, model in enumerate(chosen.models):
        _model(checks, record, model, f"{path}[{i}].")
        lower, upper = _criterion_bounds(record, chosen, model.weight)
        here = [j for j, row in enumerate(record.table) if (row.gamma, row.tau) == (model.gamma, model.tau)]
        if i and here and model.proved:
            top = float(upper[here[0]])
            width = record.request.gap * top + _largest_allowance(record, lower, upper)
            closed = math.isfinite(top) and top - float(lower.min()) <= width
            words = "must be false, because the gap of the criterion with this weight exceeds the requested gap"
            checks.require(closed, f"{path}[{i}].proved", words)
    if len(chosen.models) > 1:
        checks.only_read(f"{path}[].support", "not compared with other subsets")
    if chosen.models:
        weights = tuple(model.weight for model in chosen.models)
        checks.require(weights == asked, path, f"have the weights {weights}, but {asked} were requested")
        own = chosen.models[0]
        right = (own.gamma, own.tau, own.support) == (record.gamma, record.tau, record.support)
        checks.require(right, f"{path}[0]", "must be the reported model")


def _model(checks: Checks, record: Record, one: WeighedModel, path: str) -> None:
    """Check that the model of a weight is at a pair of the grid and has features of the data."""
    pairs = {(row.gamma, row.tau) for row in record.table}
    words = f"is {one.gamma!r}, but the table has no pair of tau {one.tau} and this gamma"
    checks.require((one.gamma, one.tau) in pairs, f"{path}gamma", words)
    size = (record.request.restrictions or NONE).features(one.support)
    allowed = len(set(one.support)) == len(one.support) and size <= one.tau
    allowed &= set(one.support) <= set(record.data.names)
    checks.require(allowed, f"{path}support", f"is not a set of up to {one.tau} features of the data")


def _check_refitted_changes(
    checks: Checks, record: Record, design: Design, stable: Stability, level: EnumerationLevel
) -> bool:
    """Refit the full-data model and that of every fold; return True if the changes agree with the record."""
    plan = design.folds
    if float(design.dataset.n) * plan.k * (record.tau + 1.0) ** 2 > STABILITY_NUMBERS:
        checks.only_read("stability.instability", "too many rows and folds to refit")
        return True
    full = design.positions(record.support)
    by_number = [design.positions(names) for names in record.chosen_folds.supports]
    supports = [support for which in record.chosen_folds.which if (support := by_number[which]) is not None]
    if full is None or len(supports) < plan.k:
        return True
    model = design.row_losses(full, record.gamma, None)
    by_fold = np.array([
        changes(model, design.row_losses(own, record.gamma, plan.train_rows(i)), design.total_weight)
        for i, own in enumerate(supports)
    ])  # fmt: skip
    worst = float(by_fold.max())
    slack = FOLLOWS_RTOL * worst + design.change_noise(model, worst)
    if stable.estimate:  # moved to the nearer bound of its interval
        said = min(max(worst, stable.instability_lower), stable.instability_upper)
        if level is EnumerationLevel.NEIGHBOURS and abs(said - worst) > slack:
            words = f"the supports of the record give {worst!r}; the rounding error of this value is not checked"
            for name in ("", "_lower", "_upper"):
                checks.only_read(f"stability.instability{name}", words)
        worst = said
    checks.close("stability.instability", stable.instability, worst, slack)
    right = stable.fold < plan.k and bool(by_fold[stable.fold] >= by_fold.max() - slack)
    words = f"is {stable.fold}, but holding out fold {int(by_fold.argmax())} changes the losses more"
    checks.require(right, "stability.fold", words)
    return checks.end_part("instability of the model, by refits of the supports in the record")


def _claimed_intervals(record: Record, stable: Stability) -> list[tuple[float, int, InstabilityRow, str]]:
    """Return gamma, tau, interval and path of every pair with a claim: the reported pair, then the smallest bounds."""
    own = InstabilityRow(stable.instability_lower, stable.instability_upper)
    claimed = [(record.gamma, record.tau, own, "stability.instability")]
    if stable.chosen is None:
        return claimed
    weight, rows = stable.chosen.weight, zip(record.table, stable.chosen.intervals, strict=True)
    others = [
        (row.lower + weight * interval.lower, (row.gamma, row.tau, interval, f"stability.chosen.intervals[{i}]"))
        for i, (row, interval) in enumerate(rows)
        if (row.gamma, row.tau) != (record.gamma, record.tau)
        and (interval.lower > 0.0 or math.isfinite(interval.upper))
    ]
    return claimed + [claim for _, claim in sorted(others, key=lambda bound_and_claim: bound_and_claim[0])]


def _compare_instability_intervals(
    checks: Checks, record: Record, design: Design, stable: Stability, level: EnumerationLevel
) -> int:
    """Compare the intervals of instabilities with the truth; return the number of compared pairs."""
    claimed = _claimed_intervals(record, stable)
    most = max(1, MOST_ENUMERATED // design.folds.k) if level is EnumerationLevel.GRID else 1
    for i, (gamma, tau, interval, path) in enumerate(claimed[:most]):
        ends = interval.lower, interval.upper
        if not _check_true_interval(checks, record, design, (gamma, tau), ends, path, None if i else stable):
            checks.leaves(BOUNDS_READ, *BOUNDS)
            return i
    checks.mark_bounded_fields(*BOUNDS)
    if len(claimed) > 1 and most > 1:
        checks.mark_bounded_fields(*INTERVAL_BOUNDS)
    which = "the pair" if len(claimed) == 1 else f"{min(most, len(claimed))} of {len(claimed)} pairs"
    checks.end_part(f"instability of {which}, by {design.how} all supports")
    return min(most, len(claimed))


def _check_true_interval(
    checks: Checks, record: Record, design: Design, pair: Pair,
    ends: tuple[float, float], path: str, stable: Stability | None,
) -> bool:  # fmt: skip
    """Compare the interval of a pair with the changes of its true optima, including ties; False if unknown."""
    features = sorted(design.index[name] for name in record.support if name in design.index)[: pair[1]]
    start, solved = tuple(sorted({*features, *design.adjusted_columns})), []
    for fold in (None, *range(design.folds.k)):
        optima = design.optimal_losses(fold, pair, start)
        if optima is None:
            return False
        solved.append(optima)
    low, high = _instability_ends([tied for tied, _ in solved], design.total_weight)
    slack = FOLLOWS_RTOL * high + design.change_noise(np.concatenate(solved[0][0]), high)
    checks.require(ends[0] <= low + slack, path, f"the lower bound {ends[0]!r} exceeds the recomputed value {low!r}")
    checks.require(high <= ends[1] + slack, path, f"the upper bound {ends[1]!r} is below the recomputed value {high!r}")
    if stable is not None and not stable.estimate:
        loose_low, loose_high = _instability_ends([loose for _, loose in solved], design.total_weight)
        largest = max(float(values.max(initial=0.0)) for _, loose in solved for values in loose)
        room = slack + design.change_room(pair, largest)
        near = loose_low - room <= ends[0] and ends[1] <= loose_high + room
        words = f"differs from [{loose_low!r}, {loose_high!r}], which the optimal supports of the pair imply"
        checks.require(near, path, words)
    return True


def _instability_ends(models: Sequence[list[FloatArray]], total: float) -> tuple[float, float]:
    """Return the smallest and the largest instability over the full-data models (first) and the fold models."""
    full, *folds = models
    ends = []
    for model in full:
        by_fold = [[changes(model, without, total) for without in fold] for fold in folds]
        ends.append((max(map(min, by_fold)), max(map(max, by_fold))))
    return min(low for low, _ in ends), max(high for _, high in ends)
