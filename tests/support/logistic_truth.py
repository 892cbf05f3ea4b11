"""Small hostile problems of two classes and of counts; their least objectives by an enumeration with its own Newton."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.glm_objective import GlmModel, fit_of_data
from sparsecv_mio.problem.row_losses import PoissonLoss
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.subsets import UNLIMITED


def fitted(
    X: FloatArray, y: FloatArray, support: Sequence[int], gamma: float, scale: str = "length", intercept: str = "fold",
    rows: IntArray | None = None, weights: FloatArray | None = None,
) -> GlmModel:  # fmt: skip
    """Fit one support to classes 0 and 1, of all rows by default."""
    data = replace(Dataset.from_arrays(X, y), row_weights=weights)
    return fit_of_data(data, Loss.LOGISTIC, support, gamma, scale=scale, intercept=intercept, rows=rows)


def long_rows(problem: GlmProblem, X: FloatArray | None = None) -> np.ndarray:
    """Rows in long double; with an intercept about the first row, which changes the intercept alone."""
    Z = (problem.X if X is None else X).astype(np.longdouble) - (problem.X[0] if problem.intercept else 0.0)
    return np.hstack([np.ones((len(Z), problem.first_coefficient), dtype=np.longdouble), Z])


def long_loss(problem: GlmProblem, t: np.ndarray, y: FloatArray) -> np.ndarray:
    """Losses of linear predictors in long double, each by its formula as it is printed."""
    if problem.loss.name == "poisson":
        long = y.astype(np.longdouble)
        return np.asarray(np.exp(t) - long * t - (long - long * np.log(np.where(y > 0.0, long, 1))))
    return np.asarray(np.maximum(-y * t, 0) + np.log1p(np.exp(-np.abs(t))))


def long_slope(problem: GlmProblem, t: np.ndarray, y: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and curvatures of these losses."""
    if problem.loss.name == "poisson":
        return np.exp(t) - y, np.exp(t)
    share = 1 / (1 + np.exp(y * t))
    return -y * share, share * (1 - share)


def long_objective(problem: GlmProblem, theta: np.ndarray) -> np.longdouble:
    loss = long_loss(problem, long_rows(problem) @ theta, problem.y)
    return problem.v @ loss + problem.penalty @ theta**2  # type: ignore[no-any-return]


class Truth(NamedTuple):
    """Least F on some columns and how much lower it may be; its point about the first row, and the Hessian there."""

    value: np.longdouble
    off: float
    theta: np.ndarray
    H: np.ndarray


def _inverse(H: np.ndarray) -> np.ndarray:
    """Inverse of a positive definite matrix in long double: copies under a tiny ridge leave some singular in floats."""
    k = len(H)
    A = np.hstack([H.astype(np.longdouble), np.eye(k, dtype=np.longdouble)])
    for j in range(k):
        A[j] /= A[j, j]
        for i in range(k):
            if i != j:
                A[i] -= A[i, j] * A[j]
    return A[:, k:]


def least(problem: GlmProblem) -> Truth:
    """Minimise F on all columns: damped Newton, the gradient in long double; far off, margins move by 100 at most."""
    Z, y, v = long_rows(problem), problem.y, problem.v
    theta = problem.start().astype(np.longdouble)
    value, decrement, H = long_objective(problem, theta), 0.0, np.zeros((0, 0))
    for _ in range(2_000 if len(theta) else 0):
        slope, bent = long_slope(problem, Z @ theta, y)
        gradient = 2 * problem.penalty * theta + Z.T @ (v * slope)
        H = (Z * (v * bent)[:, None]).T @ Z + np.diag(2 * problem.penalty)
        unit = np.sqrt(np.diag(H))
        step = -_inverse(H / np.outer(unit, unit)) @ (gradient / unit) / unit
        decrement = float(-gradient @ step)
        size = min(1.0, 100.0 / max(float(np.abs(Z @ step).max()), 1e-300))
        while size > 1e-14 and not long_objective(problem, theta + size * step) < value:
            size /= 2
        if size <= 1e-14:
            break
        theta = theta + size * step
        value = long_objective(problem, theta)
    return Truth(value, abs(decrement), theta, H)


def long_losses(problem: GlmProblem, truth: Truth, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least and greatest loss of rows at the exact fit, as far as the truth knows it."""
    Z = long_rows(problem, X)
    middle, k = Z @ truth.theta, len(truth.theta)
    unit = np.sqrt(np.diag(truth.H))
    scaled = Z / unit if k else np.zeros((len(X), 0))
    length = np.sqrt(np.maximum((scaled @ _inverse(truth.H / np.outer(unit, unit)) * scaled).sum(1), 0.0)) if k else 0.0
    off = 4.0 * np.sqrt(truth.off) * length + 1e-16 * (np.abs(Z) @ np.abs(truth.theta))
    ends = [long_loss(problem, middle + sign * off, y) for sign in (-1.0, 1.0)]
    if problem.loss.name == "poisson":  # which has its least value inside
        with np.errstate(divide="ignore"):
            ends.append(long_loss(problem, np.clip(np.log(y), middle - off, middle + off), y))
    return np.min(ends, axis=0), np.max(ends, axis=0)


def drawn(seed: int, most: int = 7) -> GlmProblem:
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
    return GlmProblem(X, y, v, np.ones(p), 10.0 ** rng.uniform(-6, 3), intercept)


def counted(seed: int, most: int = 6) -> GlmProblem:
    """Counts: zeros mostly, exposures over six decades, counts of 1e4, near copies, weights, gamma from 1e-4 to 1e3."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 41)), int(rng.integers(1, most + 1))
    X, kind = rng.normal(size=(n, p)), seed % 8
    if kind == 1 and p > 1:
        X[:, 0] = X[:, 1] + 10.0 ** rng.uniform(-5, -1) * X[:, 0]
    if kind == 2:
        X = (X > 0.3).astype(float)
    level = {3: -2.5, 4: np.log(1e4)}.get(kind, rng.uniform(-1.0, 2.0))
    exposure = 10.0 ** rng.uniform(-3, 3, n) if kind == 5 else np.ones(n)
    score = level + X @ (rng.normal(size=p) * rng.choice([0.0, 0.3, 1.0]))
    counts = rng.poisson(np.minimum(exposure * np.exp(score), 1e7)).astype(float)
    counts[0] += counts.max() == 0.0
    if kind == 6:
        X = X * 10.0 ** rng.uniform(-4, 4, size=p) + 1e4 * (rng.random(p) < 0.3)
    v = rng.choice([0.1, 1.0, 7.0], size=n) if kind == 7 else np.ones(n)
    gamma, intercept = 10.0 ** rng.uniform(-4, 3), bool(rng.random() < 0.85)
    rates, weights = PoissonLoss().encode_targets(counts, v, exposure)
    if not intercept or kind != 6:
        X -= X.mean(0)
    return GlmProblem(X, rates, weights, np.ones(p), gamma, intercept, PoissonLoss())


def harder(seed: int, most: int = 5) -> GlmProblem:
    """Weights and penalties far apart, rows without weight, tiny units, copies and complements, one row alone."""
    problem, rng = drawn(seed, most), np.random.default_rng(seed + 99)
    kind, n, X = seed % 6, len(problem.y), problem.X
    if kind == 0:
        return replace(problem, v=10.0 ** rng.uniform(-8, 8, n))
    if kind == 1:
        with_weight = (rng.random(n) < 0.8) | (np.arange(n) < 2)  # the first two rows are of two classes
        return replace(problem, v=np.where(with_weight, 10.0 ** rng.uniform(-3, 3, n), 0.0))
    if kind == 2:
        return replace(problem, weight=10.0 ** rng.uniform(-6, 6, problem.p))
    if kind == 3:
        return replace(problem, X=X * 1e-120, weight=problem.weight * 1e-240)
    if kind == 4:
        X = np.hstack([X[:, :3], -X[:, :2], 1.0 - X[:, :1]])
        return replace(problem, X=X, weight=np.ones(X.shape[1]))
    X = X.copy()
    X[:, 0] = np.arange(n) == n - 1
    return replace(problem, X=X)


def has_least(problem: GlmProblem, columns: tuple[int, ...]) -> bool:
    """Whether F has a best point: no direction in some columns without a penalty moves margins one way, or none."""
    Z = np.hstack([np.ones((len(problem.y), problem.first_coefficient)), problem.X[:, list(columns)]])[problem.v > 0.0]
    Z, y = Z / np.maximum(np.abs(Z).max(axis=0), 1e-300), problem.y[problem.v > 0.0]
    if np.linalg.matrix_rank(Z) < Z.shape[1]:
        return False
    logistic = problem.loss.name == "logistic"
    still = Z[:0] if logistic else Z[y > 0.0]
    free = y[:, None] * Z if logistic else -Z[y == 0.0]
    for i in range(len(free)):  # is there a direction in which row i moves by 1, and no other one back?
        found = linprog(
            np.zeros(Z.shape[1]), A_ub=-free, b_ub=-(np.arange(len(free)) == i).astype(float),
            A_eq=still, b_eq=np.zeros(len(still)), bounds=[(None, None)] * Z.shape[1],
        )  # fmt: skip
        if found.status == 0:
            return False
    return True


def adjusting(seed: int, most: int = 6, draw: Callable[[int, int], GlmProblem] = drawn) -> GlmProblem | None:
    """A problem with one or two columns without a penalty, the last ones; None where these have no best fit."""
    problem = draw(seed, most)
    if problem.p < 2:
        return None
    count = 1 + int(seed % 3 == 0 and problem.p > 2)
    weight = problem.weight.copy()
    weight[-count:] = 0.0
    made = replace(problem, weight=weight)
    return made if has_least(made, free_of(made)) else None


def free_of(problem: GlmProblem) -> tuple[int, ...]:
    """Columns without a penalty."""
    return tuple(np.flatnonzero(problem.weight == 0.0).tolist())


def enumerated(problem: GlmProblem, always: tuple[int, ...] = ()) -> dict[tuple[int, ...], Truth]:
    """Least F of every support that has some columns."""
    sets = (S for size in range(problem.p + 1) for S in combinations(range(problem.p), size) if set(always) <= set(S))
    return {S: least(problem.select_columns(np.array(S, dtype=np.int64))) for S in sets}


def best_of_size(truth: dict[tuple[int, ...], Truth], size: int) -> tuple[int, ...]:
    return min((S for S in truth if len(S) <= size), key=lambda S: truth[S].value)


def mask_of(S: tuple[int, ...], p: int) -> np.ndarray:
    return np.isin(np.arange(p), S)


def quadratic_value(moments: object, S: tuple[int, ...]) -> float:
    """f(S) of a problem in moments, by one solve."""
    i = list(S)
    M, c = moments.M[np.ix_(i, i)], moments.c[i]  # type: ignore[attr-defined]
    solved: FloatArray = np.linalg.solve(M, c) if i else np.zeros(0)
    return float(moments.yy - c @ solved)  # type: ignore[attr-defined]


class Listed:
    """Supports up to a level, with bounds of their F; a most of them, after which the level falls to the last one."""

    def __init__(self, level: float, most: int = 10**9) -> None:
        self.level, self.most, self.unseen = level, most, 0.0
        self.supports: dict[tuple[int, ...], tuple[float, float]] = {}

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        self.supports[tuple(support.tolist())] = lower, upper
        if len(self.supports) > self.most:
            self.level = min(self.level, sorted(high for _, high in self.supports.values())[self.most - 1])


def listed(subsets: GlmSubsets, tau: int, level: float, most: int = 10**9) -> Listed:
    """List the supports of a tau with F at most a level."""
    wanted = Listed(level, most)
    search = subsets.listing(tau, wanted)
    search.solve(tau, UNLIMITED, np.inf)
    wanted.unseen = search.unseen
    return wanted


def outside(problem: GlmProblem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rows that were not trained on, some of them far away; copies differ there, and what was constant varies."""
    rng = np.random.default_rng(10**6 + seed)
    spread = np.maximum(np.ptp(problem.X, axis=0), 1e-3)
    X = problem.X[rng.integers(len(problem.X), size=6)] + rng.choice([0.0, 0.3, 5.0], size=(6, 1)) * spread * (
        rng.standard_normal((6, problem.p))
    )
    return X, rng.choice([-1.0, 1.0] if problem.loss.name == "logistic" else [0.0, 1.0, 7.0], size=6)


def judged(
    seed: int, most: int = 7, draw: Callable[[int, int], GlmProblem] = drawn, always: tuple[int, ...] = ()
) -> tuple[int, int]:
    """Check every claim about one problem; returns how many sizes were asked and how many were proved."""
    problem = draw(seed, most)
    truth, subsets = enumerated(problem, always), GlmSubsets(problem, np.array(always, dtype=np.int64))
    supports = [np.array(S, dtype=np.int64) for S in truth]
    X, y = outside(problem, seed)
    refits, lower, upper = subsets.score_supports(supports, X, y)
    ends = {S: [loss.sum() for loss in long_losses(problem.select_columns(i), truth[S], X[:, i], y)]
            for S, i in zip(truth, supports, strict=True)}  # fmt: skip
    for row, S in enumerate(truth):
        assert refits.lower[row] <= truth[S].value <= refits.upper[row] + truth[S].off, (seed, S, "objective")
        assert lower[row] <= ends[S][1] and ends[S][0] <= upper[row], (seed, S, "held out")
    for gamma in (problem.gamma, 7.0 * problem.gamma):
        if gamma != problem.gamma:
            problem, subsets = problem.with_gamma(gamma), subsets.with_gamma(gamma)
            truth = enumerated(problem, always)
        n_free = len(free_of(problem))  # columns that tau does not include
        result = subsets.solve(range(len(always) - n_free, problem.p - n_free + 1), node_limit=200)
        for tau, best in result.by_size.items():
            size = tau + n_free
            best_set = best_of_size(truth, size)
            value, off = truth[best_set].value, max(truth[S].off for S in truth)
            assert best.lower <= value <= best.upper + off, (seed, size)
            assert len(best.support) <= size, (seed, size)
            ties = [S for S in truth if len(S) == size and truth[S].value <= value * (1.0 + 1e-16)]
            own = {frozenset(support.tolist()) for support in best.candidates}
            assert not best.complete or all(_without_flat(problem, S) in own for S in ties), (seed, size)
            index = np.array(best_set, dtype=np.int64)
            least_loss, most_loss = (
                loss.sum() for loss in long_losses(problem.select_columns(index), truth[best_set], X[:, index], y)
            )
            low, high = subsets.open_fold_interval(tau, best.upper, X, y)
            assert low <= most_loss and least_loss <= high, (seed, size, "open fold")
            if size > len(always):
                _check_list(subsets, problem, truth, size)
    return len(result.by_size), sum(best.complete for best in result.by_size.values())


def _without_flat(problem: GlmProblem, S: tuple[int, ...]) -> frozenset[int]:
    return frozenset(j for j in S if np.ptp(problem.X[problem.v > 0][:, j]) > 0 or not problem.intercept)


def _check_list(subsets: GlmSubsets, problem: GlmProblem, truth: dict, size: int) -> None:  # type: ignore[type-arg]
    values = sorted(float(truth[S].value) for S in truth if len(S) == size)
    objective = values[len(values) // 2] * (1.0 + 1e-6)
    below = listed(subsets, size - len(free_of(problem)), objective)
    own = {frozenset(support) for support in below.supports}
    if below.unseen == np.inf:
        for S in truth:
            if len(S) == size and truth[S].value <= objective:
                assert _without_flat(problem, S) in own or len(_without_flat(problem, S)) < size, (size, S, "list")
