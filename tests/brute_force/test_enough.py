"""Trees that end once a lower bound will do, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.trees import clusters, every_size, listing, normal_form
from sparsecv_mio.trees import normal_form as root

WAYS: tuple[dict[str, int], ...] = ({}, {"SMALL": 0}, {"SMALL": 0, "MANY": 3}, {"SMALL": 0, "PATH_COLUMNS": 0})


def drawn(seed: int) -> SparseProblem:
    """Rows of correlation 0, 0.5 or 0.99, fewer of them than columns every other time."""
    rng = np.random.default_rng([31, seed])
    p = int(rng.integers(2, 15))
    n = int(rng.integers(4, p + 2)) if seed % 2 and p > 3 else int(rng.integers(p + 2, 40))
    X, rho = rng.normal(size=(n, p)), float(rng.choice([0.0, 0.5, 0.99]))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    y = X[:, : max(p // 3, 1)].sum(axis=1) + rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=n)
    return full_problem(standardize(Dataset.from_arrays(X, y), "length", "fold"), float(10.0 ** rng.uniform(-3, 1)))


def least(problem: SparseProblem, tau: int) -> float:
    """The least objective of all supports of a size."""
    S = np.array(list(combinations(range(problem.q), tau)))
    c = problem.c[S]
    beta = np.linalg.solve(problem.M[S[:, :, None], S[:, None, :]], c[:, :, None])[:, :, 0]
    return float(problem.yy - np.einsum("ij,ij->i", beta, c).max())


def check(seed: int) -> tuple[int, int]:
    """Every lower bound is one and reaches what was asked for, or the cell is complete; how many were and were not."""
    rng, problem = np.random.default_rng([37, seed]), drawn(seed)
    taus = np.unique(rng.integers(1, problem.q + 1, size=3)).tolist()
    best = {tau: least(problem, tau) for tau in taus}
    enough = {tau: best[tau] * float(rng.choice([0.6, 0.95, 1.0 - 1e-9, 1.0 + 1e-9, 1.2])) for tau in taus}
    found = every_size.solve_path(problem, taus, enough=enough).cells
    slip, counts = 1e-9 * problem.yy, [0, 0]
    for tau, cell in found.items():
        assert cell.lower <= best[tau] + slip and cell.upper >= best[tau] - slip
        assert cell.complete or cell.lower >= enough[tau] or cell.margin > 0.1 * problem.yy
        if cell.complete:
            assert cell.upper <= best[tau] + cell.margin + slip
        assert enough[tau] <= best[tau] + slip or cell.complete or cell.margin > 0.1 * problem.yy
        counts[cell.complete] += 1
    return counts[0], counts[1]


@pytest.fixture(params=range(len(WAYS)))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Which trees are grown."""
    for name, value in WAYS[request.param].items():
        for module in (every_size, listing, root):
            monkeypatch.setattr(module, name, value, raising=False)
    if "MANY" in WAYS[request.param]:
        monkeypatch.setattr(normal_form, "OWN_PART_COLUMNS", (37, 3))
        monkeypatch.setattr(clusters, "LEAF", 2)
        monkeypatch.setattr(clusters, "LEAF_OF_CLUSTERS", 3)
    return int(request.param)


def test_against_enumeration(way: int) -> None:
    ended, complete = np.sum([check(100 * way + seed) for seed in range(40)], axis=0)
    assert ended > 5 and complete > 20


@pytest.mark.slow
def test_many_against_enumeration(way: int) -> None:
    for seed in range(750):
        check(1000 * (way + 1) + seed)
