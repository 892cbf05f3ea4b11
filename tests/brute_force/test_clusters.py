"""The tree over clusters, and blocks of correlated columns, against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from slow import slow
from zoo import chained_problem

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.kernels.cluster_relaxation import BoxEnds
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.trees import blocks, clusters, every_size, listing
from sparsecv_mio.trees.blocks import (
    LARGEST_BLOCK,
    BlockNodes,
    block_part,
    chosen_blocks,
    gather_blocks,
    has_correlated_columns,
)
from sparsecv_mio.trees.clusters import ClusterTree
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.normal_form import ClusterRelaxation, NormalForm, Root, normal_form
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets

Floats = NDArray[np.float64]
SAME = 1e-9  # relative: rounding of values computed in two ways


def rows(seed: int, columns: int) -> tuple[Dataset, float, int, np.random.Generator]:
    """A correlated problem, and a size."""
    data, gamma, rng = chained_problem([15, seed], columns)
    return data, gamma, int(rng.integers(1, min(data.p - 1, 5) + 1)), rng


def drawn(seed: int, columns: int) -> tuple[NormalForm, int, np.random.Generator]:
    """The same in normal form."""
    data, gamma, size, rng = rows(seed, columns)
    return normal_form(full_problem(standardize(data, "none", "none"), gamma)), size, rng


def fits(form: NormalForm, supports: list[tuple[int, ...]]) -> tuple[Floats, Floats]:
    """f and coefficients of every support."""
    rows = np.array(supports)
    M = form.matrix()[rows[:, :, None], rows[:, None, :]]
    b = np.linalg.solve(M, form.c[rows][:, :, None])[:, :, 0]
    return form.yy - (b * form.c[rows]).sum(axis=1), b


def leaf_of(form: NormalForm, size: int, rng: np.random.Generator):
    """Enumerate the supports of some columns; every other time it asks for more effort first."""

    def solve(columns: NDArray[np.int64], node_limit: int) -> BestSubsets:
        local = list(combinations(range(len(columns)), size))
        f, _ = fits(form, [tuple(columns[list(S)].tolist()) for S in local])
        best, complete = int(np.argmin(f)), node_limit > clusters.LEAF_EFFORT or rng.random() < 0.5
        near = [i for i in range(len(f)) if f[i] <= f[best] * (1 + form.keep) + form.slack] if complete else []
        cell = BestSubset(
            size, np.array(local[best]), float(f[best]) * (1.0 - SAME if complete else 0.7), float(f[best]),
            tuple(np.array(local[i]) for i in near), tuple(float(f[i]) for i in near), 0.0, complete, True,
        )  # fmt: skip
        return BestSubsets({size: cell}, 1, complete)

    return solve


def tree_of(form: NormalForm, size: int, rng: np.random.Generator, box: BoxEnds | None = None) -> ClusterTree:
    """From a random incumbent, without a root."""
    start = tuple(sorted(rng.choice(form.m, size=size, replace=False).tolist()))
    mask = np.isin(np.arange(form.m), start)
    root = Root(-np.inf, np.zeros(form.m), form.c**2)
    held = float(fits(form, [start])[0][0]), mask
    return ClusterTree(ClusterRelaxation(form, size, box), leaf_of(form, size, rng), held, root)


def squeeze(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CLUSTER_CORRELATION", (0.0, 0.3, 0.8, 1.0)[seed // 2 % 4])
    monkeypatch.setattr(clusters, "LEAF", seed // 8 % 3)
    monkeypatch.setattr(clusters, "LEAF_OF_CLUSTERS", 3 * (seed // 3 % 3))
    monkeypatch.setattr(clusters, "CLUSTER_STEPS", (3, 30, 500)[seed % 3])


def against_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bounds of a stopped tree hold, a finished one names every support that ties; return its nodes."""
    squeeze(seed, monkeypatch)
    form, size, rng = drawn(seed, 14)
    supports = list(combinations(range(form.m), size))
    f, _ = fits(form, supports)
    least, slip = f.min(), SAME * form.yy + form.slack
    tree = tree_of(form, size, rng)
    while not tree.advance(int(rng.integers(1, 10)), lambda: False):
        assert tree.lower <= least + slip
    assert abs(tree.upper - least) <= slip and tree.lower == tree.upper
    held = {tuple(np.flatnonzero(mask).tolist()) for mask, _ in tree.candidates()}
    if not (form.copy_prev >= 0).any():
        assert {S for S, value in zip(supports, f, strict=True) if value <= least * (1.0 + 1e-10)} <= held
    return tree.nodes


def boxed(form: NormalForm, support: tuple[int, ...], box: BoxEnds) -> float:
    """Least f on a support with coefficients in their intervals."""
    S = [j for j in support if box.lo[j] < box.hi[j]]
    if not S:
        return form.yy
    L = np.linalg.cholesky(form.matrix()[np.ix_(S, S)])
    target = np.linalg.solve(L, form.c[S])
    fit = lsq_linear(L.T, target, (box.lo[S], box.hi[S]), tol=1e-13)
    return float(form.yy - target @ target + 2.0 * fit.cost)


def boxed_against_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bounds hold for the best fit within intervals; none of the supports that fit there on their own is lost."""
    squeeze(seed, monkeypatch)
    form, size, rng = drawn(seed, 8)
    box = BoxEnds(-rng.choice([0.0, 0.5, 1.0, 3.0], size=form.m), rng.choice([0.0, 0.5, 1.0, 3.0], size=form.m))
    supports = list(combinations(range(form.m), size))
    f, b = fits(form, supports)
    rows = np.array(supports)
    within = ((b >= box.lo[rows]) & (b <= box.hi[rows])).all(axis=1)
    best, slip = min(boxed(form, S, box) for S in supports), SAME * form.yy + form.slack
    tree = tree_of(form, size, rng, box)
    while not tree.advance(int(rng.integers(1, 10)), lambda: False):
        assert tree.lower <= best + slip
    if within.any():
        assert tree.upper <= f[within].min() + slip
    return tree.nodes


def assumed_against_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A conditional certificate holds for every support within the box, and says so; return whether it was kept."""
    squeeze(seed, monkeypatch)
    monkeypatch.setattr(every_size, "SMALL", 0)
    data, gamma, size, rng = rows(seed, 8)
    how: dict[str, str] = {"scale": ("length", "none")[seed % 2], "intercept": ("none", "fold", "global")[seed % 3]}
    supports = list(combinations(range(data.p), size))
    models = [fit(data.X, data.y, S, gamma, **how) for S in supports]
    best = min(models, key=lambda model: model.objective)
    end = float(np.abs(best.beta).max() * rng.choice([0.7, 1.0001, 1.5, 3.0]))
    limits = Limits(nodes=1) if seed % 5 == 0 else Limits()
    found = fit_one(data, tau=size, gamma=gamma, assume_box=end, limits=limits, **how)
    within = [model.objective for model in models if np.abs(model.beta).max() <= end]
    slip = SAME * float(data.y @ data.y) + found.allowance
    if found.assumed_box is None:
        assert len(found.warnings) == 1 and "was ignored" in found.warnings[0]
        assert found.lower <= best.objective + slip
        return False
    assert found.assumed_box == end and all(abs(value) <= end for value in found.coefficients.values())
    assert found.lower <= min(within) + slip
    report = verify(found, data)
    assert report.ok and "conditional" in report.caveat
    if found.lower < min(within) - 1e-6 * found.upper:
        assert not verify(replace(found, assumed_box=0.9 * max(map(abs, found.coefficients.values()))), data).ok
    raised = replace(found, lower=min(within) * 1.01, objective=found.objective, upper=found.upper)
    assert not verify(raised, data).ok
    return True


@pytest.mark.parametrize("seeds", [range(24), *slow(range(n, n + 100) for n in range(0, 4000, 100))])
@pytest.mark.parametrize(
    ("check", "least"),
    [(against_enumeration, 40), (boxed_against_enumeration, 0), (assumed_against_enumeration, 8)],
)
def test_trees_agree_with_enumeration(
    check: Callable[..., int], least: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least so many nodes, or certificates that were kept."""
    assert sum(check(seed, monkeypatch) for seed in seeds) >= least


def problem_of(seed: int, q: int, gamma: float) -> SparseProblem:
    """Columns in groups of near copies."""
    rng = np.random.default_rng(seed)
    n = 3 * q
    base = rng.standard_normal((n, q))
    X = base[:, rng.integers(0, max(q // 3, 1), q)] + rng.choice([0.05, 0.3, 1.0]) * rng.standard_normal((n, q))
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :: max(q // 4, 1)].sum(axis=1) + 0.3 * rng.standard_normal(n)
    weight, nothing = np.ones(q), np.zeros(q)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), weight, gamma / 2.0, n, nothing, 0.0)


def value(problem: SparseProblem, support: tuple[int, ...]) -> float:
    at = list(support)
    return float(problem.yy - problem.c[at] @ np.linalg.solve(problem.M[np.ix_(at, at)], problem.c[at]))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_taken_out_leaves_a_semidefinite_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(seed, int(rng.integers(2, 40)), float(rng.choice([1e-3, 0.1, 3.0])))
    scale, other = np.exp(rng.standard_normal(problem.q)), np.exp(rng.standard_normal(problem.q))
    M = problem.M * other * other[:, None]
    chosen = chosen_blocks(problem.M * scale * scale[:, None], scale)
    member = gather_blocks(M)
    assert sorted(member[member >= 0].tolist()) == list(range(len(M))) and member.shape[1] == LARGEST_BLOCK
    assert chosen is not None
    part = block_part(M, chosen, other)  # in other units than those it was chosen in
    assert part is not None
    assert np.linalg.eigvalsh(M - part.W)[0] > 0.0 and np.linalg.eigvalsh(part.W)[0] > 0.0
    outside = part.W.copy()
    for row in part.member:
        some = row[row >= 0]
        outside[np.ix_(some, some)] = 0.0
    assert not outside.any()
    columns = np.sort(rng.permutation(len(M))[: rng.integers(1, len(M) + 1)])
    tables = part.tables(columns, problem.yy, 1)
    assert tables is not None and np.array_equal(tables.G, (M - part.W)[np.ix_(columns, columns)])
    assert sorted(tables.member[tables.member >= 0].tolist()) == list(range(len(columns)))


def test_columns_that_are_hardly_correlated_are_not_tied() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    assert not has_correlated_columns(X.T @ X) and has_correlated_columns(
        np.hstack([X, X + 0.1]).T @ np.hstack([X, X + 0.1])
    )


def test_nothing_is_taken_out_of_a_singular_matrix() -> None:
    M, ones = np.ones((3, 3)), np.ones(3)
    near = chosen_blocks(M + 1e-15 * np.eye(3), ones)
    assert chosen_blocks(M, ones) is None and (near is None or block_part(M, near, ones) is None)
    some = chosen_blocks(M + np.eye(3), ones)
    assert some is not None and block_part(M, some, ones) is None, "not a part of this matrix"


@pytest.mark.parametrize("seed", range(12))
def test_trees_with_blocks_find_the_best_supports(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, tau = 11, 5
    problem = problem_of(seed, q, (1e-3, 0.01, 0.3)[seed % 3])
    monkeypatch.setattr(blocks, "LEAST_TIED", 0.0)
    monkeypatch.setattr(listing, "SMALL", 5)
    monkeypatch.setattr(listing, "FIRST_NODES", seed % 2)
    monkeypatch.setattr(listing, "BLOCKS_LEAVE", np.inf)
    monkeypatch.setattr("sparsecv_mio.trees.every_size.SMALL", 5)
    monkeypatch.setattr("sparsecv_mio.trees.every_size.PATH_TREE_ALONE", 0)
    values = {s: value(problem, s) for s in combinations(range(q), tau)}
    least = min(values.values())
    for node_limit in (64, 2048, 1 << 30):
        cell = solve_path(problem, [tau], node_limit=node_limit).by_size[tau]
        assert cell.lower <= least * (1.0 + 1e-9) <= cell.upper * (1.0 + 2e-9)
    assert cell.complete and cell.upper == pytest.approx(least, rel=1e-8)
    assert min(values, key=lambda s: values[s]) in {tuple(sorted(s.tolist())) for s in cell.candidates}


def test_they_are_used() -> None:
    problem = problem_of(1, 40, 1e-3)
    used = []
    run = BlockNodes.process_nodes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockNodes, "process_nodes", lambda *given: used.append(run(*given)) or used[-1])
        patch.setattr(listing, "FIRST_NODES", 1)
        patch.setattr(blocks, "LEAST_TIED", 0.0)
        patch.setattr(listing, "BLOCKS_LEAVE", np.inf)
        solve_path(problem, [8], node_limit=1 << 14)
    assert used
