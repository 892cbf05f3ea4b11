"""Random orders: the published generator, the shuffle step by step, and that it is even."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.treecv_order import shuffled_range, splitmix

from .shuffle import plain_shuffle, plain_splitmix


def test_generator() -> None:
    assert int(splitmix(np.uint64(0))) == plain_splitmix(0) == 0xE220A8397B1DCDAF
    for x in (1, 2**63, 2**64 - 1):
        assert int(splitmix(np.uint64(x))) == plain_splitmix(x)


@pytest.mark.parametrize("first, last, seed", [(0, 1, 0), (4, 4, 1), (3, 20, 5), (100, 400, 2**40)])
def test_order(first: int, last: int, seed: int) -> None:
    out = np.full(last - first + 1, -7, dtype=np.int64)
    shuffled_range(first, last, seed, out)
    assert out[-1] == -7 and out[:-1].tolist() == plain_shuffle(first, last, seed)
    assert sorted(out[:-1].tolist()) == list(range(first, last))


def test_orders_are_even() -> None:
    counts = np.zeros((4, 4))
    out = np.empty(4, dtype=np.int64)
    for seed in range(8000):
        shuffled_range(0, 4, seed, out)
        counts[np.arange(4), out] += 1
    assert np.abs(counts - 2000).max() < 200
