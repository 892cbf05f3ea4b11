"""The state of a search over a grid: subproblems, bounds on the full data, and the attempts of each bounding method.

A checkpoint stores the arrays of the state; `check_archive` and `restore_state` read these arrays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, is_constant
from sparsecv_mio.bounds.closed_form import enough_on_all_rows
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.state.attempts import DONE, Attempts
from sparsecv_mio.search.state.cells import (
    Archive,
    add_prefix,
    check_like,
    check_range,
    parse_json,
    select_by_prefix,
)
from sparsecv_mio.search.state.context import SearchState
from sparsecv_mio.search.state.pairs import Pair, PairBounds
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import ACCURATE_RTOL

LENGTHS_VARY = (
    "candidates", "candidate_values", "weighted", "weighted_folds", "records", "offered",
)  # fmt: skip


@dataclass
class SourceRecord:
    """The promised and actual gains of the ranked steps of a source, with their planned and actual cost.

    Attributes
    ----------
    promised, kept : float
        Promised and actual rises of pairs, as shares of the distances to their cutoffs.
    work : float
        Number of nodes that the steps were allowed.
    seconds : float
        CPU seconds that the steps took.
    """

    promised: float = 0.0
    kept: float = 0.0
    work: float = 0.0
    seconds: float = 0.0

    def expect_rates(self, promised: float, work: float) -> tuple[float, float]:
        """Return the rise to expect of a step per CPU second (inf if the source was not tried), and per node."""
        is_tried = self.promised > 0.0 and self.seconds > 0.0
        calibration = self.kept / self.promised * self.work / self.seconds if is_tried else np.inf
        return promised / work * calibration, promised / work


@dataclass(eq=False, kw_only=True)
class GridState(SearchState):
    """The state of a search over a grid. Only :class:`~sparsecv_mio.search.writer.Writer` changes what it knows.

    Attributes
    ----------
    objective_upper : (G, T, K) array
        Upper bounds on the optimal training objective of every subproblem; inf where none is known.
    tried : Attempts
        What sources have tried.
    has_supports : (G,) bool array
        Gammas for which supports of the full data were searched.
    records : dict of str to SourceRecord
        Promised and actual gains by source.
    slip : float
        Bound on the rounding error of sums of losses over a fold and its training rows, beyond what bounds include.
    weighted : dict of int to (W, G, T) array
        Lower bounds on objective + weight * held-out loss, by fold.
    offered : set
        Pairs and supports, as bytes, that were fitted in every fold.
    """

    objective_upper: FloatArray
    tried: Attempts
    has_supports: BoolArray
    slip: float = 0.0
    records: dict[str, SourceRecord] = field(default_factory=dict)
    weighted: dict[int, FloatArray] = field(default_factory=dict)
    offered: set[tuple[int, int, bytes]] = field(default_factory=set)
    _latest: tuple[int, PairBounds] | None = None  # number of writes before the bounds of all pairs, and bounds
    _cutoffs: tuple[IntArray, FloatArray, FloatArray] | None = None  # writes, cutoffs in sums, and full-data bounds

    @classmethod
    def unknown(cls, known: SearchState, slip: float = 0.0, stores_objectives: bool = True) -> GridState:
        """Return the state before any work.

        Parameters
        ----------
        known : SearchState
            Tables of subproblems and of the full data, empty.
        slip : float
            Attribute of the class.
        stores_objectives : bool
            False if bounds on the full data exclude no pair.
        """
        shape = known.context.shape
        return cls(
            context=known.context, cells=known.cells, all_rows=known.all_rows, counts=known.counts,
            changes=known.changes,
            objective_upper=np.full(shape, np.inf) if stores_objectives else np.broadcast_to(np.inf, shape),
            tried=Attempts.make_empty(shape, stores_objectives),
            has_supports=np.zeros(shape[0], dtype=bool), slip=slip,
        )  # fmt: skip

    def bounds(self) -> PairBounds:
        """Return the bounds of all pairs, computed once after each change; O(G T), and O(K) for each changed pair."""
        n_writes = int(self.cells.n_writes.sum())
        if self._latest is None or self._latest[0] != n_writes:
            self._latest = n_writes, super().bounds()
        return self._latest[1]

    # -- questions of orders and sources ------------------------------------------------------------------------------

    def full_support(self, pair: Pair) -> IntArray:
        """Return the best support of the full data at a pair."""
        return self.full_subset(pair).support

    def full_subset(self, pair: Pair) -> BestSubset:
        """Return the known best subset of the full data at a pair, with its bounds."""
        return self.all_rows.best[pair[0]].by_size[int(self.context.grid.taus[pair[1]])]

    def full_subsets(self, gamma: int) -> list[BestSubset]:
        """Return the known best subsets of the full data at a gamma, by size."""
        by_size = self.all_rows.best[gamma].by_size
        return [by_size[tau] for tau in self.context.grid.taus.tolist()]

    def is_bounded(self, pair: Pair) -> bool:
        """Return True if every fold of a pair has an upper bound."""
        return bool(np.isfinite(self.cells.upper[pair]).all())

    def pair_with_most_folds(self) -> Pair:
        """Return the pair with the most folds that show a loss; of several, the one with the smallest sum of losses."""
        shown = self.cells.nominal
        missing = ~np.isfinite(shown)
        sums, counts = np.where(missing, 0.0, shown).sum(axis=2), missing.sum(axis=2)
        counts = np.where(self.has_supports[:, None], counts, counts.max() + 1)
        g, t = np.unravel_index(int(np.lexsort((sums.ravel(), counts.ravel()))[0]), counts.shape)
        return int(g), int(t)

    def open_folds(self, pair: Pair, max_tries: int = DONE) -> IntArray:
        """Return the open folds of a pair with at most `max_tries` trees."""
        return np.flatnonzero(~self.cells.final[pair] & (self.tried.tree_tries[pair] <= max_tries))

    def unsearched_folds(self, pair: Pair) -> IntArray:
        """Return the open folds of a pair that had no local search."""
        return np.flatnonzero(~self.cells.final[pair] & ~self.tried.is_searched[pair])

    def warm_start_supports(self, pair: Pair, fold: int) -> tuple[IntArray, ...]:
        """Return supports of a subproblem, of its neighbours in gamma and tau, and of the full data."""
        return (*self.cells.neighbouring_supports((*pair, fold)), self.full_support(pair))

    def fold_supports(self, gamma: int, taus: IntArray, fold: int) -> tuple[IntArray, ...]:
        """Return the distinct supports of a fold in the current answer, at one gamma and some sizes."""
        numbers = np.unique(self.cells.support[gamma, taus, fold])
        return tuple(self.cells.pool.supports[number] for number in numbers[numbers > 0].tolist())

    def source_record(self, source: str) -> SourceRecord:
        """Return the record of a source; a new one if the source has not run."""
        return self.records.get(source) or SourceRecord()

    def rise_by_full_data(self, gamma: int, taus: list[int], bars: FloatArray) -> float:
        """Return the sum over pairs of the share of the distance to the cutoff that full-data trees may close."""
        if not np.isfinite(self.objective_upper[gamma, taus]).all():
            return 0.0
        upper = np.array([self.full_subset((gamma, t)).upper for t in taus])
        reach = np.minimum(upper[:, None] - self.objective_upper[gamma, taus], self.cells.nominal[gamma, taus])
        rise = np.maximum(reach - self.cells.lower[gamma, taus], 0.0).sum(axis=1)
        room = np.maximum(bars[gamma, taus] - self.bounds().lower[gamma, taus], np.finfo(float).tiny)
        return float(np.minimum(rise / room, 1.0).sum())

    def sum_cutoffs(self) -> FloatArray:
        """(G, T): sums of lower bounds at which a pair is excluded; inf for the best pair.

        A pair is compared with the best pair of the grid once that pair is solved. Before that, it is compared with the
        best pair whose tau is not larger, because a proof for small sizes needs no more.
        """
        upper = self.bounds().upper
        bar = np.minimum.accumulate(upper.min(axis=0))
        best = np.unravel_index(int(upper.argmin()), upper.shape)
        if self.cells.final[best].all():
            bar = np.full(len(bar), upper[best])
        bars = np.tile(bar * (1.0 - self.context.gap), (len(upper), 1))
        bars[best] = np.inf
        return bars

    def unexcluded_by_size(self) -> BoolArray:
        """(G, T, K): open subproblems of the pairs that `sum_cutoffs` do not exclude."""
        is_excluded = self.bounds().lower >= self.sum_cutoffs()
        return np.asarray(self.open & ~is_excluded[:, :, None])

    def objective_cutoffs(self, bars: FloatArray) -> FloatArray:
        """(G, T): full-data bounds at which the lower bounds of a pair sum to its cutoff in `bars`; inf for none.

        O(K log K) for each pair that changed, or that has another cutoff, since the last call.
        """
        n_writes, old_bars, cutoffs = self._cutoffs or (np.full(bars.shape, -1), bars, np.empty(bars.shape))
        is_new = (n_writes != self.cells.n_writes) | (bars != old_bars)
        if is_new.any():
            is_whole, cutoffs = self.context.folds.scores_all_left_out, cutoffs.copy()
            upper = np.where(is_whole, self.objective_upper[is_new] + self.slip, np.inf)
            cutoffs[is_new] = enough_on_all_rows(self.cells.lower[is_new], upper, bars[is_new] * (1.0 + ACCURATE_RTOL))
            self._cutoffs = self.cells.n_writes.copy(), bars, cutoffs
        return cutoffs

    def needs_full_tree(self) -> BoolArray:
        """(G, T): pairs whose best subset of the full data is not known and may be found by more work."""
        return ~self.all_rows.solved_pairs() & (self.tried.full_tries < DONE)

    def find_lowest_tries(self, pairs: BoolArray) -> None:
        """Compute `lowest_tries` of some pairs (G, T) from the tables; O(K) a pair."""
        tries = np.where(self.cells.final[pairs], DONE, self.tried.tree_tries[pairs])
        self.tried.lowest_tries[pairs] = tries.min(axis=-1)


def find_open_gammas(wanted: BoolArray, done: BoolArray) -> list[int]:
    """Return the indices of gammas with pairs that are wanted (G, T) and not done (G,), in descending order."""
    return [int(g) for g in np.flatnonzero(wanted.any(axis=1) & ~done)[::-1]]


def archive_state(state: GridState) -> Archive:
    """Return all that is known, as arrays."""
    pool, taus = state.cells.pool, state.context.grid.taus.tolist()
    subsets = [[result.by_size[tau] for tau in taus] for result in state.all_rows.best]
    stored: Archive = {}
    full = np.zeros((5, *state.context.shape[:2]))
    candidates: list[tuple[int, int, int]] = []
    values: list[float] = []
    for g, t in np.ndindex(len(subsets), len(taus)):
        subset = subsets[g][t]
        full[:, g, t] = (
            pool.number(subset.support), subset.lower, subset.upper, subset.margin, subset.complete,
        )  # fmt: skip
        candidates += [(g, t, pool.number(support)) for support in subset.candidates]
        values += subset.values if len(subset.values) == len(subset.candidates) else [np.nan] * len(subset.candidates)
    stored |= {"objective_upper": np.array(state.objective_upper)} | state.tried.pack()
    if not is_constant(state.cells.floor):
        stored["floor"] = state.cells.floor.copy()
    stored["has_supports"] = np.array(state.has_supports)
    stored["full"] = full
    stored["candidates"] = np.array(candidates, dtype=np.int64).reshape(-1, 3)
    stored["candidate_values"] = np.array(values)
    stored["weighted_folds"] = np.array(sorted(state.weighted), dtype=np.int64)
    shape = (-1, *next(iter(state.weighted.values())).shape) if state.weighted else (0, 0, *state.context.shape[:2])
    stored["weighted"] = np.array([state.weighted[fold] for fold in sorted(state.weighted)]).reshape(shape)
    offered = [(g, t, pool.number(np.frombuffer(key, dtype=np.int64))) for g, t, key in sorted(state.offered)]
    stored["offered"] = np.array(offered, dtype=np.int64).reshape(-1, 3)
    stored["nodes"] = np.array(state.counts.nodes)
    records = {name: list(vars(record).values()) for name, record in state.records.items()}
    stored["records"] = np.array(json.dumps(records))
    return add_prefix("cells", state.cells.archive()) | add_prefix("run", stored)


def check_archive(state: GridState, stored: Archive) -> None:
    """Raise `CorruptStore` unless `stored` is the archive of a search over the same grid."""
    position, cells = select_by_prefix("run", stored), select_by_prefix("cells", stored)
    check_like(position, select_by_prefix("run", archive_state(state)), LENGTHS_VARY)
    state.cells.check(cells, state.context.data.q)
    n_supports, (n_gammas, n_taus, n_folds) = len(cells["pool_sizes"]), state.context.shape
    largest = np.finfo(float).max
    state.tried.check(position, n_supports)
    check_range(position, "objective_upper", 0, np.inf)
    if not is_constant(state.cells.floor):
        check_range(position, "floor", 0.0, largest)
    full, candidates = position["full"], position["candidates"]
    check_range({"full": full[0]}, "full", 0, n_supports - 1)
    check_range({"full": full[1]}, "full", 0, largest)
    check_range({"full": full[2] - full[1]}, "full", 0, np.inf) if full.any() else None
    check_range(position, "nodes", 0, np.iinfo(np.int64).max)
    for name, ends in (("candidates", (n_gammas, n_taus, n_supports)), ("offered", (n_gammas, n_taus, n_supports))):
        for column, end in enumerate(ends):
            check_range({name: position[name].reshape(-1, 3)[:, column]}, name, 0, end - 1)
    check_range({"candidates": np.array(len(candidates) - len(position["candidate_values"]))}, "candidates", 0, 0)
    check_range(position, "weighted_folds", 0, n_folds - 1)
    check_range(position, "weighted", 0, largest)
    _read_records(position)


def restore_state(state: GridState, stored: Archive) -> None:
    """Take over an archive that was checked."""
    position = select_by_prefix("run", stored)
    state.cells.fill(select_by_prefix("cells", stored))
    supports, taus = state.cells.pool.supports, state.context.grid.taus.tolist()
    state.tried.restore(position)
    if not is_constant(state.objective_upper):
        state.objective_upper[...] = position["objective_upper"]
    state.has_supports[...] = position["has_supports"]
    if not is_constant(state.cells.floor):
        state.cells.floor[...] = position["floor"]
    candidates: dict[Pair, list[tuple[int, float]]] = {}
    for (g, t, number), value in zip(
        position["candidates"].tolist(), position["candidate_values"].tolist(), strict=True
    ):
        candidates.setdefault((g, t), []).append((number, value))
    if state.has_supports.any():
        state.all_rows.keep({
            g: BestSubsets(
                {tau: _subset(tau, position["full"][:, g, t], candidates.get((g, t), []), supports)
                 for t, tau in enumerate(taus)}, 0, False,
            )
            for g in range(len(state.has_supports))
        })  # fmt: skip
    folds = position["weighted_folds"].tolist()
    state.weighted.update(zip(folds, position["weighted"], strict=True))
    state.offered.update((g, t, supports[number].tobytes()) for g, t, number in position["offered"].tolist())
    state.counts.nodes = int(position["nodes"])
    state.records.update(_read_records(position))
    state.find_lowest_tries(np.ones(state.tried.lowest_tries.shape, dtype=bool))


def _read_records(position: Archive) -> dict[str, SourceRecord]:
    """Return what sources promised and kept; raises `CorruptStore` for anything else."""
    stored = parse_json(position["records"], "records")
    pairs = list(stored.values()) if isinstance(stored, dict) else [None]
    numbers = [pair if isinstance(pair, list) and len(pair) == 4 else [None] for pair in pairs]
    if not all(type(number) is float and 0.0 <= number < np.inf for pair in numbers for number in pair):
        raise CorruptStore("the records of its bounding methods are missing or damaged")
    return {name: SourceRecord(*pair) for name, pair in zip(stored, numbers, strict=True)}


def _subset(tau: int, numbers: FloatArray, candidates: list[tuple[int, float]], supports: list[IntArray]) -> BestSubset:
    """Return what an archive holds of the full data at a pair."""
    number, lower, upper, margin, complete = numbers.tolist()
    candidate_supports = tuple(supports[i] for i, _ in candidates)
    values = tuple(value for _, value in candidates)
    is_complete = bool(complete) and bool(candidate_supports)
    return BestSubset(tau, supports[int(number)], lower, upper, candidate_supports, values, margin, is_complete, True)
