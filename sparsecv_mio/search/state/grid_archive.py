"""The state of a search over a grid as the arrays of a checkpoint, with functions that check and restore it."""

from __future__ import annotations

import json

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.state.cells import (
    Archive,
    add_prefix,
    check_like,
    check_range,
    parse_counts,
    parse_json,
    select_by_prefix,
)
from sparsecv_mio.search.state.grid_state import GridState, SourceRecord
from sparsecv_mio.search.state.pairs import Pair
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets

LENGTHS_VARY = (
    "candidates", "candidate_values", "weighted", "weighted_folds", "by_engine", "records", "accounts", "offered",
)  # fmt: skip


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
    stored |= state.objective_upper.pack("objective_upper") | state.tried.pack()
    if state.cells.floor.is_stored:
        stored |= state.cells.floor.pack("floor")
    stored["has_supports"] = np.array(state.has_supports)
    stored["full"] = full
    stored["candidates"] = np.array(candidates, dtype=np.int64).reshape(-1, 3)
    stored["candidate_values"] = np.array(values)
    stored["weighted_folds"] = np.array(sorted(state.weighted), dtype=np.int64)
    shape = (-1, *next(iter(state.weighted.values())).shape) if state.weighted else (0, 0, *state.context.shape[:2])
    stored["weighted"] = np.array([state.weighted[fold] for fold in sorted(state.weighted)]).reshape(shape)
    offered = [(g, t, pool.number(np.frombuffer(key, dtype=np.int64))) for g, t, key in sorted(state.offered)]
    stored["offered"] = np.array(offered, dtype=np.int64).reshape(-1, 3)
    stored["nodes"], stored["by_engine"] = np.array(state.counts.nodes), np.array(json.dumps(state.counts.by_engine))
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
    check_range({"": np.asarray(state.objective_upper.unpack("objective_upper", position))}, "", 0, np.inf)
    if state.cells.floor.is_stored:
        check_range({"floor": np.asarray(state.cells.floor.unpack("floor", position))}, "floor", 0.0, largest)
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
    parse_counts(position["by_engine"], "by_engine")
    _read_records(position)


def restore_state(state: GridState, stored: Archive) -> None:
    """Take over an archive that was checked."""
    position = select_by_prefix("run", stored)
    state.cells.fill(select_by_prefix("cells", stored))
    supports, taus = state.cells.pool.supports, state.context.grid.taus.tolist()
    state.tried.restore(position)
    state.objective_upper.become(state.objective_upper.unpack("objective_upper", position))
    state.has_supports[...] = position["has_supports"]
    if state.cells.floor.is_stored:
        state.cells.floor.become(state.cells.floor.unpack("floor", position))
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
    state.counts.nodes, state.counts.by_engine = (
        int(position["nodes"]),
        parse_counts(position["by_engine"], "by_engine"),
    )
    state.records.update(_read_records(position))
    state.find_lowest_tries(np.ones(state.tried.lowest_tries.shape, dtype=bool))
    state.clear_cache()


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
