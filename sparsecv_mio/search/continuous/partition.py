"""Intervals of lam, each with a bound on the CV error: bisected where it matters, raced elsewhere.

The statements behind it and their proofs are in docs/theory/continuous_gamma.md.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.search.continuous.chords import Envelope, first_of
from sparsecv_mio.search.continuous.fits import Fits, Values
from sparsecv_mio.search.continuous.left_out import RowFits
from sparsecv_mio.units import TIE_RTOL

if TYPE_CHECKING:  # with kernels, which take a second to load
    from sparsecv_mio.search.continuous.lists import Lists

STEP = 1.4  # ratio of the ends of the first intervals
NARROWEST = 1e-12  # relative width below which an interval is not divided
GEOMETRIC = 1.1  # ratio of the ends from which on an interval is divided in the middle of its logarithms
SHARE_OF_GAP = 0.98  # that the bounds are closed to: the rest is for rounding
SUMMED = 1e-12  # relative rounding of a sum over folds


@dataclass(frozen=True, eq=False)
class Point:
    """The CV error of a size at one lam, as a sum over folds: `estimate <= upper` where supports are tied."""

    lam: float
    size: int
    estimate: float
    upper: float


@dataclass(frozen=True, eq=False)
class Piece:
    """An interval of lam at one size: no CV error on it, as a sum over folds, is below `lower`.

    Attributes
    ----------
    size : int
    low, high : float
        Ends of the interval.
    lower : float
    fits : Fits or None
        All that can be optimal on it, by fold; None where the bound needed none of them.
    left, right : Values or None
        Of these fits at the ends.
    closed : bool
        Whether it cannot or need not be divided.
    """

    size: int
    low: float
    high: float
    lower: float
    fits: Fits | RowFits | None = None
    left: Values | None = None
    right: Values | None = None
    closed: bool = False

    @property
    def sides(self) -> tuple[Values, ...]:
        """Values of the fits at both ends; none without fits."""
        known = self.fits is not None and self.left is not None and self.right is not None
        return (self.left, self.right) if known else ()  # type: ignore[return-value]

    @property
    def narrow(self) -> bool:
        """Whether there is no number worth dividing it at."""
        return self.high - self.low <= NARROWEST * self.high

    @property
    def middle(self) -> float:
        """Where to divide it."""
        return middle_of(self.low, self.high)


class Partition:
    """The search over an interval of lam, all sizes at once.

    Another thread may ask for `pieces`, `best` and `lower` at any moment of it.

    Parameters
    ----------
    lists : Lists
    ends : two floats
        The interval.
    gap : float
        Relative gap at which the search ends; positive.
    expired : callable

    Attributes
    ----------
    ends : two floats
        The interval.
    best : Point or None
        The least CV error found.
    done : list of Piece
        Pieces that need no more work.
    """

    def __init__(self, lists: Lists, ends: tuple[float, float], gap: float, expired: Callable[[], bool]) -> None:
        self.lists, self.ends, self.gap, self.expired = lists, ends, gap, expired
        self.sizes: Sequence[int] = lists.all_rows.sizes
        self.best: Point | None = None
        self.done: list[Piece] = []
        self.visited = 0
        self._heap: list[tuple[float, int, Piece]] = []
        self._born = 0
        self._widened: set[float] = set()
        self.grid = first_grid(ends)
        self._unseen = {
            (low, size): Piece(size, low, high, 0.0) for low, high in pairwise(self.grid) for size in self.sizes
        }
        self._at_work: tuple[Piece, ...] = ()
        self._lock = threading.Lock()  # while pieces change their place

    # -- what is known ------------------------------------------------------------------------------------------------

    @property
    def upper(self) -> float:
        """At least the least CV error, as a sum over folds."""
        return np.inf if self.best is None else self.best.upper

    @property
    def target(self) -> float:
        """Lower bound at which a piece is finished."""
        return self.upper * (1.0 - SHARE_OF_GAP * self.gap)

    @property
    def lower(self) -> float:
        """At most the CV error anywhere, as a sum over folds."""
        return min((piece.lower for piece in self.pieces()), default=0.0)

    def pieces(self) -> list[Piece]:
        """Return all pieces: every size and every lam is in one."""
        with self._lock:
            return [*self.done, *(piece for _, _, piece in self._heap), *self._at_work, *self._unseen.values()]

    @property
    def finished(self) -> bool:
        """Whether no piece is left that can and should be divided."""
        return not self._heap

    # -- the search ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Bound every size on every interval of a first grid by training losses, and score the ends of what is left."""
        guesses = {}
        for place, piece in tuple(self._unseen.items()):
            found = piece
            if not self.expired():
                found, guesses[place] = self._first(piece.size, piece.low, piece.high)
            with self._lock:
                del self._unseen[place]
                self._push(found)
        if not self.expired():
            best = min(guesses, key=lambda place: guesses[place])[0]
            for lam in sorted(self.grid, key=lambda lam: abs(np.log(lam / best))):
                if self.expired():
                    return
                self._solve(lam)

    def step(self) -> None:
        """Work on the piece with the least lower bound."""
        with self._lock:
            piece = heapq.heappop(self._heap)[2]
            self._at_work = (piece,)
        parts = self._work(piece)
        with self._lock:
            self._at_work = ()
            for part in parts:
                self._push(part)

    def _solve(self, lam: float) -> None:
        """Find and score the optima at one lam of every size of which a piece there is open."""
        sizes = sorted({one.size for one in self._touching(lam)})
        if self.lists.solve(lam, sizes):
            for size in sizes:
                self._score(*self.lists.optima(lam, size), lam, size)

    def _touching(self, lam: float) -> list[Piece]:
        """Open pieces without fits that end at a lam."""
        pieces = [piece for _, _, piece in self._heap if piece.fits is None and lam in (piece.low, piece.high)]
        return [piece for piece in pieces if piece.lower < self.target]

    def _push(self, piece: Piece) -> None:
        if piece.lower >= self.target or piece.closed:
            self.done.append(piece)
            return
        self._born += 1
        heapq.heappush(self._heap, (piece.lower, self._born, piece))

    def _work(self, piece: Piece) -> Iterable[Piece]:
        """Return what takes the place of a piece."""
        self.visited += 1
        if piece.lower >= self.target:
            return (piece,)
        if piece.narrow:
            return (_closed(piece),)
        return (self._list(piece),) if piece.fits is None else self._divide(piece)

    def _list(self, piece: Piece) -> Piece:
        """Find all that can be optimal on a piece."""
        ends = (piece.low, piece.high)
        for lam in ends:
            if not self.lists.solve(lam, [piece.size]):
                return piece if self.expired() else _closed(piece)
        for lam in set(ends) - self._widened:
            self._widen(lam, piece)
        fits = self.lists.on(*ends, piece.size)
        if fits is None:
            return piece if self.expired() else _closed(piece)
        left, right = fits.values(piece.low), fits.values(piece.high)
        self._score(fits.fold, left, piece.low, piece.size)
        self._score(fits.fold, right, piece.high, piece.size)
        return _bounded(piece, fits, left, right)

    def _widen(self, lam: float, piece: Piece) -> None:
        """Lengthen the lists at one lam for all open pieces there at once."""
        pieces = [one for one in (*self._touching(lam), piece) if self.lists.solved(one.low, one.high, one.size)]
        self.lists.widen(lam, [(one.low, one.high, one.size) for one in pieces])
        self._widened.add(lam)

    def _divide(self, piece: Piece) -> Iterable[Piece]:
        assert piece.fits is not None and piece.left is not None and piece.right is not None
        values = piece.fits.values(piece.middle)
        self._score(piece.fits.fold, values, piece.middle, piece.size)
        parts = ((piece.low, piece.middle, piece.left, values), (piece.middle, piece.high, values, piece.right))
        return [
            _bounded(Piece(piece.size, low, high, piece.lower), piece.fits, left, right)
            for low, high, left, right in parts
        ]

    def _score(self, fold: IntArray, values: Values, lam: float, size: int) -> None:
        """Take in the CV error at one lam, the worst of the supports that are tied there."""
        low, high = held_out(fold, values)
        if high < self.upper:
            self.best = Point(lam, size, low, high)

    def _first(self, size: int, low: float, high: float) -> tuple[Piece, float]:
        """Bound a size on an interval by training losses alone; and what its CV error may be near.

        A fold's held-out error is at least the least objective of all rows less that of the fold's training rows: the
        first is above its chord, the second below the tangents of any support.
        """
        whole, sets = self.lists.all_rows, self.lists.sets
        ends = (low, high)
        bottom = [whole.at(lam)[size].lower for lam in ends]
        values = [self.lists.of_one(lam, size) for lam in ends]
        guess = min(float(one.h.sum()) for one in values)
        scored = sets.scored_whole
        if not scored.any():
            return Piece(size, low, high, 0.0), guess
        length, count = high - low, float(scored.sum())
        f = [float((one.f + one.f_error)[scored].sum()) * (1.0 + SUMMED) for one in values]
        slope = [float(one.slope[scored].sum()) for one in values]
        # two lines over the share of the way, the greater of which is a bound
        lines = np.array(
            [
                [count * bottom[0] - f[0], count * bottom[1] - (f[0] + slope[0] * length)],
                [count * bottom[0] - (f[1] - slope[1] * length), count * bottom[1] - f[1]],
            ]
        )
        bound = 0.0 if np.isnan(lines).any() else least_of_greater(lines)
        return Piece(size, low, high, max(bound, 0.0)), guess


def first_grid(ends: tuple[float, float]) -> list[float]:
    """Return the ends of the first intervals, `STEP` apart at most.

    Examples
    --------
    >>> first_grid((1.0, 1.69))
    [1.0, 1.3, 1.69]
    """
    steps = max(1, int(np.ceil(np.log(ends[1] / ends[0]) / np.log(STEP))))
    inner = np.geomspace(*ends, steps + 1)[1:-1]
    return [ends[0], *(float(lam) for lam in inner), ends[1]]


def middle_of(low: float, high: float) -> float:
    """Return where to divide an interval of lam: in the middle of its logarithms while its ends are far apart.

    Examples
    --------
    >>> middle_of(1.0, 4.0), middle_of(1.0, 1.05)
    (2.0, 1.025)
    """
    return float(np.sqrt(low) * np.sqrt(high)) if high > GEOMETRIC * low else 0.5 * (low + high)


def least_of_greater(lines: FloatArray) -> float:
    """Least value on [0, 1] of the greater of two lines.

    Parameters
    ----------
    lines : (2, 2) array
        Of each its values at 0 and at 1.

    Examples
    --------
    >>> least_of_greater(np.array([[0.0, 1.0], [1.0, 0.0]]))
    0.5
    """
    found = [float(lines[:, 0].max()), float(lines[:, 1].max())]
    before, after = lines[0] - lines[1]
    if before * after < 0.0:
        share = before / (before - after)
        found.append(float((1.0 - share) * lines[0, 0] + share * lines[0, 1]))
    return min(found)


def _closed(piece: Piece) -> Piece:
    parts = (piece.size, piece.low, piece.high, piece.lower, piece.fits, piece.left, piece.right)
    return Piece(*parts, closed=True)


def held_out(fold: IntArray, values: Values) -> tuple[float, float]:
    """Sum over folds of the held-out errors of the optima, at least and at most, where some are tied.

    Parameters
    ----------
    fold : (P,) int array
        Ascending.
    values : Values
        Of P fits, all that can be optimal among them.
    """
    low, high = _of_optima(first_of(fold), values.f, values.f_error, values.h, values.h_error)
    return float(low.sum()), float(high.sum()) * (1.0 + SUMMED)


def held_out_of_many(given: Sequence[tuple[IntArray, Values]]) -> FloatArray:
    """Return what `held_out` does for many at once, and the same as if there were no rounding.

    Parameters
    ----------
    given : sequence of pairs
        Arguments of `held_out`, N of them.

    Returns
    -------
    (N, 4) array
        At least and at most, with rounding; at least and at most, without.
    """
    if not given:
        return np.zeros((0, 4))
    lengths = np.array([len(fold) for fold, _ in given])
    fold = np.concatenate([fold for fold, _ in given])
    f, f_error, h, h_error = (
        np.concatenate([getattr(values, name) for _, values in given]) for name in ("f", "f_error", "h", "h_error")
    )
    begins = np.cumsum(lengths) - lengths
    new = np.concatenate(([True], fold[1:] != fold[:-1]))
    new[begins] = True
    starts, none = np.flatnonzero(new), np.zeros_like(f)
    sums = np.stack([*_of_optima(starts, f, f_error, h, h_error), *_of_optima(starts, f, none, h, none)])
    cuts = [*np.searchsorted(starts, begins).tolist(), len(starts)]
    found = np.array([sums[:, lo:hi].sum(axis=1) for lo, hi in pairwise(cuts)])
    found[:, [1, 3]] *= 1.0 + SUMMED
    return found


def _of_optima(
    starts: IntArray, f: FloatArray, f_error: FloatArray, h: FloatArray, h_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Held-out errors of the optima of each fold, at least and at most; folds start where `starts` says."""
    count = np.diff(np.append(starts, len(f)))
    least = np.repeat(np.minimum.reduceat(f, starts), count)
    room = 2.0 * np.repeat(np.maximum.reduceat(f_error, starts), count) + TIE_RTOL * np.abs(least)
    tied = f <= least + room
    low = np.minimum.reduceat(np.where(tied, h, np.inf), starts)
    return low, np.maximum.reduceat(np.where(tied, h + h_error, -np.inf), starts)


def _bounded(piece: Piece, fits: Fits | RowFits, left: Values, right: Values) -> Piece:
    """Keep the fits that can be optimal on a piece, and bound its CV error by them.

    With `h'' <= k` each held-out error is above its chord less `k (lam - low)(high - lam) / 2`. The sum over folds of
    the least chord is concave, so it is least at an end.
    """
    ends = (piece.low, piece.high)
    alive = np.flatnonzero(Envelope.of(ends, fits.fold, left, right).may_win(left, right))
    if len(alive) < len(fits):
        fits, left, right = fits.at(alive), left.at(alive), right.at(alive)
    starts = first_of(fits.fold)
    chord = min(float(np.minimum.reduceat(side.h - side.h_error, starts).sum()) for side in (left, right))
    bend = float(np.maximum.reduceat(fits.curvature(*ends), starts).sum())
    room = max(bend, 0.0) * (piece.high - piece.low) ** 2 / 8.0
    lower = chord * (1.0 - SUMMED) - room
    # a bound that is no number, where numbers overflow, says nothing: the first of the two stays
    return Piece(piece.size, piece.low, piece.high, max(piece.lower, lower), fits, left, right)
