"""Best subsets of every size on all rows: what `sparsecv path` calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.record import PathRecord, Surface, SurfacePiece
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import least_rows
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.known import KnownSubsets
from sparsecv_mio.fits.options import PathOptions
from sparsecv_mio.grids import GammaInterval, gammas_of, interval, taus_of
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.checks import GRID, EffortKeywords, with_keywords
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.time_limit import run_within_limit

if TYPE_CHECKING:
    from sparsecv_mio.problem.problem import SparseProblem
    from sparsecv_mio.search.observers.progress import Progress

    Report = Callable[[Progress], None] | None


def best_subsets(
    dataset: Dataset,
    *,
    gammas: str | float | Iterable[float] | GammaInterval,
    taus: str | int | Iterable[int] | None = None,
    options: PathOptions | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    began: float | None = None,
    **keywords: Unpack[EffortKeywords],
) -> PathRecord:
    """Best subset of every size on all rows, each with its certified interval.

    Parameters
    ----------
    dataset : Dataset
        Rows, target and names.
    gammas, taus : sequences, numbers or texts
        Ridge weights, positive, or a `GammaInterval` or text `LO..HI`: the best subset of every size as a function of
        gamma then comes with those at both ends; support sizes, 0 to p, by default 1 to p, of p > 30 to n / 8, but
        at least 10 and at most 50.
    options : PathOptions, optional
        Scale, gap, limits.
    progress : callable, optional
        Called with a :class:`~sparsecv_mio.search.observers.progress.Progress` after each gamma of a round.
    stop : threading.Event, optional
        Set it to end the run with what it holds.
    began : float, optional
        Moment of `time.monotonic` from which the limit counts; this call by default.
    **keywords
        Fields of `PathOptions` by keyword, which go before those of `options`.

    Returns
    -------
    PathRecord
        A fit for every gamma and tau; `proved` if all are.

    Raises
    ------
    BadInput
        If the grid or an option is out of range.
    OutOfTime
        If the limit comes before the data are in standard coordinates.
    TypeError
        For a keyword that is no field of `PathOptions`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> [row.support for row in best_subsets(data, gammas=[0.1], taus=[1, 2]).path]
    [('x0',), ('x0', 'x1')]
    """
    options = with_keywords(options or PathOptions(), keywords, "best_subsets", GRID)
    restrictions = options.restrictions.within(dataset.names)
    options = replace(options, restrictions=restrictions)
    shape = restrictions.left(dataset.p), least_rows(dataset)
    sizes = taus_of(taus, *shape, restrictions=restrictions)
    every = (interval(gammas, "gammas") or gammas) if isinstance(gammas, str) else gammas
    if isinstance(every, GammaInterval) and restrictions:
        raise BadInput(f"gamma {every}: an interval goes with no restriction of the models; give a grid LO:HI:COUNT")
    given = (every.low, every.high) if isinstance(every, GammaInterval) else gammas_of(every, *shape)
    grid = Grid.of(given, sizes, dataset.p, restrictions)
    clock = Deadline(options.time_limit, stop, began)
    search = PathSearch(dataset, grid, options, clock, progress)
    record = run_within_limit(search.solve, clock, search.record, search.prepare)
    if not isinstance(every, GammaInterval) or search.known is None:
        return record
    if clock.expired():  # an abandoned thread may still be loading what `with_surface` needs
        pieces = tuple(SurfacePiece(tau, every.low, every.high, (), False) for tau in grid.taus.tolist())
        status = "interrupted" if clock.stop.is_set() else "limit"
        return replace(record, surface=Surface(every.low, every.high, (), pieces), status=status)
    from sparsecv_mio.fits.surface import with_surface

    return with_surface(record, search.known.data, every, grid.taus.tolist(), clock)


class PathSearch:
    """A search for the best subset of every (gamma, tau), of which a record can be made once the data are read.

    Parameters
    ----------
    dataset : Dataset
    grid : Grid
    options : PathOptions
    clock : Deadline
    progress : callable or None
        Called with a `Progress` after each gamma of a round.
    """

    def __init__(self, dataset: Dataset, grid: Grid, options: PathOptions, clock: Deadline, progress: Report) -> None:
        self.dataset, self.grid, self.options = dataset, grid, options
        self.clock, self.progress = clock, progress
        self.known: KnownSubsets | None = None  # from the moment that the data are in standard coordinates

    def solve(self) -> PathRecord:
        """Give every open size rounds of growing effort."""
        options = self.options
        data = standardize(self.dataset, options.scale, options.intercept, options.restrictions)
        known = self.known = KnownSubsets(data, self.grid, self.options, self.clock)
        _ = self.dataset.fingerprint  # of the record: after the limit there is no time for it
        from sparsecv_mio.search.methods.by_rows import by_rows
        from sparsecv_mio.search.methods.restricted import check_restrictions

        problem: SparseProblem | None = None
        check_restrictions(data, self.grid.taus.tolist(), 1)
        if by_rows(data, 1):
            self._by_rows(known)
        else:
            problem = row_moments(data, slice(0, data.n)).problem(data, 1.0)
            self._rounds(known, problem)
        self.clock.check_wanted()
        return known.record(problem)

    def prepare(self, until: float) -> None:
        """Find supports by forward selection; see :func:`sparsecv_mio.search.time_limit.run_within_limit`."""
        if self.known is not None:
            self.known.prepare(until)

    def record(self) -> PathRecord:
        """Return the record of what is known now.

        Raises
        ------
        OutOfTime
            If the data are not even in standard coordinates.
        """
        if self.known is None:
            raise OutOfTime("no answer yet: the data were still being prepared; give more time")
        return self.known.record()

    def _by_rows(self, known: KnownSubsets) -> None:
        """One relaxation a size, and the exact answer where it leaves few columns."""
        from sparsecv_mio.search.observers.progress import reports
        from sparsecv_mio.search.subproblem.all_rows_by_rows import all_rows_of, solve_by_rows

        data, taus = known.data, self.grid.taus.tolist()
        with reports(self.progress, self.clock) as progress:
            for g, gamma in enumerate(self.grid.gammas.tolist()):
                if self.clock.expired():
                    return
                whole = all_rows_of(data, gamma, self.clock.expired)
                whole.search(taus)
                for tau in taus:
                    if self.clock.expired():
                        return
                    found = solve_by_rows(data, whole, tau, gamma, self.clock.expired)
                    known.cells[g, tau] = found.cells[tau]
                    known.nodes += found.nodes
                    self._report(progress, known, len(known.cells))

    def _rounds(self, known: KnownSubsets, problem: SparseProblem) -> None:
        from threadpoolctl import threadpool_limits

        from sparsecv_mio.formulation.backends.native.cell import UNLIMITED
        from sparsecv_mio.search.methods.parts.fold_rounds import EFFORT_GROWTH, FIRST_EFFORT
        from sparsecv_mio.search.observers.progress import reports

        alone = len(self.grid.gammas) == 1 and not known.data.restrictions.beyond_forcing  # no other gamma has to wait
        effort = UNLIMITED if alone else FIRST_EFFORT
        left = {g: self.grid.taus.tolist() for g in range(len(self.grid.gammas))}
        with threadpool_limits(limits=1), reports(self.progress, self.clock) as progress:
            while left and not self.clock.expired():
                self._round(known, problem, left, effort, progress)
                left = {g: taus for g, taus in left.items() if taus}
                effort *= EFFORT_GROWTH

    def _round(
        self, known: KnownSubsets, problem: SparseProblem, left: dict[int, list[int]], effort: int, progress: Report
    ) -> None:
        """Give every open (gamma, tau) some effort; what is closed leaves `left`, taus by index of gamma."""
        from sparsecv_mio.search.subproblem.restricted_cells import solve_any

        starts: list[IntArray] = []
        for g in sorted(left, key=lambda g: -self.grid.gammas[g]):
            if self.clock.expired():
                return
            here = problem.with_gamma(float(self.grid.gammas[g]))
            mine = [known.cells[g, t].support for t in left[g] if (g, t) in known.cells]
            result = solve_any(known.data, here, left[g], starts + mine, effort, self.clock.expired)
            starts = [cell.support for cell in result.cells.values()]
            known.nodes += result.nodes
            known.cells.update({(g, t): cell for t, cell in result.cells.items()})
            left[g] = [] if result.finished else [t for t in left[g] if not known.cells[g, t].complete]
            self._report(progress, known, known.pairs - sum(len(rest) for rest in left.values()))

    def _report(self, progress: Report, known: KnownSubsets, done: int) -> None:
        from sparsecv_mio.search.observers.progress import Progress

        if progress is not None:
            progress(Progress(done, known.pairs, known.nodes, 0.0, np.inf, self.clock.seconds))
