"""All that a search over a grid knows: subproblems, the full data, and what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.search.fold_tables import FoldTable, make_constant, make_table
from sparsecv_mio.search.pairs import Pair, PairBounds
from sparsecv_mio.trees.subsets import BestSubset

DONE = 127  # in place of a number of tries: no more work can say more
ROOT_NODES = 32  # that a tree is worth beside its nodes: moments, eigenvalues, the root of a fold
NOT_LISTED, BOUNDED, RAISED, SOLVED = range(4)  # what near-best supports of the full data have done for a pair


@dataclass
class SourceRecord:
    """What the ranked steps of a source promised and brought, and what they were to take and took.

    Attributes
    ----------
    promised, kept : float
        Rises of pairs, in shares of what they missed.
    work : float
        Nodes that steps were allowed.
    seconds : float
        CPU seconds that they took.
    """

    promised: float = 0.0
    kept: float = 0.0
    work: float = 0.0
    seconds: float = 0.0

    def expect_rates(self, promised: float, work: float) -> tuple[float, float]:
        """Return the rise of a step to expect a CPU second, inf if the source was not tried; and a node."""
        is_tried = self.promised > 0.0 and self.seconds > 0.0
        calibration = self.kept / self.promised * self.work / self.seconds if is_tried else np.inf
        return promised / work * calibration, promised / work


@dataclass(frozen=True, eq=False, kw_only=True)
class GridState(SearchState):
    """The state of a search over a grid. Only :class:`~sparsecv_mio.search.writer.Writer` changes it.

    Attributes
    ----------
    objective_upper : (G, T, K) table
        Upper bounds on the optimal training objective of every subproblem; inf where none is known.
    tree_tries : (G, T, K) table of int
        Trees that a subproblem had.
    fitted : (G, T, K) table of int
        Numbers of the supports that were fitted with bounds on their objectives; -1 for none.
    is_searched : (G, T, K) table of bool
        Subproblems with a local search of their own.
    weighted_tries : (G, T, K) table of int
        Trees with weighted held-out rows that brought a subproblem less than they were asked for.
    is_enclosed, is_weighted : (K,) bool arrays
        Folds that were enclosed by their ridge balls; folds that were relaxed with weighted held-out rows.
    is_looked_at : (G, T) bool array
        Pairs at which the full data had a few nodes before any sweep.
    spent : (2,) int array
        Nodes of first trees of targets, and of later ones.
    tree_seconds : (G, T) array
        CPU seconds of trees of the folds of a pair; they order work under a limit only.
    first_work : (T,) array
        Nodes of the first trees at each size, of the full data and of folds, with those that a root is worth.
    first_seconds : 0-d array
        CPU seconds of all of them.
    records : dict of str to SourceRecord
        By source, what it promised and kept.
    full_nodes : (G,) int array
        Nodes of the first trees of the full data.
    has_supports, is_relaxed : (G,) bool arrays
        Gammas at which the full data has supports of its own; gammas at which it was relaxed.
    is_offered : (G, T) bool array
        Pairs whose support of the full data was fitted in every fold.
    full_tries, list_tries : (G, T) int arrays
        Trees of the full data, and lists, that a pair had; `DONE` where more nodes say no more.
    list_stage : (G, T) int array
        What near-best supports of the full data have done for the folds of a pair: nothing, bounded them without a
        complete list, raised the pair, solved it.
    lowest_tries : (G, T) int array
        Smallest number of trees of an open subproblem of a pair; `DONE` where none is open.
    is_pair_searched : (G, T) bool array
        Pairs whose open folds all had a local search of their own.
    fold_passes : 0-d int array
        Passes of a search in all folds that were done; `DONE` where another one finds no more.
    n_orders_done : 0-d int array
        Orders of the plan before the last one that came to their end.
    is_fold_relaxed, has_root : (G, K) bool arrays
        Folds that were relaxed at a gamma; folds whose trees have their first nodes there.
    n_mios : 0-d int array
        Mixed-integer problems: subproblems that had a tree of their own, and bounds of the full data by a backend.
    round : 0-d int array
        Largest number of earlier tries of a target that was tried: others go on from there.
    slip : float
        Rounding of sums of losses over a fold and its training rows, beyond what bounds include.
    weighted : dict of int to (W, G, T) array
        By fold, lower bounds on objective + weight * held-out loss.
    offered : set
        Pairs and supports, as bytes, that were fitted in every fold.
    computed_bars, computed : dict
        Cutoffs that were computed since the writer took something.
    latest_bounds : list
        Bounds of all pairs, if they were computed since then.
    """

    objective_upper: FoldTable
    tree_tries: FoldTable
    fitted: FoldTable
    is_searched: FoldTable
    weighted_tries: FoldTable
    is_enclosed: BoolArray
    is_weighted: BoolArray
    is_looked_at: BoolArray
    spent: IntArray
    tree_seconds: FloatArray
    first_work: FloatArray
    first_seconds: FloatArray
    full_nodes: IntArray
    has_supports: BoolArray
    is_relaxed: BoolArray
    is_offered: BoolArray
    full_tries: IntArray
    list_tries: IntArray
    list_stage: IntArray
    lowest_tries: IntArray
    is_pair_searched: BoolArray
    fold_passes: IntArray
    n_orders_done: IntArray
    is_fold_relaxed: BoolArray
    has_root: BoolArray
    n_mios: IntArray
    round: IntArray
    slip: float = 0.0
    records: dict[str, SourceRecord] = field(default_factory=dict)
    weighted: dict[int, FloatArray] = field(default_factory=dict)
    offered: set[tuple[int, int, bytes]] = field(default_factory=set)
    computed_bars: dict[str, FloatArray] = field(default_factory=dict)
    computed: dict[bytes, FloatArray] = field(default_factory=dict)
    latest_bounds: list[PairBounds] = field(default_factory=list)

    @classmethod
    def unknown(cls, known: SearchState, slip: float = 0.0, stores_objectives: bool = True) -> GridState:
        """Return the state in which nothing is known.

        Parameters
        ----------
        known : SearchState
            Tables of subproblems and of the full data, empty.
        slip : float
            As of the class.
        stores_objectives : bool
            False if bounds on the full data exclude no pair.
        """
        shape = known.context.shape
        pairs, filled = shape[:2], partial(make_table, shape, by_pairs=known.cells.has_rows_of_pairs)
        nothing = partial(make_constant, shape)
        return cls(
            context=known.context, cells=known.cells, all_rows=known.all_rows, counts=known.counts,
            changes=known.changes,
            objective_upper=filled(np.inf, better=min) if stores_objectives else nothing(np.inf),
            fitted=filled(-1, np.int32) if stores_objectives else nothing(np.int32(-1)),
            tree_tries=filled(0, np.int8), is_searched=filled(False, bool), weighted_tries=filled(0, np.int8),
            is_enclosed=np.zeros(shape[2], dtype=bool), is_weighted=np.zeros(shape[2], dtype=bool),
            is_looked_at=np.zeros(pairs, dtype=bool), spent=np.zeros(2, dtype=np.int64), tree_seconds=np.zeros(pairs),
            first_work=np.zeros(shape[1]), first_seconds=np.zeros(()),
            full_nodes=np.zeros(shape[0], dtype=np.int64),
            has_supports=np.zeros(shape[0], dtype=bool), is_relaxed=np.zeros(shape[0], dtype=bool),
            is_offered=np.zeros(pairs, dtype=bool), full_tries=np.zeros(pairs, dtype=np.int64),
            list_tries=np.zeros(pairs, dtype=np.int64), list_stage=np.full(pairs, NOT_LISTED),
            lowest_tries=np.zeros(pairs, dtype=np.int64), is_pair_searched=np.zeros(pairs, dtype=bool),
            is_fold_relaxed=np.zeros((shape[0], shape[2]), dtype=bool),
            has_root=np.zeros((shape[0], shape[2]), dtype=bool), n_mios=np.zeros((), dtype=np.int64),
            fold_passes=np.zeros((), dtype=np.int64), n_orders_done=np.zeros((), dtype=np.int64),
            round=np.zeros((), dtype=np.int64), slip=slip,
        )  # fmt: skip

    def bounds(self) -> PairBounds:
        """Return the bounds of all pairs; O(G T K) once for each time that the writer takes something."""
        if not self.latest_bounds:
            self.latest_bounds.append(super().bounds())
        return self.latest_bounds[0]

    def forget_computed(self) -> None:
        """Forget what was computed of the subproblems, which have changed."""
        self.computed.clear()
        self.computed_bars.clear()
        self.latest_bounds.clear()

    # -- questions of orders and sources ------------------------------------------------------------------------------

    def full_support(self, pair: Pair) -> IntArray:
        """Return the best support of the full data at a pair."""
        return self.full_subset(pair).support

    def full_subset(self, pair: Pair) -> BestSubset:
        """Return what is known of the full data at a pair."""
        return self.all_rows.best[pair[0]].by_size[int(self.context.grid.taus[pair[1]])]

    def full_subsets(self, gamma: int) -> list[BestSubset]:
        """Return what is known of the full data at a gamma, by size."""
        by_size = self.all_rows.best[gamma].by_size
        return [by_size[tau] for tau in self.context.grid.taus.tolist()]

    def is_bounded(self, pair: Pair) -> bool:
        """Return True if every fold of a pair has an upper bound."""
        return bool(np.isfinite(self.cells.upper[pair]).all())

    def count_first_trees(self, taus: tuple[int, ...], n_trees: int, n_nodes: int, cpu_seconds: float) -> None:
        """Count the work of the first trees at some sizes, by index."""
        self.first_work[list(taus)] += (n_nodes + ROOT_NODES * n_trees) / len(taus)
        self.first_seconds[...] += cpu_seconds

    def pair_with_most_folds(self) -> Pair:
        """Return the pair whose folds show most held-out losses, of several that with the smallest in those folds."""
        shown = np.asarray(self.cells.nominal)
        missing = ~np.isfinite(shown)
        sums, counts = np.where(missing, 0.0, shown).sum(axis=2), missing.sum(axis=2)
        counts = np.where(self.has_supports[:, None], counts, counts.max() + 1)
        g, t = np.unravel_index(int(np.lexsort((sums.ravel(), counts.ravel()))[0]), counts.shape)
        return int(g), int(t)

    def open_folds(self, pair: Pair, max_tries: int = DONE) -> IntArray:
        """Return the open folds of a pair with at most some number of trees."""
        return np.flatnonzero(~np.asarray(self.cells.final[pair]) & (np.asarray(self.tree_tries[pair]) <= max_tries))

    def unsearched_folds(self, pair: Pair) -> IntArray:
        """Return the open folds of a pair without a local search of their own."""
        return np.flatnonzero(~np.asarray(self.cells.final[pair]) & ~np.asarray(self.is_searched[pair]))

    def supports_near(self, pair: Pair, fold: int) -> tuple[IntArray, ...]:
        """Return supports of a subproblem, of its neighbours in gamma and tau, and of the full data."""
        near = self.cells.shown_near((*pair, fold), other_folds=False)
        return (*near, self.full_support(pair))

    def supports_shown(self, gamma: int, taus: IntArray, fold: int) -> tuple[IntArray, ...]:
        """Return the distinct supports that a fold shows at some sizes of a gamma."""
        numbers = np.unique(self.cells.support[gamma, taus, fold])
        return tuple(self.cells.pool.supports[number] for number in numbers[numbers > 0].tolist())

    def records_of(self, source: str) -> SourceRecord:
        """Return the record of a source."""
        return self.records.setdefault(source, SourceRecord())

    def rise_by_full_data(self, gamma: int, taus: list[int], bars: FloatArray) -> float:
        """Return the shares of what pairs miss to their bars, by which best subsets of the full data may raise them."""
        if not np.isfinite(self.objective_upper[gamma, taus]).all():
            return 0.0
        upper = np.array([self.full_subset((gamma, t)).upper for t in taus])
        reach = np.minimum(upper[:, None] - self.objective_upper[gamma, taus], self.cells.nominal[gamma, taus])
        rise = np.maximum(reach - self.cells.lower[gamma, taus], 0.0).sum(axis=1)
        room = np.maximum(bars[gamma, taus] - self.bounds().lower[gamma, taus], np.finfo(float).tiny)
        return float(np.minimum(rise / room, 1.0).sum())

    def bars_in_question(self) -> FloatArray:
        """(G, T): sums of lower bounds from which on a pair is not in question; inf for the best pair itself.

        A pair is compared with the best pair of the grid once that is solved; before, with the best one of no larger
        tau: a proof among small sizes needs no more.
        """
        if "bars" not in self.computed_bars:
            upper = self.bounds().upper
            bar = np.minimum.accumulate(upper.min(axis=0))
            best = np.unravel_index(int(upper.argmin()), upper.shape)
            if self.cells.final[best].all():
                bar = np.full(len(bar), upper[best])
            bars = np.tile(bar * (1.0 - self.context.gap), (len(upper), 1))
            bars[best] = np.inf
            self.computed_bars["bars"] = bars
        return self.computed_bars["bars"]

    def subproblems_in_question(self) -> BoolArray:
        """(G, T, K): open subproblems of the pairs that are neither solved nor excluded."""
        is_beaten = self.bounds().lower >= self.bars_in_question()
        return np.asarray(self.open & ~is_beaten[:, :, None])

    def cutoffs_to_exclude(self, bars: FloatArray) -> FloatArray:
        """(G, T): bounds on the full data that exclude a pair, whose lower bounds then sum to its bar; inf for none."""
        key = bars.tobytes()
        if key not in self.computed:
            self.computed[key] = self.enough_to_exclude(self.objective_upper, bars, self.slip)
        return self.computed[key]

    def find_lowest_tries(self, pairs: BoolArray) -> None:
        """Compute `lowest_tries` of some pairs (G, T) anew; O(K) a pair."""
        if not self.tree_tries.has_rows_of_pairs:
            self.lowest_tries[pairs] = np.where(self.cells.final[pairs], DONE, self.tree_tries[pairs]).min(axis=-1)
            return
        for g, t in np.argwhere(pairs).tolist():
            self.lowest_tries[g, t] = np.where(self.cells.final[g, t], DONE, self.tree_tries[g, t]).min()
