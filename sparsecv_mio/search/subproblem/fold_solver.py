"""One fold, every gamma and tau still open: solve, refit, score, bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends.native.path import SMALL, PathCell, PathResult, never, solve_path
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.state.cells import CellTable, Where
from sparsecv_mio.search.subproblem.held_out_fold import HeldOutFold, Refits
from sparsecv_mio.search.subproblem.open_cells import held_out_intervals
from sparsecv_mio.units import TIE_RTOL

if TYPE_CHECKING:
    from sparsecv_mio.search.accelerators import Accelerators

IntArray = NDArray[np.int64]
WORST_ROUNDING = 1e-5  # of a held-out error, beyond which knowing the support does not decide a cell
GRACE = 0.15  # seconds after the limit in which open cells are still bounded by relaxations
NO_ERROR = 1e-9  # of the mean square of the target: no held-out error is asked to be known better


class FoldSolver:
    """The work of one fold in one round.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    gammas, taus : the grid
    full : PathResult by gamma
        Best subsets on all rows: first supports to try, and the training-loss bound.
    cells : CellTable
        Read for what is open, written for this fold only (so that folds may run on threads).
    effort : int
        Nodes one tau may cost.
    expired : callable
        True stops the trees with what they hold.
    oracles : Accelerators, optional
        Asked before a tree is grown.
    """

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        gammas: FloatArray,
        taus: IntArray,
        full: Sequence[PathResult],
        cells: CellTable,
        effort: int,
        expired: Callable[[], bool],
        oracles: Accelerators | None = None,
    ) -> None:
        self.oracles = oracles
        self.data, self.folds, self.gammas, self.taus = data, folds, gammas, taus
        self.full, self.cells, self.effort, self.expired = full, cells, effort, expired
        self.over: Callable[[], bool] = never  # True leaves the rest of a fold
        self.late: float | None = None  # when the limit was first seen to have passed

    def run(self, fold: int, training: Moments, wanted: NDArray[np.bool_]) -> int:
        """Work on the cells `wanted` (G, T) of a fold; returns the nodes spent."""
        rows = HeldOutFold(self.data, self.folds, fold, training)
        problem = training.problem(self.data, 1.0)
        nodes = 0
        neighbours: list[IntArray] = []
        for g in np.argsort(-self.gammas, kind="stable").tolist():
            open_taus = np.flatnonzero(wanted[g])
            if len(open_taus) == 0:
                continue
            if self.over():
                break
            gamma = float(self.gammas[g])
            here = problem.with_gamma(gamma)
            starts = [cell.support for cell in self.full[g].cells.values()] + neighbours
            if self.data.q > SMALL:  # there first supports of the fold itself are at hand
                shown = self.cells.support[g, open_taus, fold]
                starts += [self.cells.pool.supports[number] for number in np.unique(shown[shown > 0]).tolist()]
            taus = self.taus[open_taus].tolist()
            result = self.trees(here, fold, g, taus, starts, self.effort)
            nodes += result.nodes
            self.settle(fold, g, open_taus, here, rows, result)
            neighbours = [cell.support for cell in result.cells.values()]
        return nodes

    def trees(
        self, problem: SparseProblem, fold: int, g: int, taus: list[int], starts: list[IntArray], effort: int
    ) -> PathResult:
        """Grow the trees of some tau, but for what the oracles spare."""

        def grow(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> PathResult:
            return solve_path(problem, taus, starts=starts, effort=effort, expired=self.expired)

        if self.oracles is None:
            return grow(problem, taus, starts)
        named = [support for tau in taus for support in self.oracles.named(g, tau, fold)]
        return self.oracles.solve(problem, g, taus, named + starts, grow, dear=False)

    def settle(
        self,
        fold: int,
        g: int,
        open_taus: IntArray,
        problem: SparseProblem,
        rows: HeldOutFold,
        result: PathResult,
        relax: bool = True,
    ) -> None:
        """Turn the outcome of the trees into intervals of the held-out error."""
        found = [result.cells[int(self.taus[t])] for t in open_taus]
        supports: list[IntArray] = []
        spans: list[tuple[int, int]] = []
        for cell in found:
            mine = list(cell.candidates) if cell.complete else [cell.support]
            spans.append((len(supports), len(supports) + len(mine)))
            supports.extend(mine)
        fits = rows.refit(problem, supports, float(self.gammas[g]))
        undecided: list[tuple[int, float, int]] = []
        negligible = self.negligible(problem, rows)
        for t, cell, (lo, hi) in zip(open_taus.tolist(), found, spans, strict=True):
            value, error = fits.value[lo:hi], fits.value_error[lo:hi]
            held = fits.held_out[lo:hi]
            where = (g, t, fold)
            if cell.complete and _agree(value, error, cell):
                self.decide(where, supports[lo:hi], fits.at(slice(lo, hi)), negligible, cell.branched)
                continue
            upper = float(value[0] + error[0]) if not cell.complete else float((value + error).min())
            upper *= 1.0 + TIE_RTOL  # a tied optimum may lie that much higher
            first = int(np.argmin(value))
            number = self.cells.pool.number(supports[lo + first])
            self.cells.offer(where, number, float(held[first]), float(value[first]))
            self.cells.finish(where, cell.branched, result.finished)
            undecided.append((t, upper, lo + first))
        if undecided:
            places, uppers, which = (list(column) for column in zip(*undecided, strict=True))
            sizes = [int(self.taus[t]) for t in places]
            relax = relax and self._time_to_relax()
            shown = [supports[at] for at in which]
            intervals = held_out_intervals(problem, rows, sizes, uppers, shown, relax)
            full = np.array([self.full[g].cells[size].lower for size in sizes])
            part = (g, np.array(places), fold)
            self.cells.narrow(part, full - np.array(uppers), np.inf)
            self.cells.narrow(part, [one.lower for one in intervals], [one.upper for one in intervals])

    def _time_to_relax(self) -> bool:
        """True before the limit and for GRACE seconds of a round after it."""
        if not self.expired():
            return True
        now = time.monotonic()
        if self.late is None:
            self.late = now
        return now - self.late < GRACE

    @staticmethod
    def negligible(problem: SparseProblem, rows: HeldOutFold) -> float:
        """Held-out sum of squares below which nothing is asked to be known better."""
        return NO_ERROR * problem.yy / problem.n * rows.count

    def decide(
        self, where: Where, known: Sequence[IntArray], fits: Refits, negligible: float, branched: bool
    ) -> None:
        """Store a cell whose optimal supports are all `known`: those tied with the least value, once refitted.

        One whose held-out error is not known well enough stays undecided.
        """
        value, error = fits.value, fits.value_error
        best = int(np.argmin(value))
        tied = np.flatnonzero(value - error <= value[best] * (1.0 + TIE_RTOL) + error[best])
        supports = [known[int(i)] for i in tied]
        held, slip = fits.held_out[tied], fits.held_out_error[tied]
        if not np.all(slip <= WORST_ROUNDING * held + negligible):
            self.cells.narrow(where, max(float((held - slip).min()), 0.0), float((held + slip).max()))
            self.cells.offer(where, self.cells.pool.number(supports[0]), float(held[0]), float(value[tied[0]]))
            self.cells.finish(where)
            return
        first = min(range(len(supports)), key=lambda i: tuple(np.sort(supports[i]).tolist()))
        self.cells.settle(
            where,
            support=self.cells.pool.number(supports[first]),
            nominal=float(held[first]),
            lower=float((held - slip).min()),
            upper=float((held + slip).max()),
            tie=float(held.max() - held.min()),
            value=float(value[tied[first]]),
            branched=branched,
        )


def _agree(value: FloatArray, error: FloatArray, cell: PathCell) -> bool:
    """Whether refitted values are those of the tree up to its margin; values without any accuracy are no agreement."""
    if not np.all(np.isfinite(value)):
        return False
    return bool(np.all(np.abs(value - np.array(cell.values)) <= 0.5 * cell.margin + error))
