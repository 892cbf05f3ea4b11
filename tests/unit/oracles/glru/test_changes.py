"""Changes of dense and of sparse data are the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecv_mio.oracles.glru import (
    Loss,
    Method,
    Regularizer,
    assess,
    change_columns,
    change_rows,
    prediction_intervals,
)

from .fits import LOSSES, RIDGES, fitted


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "regularizer",
    [*RIDGES, Regularizer(0.3, intercept=True), Regularizer(0.0, 0.05, True), Regularizer(0.0, 0.05)],
    ids=str,
)
def test_sparse_and_dense_agree(loss: Loss, regularizer: Regularizer) -> None:
    dense, other = (fitted(loss, regularizer, sparse=sparse) for sparse in (False, True))
    other = assess(other.problem, dense.w)
    x = np.random.default_rng(2).normal(size=(3, 6))
    pairs = [
        (change_rows(dense, [2]), change_rows(other, [2]), x),
        (change_rows(dense, add=(x, np.ones(3))), change_rows(other, add=(sp.csr_array(x), np.ones(3))), x),
        (change_columns(dense, [1]), change_columns(other, [1]), x[:, 1:]),
    ]
    for one, two, test in pairs:
        assert one.gap == pytest.approx(two.gap, rel=1e-9, abs=1e-13)
        for method in Method:
            a, b = prediction_intervals(one, test, method), prediction_intervals(two, test, method)
            assert np.allclose(a.lower, b.lower) and np.allclose(a.upper, b.upper)
