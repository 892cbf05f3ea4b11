"""Leaving folds out of a fit by identities, against fits without those rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.leave_out import (
    BestByFold,
    HeldOutRows,
    ListedSupports,
    WinLimits,
    common_errors,
    half_inverses,
    score_supports,
)

from .plain import KINDS, Small, read_only, small

UNTIED = [k for k in range(16) if KINDS[k % len(KINDS)] not in ("copies", "tied")]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_half_inverses(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q, penalty = problem.q, np.random.default_rng(seed).uniform(0.5, 2.0, problem.q)
    sizes = np.arange(q + 1)
    supports = np.array([rng.permutation(q) for _ in sizes])
    half, blur = np.zeros((q + 1, q, q)), np.empty(q + 1)
    half_inverses(problem.G, penalty, supports, sizes, half, blur)
    for a, size in enumerate(sizes):
        held = supports[a, :size]
        M = problem.G[np.ix_(held, held)] + np.diag(penalty[held])
        C = np.tril(half[a, :size, :size])
        assert np.allclose(C.T @ C, np.linalg.inv(M)) and 0.0 <= blur[a] < 1e-8
    half_inverses(np.ones((2, 2)), np.zeros(2), np.array([[0, 1]]), np.array([2]), np.zeros((1, 2, 2)), blur[:1])
    assert blur[0] == np.inf


def rows_of(problem: Small, starts: np.ndarray, root: np.ndarray) -> HeldOutRows:
    """The rows by column, as the program has them: for rows that lie otherwise, kernels would be compiled again.

    Numba cannot tell how a single column lies, so it has another beside it that is in no support.
    """
    X = problem.X if problem.q > 1 else np.repeat(problem.X, 2, axis=1)
    return HeldOutRows(np.asfortranarray(X), problem.y, starts, root)


def listed(problem: Small, sizes=(1, 2)):
    """Every support of the sizes, with what the kernel wants to know of each."""
    every = [s for size in sizes if size <= problem.q for s in combinations(range(problem.q), size)]
    top = max(len(s) for s in every)
    supports = np.zeros((len(every), top), dtype=np.int64)
    beta, spread = np.zeros((len(every), top)), np.full((len(every), top), 1e-12)
    for row, s in enumerate(every):
        supports[row, : len(s)] = s
        beta[row, : len(s)] = problem.beta(s)[list(s)]
    count = np.array([len(s) for s in every])
    place = count - count.min()
    half, blur = np.zeros((len(every), top, top)), np.empty(len(every))
    half_inverses(problem.G, np.ones(problem.q), supports, count, half, blur)
    value, level = np.array([problem.value(s) for s in every]), np.full(len(every), 1e-12)
    return every, ListedSupports(supports, count, place, value, level, beta, spread, level, half, blur)


def eta_of(problem: Small, folds: list[np.ndarray]) -> np.ndarray:
    """The largest eigenvalue of the leverages of all columns, which those of no support exceed."""
    H = problem.X @ np.linalg.solve(problem.M, problem.X.T)
    return np.array([np.linalg.eigvalsh(H[np.ix_(N, N)])[-1] for N in folds]) * (1.0 + 1e-12)


def outputs(T: int, k: int) -> BestByFold:
    best, second, held, error = (np.full((T, k), np.inf) for _ in range(4))
    return BestByFold(best, second, held, error, np.full((T, k), -1, dtype=np.int32))


@pytest.mark.parametrize("seed", UNTIED)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_best_two_supports_of_every_fold(seed: int, length: int) -> None:
    problem = small(seed)
    n = len(problem.y)
    folds = np.array_split(np.arange(n), max(n // length, 1))
    every, given = listed(problem)
    starts = np.concatenate([[0], np.cumsum([len(N) for N in folds])]).astype(np.int64)
    T = int(given.tau_index.max()) + 1
    limits = WinLimits(np.full((T, len(folds)), np.inf), eta_of(problem, folds))
    best, second, held, error, which = scores = outputs(T, len(folds))
    rows = rows_of(problem, starts, np.ones(n))
    score_supports(rows, 0.0, given, limits, 100, scores)
    for k, N in enumerate(folds):
        rest = problem.without(N)
        for t in range(T):
            here = [i for i in range(len(every)) if given.tau_index[i] == t]
            values = sorted((rest.value(every[i]), i) for i in here)
            assert best[t, k] == pytest.approx(values[0][0], rel=1e-8)
            if len(here) > 1:
                assert second[t, k] == pytest.approx(values[1][0], rel=1e-8)
            truth = float(np.sum((problem.y[N] - problem.X[N] @ rest.beta(every[which[t, k] - 100])) ** 2))
            assert held[t, k] == pytest.approx(truth, rel=1e-7)
            assert abs(held[t, k] - truth) <= error[t, k] <= 1e-6 * (1.0 + held[t, k])


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_an_intercept_and_a_limit(seed: int) -> None:
    """Centred rows with 1 / n in the leverages are fits that centre each training set by its own means."""
    raw = small(seed)
    n = len(raw.y)
    problem = Small(raw.X - raw.X.mean(0), raw.y - raw.y.mean())
    every, given = listed(problem, sizes=(2,))
    limit = np.full((1, n), np.inf)
    limit[0, 3] = given.value.min() * 0.5  # nothing can win fold 3
    eta = np.clip(eta_of(problem, [np.array([i]) for i in range(n)]) + 1.0 / n, 0.0, 1.0 - 1e-12)
    rows = rows_of(problem, np.arange(n + 1), np.ones(n))
    out = outputs(1, n)
    score_supports(rows, 1.0 / n, given, WinLimits(limit, eta), 0, out)
    best, _, held, _, which = out
    assert np.isinf(best[0, 3]) and which[0, 3] == -1
    for i in set(range(n)) - {3}:
        keep = np.arange(n) != i
        mean, level = raw.X[keep].mean(0), raw.y[keep].mean()
        rest = Small(raw.X[keep] - mean, raw.y[keep] - level)
        value, where = min((rest.value(s), k) for k, s in enumerate(every))
        assert best[0, i] == pytest.approx(value, rel=1e-8) and which[0, i] == where
        truth = (raw.y[i] - level - (raw.X[i] - mean) @ rest.beta(every[where])) ** 2
        assert held[0, i] == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("length", [1, 3])
def test_weights_and_an_intercept(seed: int, length: int) -> None:
    """Rows times the roots of weights, about weighted means: fits that centre each training set by its own."""
    raw, w = small(seed), np.random.default_rng(seed).uniform(0.1, 3.0, len(small(seed).y))
    n, root = len(raw.y), np.sqrt(w)

    def about_means(rows: np.ndarray, scored: np.ndarray) -> tuple[Small, Small]:
        mean, level = w[rows] @ raw.X[rows] / w[rows].sum(), w[rows] @ raw.y[rows] / w[rows].sum()
        X, y = root[:, None] * (raw.X - mean), root * (raw.y - level)
        return Small(X[rows], y[rows]), Small(X[scored], y[scored])

    problem, _ = about_means(np.arange(n), np.arange(n))
    folds = np.array_split(np.arange(n), n // length)
    every, given = listed(problem, sizes=(2,))
    starts = np.concatenate([[0], np.cumsum([len(N) for N in folds])]).astype(np.int64)
    rows, out = rows_of(problem, starts, root), outputs(1, len(folds))
    limits = WinLimits(np.full((1, len(folds)), np.inf), np.full(len(folds), 1.0 - 1e-9))
    score_supports(rows, 1.0 / w.sum(), given, limits, 0, out)
    for k, N in enumerate(folds):
        rest, held = about_means(np.setdiff1d(np.arange(n), N), N)
        value, a = min((rest.value(s), a) for a, s in enumerate(every))
        assert out.which[0, k] == a and out.value[0, k] == pytest.approx(value, rel=1e-8)
        held_out = float(np.sum((held.y - held.X @ rest.beta(every[a])) ** 2))
        assert out.held_out[0, k] == pytest.approx(held_out, rel=1e-7)


def truth(raw: Small, w: np.ndarray, folds: list[np.ndarray], support, centred: bool) -> float:
    """The weighted error of a support, each training set centred by its own weighted means."""
    total, root = 0.0, np.sqrt(w)
    for N in folds:
        rows = np.setdiff1d(np.arange(len(raw.y)), N)
        mean = w[rows] @ raw.X[rows] / w[rows].sum() if centred else 0.0
        level = w[rows] @ raw.y[rows] / w[rows].sum() if centred else 0.0
        X, y = root[:, None] * (raw.X - mean), root * (raw.y - level)
        total += float(np.sum((y[N] - X[N] @ Small(X[rows], y[rows]).beta(support)) ** 2))
    return total


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize(("length", "centred"), [(1, True), (1, False), (2, True), (4, False), (9, True)])
def test_errors_of_every_support(seed: int, length: int, centred: bool) -> None:
    raw = small(seed)
    n = len(raw.y)
    w = np.random.default_rng(seed).uniform(0.2, 2.0, n) if seed % 2 else np.ones(n)
    root = np.sqrt(w)
    mean, level = (w @ raw.X / w.sum(), w @ raw.y / w.sum()) if centred else (0.0, 0.0)
    problem = Small(root[:, None] * (raw.X - mean), root * (raw.y - level))
    folds = np.array_split(np.arange(n), max(n // length, 2))
    starts = np.concatenate([[0], np.cumsum([len(N) for N in folds])]).astype(np.int64)
    every, given = listed(problem, sizes=(1, 2, 3))
    rows = rows_of(problem, read_only(starts), root)
    total, error = np.empty(len(every)), np.empty(len(every))
    common_errors(rows, 1.0 / w.sum() if centred else 0.0, given, np.inf, total, error)
    for a, support in enumerate(every):
        true = truth(raw, w, folds, support, centred)
        assert abs(total[a] - true) <= error[a] + 1e-12 * true
        assert error[a] <= 1e-6 * (1.0 + true)
    again, other = np.empty(len(every)), np.empty(len(every))
    limit = float(np.median(total))
    common_errors(rows, 1.0 / w.sum() if centred else 0.0, given, limit, again, other)
    assert np.array_equal(again[total <= limit], total[total <= limit])
    assert np.all(again[total > limit] > limit - 1e-6)


def test_a_leverage_of_one_is_said() -> None:
    problem = Small(np.eye(3)[:, :1] * 1e12, np.ones(3))
    _, given = listed(problem, sizes=(1,))
    rows = rows_of(problem, read_only(np.arange(4)), np.ones(3))
    pairs = rows._replace(starts=read_only(np.array([0, 2, 3])))
    for some in (rows, pairs):
        total, error = np.empty(1), np.empty(1)
        common_errors(some, 0.0, given, np.inf, total, error)
        assert error[0] == np.inf
