"""Cross-validation over every gamma of an interval: from the data to the record.

Under a time limit the search has a thread of its own (:mod:`sparsecv_mio.search.time_limit`): its kernels are loaded or
compiled there, and the calling thread takes what it holds when its share of the limit is over. No kernel is imported
in the calling thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.search.continuous.asked import Interval
from sparsecv_mio.search.continuous.certified import Found, certified
from sparsecv_mio.search.continuous.partition import Partition, Piece
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.time_limit import run_within_limit

SHARE = 0.8  # of the time limit for the interval; the rest is for its certificate and the model at the answer
GRACE = 0.1  # seconds after it in which the search may return by itself
CURVE_SHARE = 0.1  # of the time limit, from which on the curve gets no more points
LEAST_SECONDS, LEAST_OVERDUE = 0.3, 0.2  # for the model at the answer: from the limit on, and where that is over
MOST_PIECES = 20_000  # visited; where rounding is wider than the gap, halving would never end
ROUNDED = "rounding is wider than the gap on a part of the interval, which stays open"
REPORT_SECONDS = 0.1


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

    Raises
    ------
    OutOfTime
        If the limit comes before the data are in standard coordinates.
    """
    options = asked.options
    deadline = Deadline(options.time_limit, asked.hooks.stop, asked.hooks.began)
    running = IntervalSearch(asked, deadline)
    run_within_limit(running.run, running.clock, running.check_begun, grace=GRACE)
    found = running.found()
    best = found.best
    size = None if best is None else best.size
    continuous = certified(asked, found, size, deadline.sooner(CURVE_SHARE).expired)
    gamma = float(np.sqrt(asked.gammas.low) * np.sqrt(asked.gammas.high)) if best is None else 2.0 * best.lam
    gamma = min(max(gamma, asked.gammas.low), asked.gammas.high)
    record = at(gamma, replace(options, time_limit=seconds_for_model(deadline)))
    if min(record.tau, found.data.q) != size:  # as good, or the model had no time: the curve is of the tau reported
        continuous = certified(asked, found, min(record.tau, found.data.q), deadline.expired)
    lower = min(record.lower, *(piece.lower for piece in continuous.pieces))
    gap = relative_gap(lower, record.upper)
    width = options.gap * record.upper + record.tie_width + record.allowance
    proved = np.isfinite(record.upper) and record.upper - lower <= width
    stopped = "interrupted" if deadline.stop.is_set() else "limit"
    notes = (ROUNDED,) if not proved and not deadline.expired() else ()
    return replace(
        record, lower=lower, gap=gap, status="proved" if proved else stopped, continuous=continuous, region=None,
        advice=None, warnings=(*record.warnings, *notes),
        work=replace(record.work, nodes=record.work.nodes + running.nodes, seconds=deadline.seconds),
        request=replace(record.request, time_limit=options.time_limit),
    )  # fmt: skip


def seconds_for_model(deadline: Deadline) -> float | None:
    """Return the time that the model at the answer has: what is left, and a little after the limit too.

    Parameters
    ----------
    deadline : Deadline

    Examples
    --------
    >>> seconds_for_model(Deadline(None, None)) is None, round(seconds_for_model(Deadline(9.0, None)), 1)
    (True, 9.0)
    """
    if not np.isfinite(deadline.at):
        return None
    left = deadline.at - time.monotonic()
    return max(left, min(LEAST_SECONDS, LEAST_SECONDS + left), LEAST_OVERDUE)


@dataclass(eq=False)
class IntervalSearch:
    """A search over an interval, as two threads see it: the one that searches, and the one that waits for it.

    Attributes
    ----------
    asked : Interval
    deadline : Deadline
        Of the whole run.
    clock : Deadline
        Of this search.
    data : StandardData, optional
        Once the data are in standard coordinates.
    search : Partition, optional
        Once there is one.
    """

    asked: Interval
    deadline: Deadline
    data: StandardData | None = None
    search: Partition | None = None

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self.clock = self.deadline.sooner(SHARE)

    @property
    def nodes(self) -> int:
        """Of all trees so far."""
        return 0 if self.search is None else self.search.lists.lister.nodes

    def run(self) -> None:
        """Close the interval as far as the time allows."""
        options = self.asked.options
        self.data = standardize(self.asked.dataset, options.scale, options.intercept, options.restrictions)
        from threadpoolctl import threadpool_limits

        # a bound that overflows says nothing
        with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):
            self.search = self._begun(self.data)
            self.search.begin()
            said = 0.0
            while not self.search.finished and not self.clock.expired() and self.search.visited < MOST_PIECES:
                self.search.step()
                if self.asked.hooks.progress is not None and time.monotonic() > said + REPORT_SECONDS:
                    said = time.monotonic()
                    self.asked.hooks.progress(self._progress(self.search))

    def check_begun(self) -> None:
        """Raise `OutOfTime` where there is nothing to make a record of."""
        if self.data is None:
            raise OutOfTime("no answer yet: the data were still being prepared; give more time")

    def found(self) -> Found:
        """Return what is known now; without a partition, that no CV error is below 0."""
        self.check_begun()
        assert self.data is not None
        if self.search is not None:
            return Found(self.data, self.search.pieces(), self.search.best, self._per_row)
        ends = self.asked.gammas.low / 2.0, self.asked.gammas.high / 2.0
        sizes = sorted({min(tau, self.data.q) for tau in self.asked.taus})
        return Found(self.data, [Piece(size, *ends, 0.0) for size in sizes], None, self._per_row)

    def _begun(self, data: StandardData) -> Partition:
        from sparsecv_mio.search.continuous.listing import Lister
        from sparsecv_mio.search.continuous.lists import AllRows, Lists
        from sparsecv_mio.search.continuous.training_sets import TrainingSets

        folds, expired = self.asked.folds, self.clock.expired
        lister = Lister(TrainingSets.of_folds(data, folds), data, folds, expired)
        sizes = sorted({min(tau, data.q) for tau in self.asked.taus})
        ends = self.asked.gammas.low / 2.0, self.asked.gammas.high / 2.0
        return Partition(Lists(lister, AllRows(lister, sizes)), ends, self.asked.options.gap, expired)

    @property
    def _per_row(self) -> float:
        """Factor from a sum over folds to the units of the file."""
        assert self.data is not None
        return float(self.data.y_unit**2 / (Scored.of(self.asked.dataset, self.asked.folds).total or 1))

    def _progress(self, search: Partition) -> Progress:
        best = None if search.best is None else (2.0 * search.best.lam, search.best.size)
        done, every = len(search.done), len(search.pieces())
        bounds = search.lower * self._per_row, search.upper * self._per_row
        return Progress(done, every, self.nodes, *bounds, self.deadline.seconds, best=best)
