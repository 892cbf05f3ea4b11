"""Trees by rows: planted coefficients, all alike, of which a relaxation proves nothing (tests/brute_force has more)."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds import wide_tree
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows


def planted(q: int = 2000, n: int = 60) -> WideFold:
    """Return six equal coefficients on orthogonal columns, about."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, q)) / np.sqrt(n)
    y = 10.0 * X[:, :6].sum(axis=1) + 0.1 * rng.normal(size=n)
    return WideFold(WideRows(2.0 * X, y, X[:0], y[:0]))


@pytest.mark.parametrize("tau", [1, 3, 6])
def test_the_optimum_of_many_columns(tau: int) -> None:
    fold = planted()
    fold.search([tau])
    root = fold.survivors(tau)
    seen, nodes = fold.branch(tau)
    assert seen.upper == pytest.approx(fold.upper(tau), rel=1e-6)
    assert seen.lower == pytest.approx(fold.upper(tau), rel=1e-6) and len(seen.columns) == tau
    assert tau != 3 or (nodes > 5 and len(root.columns) > 100 and root.lower < 0.99 * seen.lower)


def test_a_tree_ends_with_its_effort_or_with_enough() -> None:
    fold = planted()
    fold.search([3])
    root, best = fold.survivors(3).lower, fold.upper(3)
    some, nodes = fold.branch(3, most=4)
    assert nodes == 4 and root <= some.lower < best * (1.0 - 1e-6)
    enough = 0.5 * (root + best)
    seen, fewer = fold.branch(3, enough)
    assert enough * (1.0 - 1e-12) <= seen.lower <= best and fewer < fold.branch(3)[1]
    late = WideFold(fold.rows, lambda: True)
    late.try_supports([np.arange(3)])
    assert late.branch(3)[1] == 0


def test_more_ties_than_are_listed_leave_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_tree, "MOST_LISTED", 3)
    X = np.vstack([np.eye(5), np.zeros((1, 5))])
    fold = WideFold(WideRows(X, X.sum(axis=1), X[:0], np.zeros(0)))
    fold.search([2])
    seen, _ = fold.branch(2)
    assert len(seen.columns) == 5 and seen.lower <= fold.upper(2) <= seen.upper
