"""Supports kept within a bar: every one that fits, the others give way where there is no room."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.kernels.kept import keep_support, new_kept
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE


def status_of(q: int, number: int) -> np.ndarray:
    """A support that tells its number: the columns of its binary digits."""
    digits = (number >> np.arange(q)) & 1
    return np.where(digits, np.where(np.arange(q) % 2, FREE, INSIDE), DROPPED).astype(np.int8)


def test_kept_supports_give_way_to_better_ones() -> None:
    rng, q, capacity = np.random.default_rng(0), 6, 5
    bars, kept, count = np.array([np.inf, np.inf]), new_kept(capacity, q), 0
    expected: list[tuple[int, int, float]] = []
    for number in range(60):
        row, value = int(rng.integers(0, 2)), float(rng.uniform(0.0, 10.0))
        bars[row] = min(bars[row], value + 3.0)
        if value > bars[row]:
            continue
        found = keep_support(kept, count, status_of(q, number), row, value, bars)
        if len(expected) == capacity:
            expected = [one for one in expected if one[2] <= bars[one[1]]]
        if len(expected) == capacity:
            assert found == -1
            continue
        expected.append((number, row, value))
        count = found
        assert count == len(expected)
        for r, (known, at, f) in enumerate(expected):
            assert np.array_equal(kept.mask[r], status_of(q, known) != DROPPED)
            assert kept.row[r] == at and kept.value[r] == f
