"""Blocks of correlated columns: what is taken out of M is valid, and trees that use it find every support in reach."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees import blocks, listing
from sparsecv_mio.trees.blocks import (
    LARGEST_BLOCK,
    BlockNodes,
    block_part,
    chosen_blocks,
    gather_blocks,
    has_correlated_columns,
)
from sparsecv_mio.trees.every_size import solve_path


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
    used = []
    run = BlockNodes.process_nodes
    monkeypatch.setattr(BlockNodes, "process_nodes", lambda *given: used.append(run(*given)) or used[-1])
    values = {s: value(problem, s) for s in combinations(range(q), tau)}
    least = min(values.values())
    for effort in (64, 2048, 1 << 30):
        cell = solve_path(problem, [tau], effort=effort).by_size[tau]
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
        solve_path(problem, [8], effort=1 << 14)
    assert used
