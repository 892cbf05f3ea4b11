"""The cross-validation error of one support for all folds, against fits without each fold."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.common_error import common_errors, common_errors_by_row
from sparsecv_mio.kernels.leave_out import HeldOutRows

from .plain import Small, small
from .test_leave_out import listed


def truth(raw: Small, w: np.ndarray, folds: list[np.ndarray], support, centred: bool) -> float:
    """The weighted error of a support, each training set centred by its own weighted means."""
    total, root = 0.0, np.sqrt(w)
    for N in folds:
        rows = np.setdiff1d(np.arange(len(raw.y)), N)
        mean = w[rows] @ raw.X[rows] / w[rows].sum() if centred else 0.0
        level = w[rows] @ raw.y[rows] / w[rows].sum() if centred else 0.0
        X, y = root[:, None] * (raw.X - mean), root * (raw.y - level)
        total += float(np.sum((y[N] - X[N] @ Small(X[rows], y[rows]).beta(support)) ** 2))
    return total


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize(("length", "centred"), [(1, True), (1, False), (2, True), (4, False), (9, True)])
def test_errors_of_every_support(seed: int, length: int, centred: bool) -> None:
    raw = small(seed)
    n = len(raw.y)
    w = np.random.default_rng(seed).uniform(0.2, 2.0, n) if seed % 2 else np.ones(n)
    root = np.sqrt(w)
    mean, level = (w @ raw.X / w.sum(), w @ raw.y / w.sum()) if centred else (0.0, 0.0)
    problem = Small(root[:, None] * (raw.X - mean), root * (raw.y - level))
    folds = np.array_split(np.arange(n), max(n // length, 2))
    starts = np.concatenate([[0], np.cumsum([len(N) for N in folds])]).astype(np.int64)
    every, given = listed(problem, sizes=(1, 2, 3))
    rows = HeldOutRows(np.asfortranarray(problem.X), problem.y, starts, root)
    total, error = np.empty(len(every)), np.empty(len(every))
    kernel = common_errors_by_row if length == 1 else common_errors
    kernel(rows, 1.0 / w.sum() if centred else 0.0, given, np.inf, total, error)
    for a, support in enumerate(every):
        true = truth(raw, w, folds, support, centred)
        assert abs(total[a] - true) <= error[a] + 1e-12 * true
        assert error[a] <= 1e-6 * (1.0 + true)
    again, other = np.empty(len(every)), np.empty(len(every))
    limit = float(np.median(total))
    kernel(rows, 1.0 / w.sum() if centred else 0.0, given, limit, again, other)
    assert np.array_equal(again[total <= limit], total[total <= limit])
    assert np.all(again[total > limit] > limit - 1e-6)


def test_a_leverage_of_one_is_said() -> None:
    problem = Small(np.eye(3)[:, :1] * 1e12, np.ones(3))
    _, given = listed(problem, sizes=(1,))
    rows = HeldOutRows(np.asfortranarray(problem.X), problem.y, np.arange(4), np.ones(3))
    pairs = HeldOutRows(rows.V, rows.r, np.array([0, 2, 3]), rows.root)
    for kernel, some in ((common_errors_by_row, rows), (common_errors, pairs)):
        total, error = np.empty(1), np.empty(1)
        kernel(some, 0.0, given, np.inf, total, error)
        assert error[0] == np.inf
