"""Every size of one fold: parts against their formulas, the whole against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels import fold_bounds as kernel
from sparsecv_mio.kernels.held_out_sums import EXACT, NOTHING, TOGETHER
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Fold, Incumbents, Rounding
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.reduced_forms import normalise

from . import plain
from .plain import KINDS, Small, fold_of, small
from .test_level_sets import centre_of

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
    fold = fold_of(problem, np.zeros((0, q)), np.zeros(0))
    args = fold, status, free, b, k, Incumbents(best, supports), new_factor(q, q)
    kernel.take_support(*args)
    expected = sorted([*range(q // 3), *free[np.argsort(-np.abs(b))[: k - q // 3]]])
    assert np.flatnonzero(supports[k]).tolist() == expected
    assert best[k] == pytest.approx(problem.value(expected), rel=1e-9)
    best[k], supports[:] = -1.0, False
    kernel.take_support(*args)
    assert best[k] == -1.0 and not supports.any()


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
    X, u = rng.standard_normal((2, q)), rng.standard_normal(2)
    fold = fold_of(problem, X, u)
    asked = kernel.BoundTask(kernel.DO_REDUCE, 5, sharp, 2e-9, 1e-15)
    for k in range(1, q):
        b, dual, primal = centre_of(problem, k)
        best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
        value, support = problem.best(k)
        best[k] = value
        supports[k, list(support)] = True
        relaxed = kernel.RelaxedPoint(b, problem.c - problem.G @ b, dual, primal)
        status, free, left, part, _, _, _, lower, level, slip = kernel.narrow(
            fold, normalise(fold), relaxed, k, asked, float(np.sqrt(problem.yy)), Incumbents(best, supports),
            new_factor(q, q),
        )  # fmt: skip
        M_f, c_f, yy_f, w_f, X_f, u_f = part
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
    fold = Fold(M, c, yy, penalty / 2.0 * (1.0 - 1e-9), X, u)
    asked = kernel.BoundTask(flags, 5, 300, 2e-9, 1e-15)
    assert kernel.bound_fold(fold, sizes, asked, Incumbents(best, supports), out, ends) == 0
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
        if out[t, 4] == EXACT:
            assert out[t, 7] == 0.0 and out[t, 3] - out[t, 2] <= 1e-9 * (1.0 + out[t, 3])


@pytest.mark.parametrize("seed", SEVERAL)
def test_all_rows_together(seed: int) -> None:
    """Every candidate's sum of squares lies in the interval; a better end that is known already stays."""
    problem, rng = small(seed), np.random.default_rng(seed)
    q, norm = problem.q, float(np.sqrt(problem.yy))
    k = int(rng.integers(1, q))
    ubar, X, u = problem.best(k)[0] * 1.02, rng.standard_normal((3, q)), rng.standard_normal(3)
    fold, (b, dual, primal) = fold_of(problem, X, u), centre_of(problem, k)
    normal = normalise(fold)
    relaxed = kernel.RelaxedPoint(b, problem.c - problem.G @ b, dual, primal)
    nothing_in, no_lever = np.zeros(q, dtype=np.int8), np.zeros(len(u))
    left = kernel.Narrowed(nothing_in, np.arange(q), k, fold, normal, relaxed, no_lever, dual, ubar, 0.0)
    asked, rounding = kernel.BoundTask(kernel.DO_TOGETHER, 5, 0, 2e-9, 1e-15), Rounding(1e-15, norm, norm, normal.root)
    (low, of_low), (high, of_high), ok = kernel.bound_together(
        left, ubar, asked, rounding, (0.0, NOTHING), (np.inf, NOTHING)
    )
    held = [float(np.sum((u - X @ point) ** 2)) for point in plain.candidates(problem, k, ubar, rng)]
    assert ok and low <= min(held) * (1.0 + 1e-9) + 1e-9 and max(held) <= high * (1.0 + 1e-9) + 1e-9
    assert of_high == TOGETHER and of_low == (TOGETHER if low > 0.0 else NOTHING)
    better = (low + 1.0, EXACT), (0.5 * high, EXACT)
    assert kernel.bound_together(left, ubar, asked, rounding, *better) == (*better, True)


def test_a_bound_above_its_incumbent_is_counted() -> None:
    """An incumbent that cannot be: the contradiction is reported, not hidden."""
    problem = unit_scaled(small(0))
    q = problem.q
    M, c = problem.M / 2.0, problem.c / np.sqrt(2.0)
    best, supports = np.full(q + 1, np.inf), np.zeros((q + 1, q), dtype=np.bool_)
    best[3] = 0.5 * problem.best(3)[0]
    out, ends = np.zeros((1, 8)), np.empty((1, 1, 2))
    fold = Fold(M, c, problem.yy, np.full(q, 0.5), np.ones((1, q)), np.ones(1))
    asked = kernel.BoundTask(kernel.DO_REDUCE, 5, 300, 2e-9, 1e-15)
    broken = kernel.bound_fold(fold, np.array([3]), asked, Incumbents(best, supports), out, ends)
    assert broken > 0
