"""The certified minimum of the CV error over all gammas of an interval (docs/theory/continuous_gamma.md).

`GammaPartition` stores intervals of lam = gamma / 2, each with a bound on the CV error, and bisects or discards them.
`certified` converts the intervals to the units of the file, and `solve_interval` does all steps from the data to the
record.

Under a time limit the search has a separate thread (:mod:`sparsecv_mio.search.deadline`), which also loads or compiles
the kernels. After the search has used its share of the time limit, the calling thread builds the record from the
present state of the search. The calling thread imports no kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.records import Continuous, GammaPiece, Record
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.digits import format_number
from sparsecv_mio.model_space import GammaInterval
from sparsecv_mio.search.deadline import GRACE, Deadline, require_prepared_data, run_within_limit
from sparsecv_mio.search.every_gamma.gamma_fits import (
    Envelope,
    FitsAtLam,
    FitsOverGamma,
    RowFits,
    TrainingSets,
    find_run_starts,
    first_grid,
    geometric_mean,
)
from sparsecv_mio.search.observers import Progress, Reporter
from sparsecv_mio.search.question import Question
from sparsecv_mio.trees.subsets import OpenNodes
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, MODEL_SHARE, NARROWEST, OUTWARD, TIE_RTOL

if TYPE_CHECKING:
    from sparsecv_mio.search.every_gamma.gamma_lists import EndLists


@dataclass(frozen=True, eq=False)
class ErrorAtLam:
    """CV error of a size at one lam, as a sum over folds: an estimate, and an upper bound that includes ties."""

    lam: float
    size: int
    estimate: float
    upper: float


@dataclass(frozen=True, eq=False)
class Piece:
    """An interval of lam at one size, with a lower bound on the CV error.

    Attributes
    ----------
    size : int
        Number of features.
    low, high : float
        Ends of the interval.
    lower : float
        Lower bound on the CV error everywhere on the interval, as a sum over folds.
    fits : FitsOverGamma or None
        All fits that can be optimal on the interval, by fold; None if the bound was found without fits.
    left, right : FitsAtLam or None
        Values of these fits at the ends.
    errors : (2, 4) array
        CV errors at the ends, as `held_out` returns them; inf without fits.
    closed : bool
        True if the interval cannot be divided, or need not be.
    """

    size: int
    low: float
    high: float
    lower: float
    fits: FitsOverGamma | RowFits | None = None
    left: FitsAtLam | None = None
    right: FitsAtLam | None = None
    errors: FloatArray = field(default_factory=lambda: np.full((2, 4), np.inf))
    closed: bool = False

    @property
    def narrow(self) -> bool:
        """True if the interval is too narrow to be divided."""
        return self.high - self.low <= NARROWEST * self.high

    @property
    def middle(self) -> float:
        """Point at which the interval is divided."""
        return geometric_mean(self.low, self.high)


class GammaPartition:
    """A search over an interval of lam, for all sizes at once.

    Another thread may read `pieces`, `best` and `lower` at any moment.

    Parameters
    ----------
    lists : EndLists
        Lists of supports that may be optimal, by lam and size.
    ends : two floats
        Ends of the interval.
    gap : float
        Relative gap at which the search ends; positive.
    is_expired : callable
        Function that returns True once the search has to end.

    Attributes
    ----------
    ends : two floats
        Ends of the interval.
    best : ErrorAtLam or None
        Smallest CV error found.
    done : list of Piece
        Pieces that need no more work.
    """

    def __init__(self, lists: EndLists, ends: tuple[float, float], gap: float, is_expired: Callable[[], bool]) -> None:
        self.lists, self.ends, self.gap, self.is_expired = lists, ends, gap, is_expired
        self.sizes: Sequence[int] = lists.all_rows.sizes
        self.best: ErrorAtLam | None = None
        self.done: list[Piece] = []
        self.visited = 0
        self._open = OpenNodes[Piece]()
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
        """Upper bound on the minimum CV error, as a sum over folds."""
        return np.inf if self.best is None else self.best.upper

    @property
    def target(self) -> float:
        """Lower bound at which a piece is finished, with a margin for rounding."""
        return self.upper * (1.0 - (1.0 - CROSSING_RTOL) * self.gap)

    @property
    def lower(self) -> float:
        """Lower bound on the CV error over the interval, as a sum over folds."""
        return min((piece.lower for piece in self.pieces()), default=0.0)

    def pieces(self) -> list[Piece]:
        """Return all pieces: every size and every lam is in one."""
        with self._lock:
            return [*self.done, *self._open, *self._at_work, *self._unseen.values()]

    @property
    def is_finished(self) -> bool:
        """True if no piece is left that can and should be divided."""
        return not self._open

    # -- the search ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Bound every size on every interval of a first grid by training losses, and score ends of open intervals."""
        guesses = {}
        for place, piece in tuple(self._unseen.items()):
            first_piece = piece
            if not self.is_expired():
                first_piece, guesses[place] = self._make_first_piece(piece.size, piece.low, piece.high)
            with self._lock:
                del self._unseen[place]
                self._push(first_piece)
        if not self.is_expired():
            best = min(guesses, key=lambda place: guesses[place])[0]
            for lam in sorted(self.grid, key=lambda lam: abs(np.log(lam / best))):
                if self.is_expired():
                    return
                self._solve(lam)

    def step(self) -> None:
        """Work on the piece with the smallest lower bound."""
        with self._lock:
            piece = self._open.pop()
            self._at_work = (piece,)
        parts = self._work(piece)
        with self._lock:
            self._at_work = ()
            for half in parts:
                self._push(half)

    def _solve(self, lam: float) -> None:
        """Find and score the optima at one lam of every size that has an open piece there."""
        sizes = sorted({open_piece.size for open_piece in self._touching(lam)})
        if self.lists.solve(lam, sizes):
            for size in sizes:
                self._score(*self.lists.optima(lam, size), lam, size)

    def _touching(self, lam: float) -> list[Piece]:
        """Return the open pieces without fits that end at a lam."""
        pieces = [piece for piece in self._open if piece.fits is None and lam in (piece.low, piece.high)]
        return [piece for piece in pieces if piece.lower < self.target]

    def _push(self, piece: Piece) -> None:
        if piece.lower >= self.target or piece.closed or self._is_limited_by_ends(piece):
            self.done.append(piece)
        else:
            self._open.push(piece.lower, piece)

    def _is_limited_by_ends(self, piece: Piece) -> bool:
        """Return True if no division can raise a bound by the gap, as rounding errors or ties exceed it at an end."""
        least, most = piece.errors[:, 0], piece.errors[:, 1]
        attainable = least[least < (1.0 - self.gap / 2.0) * most].min(initial=np.inf)
        return bool(attainable < self.target and piece.lower >= attainable * (1.0 - self.gap))

    def _work(self, piece: Piece) -> Iterable[Piece]:
        """Return the pieces that replace a piece."""
        self.visited += 1
        if piece.lower >= self.target:
            return (piece,)
        if piece.narrow:
            return (replace(piece, closed=True),)
        return (self._list(piece),) if piece.fits is None else self._divide(piece)

    def _list(self, piece: Piece) -> Piece:
        """Find all fits that can be optimal on a piece."""
        ends = (piece.low, piece.high)
        for lam in ends:
            if not self.lists.solve(lam, [piece.size]):
                return piece if self.is_expired() else replace(piece, closed=True)
        for lam in set(ends) - self._widened:
            self._widen(lam, piece)
        fits = self.lists.candidate_fits(*ends, piece.size)
        if fits is None:
            return piece if self.is_expired() else replace(piece, closed=True)
        values = fits.values(piece.low), fits.values(piece.high)
        errors = [self._score(fits.fold, side, lam, piece.size) for side, lam in zip(values, ends, strict=True)]
        return _bound_piece(replace(piece, errors=np.stack(errors)), fits, *values)

    def _widen(self, lam: float, piece: Piece) -> None:
        """Lengthen the lists at one lam for all open pieces there at once."""
        pieces = [
            neighbour
            for neighbour in (*self._touching(lam), piece)
            if self.lists.has_optima(neighbour.low, neighbour.high, neighbour.size)
        ]
        self.lists.grow_lists(lam, [(neighbour.low, neighbour.high, neighbour.size) for neighbour in pieces])
        self._widened.add(lam)

    def _divide(self, piece: Piece) -> Iterable[Piece]:
        assert piece.fits is not None and piece.left is not None and piece.right is not None
        values = piece.fits.values(piece.middle)
        errors = self._score(piece.fits.fold, values, piece.middle, piece.size)
        lower_part = replace(piece, high=piece.middle, errors=np.stack((piece.errors[0], errors)))
        upper_part = replace(piece, low=piece.middle, errors=np.stack((errors, piece.errors[1])))
        return (
            _bound_piece(lower_part, piece.fits, piece.left, values),
            _bound_piece(upper_part, piece.fits, values, piece.right),
        )

    def _score(self, fold: IntArray, values: FitsAtLam, lam: float, size: int) -> FloatArray:
        """Return the bounds of `held_out` for a size at one lam; store the error if it is the smallest so far."""
        errors = held_out(fold, values)
        if errors[1] < self.upper:
            self.best = ErrorAtLam(lam, size, float(errors[0]), float(errors[1]))
        return errors

    def _make_first_piece(self, size: int, low: float, high: float) -> tuple[Piece, float]:
        """Return a piece with a bound by training losses alone, and an estimate of its CV error.

        The held-out error of a fold is at least the smallest objective on all rows minus the smallest objective on the
        training rows of the fold. The former is above its chord, the latter below the tangents of any support.
        """
        whole, sets = self.lists.all_rows, self.lists.sets
        ends = (low, high)
        bottom = [whole.best_subsets(lam)[size].lower for lam in ends]
        values = [self.lists.evaluate_full_optimum(lam, size) for lam in ends]
        guess = min(float(fits_of_size.h.sum()) for fits_of_size in values)
        scored = sets.scored_whole
        if not scored.any():
            return Piece(size, low, high, 0.0), guess
        length, count = high - low, float(scored.sum())
        f = [float((fits_of_size.f + fits_of_size.f_error)[scored].sum()) * (1.0 + OUTWARD) for fits_of_size in values]
        slope = [float(fits_of_size.slope[scored].sum()) for fits_of_size in values]
        # two lines over the interval; the larger one is a bound
        lines = np.array(
            [
                [count * bottom[0] - f[0], count * bottom[1] - (f[0] + slope[0] * length)],
                [count * bottom[0] - (f[1] - slope[1] * length), count * bottom[1] - f[1]],
            ]
        )
        bound = 0.0 if np.isnan(lines).any() else least_of_greater(lines)
        return Piece(size, low, high, max(bound, 0.0)), guess


def least_of_greater(lines: FloatArray) -> float:
    """Return the smallest value on [0, 1] of the larger of two lines.

    Parameters
    ----------
    lines : (2, 2) array
        Values of each line at 0 and at 1.

    Examples
    --------
    >>> least_of_greater(np.array([[0.0, 1.0], [1.0, 0.0]]))
    0.5
    """
    values = [float(lines[:, 0].max()), float(lines[:, 1].max())]
    before, after = lines[0] - lines[1]
    if before * after < 0.0:
        share = before / (before - after)
        values.append(float((1.0 - share) * lines[0, 0] + share * lines[0, 1]))
    return min(values)


def held_out(fold: IntArray, values: FitsAtLam) -> FloatArray:
    """Return bounds on the sum over folds of the held-out errors of the optima, which may be tied.

    Parameters
    ----------
    fold : (P,) int array
        Index of the fold of each fit, ascending.
    values : FitsAtLam
        Values of P fits, among them all that can be optimal.

    Returns
    -------
    (4,) array
        Lower and upper bound with rounding errors, then both bounds without them.
    """
    starts, none = find_run_starts(fold), np.zeros_like(values.f)
    bounds = (
        *_bound_optima_errors(starts, values.f, values.f_error, values.h, values.h_error),
        *_bound_optima_errors(starts, values.f, none, values.h, none),
    )
    return np.array([bound.sum() for bound in bounds]) * (1.0, 1.0 + OUTWARD, 1.0, 1.0 + OUTWARD)


def _bound_optima_errors(
    starts: IntArray, f: FloatArray, f_error: FloatArray, h: FloatArray, h_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on the held-out errors of the optima of each fold, whose fits begin at `starts`."""
    count = np.diff(np.append(starts, len(f)))
    least = np.repeat(np.minimum.reduceat(f, starts), count)
    room = 2.0 * np.repeat(np.maximum.reduceat(f_error, starts), count) + TIE_RTOL * np.abs(least)
    tied = f <= least + room
    low = np.minimum.reduceat(np.where(tied, h - h_error, np.inf), starts)
    return low, np.maximum.reduceat(np.where(tied, h + h_error, -np.inf), starts)


def _bound_piece(piece: Piece, fits: FitsOverGamma | RowFits, at_low: FitsAtLam, at_high: FitsAtLam) -> Piece:
    """Return a piece with the fits that can be optimal on it, and the bound on its CV error that follows from them.

    If `h'' <= k`, a held-out error is above its chord minus `k (lam - low)(high - lam) / 2`. The sum over folds of
    the smallest chords is concave, so it has its minimum at an end.
    """
    ends = (piece.low, piece.high)
    alive = np.flatnonzero(Envelope.from_fits(ends, fits.fold, at_low, at_high).may_win(at_low, at_high))
    if len(alive) < len(fits):
        fits, at_low, at_high = fits.select(alive), at_low.select(alive), at_high.select(alive)
    starts = find_run_starts(fits.fold)
    chord = min(float(np.minimum.reduceat(side.h - side.h_error, starts).sum()) for side in (at_low, at_high))
    bend = float(np.maximum.reduceat(fits.curvature(*ends), starts).sum())
    room = max(bend, 0.0) * (piece.high - piece.low) ** 2 / 8.0
    lower = chord * (1.0 - OUTWARD) - room
    # where numbers overflow, the new bound is nan and `max` returns the old bound
    return replace(piece, lower=max(piece.lower, lower), fits=fits, left=at_low, right=at_high)


CURVE_POINTS = 400  # number of points of the curve, in addition to the ends of its pieces


def make_continuous_record(
    asked: IntervalSearch, pieces: Sequence[Piece], size: int | None, is_expired: Callable[[], bool]
) -> Continuous:
    """Convert pieces to the units of the file.

    Parameters
    ----------
    asked : IntervalSearch
        Search of the interval.
    pieces : sequence of Piece
        Pieces that cover every size and gamma.
    size : int or None
        Number of features of the curve.
    is_expired : callable
        Function that returns True once no more points are to be added to the curve.
    """
    numbers: dict[tuple[int, ...], int] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a bound that overflows says nothing
        by_size = _pieces(pieces, asked.cv_error_factor, numbers)
        curve = _curve(asked, [piece for piece in pieces if piece.size == size and piece.fits is not None], is_expired)
    names, q = asked.standard.names, asked.standard.q
    made = [replace(piece, tau=tau) for tau in asked.taus for piece in by_size.get(min(tau, q), ())]
    supports = tuple(tuple(names[j] for j in support) for support in numbers)
    return Continuous(asked.gammas.low, asked.gammas.high, asked.question.options.gap, supports, tuple(made), *curve)


def _pieces(
    pieces: Sequence[Piece], per_row: float, numbers: dict[tuple[int, ...], int]
) -> dict[int, list[GammaPiece]]:
    """Return the pieces of each size, ascending, with upper bounds at their ends and numbers for their supports."""
    by_size: dict[int, list[GammaPiece]] = {}
    places: dict[int, tuple[int, ...]] = {}  # by fits, which neighbours may share
    for piece in sorted(pieces, key=lambda piece: (piece.size, piece.low)):
        lower = piece.lower * per_row * (1.0 - ACCURATE_RTOL)
        at_low, at_high = (piece.errors[:, 1] * per_row * (1.0 + ACCURATE_RTOL)).tolist()
        supports = None
        if piece.fits is None or not min(at_low, at_high) < np.inf:  # rounding leaves nothing of the errors
            at_low = at_high = np.inf
        elif (supports := places.get(id(piece.fits))) is None:
            distinct = sorted(set(map(tuple, piece.fits.support.tolist())))
            supports = tuple(sorted(numbers.setdefault(support, len(numbers)) for support in distinct))
            places[id(piece.fits)] = supports
        made = GammaPiece(piece.size, 2.0 * piece.low, 2.0 * piece.high, lower, at_low, at_high, supports)
        by_size.setdefault(piece.size, []).append(made)
    return by_size


def _curve(
    asked: IntervalSearch, pieces: Sequence[Piece], is_expired: Callable[[], bool]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return gammas and CV errors at and between the ends of some pieces, where rounding errors are small."""
    pieces = sorted(pieces, key=lambda piece: piece.low)
    points = {
        lam: errors for piece in pieces for lam, errors in zip((piece.low, piece.high), piece.errors, strict=True)
    }
    inner = np.geomspace(*asked.ends, CURVE_POINTS).tolist()
    before = np.searchsorted([piece.low for piece in pieces], inner) - 1
    between = [
        (lam, pieces[i]) for lam, i in zip(inner, before.tolist(), strict=True) if i >= 0 and lam < pieces[i].high
    ]
    for lam, piece in (between[i] for i in coarse_first(len(between))):
        if is_expired():
            break
        if piece.fits is not None:
            points[lam] = held_out(piece.fits.fold, piece.fits.values(lam))
    curve = [
        (2.0 * lam, float(least) * asked.cv_error_factor)
        for lam, (low, high, least, most) in sorted(points.items())
        if max(least - low, high - most) <= CROSSING_RTOL * least
    ]
    return tuple(gamma for gamma, _ in curve), tuple(error for _, error in curve)


def coarse_first(count: int) -> list[int]:
    """Return the integers from 0 to `count - 1`, those far from each other first.

    Parameters
    ----------
    count : int
        Number of integers.

    Examples
    --------
    >>> coarse_first(10)
    [0, 9, 3, 6, 1, 2, 4, 5, 7, 8]
    """
    strides = [3**power for power in range(10, -1, -1)]
    return list(dict.fromkeys(i for stride in strides for i in range(0, count, stride)))


MOST_PIECES = 20_000  # pieces to visit; if ties or rounding errors exceed the gap, division may never end


def _describe_open_part(running: IntervalSearch, continuous: Continuous) -> str:
    """Return a warning on the piece with the smallest bound: why it is not certified, and options that avoid it."""
    piece = min(continuous.pieces, key=lambda piece: piece.lower)
    at_limit = running.search is not None and running.search.visited >= MOST_PIECES
    cause = f"the search ended after {MOST_PIECES:,} pieces" if at_limit else "ties or rounding errors exceed the gap"
    gammas = f"{format_number(piece.low)} to {format_number(piece.high)}"
    advice = "start the interval at a larger gamma, or omit this tau"
    return f"{cause}: at tau = {piece.tau}, gamma {gammas} is not certified; {advice}"


def solve_interval(running: IntervalSearch, at: Callable[[float, Deadline], Record]) -> Record:
    """Return the record of the gamma with the smallest CV error of an interval, over all requested taus.

    Parameters
    ----------
    running : IntervalSearch
        Search that has not begun.
    at : callable
        Function of a gamma and a deadline that cross-validates every tau at this gamma.

    Returns
    -------
    Record
        Record of the best gamma found, with a lower bound over the whole interval and the pieces that prove it.

    Raises
    ------
    OutOfTime
        If the time limit ends before the data are in standard coordinates.
    """
    deadline, gammas = running.deadline, running.gammas
    run_within_limit(running.run, running.clock, lambda: None)
    q, pieces, best = running.standard.q, running.pieces(), running.best
    size = None if best is None else best.size
    continuous = make_continuous_record(running, pieces, size, deadline.sooner(MODEL_SHARE / 2.0).has_expired)
    gamma = float(np.sqrt(gammas.low) * np.sqrt(gammas.high)) if best is None else 2.0 * best.lam
    gamma = min(max(gamma, gammas.low), gammas.high)
    record = at(gamma, deadline.next_part(seconds_for_model(deadline)))
    if min(record.tau, q) != size:  # as good, or the model had no time: the curve is of the tau reported
        continuous = make_continuous_record(running, pieces, min(record.tau, q), deadline.has_expired)
    # Every tau and gamma, also the evaluated ones, is in a piece, so the smallest bound of a piece is a bound on the
    # minimum over the interval. The lower bound of the evaluated pairs, which may be 0 after a limit, adds nothing.
    lower = min(record.cv_error, *(piece.lower for piece in continuous.pieces))
    gap = relative_gap(lower, record.upper)
    width = running.question.options.gap * record.upper + record.tie_width + record.allowance
    proved = np.isfinite(record.upper) and record.upper - lower <= width
    notes = () if proved or deadline.has_expired() else (_describe_open_part(running, continuous),)
    status = record.status if record.status == "doubtful" else deadline.status(bool(proved))
    return replace(
        record, lower=lower, gap=gap, status=status, continuous=continuous, region=None, advice=None, loosest=None,
        so_far=None,
        warnings=(*record.warnings, *notes),
        work=replace(record.work, nodes=record.work.nodes + running.nodes, seconds=deadline.seconds),
    )  # fmt: skip


def seconds_for_model(deadline: Deadline) -> float | None:
    """Return the seconds for the model at the best gamma: the remaining time, at least `GRACE`; None without a limit.

    Parameters
    ----------
    deadline : Deadline
        Deadline of the whole run.

    Examples
    --------
    >>> seconds_for_model(Deadline(None, None)) is None, round(seconds_for_model(Deadline(9.0, None)), 1)
    (True, 9.0)
    """
    if not np.isfinite(deadline.at):
        return None
    return max(deadline.remaining_seconds, GRACE)


@dataclass(eq=False)
class IntervalSearch:
    """A search over an interval that one thread runs while another thread waits.

    Attributes
    ----------
    question : Question
        Data, folds and options.
    gammas : GammaInterval
        Interval of gamma.
    taus : sequence of int
        Requested sizes.
    deadline : Deadline
        Deadline of the whole run.
    clock : Deadline
        Deadline of this search.
    data : StandardData, optional
        Data in standard coordinates; None before they are prepared.
    search : GammaPartition, optional
        Search over the pieces; None before it begins.
    """

    question: Question
    gammas: GammaInterval
    taus: Sequence[int]
    deadline: Deadline
    data: StandardData | None = None
    search: GammaPartition | None = None

    def __post_init__(self) -> None:
        """Start the clock of the search."""
        self.clock, self.ends = self.deadline.sooner(1.0 - MODEL_SHARE), (self.gammas.low / 2.0, self.gammas.high / 2.0)

    @property
    def nodes(self) -> int:
        """Number of nodes of all trees so far."""
        return 0 if self.search is None else self.search.lists.lister.nodes

    def run(self) -> None:
        """Search the interval until every piece is finished, or the time is over."""
        question, options = self.question, self.question.options
        self.data = standardize(question.dataset, options.scale, options.intercept, options.restrictions)

        # a bound that overflows says nothing
        with np.errstate(over="ignore", invalid="ignore"):
            search = self.search = self._make_search(self.data)
            report = question.hooks.progress
            reporter = None if report is None else Reporter(report, lambda: self._progress(search))
            self.search.begin()
            while not self.search.is_finished and not self.clock.has_expired() and self.search.visited < MOST_PIECES:
                self.search.step()
                if reporter is not None:
                    reporter.visit()

    @property
    def standard(self) -> StandardData:
        """Data in standard coordinates; raises `OutOfTime` before they are prepared."""
        return require_prepared_data(self.data)

    @property
    def best(self) -> ErrorAtLam | None:
        """Smallest CV error found."""
        return None if self.search is None else self.search.best

    def pieces(self) -> list[Piece]:
        """Return the present pieces; before the search begins, one piece with the lower bound 0 for each size."""
        if self.search is not None:
            return self.search.pieces()
        return [Piece(size, *self.ends, 0.0) for size in self._sizes(self.standard)]

    def _sizes(self, data: StandardData) -> list[int]:
        return sorted({min(tau, data.q) for tau in self.taus})

    def _make_search(self, data: StandardData) -> GammaPartition:
        from sparsecv_mio.search.every_gamma.gamma_lists import BestOverGamma, EndLists, Lister

        is_expired, folds = self.clock.has_expired, self.question.folds
        lister = Lister(TrainingSets.from_folds(data, folds), data, folds, is_expired)
        lists = EndLists(lister, BestOverGamma(lister, self._sizes(data)))
        return GammaPartition(lists, self.ends, self.question.options.gap, is_expired)

    @property
    def cv_error_factor(self) -> float:
        """Factor from a sum over folds to a CV error in units of the file."""
        scored = Scored.of(self.question.dataset, self.question.folds)
        return float(self.standard.loss_unit / (scored.total or 1))

    def _progress(self, search: GammaPartition) -> Progress:
        best = None if search.best is None else (2.0 * search.best.lam, search.best.size)
        done, every = len(search.done), len(search.pieces())
        bounds = search.lower * self.cv_error_factor, search.upper * self.cv_error_factor
        return Progress(done, every, self.nodes, *bounds, self.deadline.seconds, best=best)
