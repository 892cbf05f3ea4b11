"""One tree for all folds against one tree per fold: the same optima, the same errors, the same decided cells."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from runs import new_run
from zoo import RandomProblem

from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.rounds import Rounds
from sparsecv_mio.words import Engine

F_RTOL, H_RTOL = 1.1e-9, 1e-7
GAMMAS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
REAL = {"diabetes": "y", "housing": "medv", "servo": "class", "autompg": "mpg", "prostate": "lpsa", "wine": "quality"}


def all_cells(case: RandomProblem, engine: Engine, threads: int = 1) -> Rounds:
    """Every cell of a problem by one engine, the tail by trees of its own."""
    data = standardize(case.data, case.scale, case.intercept)
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    run: Rounds = new_run(data, case.folds, grid, engine=engine, threads=threads)
    run.begin()
    while not run.finished:
        run.step()
    return run


def same_cells(both: Rounds, alone: Rounds, where: str) -> None:
    """Assert that two runs decided the same cells, with f to 1e-9 and held-out errors to 1e-7."""
    a, b = both.run.cells, alone.run.cells
    assert np.array_equal(a.decided, b.decided), where
    room = H_RTOL * np.maximum(b.nominal, 1e-10 * both.run.all_rows.base.yy) + 1e-300
    assert np.all(a.lower <= b.upper + room) and np.all(b.lower <= a.upper + room), where
    tied = b.upper - b.lower > room
    assert np.all(tied | (np.abs(a.nominal - b.nominal) <= room)), where
    for g, t, fold in np.argwhere(a.decided):
        one, other = (cells.pool.supports[cells.support[g, t, fold]] for cells in (a, b))
        if not np.array_equal(one, other):
            rows, gamma = both.context.folds.train_rows(fold), float(both.context.grid.gammas[g])
            f, h = (refit_rows(both.context.data, rows, support, gamma) for support in (one, other))
            slack = f.objective_error + h.objective_error
            assert abs(f.objective - h.objective) <= F_RTOL * h.objective + slack, where


def check_real(name: str, gammas: list[float], spec: str) -> None:
    """Compare the engines on an instance."""
    here = Path(__file__).resolve().parents[2] / "instances"
    folders = [here, Path(os.environ.get("SPARSECV_INSTANCES", "instances"))]
    path = next((folder / f"{name}.csv" for folder in folders if (folder / f"{name}.csv").exists()), None)
    if path is None:
        pytest.skip(f"{name}.csv is not here: run scripts/instances/download.py or set SPARSECV_INSTANCES")
    data = read_dataset(path, REAL[name])
    folds = make_folds(spec, data, seed=0)
    case = RandomProblem(data, folds, gammas, list(range(1, data.p + 1)), "length", "fold")
    same_cells(all_cells(case, Engine.AUTO), all_cells(case, Engine.PER_FOLD, threads=2), name)


@pytest.mark.parametrize("name", ["diabetes", "prostate", "servo"])
def test_engines_agree_on_instances(name: str) -> None:
    check_real(name, [0.1], "loo")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["loo", "blocks:10"])
@pytest.mark.parametrize("name", sorted(REAL))
def test_engines_agree_on_instances_at_every_gamma(name: str, spec: str) -> None:
    check_real(name, GAMMAS, spec)
