"""Every size in one call, by moments and by rows: bounds, optima and ties against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from slow import slow
from truth import Enumeration
from zoo import RandomProblem, chained, chained_problem, random_problem

from sparsecv_mio import thresholds
from sparsecv_mio.bounds import wide
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.trees import clusters, every_size, listing, normal_form
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubsets

INSIDE = 1e-9  # relative: closer than this two supports may tie


def in_all(patch: pytest.MonkeyPatch, **values: int) -> None:
    """Set sizes at which ways part, in every module that has them."""
    for module in (every_size, listing, normal_form):
        for name, value in values.items():
            patch.setattr(module, name, value, raising=False)


def many_columns(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """A few columns count as many: roots are solved to the end, and trees grow on what they leave."""
    in_all(patch, MANY=3)
    patch.setattr(normal_form, "OWN_PART_COLUMNS", (37, 3))
    patch.setattr(clusters, "LEAF", 2)
    patch.setattr(clusters, "LEAF_OF_CLUSTERS", 3)


def over_clusters(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Branch on clusters of any size, down to very few columns."""
    many_columns(patch)
    patch.setattr(clusters, "CLUSTER_CORRELATION", (0.0, 0.3, 0.9, 1.0)[seed // 4 % 4])
    patch.setattr(clusters, "LEAF", seed // 4 % 3)
    patch.setattr(clusters, "LEAF_OF_CLUSTERS", 3 * (seed // 4 % 2))


def small_passes(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Trees take turns after a few nodes, on few columns as on many; every third tree has room for little."""
    patch.setattr(every_size, "SMALL", (0, 36)[seed // 2 % 2])
    patch.setattr(every_size, "SMALL_NODES", 3)
    patch.setattr(every_size, "FIRST_LOOK", 1 + seed % 5)
    if seed % 3 == 0:
        patch.setattr(every_size, "ROOM", (1, 0))


Way = Callable[[pytest.MonkeyPatch, int], None]
WAYS: tuple[Way, ...] = (many_columns, over_clusters, small_passes)


def drawn(seed: int) -> RandomProblem:
    """Correlated columns, half of the coefficients one beside noise and next to no ridge, or a hostile problem."""
    if seed % 4 == 3:
        return random_problem(seed, columns=9)
    data, gamma, rng = chained_problem([14, seed])
    intercept = str(rng.choice(["fold", "global", "none"]))
    gammas = [gamma]
    if seed % 4 == 2:
        p = int(rng.integers(6, 13))
        X = rng.normal(size=(int(rng.integers(p + 2, 60)), p))
        data = Dataset.from_arrays(X, X[:, : p // 2].sum(axis=1) + rng.normal(size=len(X)))
        gammas, intercept = [1e-6, gamma], "fold"
    return RandomProblem(data, random_problem(1).folds, gammas, list(range(data.p + 1)), "length", intercept)


Solves = Callable[[SparseProblem, list[int], int], list[BestSubsets]]


def in_one_call(problem: SparseProblem, taus: list[int], node_limit: int) -> list[BestSubsets]:
    """Answer for some sizes at once."""
    return [every_size.solve_path(problem, taus, node_limit=node_limit)]


def in_some_calls(problem: SparseProblem, taus: list[int], node_limit: int) -> list[BestSubsets]:
    """Answer for some sizes, then others, a few nodes a call, each from where the last one ended."""
    parts = [(taus, 1), (taus[1::2], 16), (taus[::2], 40), (taus, node_limit)]
    return [every_size.solve_path(problem, part, node_limit=nodes, resume=1 << 20) for part, nodes in parts if part]


def against_enumeration(seed: int, solves: Solves = in_one_call) -> int:
    """Check every size of a problem at every gamma; how many answers were complete. Some searches are stopped."""
    case, complete = drawn(seed), 0
    everyone, how = np.arange(case.data.n), (case.scale, case.intercept)
    every = Enumeration(case.data.X, case.data.y, everyone, everyone[:1], *how)
    data = standardize(case.data, *how)
    square = (np.ldexp(1.0, every.exponent) / data.y_unit) ** 2
    copies = bool((data.copy_of >= 0).any())
    node_limit = (1, 6)[seed % 2] if seed % 5 == 0 else UNLIMITED
    for gamma in case.gammas:
        taus = [tau for tau in case.taus if tau <= data.q] or [0]
        results = solves(full_problem(data, gamma), taus, node_limit)
        for tau, cell, last in ((tau, cell, of is results[-1]) for of in results for tau, cell in of.by_size.items()):
            optima = every.optima(gamma, tau)
            best, slip = optima.best * square, float(optima.value_error.max()) * square
            assert cell.lower <= best + slip
            assert cell.upper >= best - slip - cell.margin
            if not cell.complete:
                assert node_limit < UNLIMITED or not last or cell.lower == 0.0 or cell.margin > 0.0
                continue
            complete += 1
            assert cell.upper <= best + slip + cell.margin
            tied = {tuple(S) for S in optima.supports[optima.tied(INSIDE, -1.0)].tolist()}
            named = {tuple(data.columns[np.sort(S)].tolist()) for S in cell.candidates}
            assert tied <= named or copies or any(len(S) < tau for S in named)
        assert results[-1].finished or node_limit < UNLIMITED
    return complete


@pytest.mark.parametrize(
    "seeds", [range(20), *slow([range(20, 40), *(range(first, first + 100) for first in range(1000, 4000, 100))])]
)
@pytest.mark.parametrize("way", WAYS)
def test_answers_are_those_of_enumeration(way: Way, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        way(monkeypatch, seed)
        assert against_enumeration(seed) or seed % 5 == 0 or seed % 4 == 3 or seed >= 1000


def only_a_few_nodes(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Trees of single sizes begin at once, and end a call after a node or two."""
    small_passes(patch, 2 * seed + 1)
    patch.setattr(every_size, "SMALL", 0)
    patch.setattr(every_size, "SWAP_ROUNDS", seed % 2)


@pytest.mark.parametrize("count", [16, *slow([1500])])
def test_trees_go_on_where_they_were_left(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(count):
        only_a_few_nodes(monkeypatch, seed)
        against_enumeration(count + seed, in_some_calls)


def test_a_tree_that_goes_on_takes_no_node_twice() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    problem = full_problem(standardize(Dataset.from_arrays(X, X.sum(axis=1) + rng.normal(size=60))), 1e-3)
    first = every_size.solve_path(problem, [12], node_limit=1024, resume=1 << 20)
    (tree,) = problem.kept[problem.lam][every_size.STORED_TREES].values()
    nodes, lower = tree.nodes, tree.lower
    again = every_size.solve_path(problem, [12], node_limit=1024, resume=1 << 20)
    assert not first.finished and tree.nodes > nodes and tree.lower >= lower
    assert again.nodes < first.nodes + tree.nodes and again.by_size[12].lower >= first.by_size[12].lower
    assert len(problem.kept[problem.lam][every_size.STORED_TREES]) == 1


def test_a_search_without_effort_still_has_the_bounds_of_the_roots() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    data = standardize(Dataset.from_arrays(X, X[:, :4].sum(axis=1) + rng.normal(size=80)))
    problem = full_problem(data, 1.0)
    none = every_size.solve_path(problem, [1, 2, 4], warm_starts=[], node_limit=0, is_expired=lambda: False)
    full = every_size.solve_path(problem, [1, 2, 4], warm_starts=[], node_limit=10**6, is_expired=lambda: False)
    for tau in (1, 2, 4):
        assert none.nodes == 0 and 0.9 * full.by_size[tau].lower <= none.by_size[tau].lower <= full.by_size[tau].upper


# -- trees that end once a lower bound will do ------------------------------------------------------------------------


def least(problem: SparseProblem, tau: int) -> float:
    """The least objective of all supports of a size."""
    S = np.array(list(combinations(range(problem.q), tau)))
    c = problem.c[S]
    beta = np.linalg.solve(problem.M[S[:, :, None], S[:, None, :]], c[:, :, None])[:, :, 0]
    return float(problem.yy - np.einsum("ij,ij->i", beta, c).max())


def ended_by_a_bound(seed: int) -> tuple[int, int]:
    """Every lower bound is one and reaches what was asked for, or the cell is complete; how many were and were not."""
    data, gamma, rng = chained_problem([31, seed])
    problem = full_problem(standardize(data), gamma)
    taus = np.unique(rng.integers(1, problem.q + 1, size=3)).tolist()
    best = {tau: least(problem, tau) for tau in taus}
    enough = {tau: best[tau] * float(rng.choice([0.6, 0.95, 1.0 - 1e-9, 1.0 + 1e-9, 1.2])) for tau in taus}
    found = every_size.solve_path(problem, taus, cutoffs=enough).by_size
    slip, counts = 1e-9 * problem.yy, [0, 0]
    for tau, cell in found.items():
        assert cell.lower <= best[tau] + slip and cell.upper >= best[tau] - slip
        assert cell.complete or cell.lower >= enough[tau] or cell.margin > 0.1 * problem.yy
        if cell.complete:
            assert cell.upper <= best[tau] + cell.margin + slip
        assert enough[tau] <= best[tau] + slip or cell.complete or cell.margin > 0.1 * problem.yy
        counts[cell.complete] += 1
    return counts[0], counts[1]


@pytest.mark.parametrize(
    "sizes", [{}, {"SMALL": 0}, {"SMALL": 0, "MANY": 3}, {"SMALL": 0, "MOST_PATH_TREE_COLUMNS": 0}], ids=str
)
@pytest.mark.parametrize("count", [40, *slow([750])])
def test_trees_that_may_end_early(sizes: dict[str, int], count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if "MANY" in sizes:
        many_columns(monkeypatch)
    in_all(monkeypatch, **sizes)
    ended, complete = np.sum([ended_by_a_bound(count + seed) for seed in range(count)], axis=0)
    assert ended > 5 and complete > 20


# -- one fit on all rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "p", "rho", "rows"), [(30, 80, 0.5, 0), (120, 60, 0.99, 0), (30, 80, 0.5, 1), *slow([(60, 60, 0.9, 0)])]
)
def test_no_bound_is_below_the_root(n: int, p: int, rho: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    many_columns(monkeypatch)
    if rows:
        monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 0)
    rng, how = np.random.default_rng(p), {"scale": "none", "intercept": "none"}
    X = chained(rng, n, p, rho)
    data = Dataset.from_arrays(X, X[:, ::12].sum(axis=1) + 1.5 * rng.normal(size=n))
    standard = standardize(data, **how)
    root = relax_problem(full_problem(standard, 2.0), [5], diagonal=Diagonal.SHIFTED, accuracy=1e-8)[0]
    known = root.dual * standard.y_unit**2
    found = fit_one(data, tau=5, gamma=2.0, limits=Limits(nodes=1), **how)
    assert found.lower >= known - normal_form.NEAR_OF_MANY * (found.objective - known)
    asked: dict[str, Any] = {"gammas": [2.0], "taus": [5], **how}
    for method in () if rows or n > 100 else ("bounds", "rounds"):
        refit = cross_validate(data, make_folds("3", data), method=method, **asked).refit
        assert refit.lower >= known * (1.0 - 1e-9), method


def values_of(rows: WideRows, tau: int) -> dict[tuple[int, ...], float]:
    """f of every support, from the rows alone."""
    found = {}
    for support in combinations(range(rows.q), tau):
        A = np.vstack([rows.Xt[list(support)].T, np.eye(tau)])
        b = np.concatenate([rows.y, np.zeros(tau)])
        residual = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
        found[support] = float(residual @ residual)
    return found


def check_tree_by_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
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


@pytest.mark.parametrize("seeds", [range(25), *slow(range(first, first + 100) for first in range(100, 1100, 100))])
def test_trees_by_rows_are_those_of_enumeration(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.sum([check_tree_by_rows(seed, monkeypatch) for seed in seeds], axis=0)
    assert found[0] > 50 and found[1] > 25
