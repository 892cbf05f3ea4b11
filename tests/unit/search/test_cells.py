"""The grid of a search and its tables: what is written to them is kept and checked, whatever stores it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from runs import drawn_run, to_end

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, Contradiction, CorruptStore
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state import cells, fold_tables, pairs
from sparsecv_mio.search.state.cells import (
    CellTable,
    parse_json,
)
from sparsecv_mio.search.state.fold_tables import PairRows
from sparsecv_mio.search.state.pairs import Grid, PairBounds, pair_bounds, proved_ends, proved_part, simplest, statuses


def test_json_is_read() -> None:
    assert parse_json(np.array("[1]"), "a") == [1]
    with pytest.raises(CorruptStore, match="its array `a` "):
        parse_json(np.array("{"), "a")


def new_table() -> CellTable:
    return CellTable.empty(2, 3, 4)


def test_narrow_tightens_scalars_and_parts_alike() -> None:
    cells = new_table()
    cells.narrow((0, 1, 2), 1.0, 5.0)
    cells.narrow((0, 1, slice(None)), np.array([0.5, 0.5, 0.5, -1.0]), 4.0)
    assert cells.lower[0, 1].tolist() == [0.5, 0.5, 1.0, 0.0]
    assert cells.upper[0, 1].tolist() == [4.0] * 4
    cells.narrow((1, np.array([0, 2]), 3), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert cells.lower[1, :, 3].tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(("lower", "upper"), [(3.1, 9.0), (0.0, 0.9), (float("nan"), 2.0), (0.0, float("nan"))])
def test_narrow_raises_on_contradiction(lower: float, upper: float) -> None:
    cells = new_table()
    cells.narrow((0, 0, 1), 1.0, 3.0)
    with pytest.raises(Contradiction, match="gamma 0, tau 0, fold 1"):
        cells.narrow((0, 0, slice(None)), np.array([0.0, lower, 0.0, 0.0]), np.array([9.0, upper, 9.0, 9.0]))
    assert (cells.lower[0, 0, 1], cells.upper[0, 0, 1]) == (1.0, 3.0)


@pytest.mark.parametrize(("lower", "upper", "nominal"), [(4.0, 4.0, 4.0), (7.0, 8.0, 7.5), (5.2, 5.5, 5.1)])
def test_settling_a_cell_outside_of_what_is_known_raises(lower: float, upper: float, nominal: float) -> None:
    cells, sure = new_table(), np.array([False, True, False, False])
    cells.narrow((0, 0, slice(None)), 5.0, 6.0)
    with pytest.raises(Contradiction, match="fold 1"):
        cells.decide((0, 0, 1), 0, nominal, lower, upper, 0.0)
    row = np.ones(4)
    with pytest.raises(Contradiction, match="fold 1"):
        cells.decide_part((0, 0, slice(None)), sure, 0, nominal * row, lower * row, upper * row, row, branched=True)
    assert not cells.decided.any()


def test_a_decided_cell_holds_its_number_for_good() -> None:
    cells = new_table()
    cells.narrow((0, 0, 0), 1.0, 2.0 * (1.0 - 1e-9))
    cells.decide((0, 0, 0), 0, 2.0, 2.0 - 1e-12, 2.0 + 1e-12, 0.0, value=3.0)
    assert cells.lower[0, 0, 0] <= cells.nominal[0, 0, 0] <= cells.upper[0, 0, 0]
    cells.offer((0, 0, 0), 0, 1.5, 0.5)
    cells.narrow((0, 0, 0), 2.0 + 1e-10, 5.0)
    assert cells.nominal[0, 0, 0] == 2.0 and cells.lower[0, 0, 0] <= 2.0
    with pytest.raises(Contradiction):
        cells.narrow((0, 0, 0), 2.1, 5.0)


def test_an_open_cell_shows_the_support_with_the_least_training_objective() -> None:
    cells = new_table()
    first, second = cells.pool.number(np.array([1, 2])), cells.pool.number(np.array([0, 2]))
    cells.offer((0, 0, slice(None)), first, np.full(4, 2.0), np.array([1.0, 2.0, 3.0, np.nan]))
    cells.offer((0, 0, slice(None)), second, np.full(4, 9.0), np.full(4, 2.5))
    assert cells.support[0, 0].tolist() == [first, first, second, second]
    assert cells.nominal[0, 0].tolist() == [2.0, 2.0, 9.0, 9.0]


def test_a_copy_is_of_one_moment() -> None:
    cells, stop = CellTable.empty(1, 1, 2000), threading.Event()

    def write() -> None:
        level = 0.0
        while not stop.is_set():
            level += 1.0
            cells.narrow((0, 0, slice(None)), level, np.inf)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            assert len(np.unique(cells.copy().lower)) == 1
    finally:
        stop.set()
        writer.join()


def test_of_many_cells_training_objectives_take_memory_once_an_undecided_cell_is_offered_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparsecv_mio.search.state.cells.MANY_CELLS", 1)
    assert CellTable.empty(2, 3, 4, values=True).value.is_stored
    cells, part = new_table(), (0, 0, slice(None))
    ones = np.ones(4)
    cells.decide_part(part, np.array([True, False, False, False]), 0, ones, ones, ones, ones, False)
    cells.decide((0, 0, 1), 0, 1.0, 1.0, 1.0, 0.0, value=7.0)
    assert not (cells.value.is_stored or cells.copy().value.is_stored) and np.isinf(cells.value).all()
    stored = cells.archive()
    cells.offer(part, 0, 2.0 * ones, 3.0 * ones)
    assert cells.value[0, 0].tolist() == [np.inf, np.inf, 3.0, 3.0]
    assert cells.nominal[0, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    again = new_table()
    again.fill(stored)
    assert again.decided.sum() == 2 and again.value.tolist() == stored["value"].tolist()


SHAPE = (3, 4, 7)


def indices(rng: np.random.Generator) -> list[Any]:
    """Every kind of index that readers use."""
    g, t, k = (int(rng.integers(size)) for size in SHAPE)
    folds, taus = rng.permutation(SHAPE[2])[:3], rng.permutation(SHAPE[1])[:2]
    mask = rng.random(SHAPE) < 0.3
    return [
        (g, t, k), (g, t), g, (g, t, folds), (g, t, slice(1, 4)), np.s_[:, t], np.s_[:, :, k], np.s_[g, :, :],
        np.s_[g, :2, :], np.s_[g, :, folds], (g, taus, k), (*np.ix_([0, g], taus), k),
        (np.array([0, g]), np.array([t, 1])), np.s_[g, :, 1:4], mask, ..., np.s_[..., k], (g, t, mask[g, t]),
        np.array([g, 0]), (np.int64(g), np.int32(t)), np.s_[:, :, 2:5], np.s_[: g + 1, t:],
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_array_it_stands_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, whole = PairRows(SHAPE, np.inf, float), np.full(SHAPE, np.inf)
    copies: list[tuple[PairRows, Any]] = []
    for step in range(120):
        at = indices(rng)[int(rng.integers(22))]
        np.testing.assert_array_equal(table[at], whole[at])
        assert np.shape(table[at]) == np.shape(whole[at])
        new: Any = float(rng.integers(3)) if rng.random() < 0.4 else rng.normal(size=np.shape(whole[at]))
        table[at], whole[at] = new, new
        if step % 17 == 0:
            copies.append((table.copy(), whole.copy()))
        np.testing.assert_array_equal(table.sum(axis=2), whole.sum(axis=2))
        np.testing.assert_array_equal(table.finite_rows(), np.isfinite(whole).all(axis=2))
    for copied, then in copies:
        np.testing.assert_array_equal(copied, then)
    np.testing.assert_array_equal(np.isfinite(table) & (table < 1.0), np.isfinite(whole) & (whole < 1.0))


def test_rows_are_held_where_folds_differ() -> None:
    table, other = PairRows(SHAPE, 0.0, float), PairRows(SHAPE, np.inf, float)
    table[1] = np.ones((4, 7))
    table[0, 0, 3] = 0.0
    assert table.n_stored_rows == 0
    table[2, 1] = other[2, 1] = np.arange(7.0)
    table.share_equal(other, 2, 1)
    assert table[2, 1].base is other[2, 1].base and table.n_stored_rows == 1
    table[2, 1, 0] = 9.0
    assert other[2, 1, 0] == 0.0 and table[2, 1, 0] == 9.0
    with pytest.raises(ValueError, match="read-only"):
        table[2, 1][0] = 3.0


def test_masks_are_counted_and_combined() -> None:
    marks, rows = PairRows(SHAPE, False, bool), np.zeros(SHAPE, dtype=bool)
    marks[0, 1, 2] = rows[0, 1, 2] = marks[1, 1] = rows[1, 1] = True
    assert marks.sum() == rows.sum() and marks.sum(axis=(0, 2)).tolist() == rows.sum(axis=(0, 2)).tolist()
    assert np.array_equal(~marks, ~rows) and np.array_equal(marks | ~rows, rows | ~rows)
    assert np.array_equal(marks.all(axis=2), rows.all(axis=2)) and np.array_equal(marks.any(axis=2), rows.any(axis=2))
    assert np.array_equal(marks.any(axis=(0, 1)), rows.any(axis=(0, 1))) and len(marks) == 3
    assert [part.shape for part in marks] == [(4, 7)] * 3


def said(record: Record) -> dict[str, Any]:
    """What a record says, except for seconds."""
    whole = json.loads(record.to_json())
    whole["work"] = {name: whole["work"][name] for name in ("nodes", "mios", "engine")}
    return whole


@pytest.mark.parametrize("method", ["rounds", "joint", "grid", "algorithm1", "descent", "bounds", "logistic"])
def test_a_search_with_rows_of_pairs_gives_the_same_record(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] - X[:, 1] + rng.logistic(size=40)
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": range(1, 5), "threads": 1}
    asked["one_se"] = method != "bounds"
    asked |= {"loss": "logistic"} if method == "logistic" else {"method": method}
    data = Dataset.from_arrays(X, np.where(y > 0, 1.0, 0.0) if method == "logistic" else y)
    empty = cells.CellTable.empty
    always = staticmethod(lambda *sizes, **how: empty(*sizes, **how | {"by_pairs": True}))
    for folds in ("loo", "4"):
        plain = cross_validate(data, folds, **asked)
        monkeypatch.setattr(fold_tables, "BY_PAIRS", 1)
        monkeypatch.setattr(cells.CellTable, "empty", always)
        by_pairs = cross_validate(data, folds, **asked)
        monkeypatch.undo()
        assert said(plain) == said(by_pairs), folds


K = 30
LOSSES, VALUES = np.arange(1.0, K + 1.0), np.linspace(5.0, 6.0, K)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> CellTable:
    """A table whose pair (0, 1) is held as sums, and shows one support in all folds."""
    monkeypatch.setattr(fold_tables, "BY_PAIRS", 1)
    made = CellTable.empty(1, 3, K, by_pairs=True)
    made.set_recompute_function(lambda g, numbers: (VALUES.copy(), LOSSES.copy()))
    made.offer(np.s_[0, 1, :], made.pool.number(np.array([2])), LOSSES, VALUES)
    made.hold_sums(0, 1, 0.25, intervals=True)
    assert made.nominal[0, 1].tolist() == [LOSSES.mean()] * K and made.standard_error(0, 1) == 0.25
    return made


def replaced(fold: int, loss: float) -> list[float]:
    return [loss if k == fold else float(old) for k, old in enumerate(LOSSES)]


@pytest.mark.parametrize("write", [
    lambda table: table.offer((0, 1, 4), 0, 9.0, 1.0),
    lambda table: table.rescore((0, 1, 4), 9.0),
    lambda table: table.decide((0, 1, 4), support=0, nominal=9.0, lower=9.0, upper=9.0, tie=0.0, value=1.0),
    lambda table: table.decide_part(
        np.s_[0, 1, :], np.arange(K) == 4, 0, np.full(K, 9.0), np.full(K, 9.0), np.full(K, 9.0), np.ones(K), False),
])  # fmt: skip
def test_every_writer_finds_rows_while_a_record_is_made(table: CellTable, write: Callable[[CellTable], None]) -> None:
    free: list[bool] = []

    def read() -> None:
        free.append(table.lock.acquire(timeout=0.5))
        if free[-1]:
            table.lock.release()

    def fitted(g: int, numbers: object) -> tuple[FloatArray, FloatArray]:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
        return VALUES.copy(), LOSSES.copy()

    table.set_recompute_function(fitted)
    write(table)
    assert free == [True] and table.nominal[0, 1].tolist() == replaced(4, 9.0)
    assert table.value[0, 1][5:].tolist() == VALUES[5:].tolist()
    assert table.standard_error(0, 1) is None
    assert table.nominal.sum(axis=2)[0, 1] == pytest.approx(LOSSES.sum() - LOSSES[4] + 9.0)


def test_an_offer_that_is_no_better_changes_no_fold(table: CellTable) -> None:
    table.offer((0, 1, 0), 0, 9.0, 5.5)  # above the objective of that fold, below the largest one
    assert table.nominal[0, 1].tolist() == LOSSES.tolist()


def test_offers_to_all_folds_replace_all(table: CellTable) -> None:
    table.offer(np.s_[0, 1, :], 0, 2.0 * LOSSES, VALUES + 3.0)
    assert table.nominal[0, 1].tolist() == (2.0 * LOSSES).tolist() and table.standard_error(0, 1) is None


def test_without_time_the_standard_error_is_unknown(table: CellTable) -> None:
    table.set_recompute_function(lambda g, numbers: (np.full(K, np.inf), np.full(K, np.nan)))
    table.offer((0, 1, 4), 0, 9.0, 1.0)
    assert np.isnan(table.standard_error(0, 1) or 0.0) and np.isfinite(table.nominal[0, 1]).all()


def decided_without_time(table: CellTable) -> None:
    again = table.shown_again
    table.set_recompute_function(lambda g, numbers: (np.full(K, np.inf), np.full(K, np.nan)))
    table.decide((0, 1, 4), support=0, nominal=9.0, lower=9.0, upper=9.0, tie=0.0, value=1.0)
    assert again is not None
    table.set_recompute_function(again)


def test_a_fold_that_was_decided_without_time_stays_as_it_is_where_the_others_are_shown_again(table: CellTable) -> None:
    decided_without_time(table)
    table.offer((0, 1, 0), 0, 9.0, 9.0)
    assert table.nominal[0, 1].tolist() == replaced(4, 9.0) and table.standard_error(0, 1) is None


def test_where_all_folds_but_those_decided_have_their_own_the_standard_error_is_that_of_rows(table: CellTable) -> None:
    decided_without_time(table)
    others = np.flatnonzero(np.arange(K) != 4)
    table.rescore((0, 1, others), 2.0 * LOSSES[others], VALUES[others])
    assert table.nominal[0, 1][others].tolist() == (2.0 * LOSSES[others]).tolist()
    assert table.nominal[0, 1, 4] == 9.0 and table.standard_error(0, 1) is None


def test_an_offer_to_one_fold_of_each_of_many_pairs_is_none_to_all_folds_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold_tables, "BY_PAIRS", 1)
    made = CellTable.empty(K, 1, K, by_pairs=True)
    made.set_recompute_function(lambda g, numbers: (VALUES.copy(), LOSSES.copy()))
    made.offer(np.s_[3, 0, :], 0, LOSSES, VALUES)
    made.hold_sums(3, 0, 0.25, intervals=False)
    made.offer(np.s_[:, 0, 0], 0, np.full(K, 9.0), np.full(K, 1.0))
    assert made.nominal[3, 0].tolist() == replaced(0, 9.0)


def test_checkpoints_hold_sums_and_no_row_of_theirs(table: CellTable) -> None:
    state, same = table.archive(), CellTable.empty(1, 3, K, by_pairs=True)
    assert state["nominal.rows"].shape == (0, K)
    same.check(state, 3)
    same.fill(state)
    assert same.nominal.sum(axis=2).tolist() == table.nominal.sum(axis=2).tolist()
    assert same.standard_error(0, 1) == 0.25 and same.lower.sum(axis=2).tolist() == table.lower.sum(axis=2).tolist()
    for name, wrong in (("lower.sums", -1.0), ("nominal.at", 7), ("pairs_of_sums", 5)):
        with pytest.raises(CorruptStore):
            same.check(state | {name: np.full_like(state[name], wrong) if len(state[name]) else np.array([7])}, 3)


@pytest.mark.parametrize(
    ("gammas", "taus", "message"),
    [
        ([], [1], "empty"), ([1.0], [], "empty"), ([-0.1], [1], "gamma -0.1 "), ([float("nan")], [1], "gamma nan"),
        ([1e301], [1], "gamma"), ([1.0], [5], "give a number from 0 to 4"), ([1.0], [-1], "tau -1"),
        ([1.0], [1.5], "tau 1.5"),
    ],
)  # fmt: skip
def test_a_grid_out_of_range(gammas: list[float], taus: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Grid.of(gammas, taus, 4)


def test_a_grid_is_ascending_without_repeats() -> None:
    grid = Grid.of([1.0, 0.1, 1.0], [3, 0, 3], 4)
    assert grid.gammas.tolist() == [0.1, 1.0] and grid.taus.tolist() == [0, 3]


GAMMAS, TAUS = np.array([0.1, 1.0]), np.array([1, 2, 3])


def test_alike_pairs_give_the_smallest_tau_then_the_largest_gamma() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    assert pair_bounds(cells, GAMMAS, TAUS).best == (1, 0)
    assert simplest(np.array([[False, True, True], [False, False, True]]), GAMMAS, TAUS) == (0, 1)


def test_without_a_proof_the_least_estimate_is_reported() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 0.0, 9.0)
    cells.narrow((0, 0, slice(None)), 0.0, 5.0)
    cells.offer((slice(None), slice(None), slice(None)), 0, np.full((2, 3, 2), 4.0), 1.0)
    cells.offer((1, 2, slice(None)), 0, np.full(2, 3.0), 0.5)
    now = pair_bounds(cells, GAMMAS, TAUS)
    assert now.best == (0, 0) and now.reported_pair(1e-4, GAMMAS, TAUS) == (1, 2)


def drawn(seed: int) -> tuple[PairBounds, np.ndarray, np.ndarray]:
    """A table in which some cells are decided, some bounded, ties among them."""
    rng = np.random.default_rng(seed)
    G, T, K = (int(rng.integers(1, 6)) for _ in range(3))
    cells = CellTable.empty(G, T, K)
    h = rng.uniform(1.0, 1.5 if seed % 3 else 1.0001, size=(G, T, K))
    easy = rng.random((G, T)) < rng.uniform(0.2, 1.0)
    for g, t, j in np.ndindex(G, T, K):
        if easy[g, t] or rng.random() < 0.3:
            tie = 0.05 if rng.random() < 0.1 else 0.0
            low, held = float(h[g, t, j]) - tie, float(h[g, t, j])
            cells.decide((g, t, j), 0, held, low * (1 - 1e-12), held * (1 + 1e-12), tie)
        else:
            cells.narrow((g, t, j), rng.uniform(0.3, 1.0) * h[g, t, j], rng.uniform(1.0, 2.0) * h[g, t, j])
            cells.offer((g, t, j), 0, h[g, t, j], 1.0)
    gammas, taus = np.sort(rng.uniform(size=G)), np.arange(1, T + 1)
    return pair_bounds(cells, gammas, taus), gammas, taus


@pytest.mark.parametrize("gap", [0.0, 1e-4, 0.1])
def test_no_larger_part_is_proved(gap: float) -> None:
    seen = set()
    for seed in range(150):
        now, gammas, taus = drawn(seed)
        shape = now.lower.shape
        parts = []
        for most in range(shape[1] + 1):
            for rows in range(shape[0] + 1):
                if most or rows:
                    part = (np.arange(shape[1]) < most) | (np.arange(shape[0]) >= shape[0] - rows)[:, None]
                    best = np.zeros(shape, dtype=bool)
                    best[now.best] = True
                    for pairs in (part | best, part):
                        if now.restrict(pairs, gammas, taus).is_certified(gap):
                            parts.append((most, rows, pairs))
                            break
        found = proved_part(now, gap, gammas, taus)
        # as many taus as are proved at every gamma by themselves; then as many gammas as go with them
        alone = max([most for most, rows, _ in parts if rows == 0], default=0)
        beside = max([rows for most, rows, _ in parts if most == alone], default=0)
        assert (found is None) == (alone == beside == 0)
        if found is None:
            continue
        assert (found.taus, found.gammas) == (alone, beside)
        seen.add((found.taus == 0, found.gammas == 0, found.taus == shape[1]))
        inside = next(part for most, rows, part in parts if (most, rows) == (alone, beside))
        assert inside[found.bounds.best] and found.bounds.ceiling <= now.upper[inside].min() * (1.0 + 1e-7)
        assert found.bounds.floor == now.lower[inside].min()
        ends = proved_ends(now, gap, gammas, taus)
        assert ends == (
            int(taus[found.taus - 1]) if found.taus else None, float(gammas[-found.gammas]) if found.gammas else None
        )  # fmt: skip
        assert (now.is_certified(gap)) <= (found.taus == shape[1])
    assert len(seen) >= 4


def test_nothing_is_proved_of_an_empty_table() -> None:
    now = pair_bounds(CellTable.empty(2, 3, 4), np.array([0.1, 1.0]), np.array([1, 2, 3]))
    assert proved_part(now, 0.1, np.array([0.1, 1.0]), np.array([1, 2, 3])) is None
    assert set(statuses(now.lower, now.upper, now.n_solved_folds == 4, 0.1, False).ravel()) == {"open"}


def test_the_gap_excludes_pairs_that_are_hardly_better() -> None:
    lower, upper = np.array([[1.0, 0.95, 0.8]]), np.array([[1.0, 2.0, 1.5]])
    decided = np.array([[True, False, False]])
    assert statuses(lower, upper, decided, 0.0, False).tolist() == [["decided", "open", "open"]]
    assert statuses(lower, upper, decided, 0.1, False).tolist() == [["decided", "excluded", "open"]]
    assert statuses(lower, upper, decided, 0.0, True).tolist() == [["decided", "excluded", "excluded"]]
    alone = statuses(lower, upper, np.zeros((1, 3), dtype=bool), 0.1, True)
    assert alone.tolist() == [["open", "excluded", "excluded"]]  # nobody excludes the best


def test_a_pair_without_a_model_of_every_fold_is_not_taken_and_the_pair_taken_is_decided() -> None:
    run = to_end(drawn_run())
    now, asked = run.state.bounds(), run.context
    grid, unit = asked.grid, asked.data.y_unit**2
    wide = replace(now, upper=now.upper * 0.0 + now.upper[now.best], nominal=now.nominal.copy())
    first = pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).pair
    assert first == (len(grid.gammas) - 1, 0) != now.best
    wide.nominal[first] = np.inf
    assert pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).pair != first
    decided = now.cells.decided[first].copy()
    now.cells.decided[first] = False
    wide.nominal[first] = now.nominal[first]
    assert pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).missing[first]
    now.cells.decided[first] = decided
