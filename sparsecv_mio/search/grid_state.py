"""All that a search over a grid knows: subproblems, the full data, and what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.cells import MANY_CELLS, table_filled
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.search.pairs import Pair, PairBounds
from sparsecv_mio.trees.subsets import BestSubset

DONE = 127  # in place of a number of tries: no more work can say more
NOT_LISTED, BOUNDED, RAISED, SOLVED = range(4)  # what near-best supports of the full data have done for a pair


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
    round : 0-d int array
        Largest number of earlier tries of a target that was tried: others go on from there.
    slip : float
        Rounding of sums of losses over a fold and its training rows, beyond what bounds include.
    weighted : dict of int to (W, G, T) array
        By fold, lower bounds on objective + weight * held-out loss.
    offered : set
        Pairs and supports, as bytes, that were fitted in every fold.
    computed : dict
        Cutoffs that were computed since the writer took something.
    latest_bounds : list
        Bounds of all pairs, if they were computed since then.
    """

    objective_upper: FloatArray
    tree_tries: NDArray[np.int8]
    fitted: NDArray[np.int32]
    is_searched: BoolArray
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
    round: IntArray
    slip: float = 0.0
    weighted: dict[int, FloatArray] = field(default_factory=dict)
    offered: set[tuple[int, int, bytes]] = field(default_factory=set)
    computed: dict[bytes, FloatArray] = field(default_factory=dict)
    latest_bounds: list[PairBounds] = field(default_factory=list)

    @classmethod
    def unknown(cls, known: SearchState, slip: float = 0.0) -> GridState:
        """Return the state in which nothing is known.

        Parameters
        ----------
        known : SearchState
            Tables of subproblems and of the full data, empty.
        slip : float
            As of the class.
        """
        shape = known.context.shape
        pairs, stores_objectives = shape[:2], known.cells.has_rows_of_pairs or np.prod(shape) <= MANY_CELLS
        objective_upper = (
            table_filled(shape, np.inf, better=min) if stores_objectives else np.broadcast_to(np.inf, shape)
        )
        return cls(
            context=known.context, cells=known.cells, all_rows=known.all_rows, counts=known.counts,
            changes=known.changes, objective_upper=objective_upper, fitted=table_filled(shape, -1, np.int32),
            tree_tries=table_filled(shape, 0, np.int8), is_searched=table_filled(shape, False, bool),
            full_nodes=np.zeros(shape[0], dtype=np.int64),
            has_supports=np.zeros(shape[0], dtype=bool), is_relaxed=np.zeros(shape[0], dtype=bool),
            is_offered=np.zeros(pairs, dtype=bool), full_tries=np.zeros(pairs, dtype=np.int64),
            list_tries=np.zeros(pairs, dtype=np.int64), list_stage=np.full(pairs, NOT_LISTED),
            lowest_tries=np.zeros(pairs, dtype=np.int64), is_pair_searched=np.zeros(pairs, dtype=bool),
            fold_passes=np.zeros((), dtype=np.int64), round=np.zeros((), dtype=np.int64), slip=slip,
        )  # fmt: skip

    def bounds(self) -> PairBounds:
        """Return the bounds of all pairs; O(G T K) once for each time that the writer takes something."""
        if not self.latest_bounds:
            self.latest_bounds.append(super().bounds())
        return self.latest_bounds[0]

    def forget_computed(self) -> None:
        """Forget what was computed of the subproblems, which have changed."""
        self.computed.clear()
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

    def cutoffs_to_exclude(self, bars: FloatArray) -> FloatArray:
        """(G, T): bounds on the full data that exclude a pair, whose lower bounds then sum to its bar; inf for none."""
        key = bars.tobytes()
        if key not in self.computed:
            self.computed[key] = self.enough_to_exclude(self.objective_upper, bars, self.slip)
        return self.computed[key]

    def find_lowest_tries(self, pairs: BoolArray) -> None:
        """Compute `lowest_tries` of some pairs (G, T) anew; O(K) a pair."""
        for g, t in np.argwhere(pairs).tolist():
            self.lowest_tries[g, t] = np.where(self.cells.final[g, t], DONE, self.tree_tries[g, t]).min()
