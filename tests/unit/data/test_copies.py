"""Columns that repeat another one up to its sign and scale."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data import copies
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_copies(intercept: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 9))
    X[:, 2] = X[:, 0]
    X[:, 3] = -X[:, 1]
    X[:, 4] = 3.7 * X[:, 0]
    X[:, 5] = X[:, 1] + 5.0
    X[:, 6] = -X[:, 2]
    X[:, 7] = X[:, 8] * (1 + 1e-9 * rng.standard_normal(30))
    data = Dataset.from_arrays(X, rng.standard_normal(30))
    shifted = 1 if intercept != "none" else -1
    assert standardize(data, "length", intercept).copy_of.tolist() == [-1, -1, 0, 1, 0, shifted, 0, -1, -1]
    unscaled = standardize(data, "none", intercept)
    assert unscaled.copy_of.tolist() == [-1, -1, 0, 1, -1, shifted, 0, -1, -1], "3.7 x pays another penalty than x"
    assert "'x3' of 'x1'" in unscaled.warnings[0] and len(unscaled.warnings) == 1


def test_copies_of_indicators_and_of_uncorrelated_columns() -> None:
    side = np.tile([0.0, 1.0], 20)
    other = np.repeat([0.0, 1.0], 20)
    X = np.column_stack([side, 1 - side, other, 2 * other - 1, side * other])
    std = standardize(Dataset.from_arrays(X, np.arange(40.0)))
    assert std.copy_of.tolist() == [-1, 0, -1, 2, -1]


def test_copies_in_many_columns_need_no_comparison_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 4000))
    X[:, 1000:1100] = -2.0 * X[:, :100]
    calls: list[int] = []
    same = copies._same
    monkeypatch.setattr(copies, "_same", lambda *a: calls.append(1) or same(*a))
    copy_of = standardize(Dataset.from_arrays(X, rng.standard_normal(30))).copy_of
    assert np.array_equal(np.flatnonzero(copy_of >= 0), np.arange(1000, 1100))
    assert np.array_equal(copy_of[1000:1100], np.arange(100))
    assert len(calls) < 200
