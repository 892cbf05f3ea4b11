"""Columns that every model contains, or none does: every method against all supports that keep to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from runs import new_run, record_of, to_end
from test_cross_validation import Tally, compare

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.restrictions import Restrictions
from sparsecv_mio.search.options import Grid

METHODS = (
    {"method": "rounds"}, {"method": "rounds", "engine": "enumerate"}, {"method": "rounds", "engine": "shared"},
    {"method": "rounds", "engine": "per-fold"}, {"method": "joint"}, {"method": "algorithm1"}, {"method": "grid"},
    {"method": "bounds"}, {"method": "rounds", "oracles": "glru,iacv"}, {"method": "grid", "oracles": "glru"},
)  # fmt: skip


def forced_problem(seed: int, rows: int = 40, columns: int = 10) -> RandomProblem:
    """A random problem with some columns forced in or out, and every size that is left."""
    case = random_problem(seed, rows, columns)
    rng = np.random.default_rng([7, seed])
    able = rng.permutation(varying_columns(case.data.X))
    inside = able[: int(rng.integers(0, min(len(able), 4) + 1))]
    outside = able[len(inside) : len(inside) + int(rng.integers(0, 3))]
    outside = outside[: len(able) - max(len(inside), 1)]
    names = case.data.names
    restrictions = Restrictions(
        tuple(names[j] for j in sorted(inside.tolist())), tuple(names[j] for j in sorted(outside.tolist()))
    )
    sizes = np.arange(len(inside), case.data.p - len(outside) + 1)
    taus = np.unique(rng.choice(sizes, size=min(len(sizes), 4))).tolist()
    return replace(case, taus=taus, restrictions=restrictions)


def check(seed: int, tally: Tally, **size: int) -> None:
    case = forced_problem(seed, **size)
    data = standardize(case.data, case.scale, case.intercept, case.restrictions)
    grid = Grid.of(case.gammas, case.taus, case.data.p, case.restrictions)
    run = to_end(new_run(data, case.folds, grid, **METHODS[seed % len(METHODS)]))
    compare(seed, case, run, tally)
    record = record_of(run)
    for support in (record.support, *record.chosen_folds.supports):
        if not set(case.restrictions.force_in) <= set(support) or set(case.restrictions.force_out) & set(support):
            tally.violations.append(f"seed {seed}: {support} does not keep to {case.restrictions}")


@pytest.mark.parametrize("block", range(3))
def test_forced_columns(block: int) -> None:
    tally = Tally()
    for seed in range(10 * block, 10 * block + 10):
        check(seed, tally, rows=20, columns=6)
    assert tally.violations == []
    assert tally.decided >= 0.7 * tally.cells


@pytest.mark.slow
def test_five_hundred_problems_with_forced_columns(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in range(1000, 1500):
        check(seed, tally)
    with capsys.disabled():
        print(f"\n{tally}")
    assert tally.violations == []
