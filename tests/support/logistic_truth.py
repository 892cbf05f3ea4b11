"""Small hostile problems of logistic regression, and their least objectives by an enumeration with its own Newton."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.problem.logistic import LogisticProblem
from sparsecv_mio.trees.logistic_subsets import LogisticSubsets


def long_objective(problem: LogisticProblem, theta: np.ndarray) -> np.longdouble:
    margins = problem.y * (problem.rows.astype(np.longdouble) @ theta)
    loss = np.where(margins > 0, np.log1p(np.exp(-np.abs(margins))), -margins + np.log1p(np.exp(-np.abs(margins))))
    return problem.v @ loss + problem.penalty @ theta**2  # type: ignore[no-any-return]


def least(problem: LogisticProblem) -> tuple[np.longdouble, float]:
    """Least F on all columns and how much lower it may be: damped Newton, the gradient in long double."""
    Z, y, v = problem.rows.astype(np.longdouble), problem.y, problem.v
    theta = problem.start().astype(np.longdouble)
    value, decrement = long_objective(problem, theta), 0.0
    for _ in range(400 if len(theta) else 0):
        margins = y * (Z @ theta)
        share = 1 / (1 + np.exp(margins))
        gradient = 2 * problem.penalty * theta - Z.T @ (v * y * share)
        H = ((Z * (v * share * (1 - share))[:, None]).T @ Z + np.diag(2 * problem.penalty)).astype(float)
        unit = np.sqrt(np.diag(H))
        step = -np.linalg.solve(H / np.outer(unit, unit), (gradient / unit).astype(float)) / unit
        decrement = float(-gradient @ step)
        size = 1.0
        while size > 1e-14 and not long_objective(problem, theta + size * step) < value:
            size /= 2
        if size <= 1e-14:
            break
        theta = theta + size * step
        value = long_objective(problem, theta)
    return value, abs(decrement)


def drawn(seed: int, most: int = 7) -> LogisticProblem:
    """Separable, near copies, rare classes, weights, far offsets, scales from 1e-6 to 1e6, gamma from 1e-6 to 1e3."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 61)), int(rng.integers(1, most + 1))
    X = rng.normal(size=(n, p))
    kind = seed % 8
    if kind == 1 and p > 1:
        X[:, 0] = X[:, 1] + 10.0 ** rng.uniform(-5, -1) * X[:, 0]
    if kind == 2:
        X = (X > 0.3).astype(float)
    score = X @ (rng.normal(size=p) * rng.choice([0.0, 1.0, 5.0]))
    y = np.where(score + (0.0 if kind == 3 else 1.0) * rng.logistic(size=n) > 0, 1.0, -1.0)
    if kind == 4:
        y[:] = -1.0
        y[rng.choice(n, 3, replace=False)] = 1.0
    y[0], y[1] = 1.0, -1.0
    if kind == 5:
        X = X * 10.0 ** rng.uniform(-6, 6, size=p)
    if kind == 6:
        X += 1e6 * (rng.random(p) < 0.5)
    if kind != 6:
        X -= X.mean(0)
    v = rng.choice([0.1, 1.0, 7.0], size=n) if kind == 7 else np.ones(n)
    intercept = bool(rng.random() < 0.85)
    return LogisticProblem(X, y, v, np.full(p, 10.0 ** rng.uniform(-6, 3) / 2), intercept)


def enumerated(problem: LogisticProblem) -> dict[tuple[int, ...], tuple[np.longdouble, float]]:
    """Least F of every support, each with its accuracy."""
    sets = (S for size in range(problem.p + 1) for S in combinations(range(problem.p), size))
    return {S: least(problem.only(np.array(S, dtype=np.int64))) for S in sets}


def best_of_size(truth: dict[tuple[int, ...], tuple[np.longdouble, float]], size: int) -> np.longdouble:
    return min(value for S, (value, _) in truth.items() if len(S) <= size)


def mask_of(S: tuple[int, ...], p: int) -> np.ndarray:
    return np.isin(np.arange(p), S)


def quadratic_value(moments: object, S: tuple[int, ...]) -> float:
    """f(S) of a problem in moments, by one solve."""
    i = list(S)
    M, c = moments.M[np.ix_(i, i)], moments.c[i]  # type: ignore[attr-defined]
    solved: FloatArray = np.linalg.solve(M, c) if i else np.zeros(0)
    return float(moments.yy - c @ solved)  # type: ignore[attr-defined]


def judged(seed: int, most: int = 7) -> tuple[int, int]:
    """Check every claim about one problem; returns how many sizes were asked and how many were proved."""
    problem = drawn(seed, most)
    truth, subsets = enumerated(problem), LogisticSubsets(problem)
    supports = list(truth)
    refits = subsets.refit(np.array([mask_of(S, problem.p) for S in supports]))
    for S, lower, upper in zip(supports, refits.lower, refits.upper, strict=True):
        value, off = truth[S]
        assert lower <= value, (seed, S)
        assert upper >= value - off, (seed, S)
    sizes = list(range(problem.p + 1))
    result = subsets.solve(sizes, effort=200)
    for size in sizes:
        best, value = result.by_size[size], best_of_size(truth, size)
        off = max(off for _, off in truth.values())
        assert best.lower <= value, (seed, size)
        assert best.upper >= value - off, (seed, size)
        assert len(best.support) == min(size, problem.p)
    return len(sizes), sum(result.by_size[size].complete for size in sizes)
