"""Bounds by blocks of columns against enumeration, their tables and sums against plain linear algebra."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import block_relaxation as kernel
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE

from .plain import Floats, Small

EPS = float(np.finfo(float).eps)


def near_copies(seed: int) -> Small:
    """Small groups of columns that are nearly copies, and some on their own."""
    rng = np.random.default_rng(seed)
    q = int(rng.integers(2, 10))
    base = rng.standard_normal((2 * q + 2, q))
    X = base[:, rng.integers(0, max(q // 2, 1), q)] + rng.choice([0.02, 0.2, 1.0]) * rng.standard_normal(base.shape)
    X *= rng.choice([0.5, 3.0, 20.0])
    y = X @ (rng.standard_normal(q) * (rng.random(q) < 0.6)) + 0.5 * rng.standard_normal(len(X))
    return Small(X, y)


def blocks_of(problem: Small, seed: int) -> tuple[kernel.Blocks, Floats]:
    """Some partition in blocks of up to 4 columns, and W, the largest multiple of that part of M that is allowed."""
    rng = np.random.default_rng(seed)
    q, M, order = problem.q, problem.M, rng.permutation(problem.q)
    member = np.full((q, 4), -1, dtype=np.int64)
    count = first = 0
    while first < q:
        some = np.sort(order[first : first + rng.integers(1, 5)])
        member[count, : len(some)] = some
        count, first = count + 1, first + len(some)
    member = member[:count].copy()
    part, block, place = np.zeros((q, q)), np.zeros(q, dtype=np.int64), np.zeros(q, dtype=np.int64)
    for b, row in enumerate(member):
        some = row[row >= 0]
        part[np.ix_(some, some)] = M[np.ix_(some, some)]
        block[some], place[some] = b, np.arange(len(some))
    L = np.linalg.cholesky(part)
    share = float(np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, M).T))[0]) * (1.0 - 1e-7)
    W = share * part
    factor, pivot = np.zeros((count, 16, 4)), np.zeros((count, 16))
    for b, row in enumerate(member):
        some = row[row >= 0]
        least = kernel.fill_tables(np.ascontiguousarray(W[np.ix_(some, some)]), len(some), factor[b], pivot[b])
        assert 0.0 < least <= 1.0
    length = np.sqrt(np.diag(M))
    prior = float(np.sqrt(problem.yy)) * (1.0 + 2.0 * float(np.linalg.norm(length)))
    return kernel.Blocks(M - W, member, block, place, factor, pivot, length, EPS * (4 * q + 64), prior, 1e-9), W


def node_of(q: int, tau: int, rng: np.random.Generator) -> np.ndarray:
    """Some columns in, some out, so that tau of them fit."""
    order, status = rng.permutation(q), np.full(q, FREE, dtype=np.int8)
    inside, out = int(rng.integers(0, tau + 1)), int(rng.integers(0, q - tau + 1))
    status[order[:inside]], status[order[inside : inside + out]] = INSIDE, DROPPED
    return status


def supports_of(status: np.ndarray, size: int) -> list[list[int]]:
    free, inside = np.flatnonzero(status == FREE).tolist(), np.flatnonzero(status == INSIDE).tolist()
    return [[*inside, *some] for some in combinations(free, size - len(inside))] if size >= len(inside) else []


def value_of(g: Floats, W: Floats, support: list[int]) -> float:
    return float(g[support] @ np.linalg.solve(W[np.ix_(support, support)], g[support])) if support else 0.0


def start_of(blocks: kernel.Blocks) -> kernel.Mixture:
    most, count = kernel.MOST_SUPPORTS, len(blocks.member)
    return kernel.Mixture(np.zeros((most, count), dtype=np.int64), np.zeros(most))


@pytest.mark.parametrize("seed", range(40))
def test_tables_and_the_largest_sum(seed: int) -> None:
    problem, rng = near_copies(seed), np.random.default_rng(seed)
    blocks, W = blocks_of(problem, seed)
    q, g = problem.q, rng.standard_normal(problem.q)
    for tau in range(1, q + 1):
        status, work = node_of(q, tau, rng), kernel.new_block_work(q, tau, blocks)
        assert kernel.fitting(status, blocks, work, start_of(blocks)) == 0
        plain = max(value_of(g, W, s) for size in range(tau + 1) for s in supports_of(status, size))
        assert kernel.largest_sum(g, blocks, tau, work) == pytest.approx(plain, rel=1e-7)
        held = [
            int(blocks.member[b, i]) for b, mask in enumerate(work.choice.tolist()) for i in range(4) if mask >> i & 1
        ]
        assert value_of(g, W, sorted(held)) == pytest.approx(plain, rel=1e-7) and len(held) <= tau


@pytest.mark.parametrize("seed", range(40))
def test_every_support_of_a_node_is_bounded(seed: int) -> None:
    problem, rng = near_copies(seed), np.random.default_rng(seed)
    blocks, W = blocks_of(problem, seed)
    q, yy = problem.q, problem.yy
    tau = int(rng.integers(1, q + 1))
    status = node_of(q, tau, rng)
    work, mixture, b, z = kernel.new_block_work(q, tau, blocks), start_of(blocks), np.zeros(q), np.zeros(q)
    dual, primal, steps = kernel.bound_node(problem.form, blocks, status, (np.inf, -np.inf), mixture, work, b, z)
    least = min(problem.value(s) for s in supports_of(status, tau))
    assert dual <= least and dual <= primal + 1e-7 * yy and 1 <= steps <= kernel.MAX_BLOCK_STEPS
    g = problem.c - (problem.M - W) @ b
    sums = max(value_of(g, W, s) for size in range(tau + 1) for s in supports_of(status, size))
    assert yy - b @ (problem.M - W) @ b - sums <= dual + 1e-6 * yy, "the D of the last point"
    assert np.all(z[status == DROPPED] == 0.0) and np.allclose(z[status == INSIDE], 1.0) and z.sum() <= tau + 1e-9
    assert not np.any(b[status == DROPPED])
    # the node below begins with what fits
    free = np.flatnonzero(status == FREE)
    if len(free) and int((status == INSIDE).sum()) < tau:
        status[free[np.argmax(z[free])]] = INSIDE
        below = min(problem.value(s) for s in supports_of(status, tau))
        again, _, _ = kernel.bound_node(problem.form, blocks, status, (np.inf, -np.inf), mixture, work, b, z)
        assert dual - 1e-6 * yy <= again <= below


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_fixed_where_the_point_bounds_all_others(seed: int) -> None:
    problem, rng = near_copies(seed), np.random.default_rng(seed)
    blocks, W = blocks_of(problem, seed)
    q, yy = problem.q, problem.yy
    tau = int(rng.integers(1, q + 1))
    status = node_of(q, tau, rng)
    work, mixture, b, z = kernel.new_block_work(q, tau, blocks), start_of(blocks), np.zeros(q), np.zeros(q)
    kernel.bound_node(problem.form, blocks, status, (np.inf, -np.inf), mixture, work, b, z)
    G = problem.M - W
    g, base = problem.c - G @ b, yy - b @ G @ b
    node = [s for size in range(tau + 1) for s in supports_of(status, size)]
    of_point = np.array([base - value_of(g, W, s) for s in node])
    bar, slip = float(rng.choice([of_point.min(), *of_point])) + 0.01 * yy * rng.random(), 1e-6 * yy
    before = status.copy()
    fixed = kernel.fix_columns(blocks, bar, work, status)
    assert fixed == int((before != status).sum()) and np.array_equal(status[before != FREE], before[before != FREE])
    has = np.array([np.isin(np.arange(q), s) for s in node])
    for j in np.flatnonzero(before == FREE):
        having = of_point[has[:, j]].min(initial=np.inf)
        lacking = of_point[~has[:, j]].min(initial=np.inf)
        if status[j] == FREE:
            assert max(having, lacking) <= bar + slip
        else:
            assert (having if status[j] == DROPPED else lacking) >= bar - slip
    for s, own in zip(node, has, strict=True):  # nothing below the bar is lost
        kept = not np.any(own & (status == DROPPED)) and np.all(own[status == INSIDE])
        assert kept or problem.value(s) >= bar


def test_one_block_of_all_columns_is_exact() -> None:
    problem = near_copies(3)
    q = problem.q
    member = np.arange(q, dtype=np.int64)[None, :]
    factor, pivot = np.zeros((1, 1 << q, q)), np.zeros((1, 1 << q))
    W = problem.M * (1.0 - 1e-9)
    assert kernel.fill_tables(W, q, factor[0], pivot[0]) > 0.0
    blocks = kernel.Blocks(
        problem.M - W, member, np.zeros(q, dtype=np.int64), np.arange(q), factor, pivot, np.ones(q), 0.0, 0.0, 0.0
    )
    for tau in range(1, q):
        work, b, z = kernel.new_block_work(q, tau, blocks), np.zeros(q), np.zeros(q)
        status = np.full(q, FREE, dtype=np.int8)
        dual, _, _ = kernel.bound_node(problem.form, blocks, status, (np.inf, -np.inf), start_of(blocks), work, b, z)
        assert dual == pytest.approx(problem.best(tau)[0], rel=1e-6)


def test_a_part_that_is_not_positive_has_no_tables() -> None:
    W = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert kernel.fill_tables(W, 2, np.zeros((4, 2)), np.zeros(4)) == 0.0
