"""Whole trees that see blocks of columns, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import block_tree as kernel
from sparsecv_mio.kernels import node_pool
from sparsecv_mio.kernels.block_relaxation import new_block_work
from sparsecv_mio.kernels.nodes import FREE, Copies, Margin

from .test_block_relaxation import blocks_of, near_copies


@pytest.mark.parametrize("seed", range(40))
def test_every_support_within_the_bar_is_kept(seed: int) -> None:
    problem, rng = near_copies(seed), np.random.default_rng(seed)
    q = problem.q
    blocks, _ = blocks_of(problem, seed)
    alone = Copies(np.full(q, -1), np.full(q, -1))
    for tau in range(1, q):
        values = {s: problem.value(s) for s in combinations(range(q), tau)}
        margin = Margin(float(rng.choice([1e-8, 0.1])), 1e-9 * problem.yy)
        first = max(values, key=lambda s: values[s])
        mask = np.isin(np.arange(q), first)
        upper = values[first] * (1.0 + 1e-9)
        bar = upper * (1.0 + margin.keep) + margin.slack
        pool = node_pool.new_pool(np.full(q, FREE, dtype=np.int8), upper, bar, mask, capacity=4)
        mixtures, work = kernel.new_mixtures(4, blocks), new_block_work(q, tau, blocks)
        lower = -np.inf
        for _ in range(10_000):
            code = kernel.process_nodes(pool, mixtures, problem.form, blocks, alone, margin, work, 3)
            if code == node_pool.FINISHED:
                break
            assert pool.bound[0] >= lower - 1e-9 * problem.yy
            lower = pool.bound[0]
            assert min(lower, pool.best[0]) <= min(values.values()) * (1.0 + 1e-9)
            if code == node_pool.FULL:
                pool, mixtures = node_pool.grow_pool(pool), kernel.grow_mixtures(mixtures)
        assert code == node_pool.FINISHED
        assert pool.best[0] == pytest.approx(min(values.values()), rel=1e-7)
        kept = int(pool.ctrl[node_pool.KEPT])
        found = {tuple(np.flatnonzero(row).tolist()) for row in pool.kept.mask[:kept]}
        assert {s for s, f in values.items() if f <= min(values.values()) * (1.0 + 0.9 * margin.keep)} <= found
