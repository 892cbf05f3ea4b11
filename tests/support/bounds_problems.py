"""Small random problems for the bounds, and the truth about each cell by trying every support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.units import TIE_RTOL

KINDS = ("independent", "mild", "strong", "near copies", "exact copies", "lever")
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
    kind = KINDS[rng.integers(len(KINDS))]
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
