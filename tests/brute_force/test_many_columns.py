"""What is done where columns are many, on few columns: roots solved to the end, and the trees on what they leave."""

from __future__ import annotations

import numpy as np
import pytest
from truth import Enumeration
from zoo import random_problem

from sparsecv_mio import thresholds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.trees import clusters, every_size, listing, normal_form
from sparsecv_mio.trees import normal_form as root
from sparsecv_mio.trees.path_cells import UNLIMITED

INSIDE = 1e-9  # relative: closer than this two supports may tie


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (every_size, listing, root):
        monkeypatch.setattr(module, "MANY", 3)
    monkeypatch.setattr(normal_form, "OWN_PART_COLUMNS", (37, 3))
    monkeypatch.setattr(clusters, "LEAF", 2)
    monkeypatch.setattr(clusters, "LEAF_OF_CLUSTERS", 3)


def toeplitz(seed: int) -> tuple[Dataset, float, str]:
    """Rows of correlation 0, 0.5 or 0.99, fewer of them than columns every other time; gamma, and where to centre."""
    rng = np.random.default_rng([14, seed])
    p = int(rng.integers(2, 15))
    n = int(rng.integers(4, p + 2)) if seed % 2 and p > 3 else int(rng.integers(p + 2, 40))
    X, rho = rng.normal(size=(n, p)), float(rng.choice([0.0, 0.5, 0.99]))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    y = X[:, : max(p // 3, 1)].sum(axis=1) + rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=n)
    return Dataset.from_arrays(X, y), float(10.0 ** rng.uniform(-3, 2)), str(rng.choice(["fold", "global", "none"]))


def check(data: Dataset, gamma: float, tau: int, how: tuple[str, str], effort: int) -> None:
    """Bounds hold the least objective of all supports; a complete answer names each that attains it."""
    everyone = np.arange(data.n)
    every = Enumeration(data.X, data.y, everyone, everyone[:1], *how)
    optima = every.optima(gamma, tau)
    problem = full_problem(standardize(data, *how), gamma)
    tau = min(tau, problem.q)
    cell = every_size.solve_path(problem, [tau], effort=effort).cells[tau]
    unit = np.ldexp(1.0, every.exponent) / standardize(data, *how).y_unit
    best, slip = optima.best * unit**2, float(optima.value_error.max()) * unit**2
    assert cell.lower <= best + slip
    assert cell.upper >= best - slip - cell.margin
    if cell.complete:
        assert cell.upper <= best + slip + cell.margin
        tied = {tuple(S) for S in optima.supports[optima.tied(INSIDE, -1.0)].tolist()}
        varying = standardize(data, *how).columns
        named = {tuple(varying[np.sort(S)].tolist()) for S in cell.candidates}
        copies = bool((standardize(data, *how).copy_of >= 0).any())
        padded = any(len(S) < tau for S in named)
        assert tied <= named or copies or padded
    else:
        assert effort < UNLIMITED or cell.lower == 0.0 or cell.margin > 0.0


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_enumeration(seed: int) -> None:
    against_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(30))
def test_many_answers_are_those_of_enumeration(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        against_enumeration(seed)


def against_enumeration(seed: int) -> None:
    """Half of the problems are drawn by `toeplitz`, half are hostile; every third is stopped at once."""
    effort = 1 if seed % 3 == 0 else UNLIMITED
    if seed % 4 < 2:
        data, gamma, intercept = toeplitz(seed)
        check(data, gamma, 1 + seed % max(data.p - 1, 1), ("length", intercept), effort)
        return
    drawn = random_problem(seed, columns=9)
    for gamma in drawn.gammas[:2]:
        check(drawn.data, gamma, drawn.taus[-1], (drawn.scale, drawn.intercept), effort)


def over_clusters(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Branch on clusters of any size, down to very few columns."""
    monkeypatch.setattr(clusters, "ALIKE", (0.0, 0.3, 0.9, 1.0)[seed % 4])
    monkeypatch.setattr(clusters, "LEAF", seed % 3)
    monkeypatch.setattr(clusters, "LEAF_OF_CLUSTERS", 3 * (seed % 2))


@pytest.mark.parametrize("seed", range(40))
def test_answers_over_clusters_are_those_of_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    over_clusters(seed // 4, monkeypatch)
    against_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(30))
def test_many_answers_over_clusters_are_those_of_enumeration(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        over_clusters(seed // 4, monkeypatch)
        against_enumeration(seed)


@pytest.mark.parametrize("seed", range(1, 40, 2))
def test_fits_by_rows_are_those_of_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 0)
    data, gamma, intercept = toeplitz(seed)
    everyone, tau = np.arange(data.n), 1 + seed % max(data.p - 1, 1)
    every = Enumeration(data.X, data.y, everyone, everyone[:1], "length", intercept)
    optima, unit = every.optima(gamma, tau), np.ldexp(1.0, every.exponent) ** 2
    limits = Limits(nodes=1) if seed % 3 == 0 else Limits(seconds=1e-6) if seed % 3 == 1 else Limits()
    found = fit_one(data, tau=tau, gamma=gamma, intercept=intercept, limits=limits, start=data.names[:tau])
    best, slip = optima.best * unit, float(optima.value_error.max()) * unit + found.allowance
    assert found.lower <= best + slip and found.upper >= best - slip
    assert found.upper <= optima.at(tuple(range(tau)))[0] * unit + slip
    if found.status == "proved":
        assert found.upper <= best * (1.0 + found.requested_gap) + slip
    else:
        assert limits != Limits()


@pytest.mark.parametrize(
    ("n", "p", "rho", "rows"), [(60, 60, 0.9, 0), (30, 80, 0.5, 0), (120, 60, 0.99, 0), (30, 80, 0.5, 1)]
)
def test_no_bound_is_below_the_root(n: int, p: int, rho: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if rows:
        monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 0)
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    data = Dataset.from_arrays(X, X[:, ::12].sum(axis=1) + 1.5 * rng.normal(size=n))
    unit = standardize(data, "none", "none").y_unit ** 2
    problem = full_problem(standardize(data, "none", "none"), 2.0)
    known = relax_problem(problem, [5], diagonal=Diagonal.SHIFTED, accuracy=1e-8)[0].dual * unit
    found = fit_one(data, tau=5, gamma=2.0, scale="none", intercept="none", limits=Limits(nodes=1))
    assert found.lower >= known - root.NEAR_OF_MANY * (found.objective - known)


@pytest.mark.parametrize("method", ["bounds", "rounds"])
@pytest.mark.parametrize(("n", "p", "rho"), [(60, 60, 0.9), (30, 80, 0.5)])
def test_no_bound_of_a_search_is_below_the_root(n: int, p: int, rho: float, method: str) -> None:
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    data = Dataset.from_arrays(X, X[:, ::12].sum(axis=1) + 1.5 * rng.normal(size=n))
    standard = standardize(data, "none", "none")
    known = relax_problem(full_problem(standard, 2.0), [5], diagonal=Diagonal.SHIFTED, accuracy=1e-8)[0].dual
    how = {"scale": "none", "intercept": "none", "method": method}
    found = cross_validate(data, make_folds("3", data), gammas=[2.0], taus=[5], **how).refit  # type: ignore[arg-type]
    assert found.lower >= known * standard.y_unit**2 * (1.0 - 1e-9)
