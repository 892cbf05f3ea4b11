"""What is known of the best subsets of every size, and the record of it at any moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.parts import Request, Work, versions
from sparsecv_mio.certificate.record import PATH_SCHEMA, PathRecord, PathRow
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.fits.options import PathOptions
from sparsecv_mio.formulation.backends.native.cell import PathCell
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fallback import supports_on_all_rows
from sparsecv_mio.search.heuristics.restricted_fallback import restricted_on_all_rows
from sparsecv_mio.search.result import MANY_NUMBERS, all_rows_fit, data_info
from sparsecv_mio.search.state.deadline import Deadline

if TYPE_CHECKING:
    from sparsecv_mio.problem.problem import SparseProblem

MOST_REFITTED = 300  # pairs that are fitted to all their digits after a limit too, in a fraction of a second
NOT_TOLD_APART = (
    "rounding leaves subsets that cannot be told apart, or too many of them to try: more time would prove no more; a "
    "larger gamma, or fewer columns that are nearly copies of others, would"
)


class KnownSubsets:
    """Filled in by the thread that searches, made a record by that thread or by the one that waits for it.

    Parameters
    ----------
    data : StandardData
    grid : Grid
    options : PathOptions
    clock : Deadline

    Attributes
    ----------
    cells : dict of (int, int) to PathCell
        What was found, by index of gamma and by tau.
    nodes : int
        Nodes of all trees.
    """

    def __init__(self, data: StandardData, grid: Grid, options: PathOptions, clock: Deadline) -> None:
        self.data, self.grid, self.options, self.clock = data, grid, options, clock
        self.cells: dict[tuple[int, int], PathCell] = {}
        self.nodes = 0
        self._fallback: list[dict[int, tuple[IntArray, float]]] = []  # by forward selection, once it was needed
        self._rows: dict[tuple[int, int], tuple[PathCell, PathRow]] = {}  # rows of the record made ahead

    @property
    def pairs(self) -> int:
        """Number of pairs (gamma, tau)."""
        return len(self.grid.gammas) * len(self.grid.taus)

    def prepare(self, until: float) -> None:
        """See to supports of every (gamma, tau), and to rows of the record while there is time.

        Parameters
        ----------
        until : float
            Moment of `time.monotonic` after which no row is made any more.
        """
        if not self._fallback:
            find = restricted_on_all_rows if self.data.restrictions.beyond_forcing else supports_on_all_rows
            self._fallback = find(self.data, self.grid.gammas.tolist(), self.grid.taus.tolist())
        for (g, tau), cell in self._of_every_pair().items():
            if time.monotonic() > until:
                break
            self._rows[g, tau] = cell, self._row(float(self.grid.gammas[g]), None, cell, True)

    def record(self, problem: SparseProblem | None = None) -> PathRecord:
        """Return the record of what is known now; no kernel is called without the moments of `problem`."""
        if len(self.cells) < self.pairs:
            self.prepare(self.clock.began)
        cells, rows = self._of_every_pair(), []
        quick = problem is None and self.clock.abandoned.is_set()
        gammas, taus = self.grid.gammas.tolist(), self.grid.taus.tolist()
        for g, gamma in enumerate(gammas):
            at_gamma = problem.with_gamma(gamma) if problem is not None else None
            for tau in taus:
                cell, made = cells[g, tau], self._rows.get((g, tau))
                ready = quick and made is not None and made[0] is cell
                rows.append(made[1] if made is not None and ready else self._row(gamma, at_gamma, cell, quick))
        done = all(row.proved for row in rows)
        options, branched = self.options, sum(cell.branched for cell in cells.values())
        return PathRecord(
            schema=PATH_SCHEMA,
            status="proved" if done else "interrupted" if self.clock.stop.is_set() else "limit",
            path=tuple(rows),
            work=Work(branched, self.nodes, self.clock.seconds, "path"),
            data=data_info(self.data),
            request=Request(
                tuple(gammas),
                tuple(taus),
                options.gap,
                False,
                options.time_limit,
                options.threads,
                options.restrictions or None,
            ),
            warnings=self.data.warnings if done or self.clock.expired() else (*self.data.warnings, NOT_TOLD_APART),
            versions=versions(),
        )

    def _of_every_pair(self) -> dict[tuple[int, int], PathCell]:
        """Return what was found, and a support by forward selection where nothing was."""
        known = dict(self.cells)
        for g, found in enumerate(self._fallback):
            for tau, (support, value) in found.items():
                if (g, tau) not in known:
                    at_hand = self._rows.get((g, tau))
                    known[g, tau] = at_hand[0] if at_hand else PathCell.unproved(tau, support, value)
        return known

    def _row(self, gamma: float, problem: SparseProblem | None, cell: PathCell, quick: bool) -> PathRow:
        quick = quick and (self.pairs > MOST_REFITTED or self.data.n * cell.tau > MANY_NUMBERS)
        refit, support, coefficients, intercept = all_rows_fit(self.data, gamma, problem, cell, self.options.gap, quick)
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
