"""Intervals of predictions and of their sum of squares: the only support left, distances, rounding of the means."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import held_out_interval as kernel
from sparsecv_mio.kernels.forms import Rounding
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .plain import KINDS, fold_of, small


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_only_support_left(seed: int) -> None:
    """Columns inside; all free ones too while the inside ones are fewer than k."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    X, lo, hi = rng.standard_normal((3, q)), np.empty(3), np.empty(3)
    factor, rounding = new_factor(q, q), Rounding(1e-9, 1.0, 0.0, np.ones(q))
    fold = fold_of(problem, X, np.zeros(3))
    status = np.full(q, DROPPED, dtype=np.int8)
    status[: q // 2] = INSIDE
    status[q // 2 : q // 2 + 2] = FREE
    for k in (q // 2, q // 2 + 2):
        held = np.flatnonzero((status == INSIDE) | ((status == FREE) & (k > q // 2)))
        assert kernel.one_support(fold, status, k, rounding, lo, hi, factor)
        exact = X @ problem.beta(held)
        assert np.all(lo <= exact) and np.all(exact <= hi) and np.all(hi - lo < 1e-5)
    status[:] = INSIDE
    if q > 1:
        assert not kernel.one_support(fold._replace(M=np.ones((q, q))), status, q, rounding, lo, hi, factor)


@pytest.mark.parametrize("seed", range(8))
def test_distances_and_blur(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, lo = rng.standard_normal(4), rng.standard_normal(4)
    hi = lo + rng.random(4) * (rng.random(4) < 0.7)
    low, high = kernel.distances(u, lo, hi)
    near = np.clip(u, lo, hi)
    assert low == pytest.approx(np.sum((u - near) ** 2))
    assert high == pytest.approx(np.sum(np.maximum(np.abs(u - lo), np.abs(u - hi)) ** 2))
    assert kernel.distances(np.zeros(0), np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    N, rounding, prior = 4, 1e-3, 5.0
    wide = kernel.blurred(low, high, N, Rounding(rounding, prior, 0.0, u))
    for _ in range(50):  # every residual off by up to a tenth of rounding times prior
        e = np.sqrt(high / N) + 0.1 * rounding * prior * rng.uniform(-1.0, 1.0, N)
        assert np.sum(e**2) <= wide[1]
        e = np.sqrt(low / N) + 0.1 * rounding * prior * rng.uniform(-1.0, 1.0, N)
        assert np.sum(e**2) >= wide[0]
    assert wide == pytest.approx(
        (max(low**0.5 - 0.1 * rounding * prior * 2.0, 0.0) ** 2, (high**0.5 + 0.1 * rounding * prior * 2.0) ** 2)
    )


def test_cells_written() -> None:
    cell, ends = np.full(8, 5.0), np.zeros((2, 2))
    kernel.nothing(cell, ends, 3.0)
    assert cell[:6].tolist() == [3.0, np.inf, 0.0, np.inf, kernel.NOTHING, kernel.NOTHING] and np.isnan(cell[6])
    assert ends.tolist() == [[-np.inf, np.inf]] * 2 and cell[7] == 5.0
    kernel.settle(cell, 1.0, 2.0, kernel.ROWS, kernel.EXACT)
    assert cell[:6].tolist() == [3.0, np.inf, 1.0, 2.0, kernel.ROWS, kernel.EXACT]
