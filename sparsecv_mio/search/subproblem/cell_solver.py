"""One cell (gamma, tau, fold) as one MIO, on any backend, and what its answer says of the held-out error."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.state.cells import CellTable, Where
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.search.subproblem.held_out_fold import HeldOutFold
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing

if TYPE_CHECKING:
    from sparsecv_mio.search.accelerators import Accelerators

IntArray = NDArray[np.int64]
Source = Callable[[Sequence[int]], Iterator[tuple[int, Moments]]]
NATIVE = "native"
UNLIMITED = 1 << 62
NEAR_TIES_NODES = 1 << 20  # of our own trees, where a vendor leaves near ties
STORE_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class Fold:
    """What every (gamma, tau) of a fold shares."""

    problem: SparseProblem
    rows: HeldOutFold


class FoldStore:
    """Folds in the order of their last use, as many as fit into `STORE_BYTES`. Safe to use from several threads."""

    def __init__(self, data: StandardData, folds: FoldPlan, source: Source) -> None:
        self.data, self.folds, self.source = data, folds, source
        self.room = max(2, STORE_BYTES // (24 * (data.q + 1) ** 2 + 1))
        self.held: OrderedDict[int, Fold] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, fold: int) -> Fold:
        """Moments and held-out rows of a fold; O(n q^2) when it is not at hand."""
        with self.lock:
            if fold in self.held:
                self.held.move_to_end(fold)
                return self.held[fold]
        _, moments = next(self.source([fold]))  # by the same additions as for all folds: to the last bit the same
        return self.keep(fold, moments)

    def keep(self, fold: int, moments: Moments) -> Fold:
        """Make a fold from its training moments, and hold it."""
        made = Fold(moments.problem(self.data, 1.0), HeldOutFold(self.data, self.folds, fold, moments))
        with self.lock:
            self.held[fold] = made
            while len(self.held) > self.room:
                self.held.popitem(last=False)
        return made


class CellSolver(FoldSolver):
    """Solves cells one at a time and writes what they say into the table."""

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        gammas: FloatArray,
        taus: IntArray,
        full: Sequence[PathResult],
        cells: CellTable,
        expired: Callable[[], bool],
        backend: str,
        limits: Callable[[], Limits],
        oracles: Accelerators | None = None,
        formulation: str | None = None,
    ) -> None:
        super().__init__(data, folds, gammas, taus, full, cells, UNLIMITED, expired, oracles)
        self.backend = backend
        self.vendor = VendorListing(backend, limits, expired, formulation)
        source = oracles.training_moments if oracles is not None else partial(training_moments, data, folds)
        self.store = FoldStore(data, folds, source)

    def glance(self, fold: int, g: int, made: Fold) -> None:
        """Heuristic incumbents and root bounds of every tau, no branching."""
        here = made.problem.with_gamma(float(self.gammas[g]))
        first = [cell.support for cell in self.full[g].cells.values()]
        result = self.trees(here, fold, g, self.taus.tolist(), first, 0)
        self.settle(fold, g, np.arange(len(self.taus)), here, made.rows, result, relax=False)

    def take(self, g: int, taus: IntArray, fold: int, supports: list[IntArray], only: NDArray[np.bool_]) -> None:
        """Refit a support for each of some rows of tau of a fold, and show it.

        Cells where it is the `only` one, as no other can be optimal or tied by what the caller has proved, are decided.
        """
        made = self.store.get(fold)
        gamma = float(self.gammas[g])
        here = made.problem.with_gamma(gamma)
        fits = made.rows.refit(here, supports, gamma)
        negligible = self.negligible(here, made.rows)
        numbers = np.array([self.cells.pool.number(support) for support in supports], dtype=np.int32)
        self.cells.offer((g, taus, fold), numbers, fits.held_out, fits.value)
        for at in np.flatnonzero(only & np.isfinite(fits.value_error)).tolist():
            which = slice(at, at + 1)
            self.decide((g, int(taus[at]), fold), supports[which], fits.at(which), negligible, branched=False)

    def solve(self, where: Where, first: list[IntArray], effort: int = UNLIMITED) -> int:
        """Hand one cell to branch-and-bound, supports to start from given; returns the nodes."""
        g, t, fold = where
        if self.cells.final[where]:  # decided since it was picked, or at the first look
            return 0
        made, tau = self.store.get(fold), int(self.taus[t])
        here = made.problem.with_gamma(float(self.gammas[g]))
        if self.backend == NATIVE:
            result = self.trees(here, fold, g, [tau], first, effort)
        else:
            result = self._by_vendor(here, g, tau, fold, first)
        self.settle(fold, g, np.array([t]), here, made.rows, result)
        return result.nodes

    def _by_vendor(self, problem: SparseProblem, g: int, tau: int, fold: int, first: list[IntArray]) -> PathResult:
        """A vendor's answer; near ties that it cannot tell apart are listed by our own trees."""

        def solved(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> PathResult:
            return self.vendor.solve(problem, taus[0], starts)

        if self.oracles is None:
            result = solved(problem, [tau], first)
        else:
            first = self.oracles.named(g, tau, fold) + first
            result = self.oracles.solve(problem, g, [tau], first, solved, dear=True, restrict=False)
        cell = result.cells[tau]
        if cell.complete or not result.finished:
            return result
        own = self.trees(problem, fold, g, [tau], [cell.support, *first], NEAR_TIES_NODES)
        return PathResult(own.cells, result.nodes + own.nodes, own.finished)

    def starts(self, where: Where) -> list[IntArray]:
        """Supports known for the cell, for its neighbours in tau and gamma, and for the next folds at the same pair."""
        g, t, fold = where
        table = self.cells.support
        numbers = [int(table[where])]
        for dg, dt, df in ((0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1)):
            a, b, c = g + dg, t + dt, fold + df
            if 0 <= a < table.shape[0] and 0 <= b < table.shape[1] and 0 <= c < table.shape[2]:
                numbers.append(int(table[a, b, c]))
        near = [self.cells.pool.supports[number] for number in dict.fromkeys(numbers)]
        return near + [cell.support for cell in self.full[g].cells.values()]
