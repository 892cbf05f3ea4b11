"""Trees by rows against enumeration: bounds, optima and ties, on problems with everything that is hard."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from zoo import random_problem

from sparsecv_mio.bounds import wide
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.standard import standardize


def values_of(rows: WideRows, tau: int) -> dict[tuple[int, ...], float]:
    """f of every support, from the rows alone."""
    found = {}
    for support in combinations(range(rows.q), tau):
        A = np.vstack([rows.Xt[list(support)].T, np.eye(tau)])
        b = np.concatenate([rows.y, np.zeros(tau)])
        residual = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
        found[support] = float(residual @ residual)
    return found


def against_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Check all sizes of a problem; how many trees grew, and how many of them ended with the optima."""
    rng = np.random.default_rng([5, seed])
    monkeypatch.setattr(wide, "AT_FIRST", int(rng.integers(-3, 4)))
    monkeypatch.setattr(wide, "TREE_PRODUCT_BYTES", int(rng.choice([1, 1 << 20])))
    problem = random_problem(seed, rows=30, columns=9)
    data = standardize(problem.data, problem.scale, problem.intercept)
    train = problem.folds.train_rows(0)
    trees = ended = 0
    with np.errstate(over="ignore"):
        if not np.abs(data.rows(train)[0] / np.sqrt(problem.gammas[0] / 2.0 * data.weight)).max() < 1e130:
            return trees, ended  # products are beyond what floats hold
    for gamma in problem.gammas[:1]:
        rows = WideRows.from_data(data, train, train[:0], gamma)
        for tau in range(1, rows.q if rows.yy > 0.0 else 1):  # a constant target: any columns will do
            truth = values_of(rows, tau)
            best = min(truth.values())
            slack = 1e-10 * rows.yy + 4.0 * float(wide.WideTree.bound_rounding_error(rows, tau))
            for enough, most in ((np.inf, 10_000), (best * rng.uniform(0.7, 1.1), 10_000), (np.inf, 2)):
                fold = WideFold(rows)
                if rng.random() < 0.5:
                    fold.search([tau])
                fold.try_supports([rng.permutation(rows.q)[:tau]])
                seen, nodes = fold.branch(tau, enough, most)
                trees += nodes > 0
                assert seen.lower <= best + slack and seen.upper >= best - slack
                assert nodes <= most
                inside = set(seen.columns.tolist())
                tied = [support for support, value in truth.items() if value <= best * (1.0 + 1e-9)]
                assert all(inside.issuperset(support) for support in tied)
                if nodes and most > 2 and wide.TREE_PRODUCT_BYTES > 1:
                    assert seen.lower >= min(best, enough) - slack
                    ended += 1
    return trees, ended


def test_trees_by_rows_are_those_of_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.sum([against_enumeration(seed, monkeypatch) for seed in range(25)], axis=0)
    assert found[0] > 50 and found[1] > 25


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_trees_by_rows_are_those_of_enumeration(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.sum([against_enumeration(100 * (block + 1) + i, monkeypatch) for i in range(100)], axis=0)
    assert found[0] > 100 and found[1] > 50
