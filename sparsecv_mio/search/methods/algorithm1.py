"""Algorithm 1 of the paper: bounds without branching first, then one MIO at a time where it matters most.

Phase one brackets every h_j(gamma, tau) by the certified bounds of :mod:`sparsecv_mio.bounds`. Phase two takes the pair
with the least lower bound, its fold with the widest interval, and hands that cell to branch-and-bound, until
`(UB - LB) / UB <= gap` or the budget of MIOs is spent. The state is explicit: `begin`, `step` until `finished`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.formulation.backends.native.path import UNLIMITED, PathResult, solve_path
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.methods.rounds import CrossValidation, for_every_gamma
from sparsecv_mio.search.observers.checkpoint import below
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.state.cells import State, Where
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.stored import check_like
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing


class Expiry(threading.Event):
    """A clock in the form of an event: set once the run should end."""

    def __init__(self, clock: Deadline) -> None:
        super().__init__()
        self.clock = clock

    def is_set(self) -> bool:
        """Whether the time is over or somebody asked to stop."""
        return self.clock.expired()


class OneByOne(CrossValidation):
    """A run that hands cells to branch-and-bound one by one: what Algorithm 1 and the grid search share.

    Parameters
    ----------
    data, folds, grid, gap, clock, threads, progress
        As for `CrossValidation`; `threads` MIOs of one pair are in flight at once.
    backend : str
        Solver of the MIOs.
    mio_budget : int, optional
        Most MIOs to solve.
    """

    name = "one by one"

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        grid: Grid,
        gap: float,
        clock: Deadline,
        threads: int,
        progress: Callable[[Progress], None] | None,
        backend: str = NATIVE,
        mio_budget: int | None = None,
    ) -> None:
        threads = threads if get_backend(backend).capabilities.concurrent else 1
        super().__init__(data, folds, grid, gap, clock, threads, progress)
        self.backend, self.mio_budget = backend, mio_budget
        self.formulation: str | None = None  # of the backend's models; its first one by default
        self.effort = UNLIMITED
        self.asked = np.zeros(self.cells.final.shape, dtype=bool)
        self.solver: CellSolver | None = None
        self.begun = False  # whether the limit let `begin` come to its end

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the run stands, beside the cells."""
        return super().state() | {"asked": self.asked, "begun": np.array(self.begun)}

    def carry_on(self, state: State) -> None:
        """Go to where `state` was archived; from the start where it was archived before `begin` came to its end."""
        begun = below("run", state)
        check_like(begun, {"begun": np.array(False)})
        if begun["begun"]:
            super().carry_on(state)
        else:
            self.begin()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go to where `state` was taken."""
        super().restore(state)
        self.asked[...] = state["asked"]
        self.begun = True

    def prepare(self) -> None:
        """Heuristic supports on all rows, and who solves the cells."""
        if self.backend != NATIVE:
            usable = get_backend(self.backend).available()
            if not usable.usable:
                hint = f"; {usable.hint}" if usable.hint else ""
                raise BackendUnavailable(f"backend {self.backend} cannot be used: {usable.why}{hint}")
        self.all_rows = row_moments(self.data, slice(0, self.data.n))
        self.full = self.first_supports()
        vendor = VendorListing(self.backend, self.clock, self.formulation) if self.backend != NATIVE else None
        self.solver = CellSolver(FoldSolver(self.context, self.cells, self.best_by_gamma, self.oracles), vendor)

    def first_supports(self) -> list[PathResult]:
        """Supports on all rows, by gamma: heuristic ones, but for what a first effort solves."""
        assert self.all_rows is not None
        problem, taus = self.all_rows.problem(self.data, 1.0), self.grid.taus.tolist()
        found: dict[int, PathResult] = {}
        for g, gamma in enumerate(self.grid.gammas.tolist()):
            if found and self.clock.expired():
                break
            here = problem.with_gamma(gamma)
            found[g] = solve_path(here, taus, effort=self.first_effort(), expired=self.clock.expired)
            self.nodes += found[g].nodes
        return for_every_gamma(found, len(self.grid.gammas))

    def first_effort(self) -> int:
        """Nodes for the supports of all rows."""
        return 0

    def begin(self) -> None:
        """Heuristic supports on all rows and in every fold: something to report, and to start from."""
        self.prepare()
        assert self.solver is not None
        self.show_first_answers()
        for fold, moments in self.oracles.training_moments():
            self.solver.store.keep(fold, moments)
            for g in range(len(self.grid.gammas)):
                self.solver.first_bounds(g, fold)
                if self.clock.expired():
                    break
            if self.clock.expired():
                break
        self.begun = not self.clock.expired()
        self._report()

    def all_folds(self) -> None:
        """Nothing: every cell is an MIO of its own."""

    @property
    def open(self) -> NDArray[np.bool_]:
        """(G, T, K): cells branch-and-bound has not been asked about and that are not decided."""
        return ~(self.cells.final | self.asked)

    def pick(self) -> list[Where]:
        """The cells to solve next; none ends the run."""
        raise NotImplementedError

    @property
    def mios(self) -> int:
        """Cells handed to branch-and-bound so far."""
        return int(self.asked.sum())

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.clock.expired() or (self.mio_budget is not None and self.mios >= self.mio_budget)

    @property
    def finished(self) -> bool:
        """Whether the run may stop."""
        return self.exhausted or not self.pick()

    def step(self) -> None:
        """Solve the next cells."""
        self.solve(self.pick())

    def work_on(self, pairs: NDArray[np.bool_]) -> None:
        """The next open cells of one of some pairs."""
        g, t = (int(i) for i in np.argwhere(pairs)[0])
        self.solve([(g, t, fold) for fold in np.flatnonzero(self.open[g, t])[: self.threads].tolist()])

    def solve(self, cells: list[Where]) -> None:
        """Hand cells of one pair to branch-and-bound, on threads where there are several."""
        if self.mio_budget is not None:
            cells = cells[: self.mio_budget - self.mios]
        assert self.solver is not None
        # what a cell starts from must not depend on which of its neighbours is done first
        work = [(where, self.solver.starts(where), self.effort_of(where)) for where in cells]
        if len(work) == 1:
            spent = [self.solver.solve(*work[0])]
        else:
            with ThreadPoolExecutor(len(work)) as pool:
                spent = list(pool.map(self.solver.solve, *zip(*work, strict=True)))
        for where, nodes in zip(cells, spent, strict=True):
            self.asked[where] = True
            self.nodes += nodes
            self.solved(where, nodes)
        self._report()
        self._safe()

    def effort_of(self, where: Where) -> int:
        """Nodes a cell may cost."""
        return UNLIMITED

    def solved(self, where: Where, nodes: int) -> None:
        """Take note of what a cell cost."""

    def engines(self) -> str:
        """The method and its solver, in words."""
        return f"{self.name} on {self.backend}" + (f", {self.formulation}" if self.formulation else "")

    def solved_by_branching(self) -> int:
        """MIOs for the record."""
        return self.mios


class Algorithm1(OneByOne):
    """Bounds first, then the MIO of the widest cell of the pair with the least lower bound.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> from sparsecv_mio.data.standard import standardize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> grid, folds = Grid.of([0.1], range(1, 6), data.p), make_folds("5", data)
    >>> run = Algorithm1(standardize(data), folds, grid, 1e-4, Deadline(None, None), 1, None)
    >>> run.begin()
    >>> while not run.finished:
    ...     run.step()
    >>> int(grid.taus[run.bounds().best[1]]), run.mios < grid.taus.size * folds.k
    (2, True)
    """

    name = "algorithm 1"

    def begin(self) -> None:
        """Phase one."""
        super().begin()
        bracket(self, np.arange(len(self.grid.gammas)), np.arange(len(self.grid.taus)))
        self.begun = not self.clock.expired()
        self._report()

    def pick(self) -> list[Where]:
        """Widest open cells of the pair with the least lower bound, or of the reported one where that pair is done."""
        now = self.bounds()
        if now.proved(self.gap):
            return []
        least = np.unravel_index(int(np.argmin(now.lower)), now.lower.shape)
        for g, t in ((int(least[0]), int(least[1])), now.best):
            folds = np.flatnonzero(self.open[g, t])
            if len(folds):
                width = self.cells.upper[g, t, folds] - self.cells.lower[g, t, folds]
                order = np.argsort(-width, kind="stable")[: self.threads]
                return [(g, t, int(folds[i])) for i in order]
        return []


def bracket(run: OneByOne, gammas: NDArray[np.int64], taus: NDArray[np.int64]) -> None:
    """Intersect cells with the bounds layer, by rows of the grid; where only one support is left no MIO is needed."""
    if run.clock.expired() or not len(gammas) or not len(taus):
        return
    supports = [cell.support for result in run.full for cell in result.cells.values()]
    part = np.ix_(gammas, taus, np.arange(run.folds.k))
    wanted = ~run.cells.final[part]
    found: dict[tuple[int, int], list[NDArray[np.int64] | None]] = {}
    table = compute_bounds(
        run.data, run.folds, run.grid.gammas[gammas].tolist(), run.grid.taus[taus].tolist(), "safe", supports,
        threads=min(run.threads, os.cpu_count() or 1), stop=Expiry(run.clock), reusing=run.oracles.reuses,
        wanted=wanted, tell=run.oracles.told_bounds, moments=run.oracles.training_moments(),
        found=lambda g, fold, best: found.update({(g, fold): best}),
    )  # fmt: skip
    run.cells.narrow(part, np.where(wanted, table.lower, 0.0), np.where(wanted, table.upper, np.inf))
    assert run.solver is not None
    for (g, fold), best in found.items():
        here = [t for t in np.flatnonzero(wanted[g, :, fold]).tolist() if best[t] is not None]
        known = [support for t in here if (support := best[t]) is not None]
        run.solver.try_supports(int(gammas[g]), taus[here], fold, known, table.left[g, here, fold] == 0)
