"""Pieces of an interval as a record holds them: in the units of the file, with the curve of one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.record import Continuous, GammaPiece
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.search.continuous.asked import Interval
from sparsecv_mio.search.continuous.fits import Values
from sparsecv_mio.search.continuous.partition import Piece, Point, held_out_of_many

CURVE_POINTS = 400  # of the curve, beside the ends of its pieces
CURVE_RTOL = 1e-7  # of an error: a point that rounding may have moved by more is left out of the curve
CURVE_STRIDES = 27, 9, 3, 1  # every 27th point first: a limit leaves a curve that is coarse all over
AT_ONCE = 1 << 16  # fits that are compared at once
OUTWARD = 1e-9  # relative, of bounds in the units of the file


@dataclass(frozen=True, eq=False)
class Found:
    """What a search over an interval holds.

    Attributes
    ----------
    data : StandardData
    pieces : sequence of Piece
    best : Point or None
    per_row : float
        Factor from a sum over folds to the units of the file.
    """

    data: StandardData
    pieces: Sequence[Piece]
    best: Point | None
    per_row: float


def certified(asked: Interval, found: Found, size: int | None, expired: Callable[[], bool]) -> Continuous:
    """Bring the pieces to the units of the file.

    Parameters
    ----------
    asked : Interval
    found : Found
    size : int or None
        Number of features that the curve is of.
    expired : callable
        From when on no more points are added to the curve.
    """
    numbers: dict[tuple[int, ...], int] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a bound that overflows says nothing
        errors = _errors_at_ends(found.pieces)
        by_size = _pieces(found, errors[:, :, 1], numbers)
        curve = _curve(asked, found, errors, size, expired)
    pieces = [
        replace(piece, tau=tau) if piece.tau != tau else piece
        for tau in asked.taus
        for piece in by_size.get(min(tau, found.data.q), ())
    ]
    supports = tuple(tuple(found.data.names[j] for j in support) for support in numbers)
    ends = asked.gammas.low, asked.gammas.high
    return Continuous(*ends, asked.options.gap, supports, tuple(pieces), *curve)


def _pieces(found: Found, upper: FloatArray, numbers: dict[tuple[int, ...], int]) -> dict[int, list[GammaPiece]]:
    """Pieces of each size, ascending, with upper bounds (N, 2) at their ends; their supports are numbered."""
    pieces = found.pieces
    lower = np.array([piece.lower for piece in pieces]) * found.per_row * (1.0 - OUTWARD)
    bounds = zip(lower.tolist(), *(upper * found.per_row * (1.0 + OUTWARD)).T.tolist(), strict=True)
    by_size: dict[int, list[GammaPiece]] = {}
    places: dict[int, tuple[int, ...]] = {}
    order = sorted(zip(pieces, bounds, strict=True), key=lambda one: (one[0].size, one[0].low))
    for piece, (least, at_low, at_high) in order:
        known = None
        if min(at_low, at_high) < np.inf and piece.fits is not None:  # else rounding leaves nothing of the errors
            known = places.get(id(piece.fits))
            if known is None:
                distinct = sorted(set(map(tuple, piece.fits.support.tolist())))
                known = tuple(sorted(numbers.setdefault(support, len(numbers)) for support in distinct))
                places[id(piece.fits)] = known
        if known is None:
            at_low = at_high = np.inf
        made = GammaPiece(piece.size, 2.0 * piece.low, 2.0 * piece.high, least, at_low, at_high, known)
        by_size.setdefault(piece.size, []).append(made)
    return by_size


def _errors_at_ends(pieces: Sequence[Piece]) -> FloatArray:
    """(N, 2, 4): what `held_out_of_many` returns at both ends of N pieces; inf without fits."""
    place: dict[int, int] = {}  # of values, which neighbours share
    given: list[tuple[IntArray, Values]] = []
    places = []
    for piece in pieces:
        sides = piece.sides
        for side in sides:
            if piece.fits is not None and id(side) not in place:
                place[id(side)] = len(given)
                given.append((piece.fits.fold, side))
        places.append([place[id(side)] for side in sides] or [-1, -1])
    cuts = np.cumsum([len(fold) for fold, _ in given]) // AT_ONCE
    blocks = np.split(np.arange(len(given)), np.flatnonzero(np.diff(cuts)) + 1)
    table = [held_out_of_many([given[i] for i in block]) for block in blocks]
    return np.concatenate((*table, np.full((1, 4), np.inf)))[np.array(places)]


def _curve(
    asked: Interval, found: Found, errors: FloatArray, size: int | None, expired: Callable[[], bool]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return gammas and CV errors of a size, where pieces hold its fits and rounding leaves their digits."""
    which = [i for i, one in enumerate(found.pieces) if one.size == size and one.sides]
    if not which:
        return (), ()
    pieces = [found.pieces[i] for i in which]
    low, high = (np.array([getattr(piece, name) for piece in pieces]) for name in ("low", "high"))
    inner = np.geomspace(asked.gammas.low / 2.0, asked.gammas.high / 2.0, CURVE_POINTS)
    first, last = np.searchsorted(inner, low, side="right"), np.searchsorted(inner, high, side="left")
    between = [(i, lam) for i in np.flatnonzero(first < last).tolist() for lam in inner[first[i] : last[i]].tolist()]
    known = []
    for i in coarse_first(len(between)):
        if expired():
            break
        known.append((*between[i], *_errors_between(pieces[between[i][0]], between[i][1])))
    number = np.arange(len(pieces), dtype=float)
    ends = np.column_stack((np.tile(number, 2), np.append(low, high), *errors[which].transpose(2, 1, 0).reshape(4, -1)))
    points = np.concatenate((ends, np.reshape(known, (-1, 6))))
    return _ascending(points, found.per_row)


def _errors_between(piece: Piece, lam: float) -> list[float]:
    assert piece.fits is not None
    return list(held_out_of_many([(piece.fits.fold, piece.fits.values(lam))])[0].tolist())


def _ascending(points: FloatArray, per_row: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Gammas and CV errors of rows (piece, lam, four errors), where rounding leaves the digits; of two the last."""
    _, _, lows, highs, least, most = points.T
    points = points[np.maximum(least - lows, highs - most) <= CURVE_RTOL * least]
    points = points[np.lexsort((points[:, 0], points[:, 1]))]
    points = points[np.append(points[1:, 1] != points[:-1, 1], [True] * bool(len(points))).astype(bool)]
    return tuple((2.0 * points[:, 1]).tolist()), tuple((points[:, 4] * per_row).tolist())


def coarse_first(count: int) -> list[int]:
    """Return the numbers below a count, those far from each other first.

    Examples
    --------
    >>> coarse_first(10)
    [0, 9, 3, 6, 1, 2, 4, 5, 7, 8]
    """
    return list(dict.fromkeys(i for stride in CURVE_STRIDES for i in range(0, count, stride)))
