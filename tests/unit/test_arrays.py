"""The types of arrays are named once; columns beside ones."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio import arrays
from sparsecv_mio.arrays import base_with_ones, give_back_memory, prepend_ones


def test_columns_beside_ones_are_found_where_they_are_and_nowhere_else() -> None:
    X = np.arange(12.0).reshape(4, 3)
    whole = prepend_ones(X, np.array([2, 0]))
    assert whole.tolist() == [[1.0] * 4, X[:, 2].tolist(), X[:, 0].tolist()]
    assert base_with_ones(whole[1:].T) is whole
    others = (X, whole[1:].T.copy(), whole[1:].T[::-1], whole[:2].T, whole[1:, :3].T)
    assert all(base_with_ones(other) is None for other in others)
    whole[0, 1] = 0.5
    assert base_with_ones(whole[1:].T) is None


def test_memory_is_given_back_where_the_library_can_and_arrays_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [np.full(50_000, float(i)) for i in range(40)]
    del kept[::2]
    give_back_memory()
    assert [row[0] for row in kept] == list(range(1, 40, 2)) and all(np.ptp(row) == 0.0 for row in kept)
    monkeypatch.setattr(arrays.ctypes, "CDLL", lambda _: object())  # of another C library
    give_back_memory()
