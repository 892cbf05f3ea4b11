"""Supports as rows of a table, filled up, and by their places in some columns."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from sparsecv_mio.errors import Contradiction, CorruptStore
from sparsecv_mio.search.state.cells import (
    CellTable,
    parse_json,
)


def test_json_is_read() -> None:
    assert parse_json(np.array("[1]"), "a") == [1]
    with pytest.raises(CorruptStore, match="its array `a` "):
        parse_json(np.array("{"), "a")


def table() -> CellTable:
    return CellTable.empty(2, 3, 4)


def test_narrow_tightens_scalars_and_parts_alike() -> None:
    cells = table()
    cells.narrow((0, 1, 2), 1.0, 5.0)
    cells.narrow((0, 1, slice(None)), np.array([0.5, 0.5, 0.5, -1.0]), 4.0)
    assert cells.lower[0, 1].tolist() == [0.5, 0.5, 1.0, 0.0]
    assert cells.upper[0, 1].tolist() == [4.0] * 4
    cells.narrow((1, np.array([0, 2]), 3), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert cells.lower[1, :, 3].tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(("lower", "upper"), [(3.1, 9.0), (0.0, 0.9), (float("nan"), 2.0), (0.0, float("nan"))])
def test_narrow_raises_on_contradiction(lower: float, upper: float) -> None:
    cells = table()
    cells.narrow((0, 0, 1), 1.0, 3.0)
    with pytest.raises(Contradiction, match="gamma 0, tau 0, fold 1"):
        cells.narrow((0, 0, slice(None)), np.array([0.0, lower, 0.0, 0.0]), np.array([9.0, upper, 9.0, 9.0]))
    assert (cells.lower[0, 0, 1], cells.upper[0, 0, 1]) == (1.0, 3.0)


@pytest.mark.parametrize(("lower", "upper", "nominal"), [(4.0, 4.0, 4.0), (7.0, 8.0, 7.5), (5.2, 5.5, 5.1)])
def test_settling_a_cell_outside_of_what_is_known_raises(lower: float, upper: float, nominal: float) -> None:
    cells, sure = table(), np.array([False, True, False, False])
    cells.narrow((0, 0, slice(None)), 5.0, 6.0)
    with pytest.raises(Contradiction, match="fold 1"):
        cells.decide((0, 0, 1), 0, nominal, lower, upper, 0.0)
    row = np.ones(4)
    with pytest.raises(Contradiction, match="fold 1"):
        cells.decide_part((0, 0, slice(None)), sure, 0, nominal * row, lower * row, upper * row, row, branched=True)
    assert not cells.decided.any()


def test_a_decided_cell_holds_its_number_for_good() -> None:
    cells = table()
    cells.narrow((0, 0, 0), 1.0, 2.0 * (1.0 - 1e-9))
    cells.decide((0, 0, 0), 0, 2.0, 2.0 - 1e-12, 2.0 + 1e-12, 0.0, value=3.0)
    assert cells.lower[0, 0, 0] <= cells.nominal[0, 0, 0] <= cells.upper[0, 0, 0]
    cells.offer((0, 0, 0), 0, 1.5, 0.5)
    cells.narrow((0, 0, 0), 2.0 + 1e-10, 5.0)
    assert cells.nominal[0, 0, 0] == 2.0 and cells.lower[0, 0, 0] <= 2.0
    with pytest.raises(Contradiction):
        cells.narrow((0, 0, 0), 2.1, 5.0)


def test_an_open_cell_shows_the_support_with_the_least_training_objective() -> None:
    cells = table()
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
    cells, part = table(), (0, 0, slice(None))
    ones = np.ones(4)
    cells.decide_part(part, np.array([True, False, False, False]), 0, ones, ones, ones, ones, False)
    cells.decide((0, 0, 1), 0, 1.0, 1.0, 1.0, 0.0, value=7.0)
    assert not (cells.value.is_stored or cells.copy().value.is_stored) and np.isinf(cells.value).all()
    stored = cells.archive()
    cells.offer(part, 0, 2.0 * ones, 3.0 * ones)
    assert cells.value[0, 0].tolist() == [np.inf, np.inf, 3.0, 3.0]
    assert cells.nominal[0, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    again = table()
    again.fill(stored)
    assert again.decided.sum() == 2 and again.value.tolist() == stored["value"].tolist()
