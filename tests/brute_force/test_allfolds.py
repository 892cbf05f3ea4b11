"""One tree for all folds against one tree per fold: the same optima, the same errors, the same decided cells."""

from __future__ import annotations

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.allfolds import Engine
from sparsecv_mio.search.driver import Clock, CrossValidation, Grid

H_RTOL = 1e-7


def all_cells(case: RandomProblem, engine: Engine, threads: int = 1) -> CrossValidation:
    """Every cell of a problem by one engine, the tail by trees of its own."""
    data = standardize(case.data, case.scale, case.intercept)
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    run = CrossValidation(data, case.folds, grid, 0.0, Clock(None, None), threads, None, engine)
    run.begin()
    run.all_folds()
    while not run.finished:
        run.round()
    return run


def problem(seed: int) -> RandomProblem:
    """A random problem with leave-one-out or small blocks, some rows duplicated, some far out."""
    case = random_problem(seed, rows=40, columns=8)
    rng = np.random.default_rng([7, seed])
    X, y = case.data.X.copy(), case.data.y.copy()
    n = len(y)
    if rng.random() < 0.3:
        twins = rng.choice(n, size=(2, max(1, n // 4)))
        X[twins[0]], y[twins[0]] = X[twins[1]], y[twins[1]]
    if rng.random() < 0.2:
        X[rng.integers(n)] *= 30.0
    if np.ptp(y) <= 1e-12 * np.abs(y).max() or not (np.ptp(X, axis=0) > 0.0).any():
        X, y = case.data.X, case.data.y
    data = Dataset.from_arrays(X, y)
    try:
        standardize(data, case.scale, case.intercept)
    except BadInput:  # the twins left a target too small to square
        data = case.data
    spec = "loo" if rng.random() < 0.6 else f"blocks:{int(rng.integers(2, 4))}"
    return RandomProblem(data, make_folds(spec, data, seed), case.gammas, case.taus, case.scale, case.intercept)


def check(seed: int, engines: tuple[Engine, ...], shares: dict[str, int]) -> None:
    """Compare the engines with one tree per fold on one problem."""
    case = problem(seed)
    alone = all_cells(case, Engine.PER_FOLD)
    for engine in engines:
        both = all_cells(case, engine)
        for name, count in both.decided_by.items():
            shares[name] = shares.get(name, 0) + count
        shares["cells"] = shares.get("cells", 0) + both.cells.decided.size
        a, b = both.cells, alone.cells
        where = f"seed {seed}, {engine}"
        assert np.array_equal(a.decided, b.decided), where
        room = H_RTOL * np.maximum(b.nominal, 1e-10 * both.all_rows.problem(both.data, 1.0).yy) + 1e-300
        assert np.all(a.lower <= b.upper + room) and np.all(b.lower <= a.upper + room), where
        tied = b.upper - b.lower > room
        assert np.all(tied | (np.abs(a.nominal - b.nominal) <= room)), where


@pytest.mark.parametrize("block", range(4))
def test_engines_agree(block: int) -> None:
    shares: dict[str, int] = {}
    for seed in range(10 * block, 10 * block + 10):
        check(seed, (Engine.AUTO, Engine.ENUMERATE, Engine.SHARED), shares)
    assert shares["shared"] > 0 and shares["enumerate"] > 0, shares


@pytest.mark.slow
def test_engines_agree_at_length(capsys: pytest.CaptureFixture[str]) -> None:
    shares: dict[str, int] = {}
    for seed in range(1000, 2000):
        check(seed, (Engine.AUTO, Engine.ENUMERATE, Engine.SHARED), shares)
    with capsys.disabled():
        print(f"\n1000 problems, cells {shares}")
