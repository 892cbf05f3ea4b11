"""Check the partition of an interval of gamma: its claims, and its bounds and supports by enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.enumeration import UnitColumns, all_objectives, enumeration_cost, full_optimum
from sparsecv_mio.certificate.record import Continuous, GammaPiece, PathRecord, Record, Surface, SurfacePiece
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.units import TIE_RTOL

H_RTOL = 1e-7
MOST_FITS = 2e5  # of supports, some 20 seconds; beyond, fewer places are tried
UNKNOWN = 1e-9  # of the least objective: near this two supports are tied, and either will do

CVErrorOf = Callable[[float, int], tuple[float, float]]
Numbered = tuple[int, GammaPiece]


def check_partition(checks: Checks, record: Record) -> None:
    """Check that the pieces cover the interval for every tau, and that their bounds are those of the record.

    Parameters
    ----------
    checks : Checks
    record : Record
    """
    found = record.continuous
    if found is None:
        return
    before, request = len(checks.failures), record.request
    checks.that(found.low < found.high, "continuous.low", "is not below high")
    checks.that(found.low <= record.gamma <= found.high, "gamma", "is outside of the interval")
    checks.that(request.gammas == (record.gamma,), "request.gammas", "are not the reported gamma alone")
    checks.that(found.gap == request.gap, "continuous.gap", f"is {found.gap!r}, asked for was {request.gap!r}")
    known = set(record.data.names)
    right = all(known.issuperset(support) for support in found.supports)
    checks.that(right, "continuous.supports", "has features that the data have not")
    for i, piece in enumerate(found.pieces):
        _check_piece(checks, found, piece, f"continuous.pieces[{i}].")
    _check_cover(checks, found, request.taus, "continuous.pieces")
    curve = found.curve_gammas
    right = list(curve) == sorted(set(curve)) and all(found.low <= gamma <= found.high for gamma in curve)
    checks.that(right and len(curve) == len(found.curve_errors), "continuous.curve_gammas", "are no ascending gammas")
    above = all(error >= record.lower * (1.0 - H_RTOL) for error in found.curve_errors)
    checks.that(above, "continuous.curve_errors", "fall below lower")
    checks.part(f"{len(found.pieces)} pieces cover every gamma from {found.low:g} to {found.high:g}", before)


def _check_cover(checks: Checks, found: Continuous | Surface, taus: Sequence[int], name: str) -> None:
    by_tau: dict[int, list[GammaPiece | SurfacePiece]] = {}
    for piece in found.pieces:
        by_tau.setdefault(piece.tau, []).append(piece)
    words = "do not cover the interval for every tau, each gamma once"
    checks.that(tuple(by_tau) == tuple(taus), name, words)
    for pieces in by_tau.values():
        ends = pieces[0].low == found.low and pieces[-1].high == found.high
        checks.that(ends and all(a.high == b.low for a, b in pairwise(pieces)), name, words)


def check_surface(checks: Checks, record: PathRecord, design: UnitColumns, enumerated: bool) -> None:
    """Check the best subsets of every size as a function of gamma, where there are any.

    Parameters
    ----------
    checks : Checks
    record : PathRecord
    design : UnitColumns
        All columns that vary.
    enumerated : bool
        Whether there are few enough supports to try all of them in the middle of every piece.
    """
    found = record.surface
    if found is None:
        return
    before, known = len(checks.failures), set(record.data.names)
    right = all(known.issuperset(support) for support in found.supports)
    checks.that(right, "surface.supports", "has features that the data have not")
    _check_cover(checks, found, record.request.taus, "surface.pieces")
    for i, piece in enumerate(found.pieces):
        place, named = f"surface.pieces[{i}].", all(number < len(found.supports) for number in piece.supports)
        checks.that(piece.proved == (len(piece.supports) > 0), f"{place}proved", "does not agree with the supports")
        if not checks.that(named, f"{place}supports", "are no places in surface.supports") or not right:
            continue
        size = min(piece.tau, design.q)
        sized = all(len(set(found.supports[number])) == size for number in piece.supports)
        if checks.that(sized, f"{place}supports", f"are not of {size} features") and enumerated:
            _check_best(checks, design, piece, [found.supports[number] for number in piece.supports], place)
    how = ", each with the least objective of all supports in its middle" if enumerated else ""
    checks.part(f"{len(found.pieces)} pieces of best subsets cover every gamma{how}", before)


def _check_best(
    checks: Checks, design: UnitColumns, piece: SurfacePiece, supports: Sequence[Sequence[str]], place: str
) -> None:
    index = {design.dataset.names[j]: at for at, j in enumerate(design.columns.tolist())}
    middle = math.sqrt(piece.low) * math.sqrt(piece.high)
    best = full_optimum(design, middle, piece.tau)
    for support in supports:
        objective = design.refit(tuple(sorted(index[name] for name in support)), middle, None).objective
        words = f"have the objective {objective!r} at gamma {middle!r}, the least is {best!r}"
        right = objective <= best * (1.0 + 2.0 * TIE_RTOL) + design.rounding(best)
        checks.that(right, f"{place}supports", words)


def _check_piece(checks: Checks, found: Continuous, piece: GammaPiece, place: str) -> None:
    checks.that(piece.low < piece.high, f"{place}low", "is not below high")
    least = min(piece.at_low, piece.at_high)
    checks.that(0.0 <= piece.lower <= least, f"{place}lower", f"{piece.lower!r} exceeds {least!r}, the h at an end")
    unknown = math.isinf(least)
    checks.that(unknown == (piece.supports is None), f"{place}supports", "are null where h is known, or the reverse")
    named = all(number < len(found.supports) for number in piece.supports or ())
    checks.that(named, f"{place}supports", "are no places in continuous.supports")


def check_by_enumeration(checks: Checks, record: Record, design: UnitColumns, plan: FoldPlan, h_of: CVErrorOf) -> None:
    """Check bounds and supports of the pieces at their ends and in their middles, by trying all supports there.

    Parameters
    ----------
    checks : Checks
    record : Record
    design : UnitColumns
        All columns that vary.
    plan : FoldPlan
    h_of : callable
        `h_of(gamma, tau)`: the CV error of a pair, at least and at most where supports are tied.
    """
    found = record.continuous
    if found is None or any(failure.field.startswith("continuous") for failure in checks.failures):
        return
    before = len(checks.failures)
    tried = _tried(found.pieces, design, plan)
    for done, (i, piece) in enumerate(tried):
        checks.tell(done, len(tried))
        place, middle = f"continuous.pieces[{i}].", math.sqrt(piece.low) * math.sqrt(piece.high)
        for gamma, upper in ((piece.low, piece.at_low), (middle, math.inf), (piece.high, piece.at_high)):
            low, high = h_of(gamma, piece.tau)
            words = f"{piece.lower!r} exceeds the true {low!r} at gamma {gamma!r}"
            checks.that(piece.lower <= low * (1.0 + H_RTOL), f"{place}lower", words)
            words = f"{upper!r} is below the true {high!r} at gamma {gamma!r}"
            name = "at_high" if gamma == piece.high else "at_low"
            checks.that(low <= upper * (1.0 + H_RTOL), place + name, words)
        if piece.supports is not None:
            listed = [found.supports[number] for number in piece.supports]
            for fold in _not_listed(design, plan, (middle, piece.tau), listed):
                words = f"lack the optimum of fold {fold} at gamma {middle!r}"
                checks.that(False, f"{place}supports", words)
                break
    curve = list(zip(found.curve_gammas, found.curve_errors, strict=True))
    if len(curve) * _work(design, plan, record.tau) > MOST_FITS:
        checks.only_read("continuous.curve_errors", "too many supports to try all at every gamma")
        curve = []
    for at, (gamma, error) in enumerate(curve):
        low, high = h_of(gamma, record.tau)
        room = design.slack(high, gamma, record.tau, H_RTOL)
        right = low - room <= error <= high + room
        checks.that(right, f"continuous.curve_errors[{at}]", f"is {error!r}, the true one {low!r}")
    share = "all" if len(tried) == len(found.pieces) else f"{len(tried)}"
    words = f"bounds and supports of {share} pieces at their ends and middles, by enumeration of all supports"
    checks.part(words, before)


def _tried(pieces: Sequence[GammaPiece], design: UnitColumns, plan: FoldPlan) -> list[Numbered]:
    """Return the pieces to try: all, or those of the least bounds and every so many of the others."""
    cost = {tau: 4.0 * _work(design, plan, tau) for tau in {p.tau for p in pieces}}
    order = sorted(enumerate(pieces), key=lambda one: one[1].lower)
    whole = sum(cost[piece.tau] for piece in pieces)
    stride = max(1, math.ceil(2.0 * whole / MOST_FITS)) if whole > MOST_FITS else 1
    first = len(order) // (2 * stride) if stride > 1 else 0
    return order[:first] + order[first::stride]


def _work(design: UnitColumns, plan: FoldPlan, tau: int) -> float:
    """Fits of a support that all supports of one pair take, roughly; large ones count as several."""
    large = enumeration_cost(design.dataset.n, design.q, [tau], 1, plan.k) / 2e4
    return large + math.comb(design.q, min(tau, design.q))


def _not_listed(
    design: UnitColumns, plan: FoldPlan, pair: tuple[float, int], listed: Sequence[Sequence[str]]
) -> Iterator[int]:
    """Yield the folds whose optimum no listed support reaches."""
    gamma, tau = pair
    supports = design.supports(tau)
    place = {tuple(row): i for i, row in enumerate(supports.tolist())}
    at = {name: i for i, name in enumerate(design.dataset.names[j] for j in design.columns.tolist())}
    rows = [place.get(tuple(sorted(at.get(name, -1) for name in support)), -1) for support in listed]
    known: IntArray = np.array([row for row in rows if row >= 0], dtype=np.int64)
    for fold, objective, *_ in all_objectives(design, plan, gamma, supports):
        objective = np.maximum(objective, 0.0)
        best = float(objective[known].min(initial=np.inf))
        room = 2.0 * TIE_RTOL * float(objective.min()) + UNKNOWN * float(design.t @ design.t)
        if best <= float(objective.min()) + room:
            continue
        # moments have lost digits of a fit that is nearly perfect: the rows decide
        train = plan.train_rows(fold)
        least = design.least(supports[objective <= best], gamma, train)
        if not len(known) or design.least(supports[known], gamma, train) > (
            least * (1.0 + 2.0 * TIE_RTOL) + design.rounding(least)
        ):
            yield fold
