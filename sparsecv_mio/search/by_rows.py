"""Many more columns than memory has room for their products: every method goes by rows.

No matrix of columns by columns is formed. First answers of every fold, gamma and tau come from working sets of columns
(:mod:`sparsecv_mio.search.first_supports`), then each cell gets one relaxation
(:class:`sparsecv_mio.bounds.wide.WideFold`): where safe screening leaves few columns, the cell's problem on these alone
is solved exactly, by our own trees or a vendor's solver, and decided; where it leaves more, our own trees come once all
cells had their relaxation. The pair that is likely to win comes first; then trees on all rows exclude others
(:class:`sparsecv_mio.search.loss_bounds.LossByRows`); what these leave open gets trees in its folds. What is left over
is bracketed by the bounds layer as far as time allows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.near_ties import MioSettings, VendorListing, check_available
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.elimination import eliminated, stripped
from sparsecv_mio.problem.problem import SparseProblem, lam_of
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import moments_of_training
from sparsecv_mio.search.accounts import BoundSource, mios_of
from sparsecv_mio.search.all_rows import solve_by_rows
from sparsecv_mio.search.cells import Where, filled_up, places_in
from sparsecv_mio.search.first_supports import FoldPaths
from sparsecv_mio.search.fold_fits import FoldProblem
from sparsecv_mio.search.fold_solver import CellIntervals
from sparsecv_mio.search.loss_bounds import LossByRows
from sparsecv_mio.search.run import (
    MOST_COUNTED,
    ROUND_EFFORT,
    GridMethod,
    Run,
    answers_of_all_rows,
    first_answers,
    unproved,
)
from sparsecv_mio.thresholds import EXACT_COLUMNS, MANY_FOLDS_BY_ROWS, PRODUCT_BYTES, TREE_MATRICES
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.listing import NODE_RATIO
from sparsecv_mio.trees.subsets import ROUND_GROWTH, BestSubset, BestSubsets
from sparsecv_mio.words import Method


class ByRows(GridMethod):
    """A search over the grid by rows; `method` says which cells are asked for and whether they are branched on.

    Parameters
    ----------
    run : Run
    method : Method
        `grid` asks for every cell, `bounds` branches on none; all others leave out pairs that cannot win.
    mio : MioSettings, optional
        Which backend solves the cells that screening leaves small.

    Attributes
    ----------
    seen : (G, T, K) bool array
        Cells that have had their relaxation.
    submitted : (G, T, K) bool array
        Cells handed to branch-and-bound.
    """

    name = "by rows"
    stored_as: ClassVar = {"asked": ("submitted", 0, 1), "effort": ("effort", 0, MOST_COUNTED)}

    def __init__(self, run: Run, method: Method = Method.ROUNDS, mio: MioSettings | None = None) -> None:
        super().__init__(run, (self,))
        self.method, self.mio, context = method, mio or MioSettings(), run.context
        middle = len(context.grid.gammas) // 2
        self.order = sorted(range(len(context.grid.gammas)), key=lambda g: (abs(g - middle), g))
        self.seen, self.submitted = np.zeros(context.shape, dtype=bool), np.zeros(context.shape, dtype=bool)
        self.effort = ROUND_EFFORT
        self.loss = LossByRows(run)
        # cells of too many columns for a matrix, those bounded without branching, those whose trees have ended
        self._beyond, self._bracketed, self._ended = (np.zeros(context.shape, dtype=bool) for _ in range(3))
        self._vendor = VendorListing(self.mio, context.deadline)
        self._left: dict[Where, IntArray] = {}  # columns that screening left
        self._largest: dict[int, float] = {}  # largest eigenvalue of a fold's products of rows, times gamma
        self._counting = threading.Lock()

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        budget = self.mio.budget
        return self.context.deadline.expired() or (budget is not None and self.mios() >= budget)

    # -- its course --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find supports in every fold and on all rows; at one gamma where folds are too many to learn from others."""
        check_available(self.mio.backend)
        many = self.context.folds.k > MANY_FOLDS_BY_ROWS
        self._fit_all_rows(None if many else first_answers(self.run))
        g = self.order[0]
        self.run.signals.doing("scoring supports in every fold")
        missing = np.flatnonzero(~np.isfinite(self.run.cells.nominal[g]).all(axis=0)).tolist()
        with self.run.accounts.of(BoundSource.FIRST_SUPPORTS):
            for _ in self._over(missing, lambda fold: self._first(fold, g)):
                self.run.signals.progressed()

    def _fit_all_rows(self, paths: FoldPaths | None) -> None:
        """Keep supports of all rows: those of `paths`, else those of forward selection at the middle gamma."""
        taus, all_rows = self.context.grid.taus.tolist(), self.run.all_rows
        if paths is not None:
            all_rows.keep(unproved(self.context, paths))
            return
        g = self.order[0]
        whole = self._rows_of(None, g)
        whole.search(taus)
        all_rows.keep({g: BestSubsets(_supports_of(whole, taus), 0, False)})

    def _worth_work(self) -> BoolArray:
        return self.open if self.method is Method.GRID else self.run.worth_work()

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        closed = self.method is not Method.GRID and self.context.gap > 0.0 and self.run.proved()
        return closed or self.exhausted or not self._worth_work().any()

    def step(self) -> None:
        """Work on the next gamma with cells that are worth it: in their folds, or on all rows to exclude them."""
        wanted = self._worth_work()
        beyond = wanted & self._beyond
        if self.method is not Method.GRID and beyond.any() and not (wanted & ~self.seen).any():
            pairs = self.loss.promising(beyond, self._nodes)
            if pairs.any():
                g = next(g for g in self.order if pairs[g].any())
                self.loss.bound(self._rows_of(None, g), g, np.flatnonzero(pairs[g]).tolist(), self._nodes)
                self.run.signals.progressed()
                self.run.signals.safe_point()
                return
            wanted = self.loss.winner_first(wanted)
        self._gamma(wanted)

    @property
    def _branches(self) -> bool:
        """Whether our own trees may grow on the rows."""
        return self.mio.native and self.method is not Method.BOUNDS

    @property
    def _nodes(self) -> int:
        """Nodes of a tree on the rows."""
        return max(self.effort // NODE_RATIO, 1)

    def work_on(self, pairs: BoolArray) -> None:
        """Work on the open cells of the first gamma of some pairs (G, T)."""
        self._gamma(self.open & pairs[:, :, None])

    def _gamma(self, wanted: BoolArray) -> None:
        fresh = wanted & ~self.seen
        cells = fresh if fresh.any() else wanted
        g = next(g for g in self.order if cells[g].any())
        which = np.flatnonzero(cells[g].any(axis=0)).tolist()
        self._say(bool(fresh.any()), g)
        branching = BoundSource.FOLD_TREES if self.mio.native else mios_of(self.mio.backend)
        with self.run.accounts.of(BoundSource.FOLDS_RELAXED if fresh.any() else branching):
            for _ in self._over(which, lambda fold: self._visit(fold, g, np.flatnonzero(cells[g, :, fold]).tolist())):
                self._say(bool(fresh.any()), g)
                self.run.signals.progressed()
        if not fresh.any():
            self.effort *= ROUND_GROWTH
        self.run.signals.safe_point()

    def _say(self, fresh: bool, g: int) -> None:
        """Say what is done at a gamma: relaxations of `fresh` cells, or trees."""
        if fresh:
            self.run.signals.doing("relaxations:", int(self.seen.sum()), self.seen.size)
        else:
            self.run.signals.doing("trees: gamma", self.order.index(g) + 1, len(self.order))

    def _over(self, which: Sequence[int], work: Callable[[int], object]) -> Iterator[object]:
        """Run `work` on folds, on threads, until the time is over."""

        def ahead() -> Iterator[tuple[int, None]]:
            for fold in which:
                if self.context.deadline.expired():
                    return
                yield fold, None

        return run_folds(ahead(), lambda fold, _: work(fold), min(self.context.threads, max(len(which), 1)))

    # -- one fold at one gamma ---------------------------------------------------------------------------------------

    def _rows_of(self, fold: int | None, g: int) -> WideFold:
        """Return the rows of a fold (of all, for None) at a gamma. O(n q), and O(n^2 q) the first time."""
        data, folds = self.context.data, self.context.folds
        gamma, key = float(self.context.grid.gammas[g]), -1 if fold is None else fold
        lam = lam_of(gamma)
        rows = np.arange(data.n) if fold is None else folds.train_rows(fold)
        test = rows[:0] if fold is None else folds.scored_rows(fold)
        eigenvalue = self._largest.get(key)
        largest = None if eigenvalue is None else eigenvalue / lam * (1.0 + 1e-12)
        self.run.counts.add(0, problems=1)
        made = WideFold(WideRows.of(data, rows, test, gamma, largest), self.context.deadline.expired)
        self._largest.setdefault(key, made.rows.largest * lam)
        return made

    def _first(self, fold: int, g: int) -> WideFold:
        """Refit and score a support of every size: the best one known, of forward selection where there is none."""
        cells, taus = self.run.cells, self.context.grid.taus.tolist()
        made = self._rows_of(fold, g)
        numbers = {int(number) for number in cells.support[:, :, fold].ravel()} - {0}
        made.try_supports([cells.pool.supports[number] for number in numbers])
        if any(made.incumbent(tau) is None for tau in taus):
            made.search(taus)
        for t, tau in enumerate(taus):
            self._offer((g, t, fold), made, tau)
        return made

    def _offer(self, where: Where, made: WideFold, tau: int) -> None:
        """Refit the support a fold holds for a size, and offer it to the cell."""
        support = made.incumbent(tau)
        if support is None:
            return
        g, _, fold = where
        data, folds, cells = self.context.data, self.context.folds, self.run.cells
        fit = refit_squares(data, folds.train_rows(fold), support, float(self.context.grid.gammas[g]))
        held_out, _ = fit.held_out(data, folds.scored_rows(fold))
        cells.offer(where, cells.pool.number(support), held_out, fit.objective)
        self.loss.note(where, fit)

    def _visit(self, fold: int, g: int, which: list[int]) -> None:
        """Work on some tau: a relaxation each and, where it leaves few columns, branch-and-bound on these."""
        final = self.run.cells.final
        unsolved = [t for t in which if not final[g, t, fold]]
        fresh = [t for t in unsolved if not self.seen[g, t, fold]]
        if fresh and not self._relax(fold, g, fresh):
            return
        stuck = [t for t in unsolved if not final[g, t, fold] and not self._exact((g, t, fold))]
        for t in [t for t in unsolved if t not in fresh and t not in stuck]:
            self._decide((g, t, fold))
            if self.effort == ROUND_EFFORT and not final[g, t, fold] and len(self._left[g, t, fold]) > EXACT_COLUMNS:
                stuck.append(t)
        if stuck and not fresh:
            self._help(fold, g, stuck)

    def _help(self, fold: int, g: int, stuck: list[int]) -> None:
        """Work on cells that nothing else decides: trees on the rows, and bounds without branching, which take long."""
        if self._branches:
            self._branch(fold, g, stuck)
        final = self.run.cells.final
        unbounded = [t for t in stuck if not (final[g, t, fold] or self._bracketed[g, t, fold])]
        if unbounded:
            self._bracket(fold, g, unbounded)

    def _relax(self, fold: int, g: int, fresh: list[int]) -> bool:
        """Bound cells by a relaxation each, and decide those that it leaves few columns; False if the time is over."""
        made = self._first(fold, g)
        for t in fresh:
            if self.exhausted:
                return False
            where, tau = (g, t, fold), int(self.context.grid.taus[t])
            survivors = made.survivors(tau)
            self._offer(where, made, tau)
            self._left[where] = survivors.columns
            self.seen[where] = True
            self._beyond[where] = self._branches and not self._exact(where)
            if len(survivors.columns) <= EXACT_COLUMNS:
                self._decide(where)
        return True

    def _branch(self, fold: int, g: int, which: list[int]) -> None:
        """Grow a tree on the rows for cells of too many columns, and decide those whose tree comes to its end."""
        made = self._first(fold, g)
        for t in which:
            where, tau = (g, t, fold), int(self.context.grid.taus[t])
            if self.exhausted or self._exact(where):
                continue
            seen, nodes = made.branch(tau, most=self._nodes)
            self._offer(where, made, tau)
            with self._counting:
                self.run.counts.add(nodes)
                self.submitted[where] = True
            self._left[where] = seen.columns
            self._beyond[where] = not self._exact(where)
            self._decide(where)
            if self._beyond[where] and nodes < self._nodes and not self.context.deadline.expired():
                self._ended[where] = True
                self.run.cells.mark(where, True, bool(self._bracketed[where]))

    def _exact(self, where: Where) -> bool:
        """Whether few enough columns are left for the cell to be solved exactly."""
        columns, tau = len(self._left[where]), int(self.context.grid.taus[where[1]])
        most = EXACT_COLUMNS
        if self.mio.native:
            most = max(most, int(np.sqrt(PRODUCT_BYTES / (8.0 * TREE_MATRICES * self.context.threads))))
        return columns <= most and (self.method is not Method.BOUNDS or columns <= tau)

    def _bracket(self, fold: int, g: int, which: list[int]) -> None:
        """Bound the held-out error without branching; for cells whose trees have ended nothing more can be done."""
        made = self._first(fold, g)
        for t in which:
            if self.context.deadline.expired():
                return
            tau = int(self.context.grid.taus[t])
            cell = made.cells([tau])[0]
            self._offer((g, t, fold), made, tau)
            self.run.cells.narrow((g, t, fold), float(cell.lower), float(cell.upper))
            self._bracketed[g, t, fold] = True
            if not self._exact((g, t, fold)) and (self._ended[g, t, fold] or not self._branches):
                self.run.cells.mark((g, t, fold))

    def _decide(self, where: Where) -> None:
        """Solve a cell on the columns that screening left, if these are few."""
        if self.exhausted or not self._exact(where):
            return
        g, t, fold = where
        context, cells = self.context, self.run.cells
        columns, tau = self._left[where], int(context.grid.taus[t])
        small = context.data.only(columns)
        moments = moments_of_training(small, context.folds.train_rows(fold))
        here = FoldProblem.of(small, context.folds, fold, moments, columns).with_gamma(float(context.grid.gammas[g]))
        starts = places_in(columns, [cells.pool.supports[cells.support[where]]])
        result = self._solve(here.problem, tau, starts)
        CellIntervals(self.run).write_outcome(here, g, np.array([t]), result)
        with self._counting:
            self.run.counts.add(result.nodes)
            self.submitted[where] |= len(columns) > tau

    def _solve(self, problem: SparseProblem, tau: int, starts: list[IntArray]) -> BestSubsets:
        if not self.mio.native and problem.q > tau:
            reduced = eliminated(problem)
            size, supports = reduced.choice.size(tau), stripped(reduced.choice, starts)
            return self._vendor.solve(reduced.problem, size, supports).with_forced(
                reduced.choice.size, reduced.choice.whole, [tau]
            )
        return solve_path(problem, [tau], starts=starts, effort=self.effort, expired=self.context.deadline.expired)

    # -- all rows ----------------------------------------------------------------------------------------------------

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best subset on all rows: a relaxation, and branch-and-bound where that leaves few columns."""
        cell = self.run.all_rows.best[g].by_size[tau]
        if self.context.deadline.expired():
            return cell
        whole = self._rows_of(None, g)
        whole.try_supports([cell.support])
        whole.search([tau])
        return solve_by_rows(
            self.context.data, whole, tau, float(self.context.grid.gammas[g]), self.context.deadline.expired
        ).by_size[tau]

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound so far."""
        return int(self.submitted.sum())

    def engine(self) -> str:
        """Return the method and its solver, in words."""
        return f"by rows, {self.method} on {self.mio.backend}"

    def recompute(self) -> None:
        """Find supports of all rows again; what screening left is found again when it is needed."""
        self._fit_all_rows(answers_of_all_rows(self.context))


def _supports_of(whole: WideFold, taus: list[int]) -> dict[int, BestSubset]:
    """Supports of all rows, of which nothing is proved."""
    best: dict[int, BestSubset] = {}
    none = np.zeros(0, dtype=np.int64)
    rows, support = whole.rows, whole.known.support
    by_gain = np.argsort(-(rows.c**2 / rows.square), kind="stable")  # best single columns first
    for tau, top in zip(taus, rows.choice.sizes(taus), strict=True):
        sizes = [size for size in support if size <= top]
        largest = support[max(sizes)] if sizes and top else none
        best[tau] = BestSubset.unproved(tau, rows.choice.whole(filled_up(largest, min(top, rows.q), by_gain)))
    return best


def threads_for(data: StandardData, threads: int) -> int:
    """Threads that may each hold copies of the rows."""
    each = 2 * 8 * data.n * data.q
    return max(1, min(threads, PRODUCT_BYTES // max(each, 1)))
