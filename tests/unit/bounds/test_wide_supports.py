"""Incumbents from rows: their values, forward selection and swaps."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.bounds.wide_supports import WideSupports


def drawn(seed: int, n: int = 12, q: int = 40) -> WideRows:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))
    return WideRows(X, 3.0 * X[:, 1] - 2.0 * X[:, 7] + 0.1 * rng.standard_normal(n), np.zeros((0, q)), np.zeros(0))


def objective(rows: WideRows, support: np.ndarray) -> float:
    return rows.yy - float(rows.c[support] @ np.linalg.solve(rows.matrix(support), rows.c[support]))


@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_the_supports(seed: int) -> None:
    rows = drawn(seed)
    known = WideSupports(rows, lambda: False)
    known.take([np.array([9, 3]), np.array([30])])
    first = dict(known.best)
    known.search([1, 2, 4], swap_rounds=2)
    assert known.support[2].tolist() == [1, 7]
    for size, support in known.support.items():
        assert len(support) == size and np.all(np.diff(support) > 0)
        assert known.best[size] == pytest.approx(objective(rows, support), rel=1e-9)
        assert known.best[size] <= first.get(size, np.inf)
    known.take([np.array([0, 2])])
    assert known.support[2].tolist() == [1, 7], "a worse one is not kept"


def test_a_point_is_rounded_and_time_ends_a_search() -> None:
    rows = drawn(0)
    known = WideSupports(rows, lambda: True)
    known.search([3])
    assert not known.best
    b, g = np.zeros(rows.q), rows.c.copy()
    b[[1, 7, 20]] = [2.0, -1.5, 0.01]
    known.round(2, b, g)
    assert known.support[2].tolist() == [1, 7]
