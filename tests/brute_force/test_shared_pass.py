"""Rounds that leave out what the likely winner excludes, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from test_outward import right, solved

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search import rounds, shared_trees


@pytest.fixture(autouse=True)
def _trees_are_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out pairs on any data, with trees for all folds however few these are."""
    monkeypatch.setattr(rounds, "EXPENSIVE_NODES", -1)
    monkeypatch.setattr(shared_trees, "FEWEST_FOLDS", 4)


def problem(seed: int) -> RandomProblem:
    """Data of any shape, or such as leave room for leverages, in small folds."""
    if seed % 2:
        return random_problem(seed, rows=30, columns=9)
    rng = np.random.default_rng([29, seed])
    n, p = int(rng.integers(30, 60)), int(rng.integers(3, 8))
    X = rng.normal(size=(n, p))
    data = Dataset.from_arrays(X, X[:, : int(rng.integers(1, 4))].sum(axis=1) + rng.normal(size=n))
    gammas = np.unique(10.0 ** rng.uniform(-3.0, 1.0, size=3)).tolist()
    plan = make_folds(str(rng.choice(["loo", "10", "blocks:3"])), data, seed)
    return RandomProblem(data, plan, gammas, list(range(p + 1)), "length", "fold")


def left_out(seed: int, gap: float) -> int:
    """Check a run; how many pairs it did not decide."""
    case = problem(seed)
    record = solved(case, gap)
    right(case, record)
    assert record.status == "proved" or any(row.estimate for row in solved(case, 0.0).table)
    return sum(row.status == "excluded" for row in record.table)


def test_against_enumeration() -> None:
    assert sum(left_out(seed, (1e-4, 5e-2)[seed // 2 % 2]) for seed in range(16)) > 16


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_at_length(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        left_out(seed, (1e-4, 5e-2)[seed // 2 % 2])
