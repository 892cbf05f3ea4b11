"""Cross-validation over every gamma of an interval: from the data to the record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.record import Continuous, GammaPiece, Record
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.search.continuous.asked import Interval
from sparsecv_mio.search.continuous.listing import Lister
from sparsecv_mio.search.continuous.lists import AllRows, Lists
from sparsecv_mio.search.continuous.partition import Partition, Piece, held_out
from sparsecv_mio.search.continuous.training_sets import TrainingSets
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.state.deadline import Deadline

SHARE = 0.8  # of the time limit for the interval; the rest is for the model at the answer
LEAST_SECONDS = 0.5  # for the model at the answer, after the limit too
MOST_PIECES = 20_000  # visited; where rounding is wider than the gap, halving would never end
ROUNDED = "rounding is wider than the gap on a part of the interval, which stays open"
REPORT_SECONDS = 0.1
CURVE_POINTS = 400  # of the curve of the best size
CURVE_RTOL = 1e-7  # of an error: a point that rounding may have moved by more is left out of the curve
OUTWARD = 1e-9  # relative, of bounds in the units of the file


def solve_interval(asked: Interval, at: Callable[[float, SearchOptions], Record]) -> Record:
    """Minimise h over every gamma of an interval and every tau asked.

    Parameters
    ----------
    asked : Interval
    at : callable
        Cross-validates every tau at one gamma, under options with the time that is left.

    Returns
    -------
    Record
        Of the best gamma found, with `lower` a bound over the whole interval and the partition that proves it.
    """
    options = asked.options
    deadline = Deadline(options.time_limit, asked.hooks.stop, asked.hooks.began)
    data = standardize(asked.dataset, options.scale, options.intercept, options.restrictions)
    search = _search(asked, data, deadline)
    best = search.best
    gamma = float(np.sqrt(asked.gammas.low) * np.sqrt(asked.gammas.high)) if best is None else 2.0 * best.lam
    gamma = min(max(gamma, asked.gammas.low), asked.gammas.high)
    left = None if options.time_limit is None else max(deadline.left, LEAST_SECONDS)
    record = at(gamma, replace(options, time_limit=left))
    per_row = data.y_unit**2 / (Scored.of(asked.dataset, asked.folds).total or 1)
    found = _certificate(asked, data, search, per_row)
    lower = min(record.lower, *(piece.lower for piece in found.pieces))
    gap = relative_gap(lower, record.upper)
    width = options.gap * record.upper + record.tie_width + record.allowance
    proved = np.isfinite(record.upper) and record.upper - lower <= width
    stopped = "interrupted" if deadline.stop.is_set() else "limit"
    notes = (ROUNDED,) if not proved and not deadline.expired() else ()
    nodes = record.work.nodes + search.lists.lister.nodes
    return replace(
        record, lower=lower, gap=gap, status="proved" if proved else stopped, continuous=found, region=None,
        advice=None, warnings=(*record.warnings, *notes),
        work=replace(record.work, nodes=nodes, seconds=deadline.seconds),
        request=replace(record.request, time_limit=options.time_limit),
    )  # fmt: skip


def _search(asked: Interval, data: StandardData, deadline: Deadline) -> Partition:
    """Close the interval as far as the time allows."""
    from threadpoolctl import threadpool_limits

    clock = deadline.sooner(SHARE)
    per_row = data.y_unit**2 / (Scored.of(asked.dataset, asked.folds).total or 1)
    # a bound that overflows says nothing
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):
        lister = Lister(TrainingSets.of_folds(data, asked.folds), data, asked.folds, clock.expired)
        sizes = sorted({min(tau, data.q) for tau in asked.taus})
        lists = Lists(lister, AllRows(lister, sizes))
        ends = asked.gammas.low / 2.0, asked.gammas.high / 2.0
        search = Partition(lists, ends, asked.options.gap, clock.expired)
        search.begin()
        said = 0.0
        while not search.finished and not clock.expired() and search.visited < MOST_PIECES:
            search.step()
            if asked.hooks.progress is not None and time.monotonic() > said + REPORT_SECONDS:
                said = time.monotonic()
                asked.hooks.progress(_progress(search, per_row, lister.nodes, deadline.seconds))
    return search


def _progress(search: Partition, per_row: float, nodes: int, seconds: float) -> Progress:
    best = None if search.best is None else (2.0 * search.best.lam, search.best.size)
    done, every = len(search.done), len(search.pieces())
    return Progress(done, every, nodes, search.lower * per_row, search.upper * per_row, seconds, best=best)


def _certificate(asked: Interval, data: StandardData, search: Partition, per_row: float) -> Continuous:
    """Bring the pieces to the units of the file."""
    numbers: dict[tuple[int, ...], int] = {}
    found = []
    pieces = sorted(search.pieces(), key=lambda piece: (piece.size, piece.low))
    for tau in asked.taus:
        found += [_piece(asked, piece, tau, per_row, numbers) for piece in pieces if piece.size == min(tau, data.q)]
    supports = tuple(tuple(data.names[j] for j in support) for support in numbers)
    gammas, errors = _curve(search, per_row)
    ends = asked.gammas.low, asked.gammas.high
    return Continuous(*ends, asked.options.gap, supports, tuple(found), gammas, errors)


def _curve(search: Partition, per_row: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return gammas and CV errors of the best size, where pieces hold its fits and rounding leaves their digits."""
    best, points = search.best, np.geomspace(*search.ends, CURVE_POINTS)
    found: dict[float, float] = {}
    for piece in search.pieces() if best is not None else []:
        assert best is not None
        if piece.fits is None or piece.left is None or piece.right is None or piece.size != best.size:
            continue
        known = {piece.low: piece.left, piece.high: piece.right}
        for lam in (piece.low, *points[(points > piece.low) & (points < piece.high)].tolist(), piece.high):
            values = known[lam] if lam in known else piece.fits.values(lam)
            low, high = held_out(piece.fits.fold, values)
            plain = replace(values, f_error=np.zeros_like(values.f), h_error=np.zeros_like(values.h))
            least, most = held_out(piece.fits.fold, plain)
            if max(least - low, high - most) <= CURVE_RTOL * least:
                found[2.0 * lam] = least * per_row
    return tuple(sorted(found)), tuple(found[gamma] for gamma in sorted(found))


def _piece(asked: Interval, piece: Piece, tau: int, per_row: float, numbers: dict[tuple[int, ...], int]) -> GammaPiece:
    low, high = 2.0 * piece.low, 2.0 * piece.high
    lower = piece.lower * per_row * (1.0 - OUTWARD)
    unknown = GammaPiece(tau, low, high, lower, np.inf, np.inf, None)
    if piece.fits is None or piece.left is None or piece.right is None:
        return unknown
    at_low, at_high = (piece.upper_at(side) * per_row * (1.0 + OUTWARD) for side in (piece.left, piece.right))
    if not min(at_low, at_high) < np.inf:  # rounding leaves nothing of the errors
        return unknown
    distinct = np.unique(piece.fits.support, axis=0).tolist() if piece.size else [[]]
    places = tuple(sorted(numbers.setdefault(tuple(support), len(numbers)) for support in distinct))
    return GammaPiece(tau, low, high, lower, at_low, at_high, places)
