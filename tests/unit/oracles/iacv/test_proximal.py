"""Accelerated proximal gradient on many rows at once."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.oracles.iacv.proximal import accelerated


def test_accelerated_solves_rows_of_unlike_conditioning():
    rng = np.random.default_rng(2)
    scale = np.array([1.0, 0.1, 1e-3])
    target = rng.standard_normal((3, 4))
    z, taken = accelerated(lambda v: scale[:, None] * (v - target), lambda v: v, np.zeros((3, 4)), 1.0, 20_000, 1e-14)
    assert np.abs(z - target).max() < 1e-9
    assert taken < 20_000
