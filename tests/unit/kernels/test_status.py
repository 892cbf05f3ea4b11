"""Columns by what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE, list_columns


@pytest.mark.parametrize("size", [0, 1, 9])
def test_lists_of_columns(size: int) -> None:
    status = np.random.default_rng(size).integers(0, 3, size).astype(np.int8)
    inside, free = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    held, left = list_columns(status, inside, free)
    assert np.array_equal(inside[:held], np.flatnonzero(status == INSIDE))
    assert np.array_equal(free[:left], np.flatnonzero(status == FREE))
    assert held + left + np.count_nonzero(status == DROPPED) == size
