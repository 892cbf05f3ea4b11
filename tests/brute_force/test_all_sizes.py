"""Every size in one call: the path tree of all open sizes and the perspective trees take turns, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from truth import Enumeration
from zoo import RandomProblem, random_problem

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.trees import every_size
from sparsecv_mio.trees.path_cells import UNLIMITED

INSIDE = 1e-9  # relative: closer than this two supports may tie


def drawn(seed: int) -> RandomProblem:
    """A hostile problem, or half of the coefficients one beside noise and next to no ridge."""
    if seed % 2:
        return random_problem(seed, columns=9)
    rng = np.random.default_rng([15, seed])
    p = int(rng.integers(6, 13))
    X = rng.normal(size=(int(rng.integers(p + 2, 60)), p))
    y = X[:, : p // 2].sum(axis=1) + rng.normal(size=len(X))
    gammas, sizes = [1e-6, float(10.0 ** rng.uniform(-3, 1))], list(range(p + 1))
    data = Dataset.from_arrays(X, y)
    return RandomProblem(data, random_problem(1).folds, gammas, sizes, "length", "fold")


def small_passes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the trees take turns after a few nodes, on few columns as on many; every third tree has room for little."""
    monkeypatch.setattr(every_size, "SMALL", (0, 36)[seed // 2 % 2])
    monkeypatch.setattr(every_size, "SMALL_NODES", 3)
    monkeypatch.setattr(every_size, "FIRST_LOOK", 1 + seed % 5)
    monkeypatch.setattr(every_size, "MIN_BUDGET", 1 + seed % 3)
    if seed % 3 == 0:
        monkeypatch.setattr(every_size, "ROOM", (1, 0))


def against_enumeration(seed: int) -> int:
    """Check every size of a problem at every gamma; returns how many answers were complete."""
    one, complete = drawn(seed), 0
    everyone, how = np.arange(one.data.n), (one.scale, one.intercept)
    every = Enumeration(one.data.X, one.data.y, everyone, everyone[:1], *how)
    data = standardize(one.data, *how)
    square = (np.ldexp(1.0, every.exponent) / data.y_unit) ** 2
    copies = bool((data.copy_of >= 0).any())
    effort = 6 if seed % 7 == 0 else UNLIMITED
    for gamma in one.gammas:
        taus = [tau for tau in one.taus if tau <= data.q] or [0]
        result = every_size.solve_path(full_problem(data, gamma), taus, effort=effort)
        for tau, cell in result.cells.items():
            optima = every.optima(gamma, tau)
            best, slip = optima.best * square, float(optima.value_error.max()) * square
            assert cell.lower <= best + slip
            assert cell.upper >= best - slip - cell.margin
            if cell.complete:
                complete += 1
                assert cell.upper <= best + slip + cell.margin
                tied = {tuple(S) for S in optima.supports[optima.tied(INSIDE, -1.0)].tolist()}
                named = {tuple(data.columns[np.sort(S)].tolist()) for S in cell.candidates}
                assert tied <= named or copies or any(len(S) < tau for S in named)
        assert result.finished or effort < UNLIMITED
    return complete


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_passes(seed, monkeypatch)
    assert against_enumeration(seed) or seed % 3 == 0 or seed % 7 == 0 or seed % 2


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_answers_are_those_of_enumeration(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        small_passes(seed, monkeypatch)
        against_enumeration(seed)


def test_a_search_without_effort_still_has_the_bounds_of_the_roots() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    data = standardize(Dataset.from_arrays(X, X[:, :4].sum(axis=1) + rng.normal(size=80)))
    problem = full_problem(data, 1.0)
    none = every_size.solve_path(problem, [1, 2, 4], starts=[], effort=0, expired=lambda: False)
    full = every_size.solve_path(problem, [1, 2, 4], starts=[], effort=10**6, expired=lambda: False)
    for tau in (1, 2, 4):
        assert none.nodes == 0 and 0.9 * full.cells[tau].lower <= none.cells[tau].lower <= full.cells[tau].upper
