"""Best subsets of every size on all rows: what `sparsecv path` calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.certificate.parts import Request, Work, versions
from sparsecv_mio.certificate.path_record import PATH_SCHEMA, PathRecord, PathRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.formulation.backends.native.cell import PathCell
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.heuristics.plain import plain_supports
from sparsecv_mio.search.options import Grid, check_effort
from sparsecv_mio.search.result import all_rows_fit, data_info
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.supervise import attended

if TYPE_CHECKING:
    from sparsecv_mio.problem.problem import SparseProblem
    from sparsecv_mio.search.observers.progress import Progress

IntArray = NDArray[np.int64]


def best_subsets(
    dataset: Dataset,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-7,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    began: float | None = None,
) -> PathRecord:
    """Best subset of every size on all rows, each with its certified interval.

    Parameters and errors as for :func:`cross_validate`; `gap` is the relative gap at which a fit counts as proved.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> [row.support for row in best_subsets(data, gammas=[0.1], taus=[1, 2]).path]
    [('x0',), ('x0', 'x1')]
    """
    check_effort(gap, time_limit, threads)
    grid = Grid.of(gammas, taus, dataset.p)
    clock = Deadline(time_limit, stop, began)
    subsets = Subsets(dataset, scale, intercept, grid, gap, clock, threads, time_limit, progress)
    return attended(subsets.solve, clock, subsets.record, subsets.prepare)


@dataclass(eq=False)
class Subsets:
    """A search for the best subset of every (gamma, tau), which is an answer at every moment.

    Attributes
    ----------
    dataset, scale, intercept, grid, gap, clock, threads, time_limit, progress
        What was asked.
    data : StandardData, optional
        Once the data are in standard coordinates.
    cells : dict of (gamma, tau) to PathCell
        What is known, by row of the grid and size.
    """

    dataset: Dataset
    scale: str
    intercept: str
    grid: Grid
    gap: float
    clock: Deadline
    threads: int | None
    time_limit: float | None
    progress: Callable[[Progress], None] | None
    data: StandardData | None = None
    cells: dict[tuple[int, int], PathCell] = field(default_factory=dict)
    nodes: int = 0
    plain: list[dict[int, tuple[IntArray, float]]] | None = None
    rows: dict[tuple[int, int], tuple[PathCell, PathRow]] = field(default_factory=dict)

    def solve(self) -> PathRecord:
        """Give every open size rounds of growing effort."""
        data = self.data = standardize(self.dataset, self.scale, self.intercept)
        _ = self.dataset.fingerprint  # of the record: after the limit there is no time for it
        from sparsecv_mio.search.methods.by_rows import by_rows

        problem: SparseProblem | None = None
        if by_rows(data, 1):
            self._by_rows(data)
        else:
            problem = row_moments(data, slice(0, data.n)).problem(data, 1.0)
            self._rounds(problem)
        self.clock.check_wanted()
        return self.record(problem)

    def _by_rows(self, data: StandardData) -> None:
        """One relaxation a size, and the exact answer where it leaves few columns."""
        from sparsecv_mio.bounds.wide import WideFold
        from sparsecv_mio.search.methods.by_rows import solve_by_rows
        from sparsecv_mio.search.observers.progress import Progress, reports

        rows = np.arange(data.n)
        total = len(self.grid.gammas) * len(self.grid.taus)
        with reports(self.progress, self.clock) as progress:
            for g, gamma in enumerate(self.grid.gammas.tolist()):
                if self.clock.expired():
                    return
                whole = WideFold.of_rows(data, rows, *data.rows(rows[:0]), gamma)
                whole.expired = self.clock.expired
                whole.search(self.grid.taus.tolist())
                for tau in self.grid.taus.tolist():
                    if self.clock.expired():
                        return
                    self.cells[g, tau] = solve_by_rows(data, whole, tau, gamma, self.clock)
                    if progress is not None:
                        progress(Progress(len(self.cells), total, self.nodes, 0.0, np.inf, self.clock.seconds))

    def _rounds(self, problem: SparseProblem) -> None:
        from threadpoolctl import threadpool_limits

        from sparsecv_mio.search.methods.rounds import EFFORT_GROWTH, FIRST_EFFORT
        from sparsecv_mio.search.observers.progress import reports

        effort = FIRST_EFFORT
        left = {g: self.grid.taus.tolist() for g in range(len(self.grid.gammas))}
        with threadpool_limits(limits=1), reports(self.progress, self.clock) as progress:
            while left and not self.clock.expired():
                left = self._round(problem, left, effort, progress)
                effort *= EFFORT_GROWTH

    def _round(
        self,
        problem: SparseProblem,
        left: dict[int, list[int]],
        effort: int,
        progress: Callable[[Progress], None] | None,
    ) -> dict[int, list[int]]:
        """Give every open (gamma, tau) some effort; what is still open."""
        from sparsecv_mio.formulation.backends.native.path import solve_path
        from sparsecv_mio.search.observers.progress import Progress

        starts: list[IntArray] = []
        total = len(self.grid.gammas) * len(self.grid.taus)
        for g in sorted(left, key=lambda g: -self.grid.gammas[g]):
            if self.clock.expired():
                break
            here = problem.with_gamma(float(self.grid.gammas[g]))
            mine = [self.cells[g, t].support for t in left[g] if (g, t) in self.cells]
            result = solve_path(here, left[g], starts=starts + mine, effort=effort, expired=self.clock.expired)
            starts = [cell.support for cell in result.cells.values()]
            self.nodes += result.nodes
            self.cells.update({(g, t): cell for t, cell in result.cells.items()})
            left[g] = [] if result.finished else [t for t in left[g] if not self.cells[g, t].complete]
            done = total - sum(len(rest) for rest in left.values())
            if progress is not None:
                progress(Progress(done, total, self.nodes, 0.0, np.inf, self.clock.seconds))
        return {g: rest for g, rest in left.items() if rest}

    def prepare(self, until: float) -> None:
        """See to supports of every (gamma, tau), and to rows of the record while there is time."""
        data = self.data
        if data is None:
            return
        if self.plain is None:
            self.plain = plain_supports(data, self.grid.gammas.tolist(), self.grid.taus.tolist())
        for (g, tau), cell in self._known().items():
            if time.monotonic() > until:
                break
            self.rows[g, tau] = cell, self._row(data, float(self.grid.gammas[g]), None, cell, True)

    def _known(self) -> dict[tuple[int, int], PathCell]:
        """Return what was found, and a support by forward selection where nothing was."""
        known = dict(self.cells)
        for g, found in enumerate(self.plain or []):
            for tau, (support, value) in found.items():
                if (g, tau) not in known:
                    at_hand = self.rows.get((g, tau))
                    known[g, tau] = at_hand[0] if at_hand is not None else PathCell(
                        tau, support, 0.0, value, (), (), 0.0, complete=False, branched=False
                    )
        return known

    def record(self, problem: SparseProblem | None = None) -> PathRecord:
        """Return the record of what is known now; no kernel is called without the moments of `problem`.

        Raises
        ------
        OutOfTime
            If the data are not even in standard coordinates.
        """
        data = self.data
        if data is None:
            raise OutOfTime("no answer yet: the data were still being prepared; give more time")
        if len(self.cells) < len(self.grid.gammas) * len(self.grid.taus):
            self.prepare(self.clock.began)
        known, rows = self._known(), []
        quick = problem is None and self.clock.abandoned.is_set()
        for g, gamma in enumerate(self.grid.gammas.tolist()):
            at_gamma = problem.with_gamma(gamma) if problem is not None else None
            for tau in self.grid.taus.tolist():
                cell, made = known[g, tau], self.rows.get((g, tau))
                fresh = made is None or made[0] is not cell or not quick
                rows.append(self._row(data, gamma, at_gamma, cell, quick) if fresh or made is None else made[1])
        done = all(row.proved for row in rows)
        status = "proved" if done else "interrupted" if self.clock.stop.is_set() else "limit"
        asked = self.grid.gammas.tolist(), self.grid.taus.tolist()
        return PathRecord(
            schema=PATH_SCHEMA,
            status=status,
            path=tuple(rows),
            work=Work(sum(cell.branched for cell in known.values()), self.nodes, self.clock.seconds, "path"),
            data=data_info(data),
            request=Request(tuple(asked[0]), tuple(asked[1]), self.gap, False, self.time_limit, self.threads),
            warnings=data.warnings,
            versions=versions(),
        )

    def _row(
        self, data: StandardData, gamma: float, problem: SparseProblem | None, cell: PathCell, quick: bool
    ) -> PathRow:
        refit, support, coefficients, intercept = all_rows_fit(data, gamma, problem, cell, self.gap, quick)
        return PathRow(
            gamma=gamma,
            tau=cell.tau,
            support=support,
            coefficients=coefficients,
            intercept=intercept,
            objective=refit.objective,
            lower=refit.lower,
            upper=refit.upper,
            proved=refit.proved,
        )
