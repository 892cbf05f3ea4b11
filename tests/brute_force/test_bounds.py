"""Every certified bound against enumeration, also on data made to break it, and the printed one, which is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from slow import slow

from sparsecv_mio.bounds import wide
from sparsecv_mio.bounds.cv_error import printed_ends
from sparsecv_mio.bounds.fold import FoldBounds, FoldCell
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.units import TIE_RTOL

PLAIN_KINDS = ("independent", "mild", "strong", "near copies", "exact copies", "lever")
CORRELATION = {"independent": 0.0, "mild": 0.5, "strong": 0.9, "near copies": 0.99, "exact copies": 0.9, "lever": 0.3}


@dataclass(frozen=True, eq=False)
class Case:
    data: StandardData
    folds: FoldPlan
    gamma: float
    rng: np.random.Generator


def random_case(seed: int) -> Case | None:
    """p <= 10, n < p in two of five, correlation up to 1, gamma 1e-3 .. 1e4; None if the package refuses it."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 11))
    n = int(rng.integers(5, 40)) if rng.random() < 0.6 else int(rng.integers(5, p + 6))
    kind = PLAIN_KINDS[rng.integers(len(PLAIN_KINDS))]
    rho = CORRELATION[kind]
    X = np.sqrt(1.0 - rho) * rng.standard_normal((n, p)) + np.sqrt(rho) * rng.standard_normal((n, 1))
    if kind == "exact copies" and p > 3:
        X[:, -1], X[:, -2] = X[:, 0], X[:, 1] + X[:, 2]
    if kind == "lever":  # one row alone carries a column: leverage 1 - small when it is held out
        X[:, 0] = 0.0
        X[rng.integers(n), 0] = 5.0
        X[:, 1] = rng.random(n) < 0.5
        X[0, 1] = 1.0 - X[1:, 1].max()
    beta = np.zeros(p)
    held = int(rng.integers(1, p + 1))
    beta[:held] = rng.standard_normal(held) * rng.choice([0.1, 1.0, 3.0])
    y = X @ beta + rng.standard_normal(n) * rng.choice([1e-3, 0.3, 1.0, 3.0]) + rng.choice([0.0, 100.0])
    spec = str(rng.choice(["loo", "3", "blocks:4", "holdout:0.3", "5"]))
    dataset = Dataset.from_arrays(X, y)
    try:
        scale, intercept = rng.choice(["length", "variance", "none"]), rng.choice(["fold", "global", "none"])
        data = standardize(dataset, str(scale), str(intercept))
        folds = make_folds(spec, dataset, seed=seed)
    except BadInput:
        return None
    return Case(data, folds, float(10 ** rng.uniform(-3, 4)), rng)


@cache
def supports(q: int, size: int) -> np.ndarray:
    return (
        np.array(list(combinations(range(q), size)), dtype=np.int64).reshape(-1, size)
        if size
        else np.zeros((1, 0), int)
    )


def truth(case: Case, fold: int, tau: int, weight: np.ndarray) -> tuple[float, float, float]:
    """Best objective, and the ends of the held-out sum of squares over its ties; from residuals of every support."""
    V, r = case.data.rows(slice(0, case.data.n))
    train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
    centred = case.data.intercept == "fold"
    v_mean, r_mean = (V[train].mean(0), r[train].mean()) if centred else (np.zeros(V.shape[1]), 0.0)
    A, y = V[train] - v_mean, r[train] - r_mean
    chosen = supports(A.shape[1], min(tau, A.shape[1]))
    M, c = A.T @ A + np.diag(weight), A.T @ y
    beta = np.linalg.solve(M[chosen[:, :, None], chosen[:, None, :]], c[chosen][..., None])[..., 0]
    residual = y - np.einsum("nsk,sk->sn", A[:, chosen], beta)
    value = (residual**2).sum(1) + (weight[chosen] * beta**2).sum(1)
    tied = value <= value.min() * (1.0 + TIE_RTOL)
    out = (r[test] - r_mean) - np.einsum("nsk,sk->sn", (V[test] - v_mean)[:, chosen[tied]], beta[tied])
    held = (out**2).sum(1)
    return float(value.min()), float(held.min()), float(held.max())


def some_folds(case: Case) -> list[int]:
    every = np.arange(case.folds.k)
    return every.tolist() if len(every) <= 6 else sorted(case.rng.choice(every, 6, replace=False).tolist())


def moment_folds(case: Case):
    """(fold, FoldBounds) as `compute_bounds` makes them: the diagonal handed from fold to fold."""
    last = None
    for fold, moments in training_moments(case.data, case.folds, some_folds(case)):
        V, r = (moments.own or case.data).rows(case.folds.scored_rows(fold))
        here = FoldBounds(moments.problem(case.data, case.gamma), V, r, last)
        if here.form is not None:
            last = here.form.diagonal
        yield fold, here


def wide_folds(case: Case):
    for fold in some_folds(case):
        train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
        yield fold, WideFold(WideRows.from_data(case.data, train, test, case.gamma))


def breaches(case: Case, fold: int, here) -> tuple[list[str], int]:
    """What a fold's certified bounds get wrong, and the number of cells looked at."""
    q = case.data.q
    weight = case.gamma / 2.0 * case.data.weight
    wrong = []
    cells = here.cells(range(q + 1))
    for cell in cells:
        best, low, high = truth(case, fold, cell.tau, weight)
        unit = float(here.u @ here.u) + 1e-300
        yy = here.problem.yy if hasattr(here, "problem") else here.rows.yy
        slack = 1e-11 * (high + unit)  # rounding of the enumeration itself
        if cell.objective_lower > best * (1.0 + 1e-10) + 1e-13 * yy:
            wrong.append(f"tau {cell.tau}: objective {best} below its lower bound {cell.objective_lower}")
        if cell.objective_upper < best * (1.0 - 1e-10):
            wrong.append(f"tau {cell.tau}: objective {best} above its upper bound {cell.objective_upper}")
        if cell.lower > low * (1.0 + 1e-9) + slack:
            wrong.append(f"tau {cell.tau}: h {low} below its lower bound {cell.lower}")
        if cell.upper < high * (1.0 - 1e-9) - slack:
            wrong.append(f"tau {cell.tau}: h {high} above its upper bound {cell.upper}")
    return wrong, len(cells)


QUICK, MANY = 125, 5000


def check(seeds: range, folds=moment_folds) -> int:
    cells = 0
    for seed in seeds:
        case = random_case(seed)
        if case is None:
            continue
        for fold, here in folds(case):
            if case.rng.random() < 0.5:
                here.search(range(1, case.data.q))
            wrong, count = breaches(case, fold, here)
            assert not wrong, f"seed {seed}, fold {fold}: {wrong[:3]}"
            cells += count
    return cells


@pytest.mark.parametrize("count", [QUICK, *slow([MANY])])
def test_intervals_contain_the_truth(count: int) -> None:
    assert check(range(count)) > 12 * count


@pytest.mark.parametrize("count", [30, *slow([1500])])
@pytest.mark.parametrize("dense", [0, wide.RELAXED_COLUMNS])
def test_intervals_from_rows_contain_the_truth(monkeypatch: pytest.MonkeyPatch, dense: int, count: int) -> None:
    monkeypatch.setattr(wide, "RELAXED_COLUMNS", dense)
    assert check(range(count), wide_folds) > 9 * count


@pytest.mark.parametrize("count", [QUICK, *slow([MANY])])
def test_the_same_check_finds_the_printed_intervals_wrong(count: int) -> None:
    wrong = cells = 0
    for seed in range(count):
        case = random_case(seed)
        if case is None:
            continue
        weight = case.gamma / 2.0 * case.data.weight
        for fold, here in moment_folds(case):
            here.search(range(1, case.data.q))
            inner = range(1, case.data.q)
            for tau, (lower, upper, _) in zip(inner, printed_ends(here, inner), strict=True):
                _, low, high = truth(case, fold, tau, weight)
                slack = 1e-6 * (high + float(here.u @ here.u))
                wrong += lower > low + slack or upper < high - slack
                cells += 1
    assert wrong > 0.005 * cells, f"{wrong} of {cells}"


@pytest.mark.parametrize("count", [60, *slow([120])])
def test_relaxations_are_below_the_truth(count: int) -> None:
    for seed in range(count):
        case = random_case(seed)
        if case is None:
            continue
        weight = case.gamma / 2.0 * case.data.weight
        for fold, here in moment_folds(case):
            for diagonal in Diagonal if here.form is not None and here.m > 1 else ():
                for point in relax_problem(here.problem, range(1, here.m), diagonal=diagonal):
                    best, _, _ = truth(case, fold, point.tau, weight)
                    assert point.dual <= best * (1.0 + 1e-10) + 1e-13 * here.problem.yy
                    assert point.dual <= point.primal + 1e-10 * here.problem.yy


LONG = np.longdouble
KINDS = (
    "collinear", "constant", "copies", "leverage", "perfect", "offset", "wide", "units", "negative copies", "mix",
    "one-hot",
)  # fmt: skip
FEW, MANY_HARD = 330, 20_000


def hard_case(seed: int) -> Case | None:
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, p = int(rng.integers(4, 18)), int(rng.integers(1, 8))
    if kind == "wide":
        n, p = int(rng.integers(3, 6)), int(rng.integers(4, 9))
    X = rng.standard_normal((n, p))
    if kind in ("collinear", "mix"):
        apart = 10.0 ** -rng.integers(3, 13)
        for j in range(1, p):
            if rng.random() < 0.7:
                X[:, j] = X[:, 0] * rng.choice([1, -1]) + apart * rng.standard_normal(n)
    if kind in ("constant", "mix"):
        X[:, 0] = rng.choice([0.0, 7.0])
        X[rng.integers(n), 0] += 10.0 ** rng.integers(-6, 7)
    if kind in ("copies", "mix"):
        X[:, -1] = X[:, 0]
    if kind == "negative copies":
        X[:, -1] = -2.0 * X[:, 0]
    if kind == "one-hot" and p > 2:
        X = (rng.integers(0, p, n)[:, None] == np.arange(p)) * 1.0
    if kind in ("leverage", "mix"):
        X[rng.integers(n), rng.integers(p)] = 10.0 ** rng.integers(2, 9)
    if kind == "units":
        X *= 10.0 ** rng.integers(-9, 9, size=p)
    beta = rng.standard_normal(p) * (np.arange(p) < rng.integers(0, p + 1))
    noise = rng.choice([0.0, 1e-9]) if kind == "perfect" else rng.choice([1e-8, 1e-3, 1.0, 10.0])
    y = X @ beta + noise * rng.standard_normal(n)
    if kind == "offset":
        y += 10.0 ** rng.integers(3, 13)
        X += rng.choice([0.0, 10.0 ** rng.integers(3, 9)])
    if rng.random() < 0.05:
        y[1:] = y[1]
    scale, intercept = rng.choice(["length", "variance", "none"]), rng.choice(["fold", "global", "none"])
    spec = str(rng.choice(["loo", "2", "3", "blocks:2", "holdout:0.4"]))
    gamma = float(10 ** rng.uniform(-6, 6))
    try:
        dataset = Dataset.from_arrays(X, y)
        data, folds = standardize(dataset, str(scale), str(intercept)), make_folds(spec, dataset, seed=seed)
    except BadInput:
        return None
    return Case(data, folds, gamma, rng)


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A stack of positive definite systems by elimination, in the precision they come in."""
    A, b = A.copy(), b.copy()
    n = A.shape[-1]
    for k in range(n):
        for i in range(k + 1, n):
            share = A[:, i, k] / A[:, k, k]
            A[:, i, :] -= share[:, None] * A[:, k, :]
            b[:, i] -= share * b[:, k]
    x = np.zeros_like(b)
    for i in range(n - 1, -1, -1):
        x[:, i] = (b[:, i] - (A[:, i, i + 1 :] * x[:, i + 1 :]).sum(axis=1)) / A[:, i, i]
    return x


class Truth:
    """One fold in extended precision."""

    def __init__(self, case: Case, fold: int) -> None:
        data = case.data
        X, y = data.dataset.X[:, data.columns].astype(LONG), data.dataset.y.astype(LONG)
        train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
        if data.intercept == "fold":  # any centre will do; about one far from these rows even these digits are too few
            X, y = X - X[train].mean(0), y - y[train].mean()
            V, r = X / data.divisor, y / LONG(data.y_unit)
            V, r = V - V[train].mean(0), r - r[train].mean()
        else:
            V, r = (X - data.center) / data.divisor - data.rest, (y - data.y_center) / LONG(data.y_unit) - data.r_rest
        self.A, self.y, self.X, self.u = V[train], r[train], V[test], r[test]
        self.weight = (case.gamma / 2.0 * case.data.weight).astype(LONG)
        self.M, self.c = self.A.T @ self.A + np.diag(self.weight), self.A.T @ self.y
        # the data themselves are rounded: what the last digit of the target can do
        self.grain = 1e-30 * float(r @ r)

    def of(self, tau: int) -> tuple[LONG, LONG, LONG]:
        """Best objective, least and largest held-out sum of squares over its ties."""
        q = len(self.c)
        size = min(tau, q)
        if size == 0:
            held = self.u @ self.u
            return self.y @ self.y, held, held
        chosen = np.array(list(combinations(range(q), size)), dtype=np.int64)
        beta = solved(self.M[chosen[:, :, None], chosen[:, None, :]], self.c[chosen])
        left = self.y - np.einsum("nsk,sk->sn", self.A[:, chosen], beta)
        value = (left**2).sum(axis=1) + (self.weight[chosen] * beta**2).sum(axis=1)
        if not np.isfinite(value).all():
            return LONG(np.nan), LONG(np.nan), LONG(np.nan)
        tied = value <= value.min() * (1.0 + LONG(TIE_RTOL))
        out = self.u - np.einsum("nsk,sk->sn", self.X[:, chosen[tied]], beta[tied])
        held = (out**2).sum(axis=1)
        return value.min(), held.min(), held.max()


def breach(truth: Truth, cell: FoldCell) -> str:
    best, low, high = truth.of(cell.tau)
    if not np.isfinite(best):
        return ""  # singular even here
    share = LONG(1e-13)
    if cell.objective_lower > best * (1.0 + share) + truth.grain:
        return f"objective {best} below {cell.objective_lower}"
    if cell.objective_upper < best * (1.0 - share) - truth.grain:
        return f"objective {best} above {cell.objective_upper}"
    if cell.lower > low * (1.0 + share) + truth.grain:
        return f"h {low} below {cell.lower}"
    if cell.upper < high * (1.0 - share) - truth.grain:
        return f"h {high} above {cell.upper}"
    return "" if cell.lower <= cell.upper else "crossed"


def check_hard(seeds: range) -> int:
    count = 0
    for seed in seeds:
        case = hard_case(seed)
        if case is None:
            continue
        rng, q = case.rng, case.data.q
        picked = range(case.folds.k) if case.folds.k <= 3 else sorted(rng.choice(case.folds.k, 3, replace=False))
        near = None
        for fold, moments in training_moments(case.data, case.folds, [int(j) for j in picked]):
            V, r = (moments.own or case.data).rows(case.folds.scored_rows(fold))
            here = FoldBounds(moments.problem(case.data, case.gamma), V, r, near)
            near = here.form.diagonal if here.form is not None and rng.random() < 0.7 else None
            if rng.random() < 0.6:
                here.search(range(1, q + 1), swap_rounds=int(rng.integers(0, 3)))
            cells = here.cells(range(q + 2))
            if rng.random() < 0.3:
                train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
                rows = WideFold(WideRows.from_data(case.data, train, test, case.gamma))
                cells += rows.cells(range(q))
            truth = Truth(case, fold)
            for cell in cells:
                wrong = breach(truth, cell)
                assert not wrong, f"seed {seed} ({KINDS[seed % len(KINDS)]}), fold {fold}, tau {cell.tau}: {wrong}"
            count += len(cells)
    return count


@pytest.mark.parametrize("seeds", [range(FEW), *slow([range(FEW, MANY_HARD)])])
def test_no_certified_bound_breaks(seeds: range) -> None:
    assert check_hard(seeds) > 5000
