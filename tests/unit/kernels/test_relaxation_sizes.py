"""The relaxation of every size: each value closed from both sides, at most the best support."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.relaxation_sizes import Solved, relax_sizes

from . import plain
from .plain import KINDS, small


def room(T: int, q: int) -> Solved:
    return Solved(np.zeros((T, q)), np.zeros((T, q)), np.zeros(T), np.zeros(T), np.zeros(T, dtype=np.int64))


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
@pytest.mark.parametrize("accuracy", [1e-2, 1e-8])
def test_every_size(seed: int, accuracy: float) -> None:
    problem = small(seed)
    q, every = problem.q, np.arange(problem.q)
    sizes = np.arange(1, q, dtype=np.int64)[:: 1 if seed % 2 else -1].copy()  # rising, or the hard way round
    T = len(sizes)
    points, slopes, dual, primal, steps = solved = room(T, q)
    relax_sizes(problem.form, sizes, accuracy, 20_000, np.zeros(q), solved)
    for t, k in enumerate(sizes):
        assert np.allclose(slopes[t], problem.c - problem.G @ points[t])
        value = plain.dual(problem, every[:0], every, int(k), points[t])
        assert dual[t] >= value - 1e-9 * problem.yy, "the best seen, the last point's or better"
        assert primal[t] - dual[t] <= accuracy * primal[t] + 1e-12 * problem.yy
        assert dual[t] <= problem.best(int(k))[0] * (1.0 + 1e-9)
        assert steps[t] >= 1


def test_no_size_at_all() -> None:
    problem = small(0)
    none, q = np.zeros(0, dtype=np.int64), problem.q
    relax_sizes(problem.form, none, 1e-6, 100, np.zeros(q), room(0, q))
