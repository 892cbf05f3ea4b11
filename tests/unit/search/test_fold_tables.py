"""Tables by rows of pairs are read and written as the arrays they stand for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state import cells, fold_tables
from sparsecv_mio.search.state.fold_tables import PairRows

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
