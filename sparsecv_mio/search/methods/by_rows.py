"""Many more columns than memory has room for their products: every method goes by rows.

No matrix of columns by columns is formed. Each fold and gamma gets a first answer by forward selection over all
columns, then one relaxation a size (:class:`sparsecv_mio.bounds.wide.WideFold`): where safe screening leaves few
columns, the cell's problem on these alone is solved exactly, by our own trees or a vendor's solver, and decided. What
is left over is bracketed by the bounds layer as far as time allows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.formulation.backends.native.path import PathCell, PathResult, solve_path
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.methods.rounds import EFFORT_GROWTH, CrossValidation, for_every_gamma
from sparsecv_mio.search.parallel import run_folds
from sparsecv_mio.search.state.cells import State, Where
from sparsecv_mio.search.subproblem.cell_intervals import CellIntervals
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
from sparsecv_mio.search.subproblem.presolve import in_columns
from sparsecv_mio.search.subproblem.supports import filled_up, places_in
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing

if TYPE_CHECKING:
    from sparsecv_mio.search.state.deadline import Deadline

IntArray = NDArray[np.int64]

PRODUCT_BYTES = 1 << 29  # of q x q matrices alive at once: log2(k) of the tree over the folds, and a few of the trees
TREE_MATRICES = 4
COPY_BYTES = 1 << 29  # of rows, all threads together: two copies of the training rows while a fold is made
EXACT_COLUMNS = 1200  # columns left that are worth a matrix of their own


def by_rows(data: StandardData, folds: int) -> bool:
    """Whether matrices of columns by columns are too large for these data: beyond 2,000 to 3,000 columns."""
    matrices = np.log2(max(folds, 2)) + TREE_MATRICES
    return bool(data.q > data.n and 8.0 * data.q**2 * matrices > PRODUCT_BYTES)


class WideSearch(CrossValidation):
    """A search over the grid by rows; `method` says which cells are asked for and whether they are branched on.

    Parameters
    ----------
    asked
        As for `CrossValidation`.
    method : str
        `grid` asks for every cell, `bounds` branches on none; all others leave out pairs that cannot win.
    backend, formulation, mio_budget
        As for `cross_validate`.
    """

    name = "by rows"
    row_wise = True

    def __init__(
        self, *asked: Any, method: str = "rounds", backend: str = NATIVE, formulation: str | None = None,
        mio_budget: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(*asked)
        self.method, self.backend, self.mio_budget = method, backend, mio_budget
        self.threads = threads_for(self.data, self.threads if get_backend(backend).capabilities.concurrent else 1)
        middle = len(self.grid.gammas) // 2
        self.order = sorted(range(len(self.grid.gammas)), key=lambda g: (abs(g - middle), g))
        self.vendor = VendorListing(backend, self.clock, formulation)
        shape = self.cells.final.shape
        self.looked, self.asked = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self.left: dict[Where, IntArray] = {}
        self.largest: dict[int, float] = {}  # largest eigenvalue of a fold's products of rows, times gamma
        self.counting = threading.Lock()

    # -- its course -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A first answer in every fold, and on all rows, at the middle gamma."""
        if self.backend != NATIVE:
            usable = get_backend(self.backend).available()
            if not usable.usable:
                raise BackendUnavailable(f"backend {self.backend} cannot be used: {usable.why}")
        g = self.order[0]
        whole = self.rows_of(None, g)
        whole.search(self.grid.taus.tolist())
        self.full = for_every_gamma({g: PathResult(self._on_all_rows(whole), 0, False)}, len(self.grid.gammas))
        del whole
        for _ in self._over(range(self.folds.k), lambda fold: self.first(fold, g)):
            self._report()

    def prepare(self) -> None:
        """What a resumed run computes again."""
        g = self.order[0]
        whole = self.rows_of(None, g)
        whole.search(self.grid.taus.tolist())
        self.full = for_every_gamma({g: PathResult(self._on_all_rows(whole), 0, False)}, len(self.grid.gammas))

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the run stands, beside the cells; what screening left is found again."""
        return super().state() | {"asked": self.asked}

    def restore(self, state: State) -> None:
        """Go to where `state` was taken."""
        super().restore(state)
        self.asked[...] = state["asked"]

    def all_folds(self) -> None:
        """Nothing: folds are visited one by one."""

    @property
    def mios(self) -> int:
        """Cells handed to branch-and-bound so far."""
        return int(self.asked.sum())

    def solved_by_branching(self) -> int:
        """MIOs for the record."""
        return self.mios

    def engines(self) -> str:
        """The route, in words."""
        return f"by rows, {self.method} on {self.backend}"

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.clock.expired() or (self.mio_budget is not None and self.mios >= self.mio_budget)

    def wanted(self) -> NDArray[np.bool_]:
        """(G, T, K): the cells worth more work."""
        return self.open if self.method == "grid" else super().wanted()

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        closed = self.method != "grid" and self.gap > 0.0 and self.bounds().proved(self.gap)
        return closed or self.exhausted or not self.wanted().any()

    def step(self) -> None:
        """The next gamma with cells that are worth work."""
        self._gamma(self.wanted())

    def work_on(self, pairs: NDArray[np.bool_]) -> None:
        """The open cells of the first gamma of some pairs."""
        self._gamma(self.open & pairs[:, :, None])

    def _gamma(self, wanted: NDArray[np.bool_]) -> None:
        fresh = wanted & ~self.looked
        cells = fresh if fresh.any() else wanted
        g = next(g for g in self.order if cells[g].any())
        which = np.flatnonzero(cells[g].any(axis=0)).tolist()
        for _ in self._over(which, lambda fold: self.visit(fold, g, np.flatnonzero(cells[g, :, fold]).tolist())):
            self._report()
        if not fresh.any():
            self.effort *= EFFORT_GROWTH
        self._safe()

    def _over(self, which: Sequence[int], work: Any) -> Any:
        """Run `work` on folds, on threads, until the time is over."""

        def ahead() -> Any:
            for fold in which:
                if self.clock.expired():
                    return
                yield fold, None

        return run_folds(ahead(), lambda fold, _: work(fold), min(self.threads, max(len(which), 1)))

    # -- one fold at one gamma --------------------------------------------------------------------------------------

    def rows_of(self, fold: int | None, g: int) -> WideFold:
        """The rows of a fold (of all, for None) at a gamma. O(n q), and O(n^2 q) the first time."""
        gamma, key = float(self.grid.gammas[g]), -1 if fold is None else fold
        rows = np.arange(self.data.n) if fold is None else self.folds.train_rows(fold)
        test = self.data.rows(rows[:0] if fold is None else self.folds.test_rows(fold))
        known = self.largest.get(key)
        made = WideFold.of_rows(self.data, rows, *test, gamma, None if known is None else known / gamma * (1.0 + 1e-12))
        made.expired = self.clock.expired
        self.largest.setdefault(key, made.largest * gamma)
        return made

    def first(self, fold: int, g: int) -> WideFold:
        """A support of every size by forward selection, refitted and scored."""
        made = self.rows_of(fold, g)
        known = {int(number) for number in self.cells.support[:, :, fold].ravel()} - {0}
        made.try_supports([self.cells.pool.supports[number] for number in known])
        made.search(self.grid.taus.tolist())
        for t, tau in enumerate(self.grid.taus.tolist()):
            self.offer((g, t, fold), made, tau)
        return made

    def offer(self, where: Where, made: WideFold, tau: int) -> None:
        """Refit the support a fold holds for a size, and show it."""
        support = made.incumbent(tau)
        if support is None:
            return
        g, _, fold = where
        fit = refit_rows(self.data, self.folds.train_rows(fold), support, float(self.grid.gammas[g]))
        held, _ = fit.held_out(self.data, self.folds.test_rows(fold))
        self.cells.offer(where, self.cells.pool.number(support), held, fit.objective)

    def visit(self, fold: int, g: int, taus: list[int]) -> None:
        """Work on some rows of tau: a relaxation each and, where it leaves few columns, the exact answer."""
        open_taus = [t for t in taus if not self.cells.final[g, t, fold]]
        fresh = [t for t in open_taus if not self.looked[g, t, fold]]
        made = self.first(fold, g) if fresh else None
        for t in fresh:
            if self.exhausted or made is None:
                return
            where, tau = (g, t, fold), int(self.grid.taus[t])
            seen = made.look(tau)
            self.offer(where, made, tau)
            self.left[where] = seen.left
            self.looked[where] = True
            self._decide(where)
        stuck = [t for t in open_taus if not self.cells.final[g, t, fold] and not self._exact((g, t, fold))]
        for t in [t for t in open_taus if t not in fresh and t not in stuck]:
            self._decide((g, t, fold))
        if stuck and not fresh:  # the bounds layer is dear: once everything else is known
            self._bracket(fold, g, stuck)

    def _exact(self, where: Where) -> bool:
        """Whether few enough columns are left for the cell to be solved exactly."""
        few = len(self.left[where]) <= EXACT_COLUMNS
        return few and (self.method != "bounds" or len(self.left[where]) <= int(self.grid.taus[where[1]]))

    def _bracket(self, fold: int, g: int, rows: list[int]) -> None:
        """Bound the held-out error without branching; nothing more can be done for these cells."""
        made = self.first(fold, g)
        for t in rows:
            if self.clock.expired():
                return
            cell = made.cells([int(self.grid.taus[t])])[0]
            self.offer((g, t, fold), made, int(self.grid.taus[t]))
            self.cells.narrow((g, t, fold), float(cell.lower), float(cell.upper))
            self.cells.finish((g, t, fold))

    def _decide(self, where: Where) -> None:
        """Solve a cell on the columns that screening left, if these are few."""
        if self.exhausted or not self._exact(where):
            return
        g, t, fold = where
        columns, tau = self.left[where], int(self.grid.taus[t])
        small = self.data.only(columns)
        moments = row_moments(small, self.folds.train_rows(fold))
        here = FoldProblem.of(small, self.folds, fold, moments, columns).with_gamma(float(self.grid.gammas[g]))
        starts = places_in(columns, [self.cells.pool.supports[self.cells.support[where]]])
        result = self._solve(here.problem, tau, starts)
        intervals = CellIntervals(self.context, self.cells, self.best_by_gamma)
        intervals.settle(here, g, np.array([t]), result)
        with self.counting:
            self.nodes += result.nodes
            self.asked[where] |= len(columns) > tau

    def _solve(self, problem: SparseProblem, tau: int, starts: list[IntArray]) -> PathResult:
        if self.backend != NATIVE and problem.q > tau:
            return self.vendor.solve(problem, tau, starts)
        return solve_path(problem, [tau], starts=starts, effort=self.effort, expired=self.clock.expired)

    # -- all rows ---------------------------------------------------------------------------------------------------

    def _on_all_rows(self, whole: WideFold) -> dict[int, PathCell]:
        """Supports of all rows, of which nothing is proved."""
        found: dict[int, PathCell] = {}
        none = np.zeros(0, dtype=np.int64)
        by_gain = np.argsort(-(whole.c**2 / whole.square), kind="stable")  # best single columns first
        for tau in self.grid.taus.tolist():
            known = [size for size in whole.support if size <= tau]
            support = filled_up(whole.support[max(known)] if known and tau else none, min(tau, whole.q), by_gain)
            found[tau] = PathCell(tau, support, 0.0, np.inf, (), (), 0.0, complete=False, branched=False)
        return found

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Best subset on all rows: a relaxation, and the exact answer where that leaves few columns."""
        cell = self.full[g].cells[tau]
        if self.clock.expired():
            return cell
        whole = self.rows_of(None, g)
        whole.try_supports([cell.support])
        whole.search([tau])
        return solve_by_rows(self.data, whole, tau, float(self.grid.gammas[g]), self.clock)


def solve_by_rows(data: StandardData, whole: WideFold, tau: int, gamma: float, clock: Deadline) -> PathCell:
    """Best subset of one size on all rows, exactly where screening leaves few columns, else with bounds."""
    seen = whole.look(tau)
    support = whole.incumbent(tau)
    lower = seen.lower
    if len(seen.left) <= EXACT_COLUMNS and not clock.expired():
        small = data.only(seen.left)
        problem = row_moments(small, slice(0, data.n)).problem(small, gamma)
        starts = places_in(seen.left, [support] if support is not None else [])
        cell = in_columns(solve_path(problem, [tau], starts=starts, expired=clock.expired), seen.left).cells[tau]
        if cell.complete:
            return cell
        support, lower = cell.support, max(lower, cell.lower)
    held = support if support is not None else np.zeros(0, dtype=np.int64)
    return PathCell(tau, held, lower, np.inf, (), (), 0.0, complete=False, branched=False)


def threads_for(data: StandardData, threads: int) -> int:
    """Threads that may each hold copies of the rows."""
    each = 2 * 8 * data.n * data.q
    return max(1, min(threads, COPY_BYTES // max(each, 1)))
