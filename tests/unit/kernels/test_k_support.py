"""The k-support norm, its proximal map and sums of largest entries against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import k_support as kernel

from . import plain

VECTORS = [
    np.array([3.0, 1.0, 2.0, 0.5]),
    np.array([1.0, 1.0, 1.0, 1.0]),
    np.array([2.0, 0.0, 2.0, 0.0, 1.0]),
    np.zeros(3),
    np.array([4.0]),
    *(np.abs(np.random.default_rng(seed).standard_normal(9)) for seed in range(6)),
]


@pytest.mark.parametrize("values", VECTORS, ids=str)
def test_largest_and_support_norm(values: np.ndarray) -> None:
    for k in range(len(values) + 1):
        heap = np.empty(max(k, 1))
        assert kernel.largest(values, len(values), k, heap) == pytest.approx(plain.largest(values, k))
        assert np.array_equal(heap[:k], np.sort(values)[::-1][:k])
        places = np.empty(k, dtype=np.int64)
        kernel.largest_places(values, len(values), k, places)
        assert np.array_equal(places, np.argsort(-values, kind="stable")[:k])
        norm = kernel.support_norm(values, len(values), k, heap)
        assert norm == pytest.approx(plain.support_norm(values, k), rel=1e-9) or norm == plain.support_norm(values, k)
    head = values[:-1]
    assert kernel.largest(values, len(head), 2, np.empty(2)) == pytest.approx(plain.largest(head, 2))


@pytest.mark.parametrize("values", VECTORS, ids=str)
@pytest.mark.parametrize("step", [1.0, 0.01])
def test_scale_of_the_proximal_map(values: np.ndarray, step: float) -> None:
    for k in range(1, len(values)):
        t = kernel.prox_scale(values, len(values), k, step)
        if np.count_nonzero(values) >= k:
            assert np.clip(values * t - step, 0.0, 1.0).sum() == pytest.approx(k, rel=1e-9)
        else:  # out of reach: at least every nonzero entry is at 1
            assert np.all(values[values > 0] * t - step >= 1.0 - 1e-9) and (values.any() or t == np.inf)


@pytest.mark.parametrize("values", [np.array([2.0, -1.0, 5.0, 5.0]), np.zeros(0)], ids=str)
def test_sum_of_the_largest(values: np.ndarray) -> None:
    for k in range(6):
        assert kernel.top_sum(values, k) == pytest.approx(plain.largest(values, k))
