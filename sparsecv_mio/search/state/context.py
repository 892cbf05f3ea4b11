"""The context of a search (data, folds, grid, limits), its state, and copies of the state for building records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import implied_lower_bounds
from sparsecv_mio.certificate.parts import SearchRequest, Work
from sparsecv_mio.certificate.records import DescentStep
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.parallel import Hands, Kept
from sparsecv_mio.problem.problem import ReducedProblem, SparseProblem, eliminate_forced_columns
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.pairs import Grid, PairBounds, pair_bounds
from sparsecv_mio.trees.normal_form import NormalForm, normal_form
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Context:
    """The data, folds, grid, request and limits of a search, which do not change while it runs.

    Attributes
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    request : SearchRequest
        Request in the form of the record.
    deadline : Deadline
        Deadline of the search.
    threads : int
        Number of folds that are processed at once.
    hands : Hands
        Executor of the work units; the calling thread by default.
    starts : tuple of int arrays
        Supports to try first in the full data and in every fold, in columns of `data`.
    """

    data: StandardData
    folds: FoldPlan
    grid: Grid
    request: SearchRequest
    deadline: Deadline
    threads: int
    hands: Hands = field(default_factory=Hands)
    starts: tuple[IntArray, ...] = ()

    def row(self, grid: Grid) -> Context:
        """Return the context of a search over other pairs; only the best one of these is requested."""
        return replace(self, grid=grid, request=replace(self.request, one_se=False))

    @property
    def gap(self) -> float:
        """Relative gap at which the certificate counts as closed; 0 solves every subproblem."""
        return self.request.gap

    @property
    def needs_all_pairs(self) -> bool:
        """True if pairs that cannot be best may have to be solved too: gap 0, or one-standard-error rule."""
        return self.gap == 0.0 or self.request.one_se

    @property
    def stability(self) -> tuple[float, ...]:
        """Weights of the instability for which best pairs are requested; the pair of the first one is reported."""
        return self.request.stability or ()

    @property
    def cv_error_factor(self) -> float:
        """Factor from sums of h_j in standard units to CV errors per row, by weight, in units of the file."""
        return self.data.loss_unit / (self.scored_weights.total or 1)

    @cached_property
    def scored_weights(self) -> Scored:
        """Weights of the rows that each fold scores."""
        return Scored.of(self.data.dataset, self.folds)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of gammas, taus and folds."""
        return len(self.grid.gammas), len(self.grid.taus), self.folds.k


class BestOnAllRows:
    """The full data at every gamma: moments, one factorised normal form a gamma, and the best supports found.

    Safe to use from several threads.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    grid : Grid
        Grid of the search.

    Attributes
    ----------
    best : list of BestSubsets
        Best supports of every tau found on the full data, by gamma; empty before the first are found.
    """

    def __init__(self, data: StandardData, grid: Grid) -> None:
        self.data, self.grid = data, grid
        self.best: list[BestSubsets] = []
        self._made: dict[tuple[str, int], Any] = {}
        self._tables: dict[str, NDArray[Any]] = {}
        self._lock = threading.RLock()

    def keep(self, found: Mapping[int, BestSubsets]) -> None:
        """Store results by gamma in `best`; a gamma without a result gets the supports of the nearest gamma.

        These supports have no proof of optimality. Without any results `best` stays unchanged.
        """
        if not found:
            return
        nearest = [min(found, key=lambda gamma: abs(gamma - g)) for g in range(len(self.grid.gammas))]
        with self._lock:
            self.best[:] = [found[g] if g in found else _drop_bounds(found[gamma]) for g, gamma in enumerate(nearest)]
            self._tables.clear()

    def improve(self, g: int, found: BestSubsets) -> None:
        """Improve the bounds and supports of some taus of a gamma by another result.

        Parameters
        ----------
        g : int
            Index of the gamma.
        found : BestSubsets
            Result on the full data at that gamma.
        """
        with self._lock:
            self.best[g] = self.best[g].merge(found)
            self._tables.clear()

    def lower(self) -> FloatArray:
        """(G, T): lower bounds, not to be written to; no rows before the first supports are found."""
        return self._tabulate("lower", float)

    def upper(self) -> FloatArray:
        """(G, T): upper bounds on the optimum of the full data."""
        return self._tabulate("upper", float)

    def solved_pairs(self) -> BoolArray:
        """(G, T): pairs whose best subset of the full data is known."""
        return self._tabulate("complete", bool)

    def _tabulate(self, name: str, dtype: type) -> NDArray[Any]:
        """Return a field of the best subset of every pair, computed once after each change; O(G T)."""
        with self._lock:
            if name not in self._tables:
                taus = self.grid.taus.tolist()
                rows = [[getattr(result.by_size[tau], name) for tau in taus] for result in self.best]
                self._tables[name] = np.array(rows, dtype=dtype).reshape(-1, len(taus))
                self._tables[name].flags.writeable = False
            return self._tables[name]

    def lower_bounds(self) -> FloatArray:
        """(G, T): lower bounds on the optimum of the full data, with the implications between pairs; stored in `best`.

        O(G T).
        """
        with self._lock:
            lower = implied_lower_bounds(self.grid.gammas, self.lower())
            self.raise_lower_bounds(lower)
        return lower

    def raise_lower_bounds(self, lower: FloatArray) -> None:
        """Store lower bounds on the optimum of the full data.

        Parameters
        ----------
        lower : (G, T) array
            Certified bounds, rounding included; 0 where nothing is known.
        """
        with self._lock:
            for g, t in np.argwhere(lower > self.lower()).tolist():
                by_size, tau = self.best[g].by_size, int(self.grid.taus[t])
                cell = by_size[tau]
                by_size[tau] = replace(cell, lower=max(cell.lower, min(float(lower[g, t]), cell.upper)))
            self._tables.pop("lower", None)

    def _once(self, what: str, make: Callable[[], Made], g: int = 0) -> Made:
        """Return a value that is computed once, for each gamma if it depends on gamma."""
        with self._lock:
            if (what, g) not in self._made:
                self._made[what, g] = make()
            made: Made = self._made[what, g]
            return made

    @property
    def has_moments(self) -> bool:
        """True if the moments were computed; they never are if a search works by rows."""
        return ("moments", 0) in self._made

    @property
    def moments(self) -> TrainingMoments:
        """Training moments of the full data; O(n q^2) the first time."""
        return self._once("moments", lambda: row_moments(self.data, slice(0, self.data.n)))

    @property
    def base(self) -> SparseProblem:
        """Full data at gamma 1, with all quantities that do not depend on gamma (Gram matrix, means, rows)."""
        return self._once("base", lambda: replace(self.moments.problem(self.data, 1.0), kept=Kept()))

    def problem(self, g: int) -> SparseProblem:
        """Return the full data at the gamma with index `g`."""
        return self.base.with_gamma(float(self.grid.gammas[g]))

    def reduced_problem(self, g: int) -> ReducedProblem:
        """Return `problem(g)` without the forced columns."""
        return self._once("eliminated", lambda: eliminate_forced_columns(self.problem(g)), g)

    def normal_form(self, g: int) -> NormalForm:
        """Return the normal form of `reduced_problem(g)`; O(q^3) the first time."""
        return self._once("form", lambda: normal_form(self.reduced_problem(g).problem), g)

    def ridge_solution(self, g: int) -> tuple[FloatArray, FloatArray, float]:
        """Return `(M^{-1}, M^{-1} c, f)` of the ridge fit on all columns of `normal_form(g)`; O(q^3) the first time."""
        return self._once("solved", lambda: self.normal_form(g).solve_all_columns(), g)


def _drop_bounds(result: BestSubsets) -> BestSubsets:
    """Return the supports of a result without its bounds, for another gamma or a fold."""
    return BestSubsets(
        {tau: BestSubset.from_bounds(tau, cell.support) for tau, cell in result.by_size.items()}, 0, False
    )


@dataclass
class WorkCounts:
    """Work done so far; only the thread of the search writes it.

    Attributes
    ----------
    nodes : int
        Number of nodes of all branch-and-bound trees.
    problems : int
        Number of ridge problems set up: the training rows of a fold, or the full data, at one gamma.
    reached : dict of int to float
        Seconds after which every pair up to a tau was proved, by tau, if the search checked.
    """

    nodes: int = 0
    problems: int = 0
    reached: dict[int, float] = field(default_factory=dict)


@dataclass(eq=False)
class SearchState:
    """The state of a search. It is a valid certificate at every moment.

    Attributes
    ----------
    context : Context
        Data, folds, grid and limits of the search.
    cells : CellTable
        Interval of every (gamma, tau, fold).
    all_rows : BestOnAllRows
        Moments, normal forms and best supports of the full data.
    counts : WorkCounts
        Work done so far.
    changes : dict
        Computed instabilities of pairs (:mod:`sparsecv_mio.search.answer.instability`), stored for later requests.
    """

    context: Context
    cells: CellTable
    all_rows: BestOnAllRows
    counts: WorkCounts
    changes: dict[tuple[int, int], tuple[bytes, Any]] = field(default_factory=dict)

    @classmethod
    def from_context(cls, context: Context) -> SearchState:
        """Return the state before any work."""
        cells = CellTable.empty(*context.shape, values=bool(context.stability))
        return cls(context, cells, BestOnAllRows(context.data, context.grid), WorkCounts())

    def bounds(self) -> PairBounds:
        """Return the bounds of all pairs: sums of the subproblems over folds."""
        return pair_bounds(self.cells, self.context.grid.gammas, self.context.grid.taus)

    @property
    def open(self) -> BoolArray:
        """(G, T, K): subproblems that more work may solve."""
        return ~self.cells.final

    def unexcluded_subproblems(self) -> BoolArray:
        """(G, T, K): open subproblems of the pairs that are not excluded; with a gap of 0 all open subproblems."""
        gap = self.context.gap
        return self.open & ~self.bounds().excluded(gap)[:, :, None] if gap > 0.0 else self.open

    def reported_pair(self) -> tuple[int, int]:
        """Return the indices of the pair to report in the present state."""
        grid = self.context.grid
        return self.bounds().reported_pair(self.context.gap, grid.gammas, grid.taus)

    def is_certified(self) -> bool:
        """Return True if the certificate is closed to the gap."""
        return self.bounds().is_certified(self.context.gap)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The data of the record of a run at one moment, in copies that the search does not write.

    Attributes
    ----------
    context : Context
        Data, folds, grid and request of the search.
    cells : CellTable
        Table of subproblems.
    best : tuple of BestSubsets
        Best subsets of the full data, by gamma; empty before any is known.
    work : Work
        Work of the run, except for the seconds.
    complete : bool
        False if pairs outside of this table may be better.
    steps : tuple of DescentStep
        Moves of a descent.
    reached : mapping of int to float
        Seconds after which every pair up to a tau was proved, by tau, if that is known.
    changes : dict
        Dictionary `changes` of `SearchState`, shared with it.
    doubts : tuple of str
        Objections of a refit by plain arithmetic (:mod:`sparsecv_mio.search.answer.recheck`).
    all_rows : BestOnAllRows, optional
        Full data, whose moments serve refits; None while the search runs, so that a record calls no kernel then.
    """

    context: Context
    cells: CellTable
    best: tuple[BestSubsets, ...] = ()
    work: Work = Work(0, 0, 0.0, "forward selection")
    complete: bool = True
    steps: tuple[DescentStep, ...] = ()
    reached: Mapping[int, float] = field(default_factory=dict)
    changes: dict[tuple[int, int], tuple[bytes, Any]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    all_rows: BestOnAllRows | None = None

    @property
    def has_scored_pair(self) -> bool:
        """True if some pair is scored in every fold, and supports of the full data are known."""
        return bool(self.best) and bool(self.cells.scored_pairs().any())
