"""Whatever is written to a pair held as sums finds the rows that its folds showed, and checkpoints keep both."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.state import fold_tables
from sparsecv_mio.search.state.cells import CellTable

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
