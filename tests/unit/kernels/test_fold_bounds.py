"""Every size of one fold: parts against their formulas, the whole against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import fold_bounds as kernel
from sparsecv_mio.kernels.reduction import normalise
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .plain import KINDS, Small, small
from .test_conic import centre_of

SEVERAL = [k for k in range(2 * len(KINDS)) if KINDS[k % len(KINDS)] != "one column"]


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_rounded_support(seed: int) -> None:
    """Columns inside and the largest |b| of the free ones; kept only where better."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    status = np.zeros(q, dtype=np.int8)
    status[: q // 3] = INSIDE
    free, k = np.arange(q // 3, q), q // 3 + (q - q // 3) // 2
    b = rng.standard_normal(len(free))
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    work = np.empty((q, q)), np.empty(q), np.empty(q, dtype=np.int64)
    kernel.take_support(problem.M, problem.c, problem.yy, status, free, b, k, best, supports, *work)
    expected = sorted([*range(q // 3), *free[np.argsort(-np.abs(b))[: k - q // 3]]])
    assert np.flatnonzero(supports[k]).tolist() == expected
    assert best[k] == pytest.approx(problem.value(expected), rel=1e-9)
    best[k], supports[:] = -1.0, False
    kernel.take_support(problem.M, problem.c, problem.yy, status, free, b, k, best, supports, *work)
    assert best[k] == -1.0 and not supports.any()


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_leverages(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    for rows in (0, 1, 4):
        X = rng.standard_normal((rows, problem.q))
        K, beta, ok = kernel.leverages(problem.M, problem.c, X)
        assert ok and np.allclose(K, X @ np.linalg.solve(problem.M, X.T)) and np.array_equal(K, K.T)
        assert np.allclose(beta, problem.beta(range(problem.q)))
    assert not kernel.leverages(np.ones((2, 2)), np.ones(2), np.ones((1, 2)))[2]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_only_support_left(seed: int) -> None:
    """Columns inside; all free ones too while the inside ones are fewer than k."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    X, lo, hi = rng.standard_normal((3, q)), np.empty(3), np.empty(3)
    work = np.empty((q, q)), np.empty(q), np.empty(q, dtype=np.int64)
    status = np.full(q, DROPPED, dtype=np.int8)
    status[: q // 2] = INSIDE
    status[q // 2 : q // 2 + 2] = FREE
    for k in (q // 2, q // 2 + 2):
        held = np.flatnonzero((status == INSIDE) | ((status == FREE) & (k > q // 2)))
        assert kernel.one_support(problem.M, problem.c, status, k, X, np.zeros(3), 1.0, 1e-9, lo, hi, *work)
        exact = X @ problem.beta(held)
        assert np.all(lo <= exact) and np.all(exact <= hi) and np.all(hi - lo < 1e-5)
    status[:] = INSIDE
    singular = np.ones((q, q))
    if q > 1:
        assert not kernel.one_support(singular, problem.c, status, q, X, np.zeros(3), 1.0, 0.0, lo, hi, *work)


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
    wide = kernel.blurred(low, high, N, rounding, prior)
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


def test_values_carried_to_the_columns_left() -> None:
    free, left = np.array([1, 3, 4, 8]), np.array([3, 8])
    w, b, root = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 8.0]), np.array([0.1, 0.2, 0.3, 0.4])
    w_left, b_left = kernel.carry(free, left, w, b, root, 0.5)
    assert w_left.tolist() == [1.0, 2.0] and np.allclose(b_left, [1.2, 3.2])


@pytest.mark.parametrize("seed", SEVERAL)
@pytest.mark.parametrize("sharp", [0, 100])
def test_narrowing_keeps_every_optimum(seed: int, sharp: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    X, u, ones = rng.standard_normal((2, q)), rng.standard_normal(2), np.ones(q)
    G, cn, Xn, root = normalise(problem.M, problem.c, X, ones)
    for k in range(1, q):
        b, dual, primal = centre_of(problem, k)
        best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
        value, support = problem.best(k)
        best[k] = value
        supports[k, list(support)] = True
        status, free, left, M_f, c_f, yy_f, X_f, u_f, w_f, *_, lower, level, slip = kernel.narrow(
            problem.M, problem.c, problem.yy, X, u, ones, G, cn, Xn, root, b, problem.c - problem.G @ b, dual, primal,
            k, 5, sharp, 2e-9, 1e-15, float(np.sqrt(problem.yy)), best, supports,
        )  # fmt: skip
        assert lower <= value * (1.0 + 1e-9) and level >= value and slip >= 0.0
        for s in combinations(range(q), k):
            if problem.value(s) <= value * (1.0 + 1e-9):
                held = np.isin(np.arange(q), s)
                assert np.all(held[status == INSIDE]) and not held[status == DROPPED].any()
        if not 0 < left < len(free):
            continue
        assert np.array_equal(free, np.flatnonzero(status == FREE))
        assert np.linalg.eigvalsh(M_f - np.diag(w_f))[0] > -1e-9 and np.all(w_f > 0.0)
        inside = np.flatnonzero(status == INSIDE)
        assert left == k - len(inside)
        z = rng.standard_normal(len(free))
        full = np.zeros(q)
        full[free] = z
        full[inside] = np.linalg.solve(
            problem.M[np.ix_(inside, inside)], problem.c[inside] - problem.M[np.ix_(inside, free)] @ z
        )
        whole = problem.yy - 2.0 * problem.c @ full + full @ problem.M @ full
        assert yy_f - 2.0 * c_f @ z + z @ M_f @ z == pytest.approx(whole, rel=1e-7)
        assert np.allclose(u_f - X_f @ z, u - X @ full)


def unit_scaled(problem: Small) -> Small:
    """Columns scaled so that M has a unit diagonal: half of it penalty."""
    length = np.linalg.norm(problem.X, axis=0)
    length[length == 0.0] = 1.0
    return Small(problem.X / length, problem.y)


MODES = {
    "reduced rows": kernel.DO_REDUCE | kernel.DO_ROWS,
    "rows": kernel.DO_ROWS,
    "together": kernel.DO_TOGETHER,
    "everything": kernel.DO_REDUCE | kernel.DO_ROWS | kernel.DO_TOGETHER,
    "every end": kernel.DO_REDUCE | kernel.DO_ROWS | kernel.DO_ENDS,
}


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
@pytest.mark.parametrize("mode", MODES)
def test_intervals_contain_every_optimum(seed: int, mode: str) -> None:
    problem, rng = unit_scaled(small(seed)), np.random.default_rng(seed)
    q = problem.q
    penalty = np.where(np.linalg.norm(problem.X, axis=0) > 0.0, 1.0, 2.0)  # M_jj = 2 everywhere, then halved
    M, c, yy = (problem.G + np.diag(penalty)) / 2.0, problem.c / np.sqrt(2.0), problem.yy
    N = (0, 1, 3)[seed % 3]
    X, u = rng.standard_normal((N, q)), rng.standard_normal(N)
    sizes = np.arange(1, q, dtype=np.int64)
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    out, ends = np.zeros((len(sizes), 8)), np.empty((len(sizes), N, 2))
    flags = MODES[mode] & (kernel.DO_REDUCE | kernel.DO_ROWS | kernel.DO_ENDS) if N == 0 else MODES[mode]
    args = M, c, yy, X, u, penalty / 2.0 * (1.0 - 1e-9), sizes, flags, 5, 300, 2e-9, 1e-15, best, supports, out, ends
    assert kernel.run(*args) == 0
    for t, k in enumerate(sizes):
        values = {}
        for s in combinations(range(q), int(k)):
            held = list(s)
            beta = np.linalg.solve(M[np.ix_(held, held)], c[held])
            values[s] = yy - c[held] @ beta, X[:, held] @ beta
        optimum = min(value for value, _ in values.values())
        assert out[t, 0] <= optimum * (1.0 + 1e-9) and optimum <= best[k] * (1.0 + 1e-9)
        assert best[k] * (1.0 - 1e-9) <= out[t, 1]
        for value, predicted in values.values():
            if value <= optimum * (1.0 + 1e-9):
                held_out = float(np.sum((u - predicted) ** 2))
                assert out[t, 2] <= held_out + 1e-9 and held_out <= out[t, 3] + 1e-9
                assert np.all(ends[t, :, 0] <= predicted + 1e-9) and np.all(predicted <= ends[t, :, 1] + 1e-9)
        if out[t, 4] == kernel.EXACT:
            assert out[t, 7] == 0.0 and out[t, 3] - out[t, 2] <= 1e-9 * (1.0 + out[t, 3])


def test_a_bound_above_its_incumbent_is_counted() -> None:
    """An incumbent that cannot be: the contradiction is reported, not hidden."""
    problem = unit_scaled(small(0))
    q = problem.q
    M, c = problem.M / 2.0, problem.c / np.sqrt(2.0)
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    best[3] = 0.5 * problem.best(3)[0]
    out, ends = np.zeros((1, 8)), np.empty((1, 1, 2))
    broken = kernel.run(
        M, c, problem.yy, np.ones((1, q)), np.ones(1), np.full(q, 0.5), np.array([3]), kernel.DO_REDUCE, 5, 300, 2e-9,
        1e-15, best, supports, out, ends,
    )  # fmt: skip
    assert broken > 0
