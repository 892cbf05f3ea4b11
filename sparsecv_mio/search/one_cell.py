"""One cell (gamma, tau, fold) as one MIO, on any backend, and what its answer says of the held-out error.

The native engine keeps every support that can be optimal. A vendor's solver names one support and a bound that is
trusted to 2e-6 of the objective's scale; that says nothing of the held-out error until the same problem without that
support (`at most tau - 1` of its columns) is shown to be worse. Supports are excluded one after the other until the
best of the others is out of reach; every one that is not goes to the list of candidates.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.native.normal_form import normal_form
from sparsecv_mio.formulation.backends.native.path import PathCell, PathResult, solve_path
from sparsecv_mio.formulation.constraints import SideConstraints
from sparsecv_mio.formulation.outcome import Limits, Start, Stop
from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.candidates import FoldRows
from sparsecv_mio.search.cells import CellTable
from sparsecv_mio.search.fold_job import FoldJob
from sparsecv_mio.units import KEEP_RTOL

IntArray = NDArray[np.int64]
Where = tuple[int, int, int]
NATIVE = "native"
UNLIMITED = 1 << 62
STORE_BYTES = 1 << 28
MOST_EXCLUDED = 12  # near ties a vendor's solver is asked about before the cell is left undecided
VENDOR_GAP = 1e-9


@dataclass(frozen=True, eq=False)
class Fold:
    """What every (gamma, tau) of a fold shares."""

    problem: SparseProblem
    rows: FoldRows


class FoldStore:
    """Folds in the order of their last use, as many as fit into `STORE_BYTES`. Safe to use from several threads."""

    def __init__(self, data: StandardData, folds: FoldPlan) -> None:
        self.data, self.folds = data, folds
        self.room = max(2, STORE_BYTES // (24 * (data.q + 1) ** 2 + 1))
        self.held: OrderedDict[int, Fold] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, fold: int) -> Fold:
        """Moments and held-out rows of a fold; O(n q^2) when it is not at hand."""
        with self.lock:
            if fold in self.held:
                self.held.move_to_end(fold)
                return self.held[fold]
        _, moments = next(training_moments(self.data, self.folds, [fold]))
        made = Fold(moments.problem(self.data, 1.0), FoldRows(self.data, self.folds, fold, moments))
        return self.put(fold, made)

    def put(self, fold: int, made: Fold) -> Fold:
        """Keep a fold."""
        with self.lock:
            self.held[fold] = made
            while len(self.held) > self.room:
                self.held.popitem(last=False)
        return made


class CellSolver(FoldJob):
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
    ) -> None:
        super().__init__(data, folds, gammas, taus, full, cells, UNLIMITED, expired)
        self.backend, self.limits = backend, limits
        self.store = FoldStore(data, folds)

    def glance(self, fold: int, g: int, made: Fold) -> PathResult:
        """Heuristic incumbents and root bounds of every tau, no branching."""
        here = made.problem.with_gamma(float(self.gammas[g]))
        first = [cell.support for cell in self.full[g].cells.values()]
        result = solve_path(here, self.taus.tolist(), starts=first, effort=0, expired=self.expired)
        self.settle(fold, g, np.arange(len(self.taus)), here, made.rows, result)
        return result

    def solve(self, where: Where, effort: int = UNLIMITED) -> int:
        """Hand one cell to branch-and-bound; returns the nodes."""
        g, t, fold = where
        made = self.store.get(fold)
        here = made.problem.with_gamma(float(self.gammas[g]))
        first = self.starts(where)
        if self.backend == NATIVE:
            result = solve_path(here, [int(self.taus[t])], starts=first, effort=effort, expired=self.expired)
        else:
            result = self._by_vendor(here, int(self.taus[t]), first)
        self.settle(fold, g, np.array([t]), here, made.rows, result)
        return result.nodes

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

    def _by_vendor(self, problem: SparseProblem, tau: int, first: list[IntArray]) -> PathResult:
        """Solve, then exclude supports until the rest is out of reach."""
        solver = get_backend(self.backend)
        useful = normal_form(problem).columns
        constant = tuple(np.setdiff1d(np.arange(problem.q), useful).tolist())
        size = min(tau, len(useful))
        known = [_filled(np.intersect1d(s, useful), size, useful, []) for s in first if len(s) <= size]
        fits = [(problem.ridge(s)[1], tuple(s.tolist())) for s in known if s is not None]
        start = Start(min(fits)[1], "incumbent") if fits else None
        found: list[IntArray] = []
        nodes, lower, complete = 0, 0.0, False
        while len(found) <= MOST_EXCLUDED and not self.expired() and not complete:
            banned = SideConstraints(
                forced_out=constant, at_most=tuple((size - 1, tuple(s.tolist())) for s in found)
            )
            outcome = solver.solve(problem, size, start=start, limits=self.limits(), constraints=banned)
            start = None
            nodes += outcome.nodes
            lower = lower if found else max(outcome.lower, 0.0)
            if found and outcome.lower > min(problem.ridge(s)[1] for s in found) * (1.0 + KEEP_RTOL) + slack(problem):
                complete = True
                break
            if outcome.incumbent is None or outcome.stop in (Stop.TIME, Stop.NODES, Stop.INTERRUPTED):
                break
            support = _filled(np.array(outcome.incumbent, dtype=np.int64), size, useful, found)
            if support is None:
                break
            found.append(support)
            complete = size in (0, len(useful))
        if not found:
            known_best = np.array(min(fits)[1] if fits else (), dtype=np.int64)
            return PathResult({tau: _as_cell(problem, tau, [known_best], 0.0, False)}, nodes, False)
        return PathResult({tau: _as_cell(problem, tau, found, lower, complete)}, nodes, finished=not self.expired())


def slack(problem: SparseProblem) -> float:
    """Rounding of f from moments, generously."""
    return 1e-12 * problem.yy


def _filled(support: IntArray, size: int, useful: IntArray, found: list[IntArray]) -> IntArray | None:
    """Return a support of exactly `size` useful columns that holds `support` and is new; more columns never raise f."""
    rest = np.setdiff1d(useful, support)
    known = {tuple(s.tolist()) for s in found}
    missing = size - len(support)
    for shift in range(max(len(rest), 1) if missing else 1):
        full = np.sort(np.append(support, np.roll(rest, -shift)[:missing]))
        if tuple(full.tolist()) not in known:
            return full
    return None


def _as_cell(problem: SparseProblem, tau: int, found: list[IntArray], lower: float, complete: bool) -> PathCell:
    """Put candidates into the form the native engine answers in."""
    values = [problem.ridge(s)[1] for s in found]
    best = int(np.argmin(values))
    margin = values[best] * KEEP_RTOL + slack(problem)
    kept = [i for i, value in enumerate(values) if value <= values[best] + margin] if complete else []
    return PathCell(
        tau=tau,
        support=found[best],
        lower=max(values[best] - margin, 0.0) if complete else min(lower, values[best]),
        upper=values[best],
        candidates=tuple(found[i] for i in kept),
        values=tuple(values[i] for i in kept),
        margin=margin,
        complete=complete,
        branched=True,
    )
