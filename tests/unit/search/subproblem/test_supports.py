"""Supports as rows of a table, filled up, and by their places in some columns."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.subproblem.supports import filled_up, missing_columns, places_in, table_of


def test_tables() -> None:
    assert table_of([np.array([3]), np.array([0, 7])], 2).tolist() == [[3, -1], [0, 7]]
    assert table_of([], 4).shape == (0, 4)


def test_only_what_is_missing_is_added() -> None:
    support = np.array([2, 5])
    assert missing_columns(support, 4, np.array([5, 9, 2, 0, 1])).tolist() == [9, 0]
    assert filled_up(support, 4, np.array([5, 9, 2, 0, 1])).tolist() == [0, 2, 5, 9]
    assert filled_up(support, 2, np.array([0])).tolist() == [2, 5]
    assert filled_up(support, 9, np.array([5, 0])).tolist() == [0, 2, 5]


def test_places_and_back() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        columns = np.sort(rng.choice(30, 12, replace=False))
        inside = np.sort(rng.choice(columns, 4, replace=False))
        outside = np.append(inside, np.setdiff1d(np.arange(30), columns)[0])
        found = places_in(columns, [outside, inside])
        assert len(found) == 1 and columns[found[0]].tolist() == inside.tolist()
    assert places_in(columns, [np.zeros(0, dtype=np.int64)])[0].tolist() == []
