"""One zoo of small problems with everything that is hard about real ones: data, folds, weights, restrictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from runs import new_run
from sklearn.model_selection import LeavePOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.model_space import NONE, AtMost, Parents, Restrictions
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.pairs import Grid

FloatArray = NDArray[np.float64]
Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
KINDS = ("as drawn", "one-hot blocks", "near copies", "huge offsets", "extreme units", "float32", "few rows", "perfect")
FOLDS = ("as drawn", "repeated", "forward", "pairs", "strata", "holdouts", "many", "splitter", "growing")
WEIGHTS = ("none", "any", "whole")
RESTRICTED = ("none", "forced", "at_most", "hierarchy", "sign", "all")


@dataclass(frozen=True, eq=False)
class RandomProblem:
    """A data set, its folds, and what is asked of them."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    scale: str
    intercept: str
    restrictions: Restrictions = NONE

    @property
    def how(self) -> dict[str, Any]:
        """Options that say what a fit is."""
        return {"scale": self.scale, "intercept": self.intercept, "restrictions": self.restrictions}

    def new_run(self, seconds: float | None = None, **options: Any) -> Any:
        """Return a search of the grid that has not begun, by rounds at gap 0 unless an option says otherwise."""
        data, grid = standardize(self.data, self.scale, self.intercept), Grid.of(self.gammas, self.taus, self.data.p)
        return new_run(data, self.folds, grid, seconds, **options)

    def solve(self, **options: Any) -> Record:
        """Search the grid, on one thread unless an option says otherwise."""
        asked = {"gammas": self.gammas, "taus": self.taus, "threads": 1, **self.how, **options}
        return cross_validate(self.data, self.folds, **asked)


def random_problem(seed: int, rows: int = 60, columns: int = 10) -> RandomProblem:
    """Draw a problem: `6 <= n <= rows`, `1 <= p <= columns`, gamma in 1e-4 .. 1e4, any folds, scale and intercept."""
    rng = np.random.default_rng([20240511, seed])
    while True:
        n = int(rng.integers(6, rows + 1)) if rng.random() < 0.7 else int(rng.integers(6, min(rows, 12) + 1))
        p = int(rng.integers(1, columns + 1))
        X = _design(rng, n, p)
        y = _target(rng, X)
        if np.ptp(y) > 1e-12 * np.abs(y).max() and (np.ptp(X, axis=0) > 0.0).any():
            break
    if rng.random() < 0.08:
        X = X * rng.choice([1e-150, 1e150], size=p if rng.random() < 0.5 else 1)
    if rng.random() < 0.08:
        y = (y - y.mean()) / np.std(y) * rng.choice([1e-150, 1e150])
    data = Dataset.from_arrays(X, y, aux={"id": np.asarray(_labels(rng, n))})
    gammas = np.unique(10.0 ** rng.uniform(-4, 4, size=rng.integers(1, 4))).tolist()
    taus = np.unique(rng.integers(0, p + 1, size=rng.integers(1, p + 2))).tolist()
    return RandomProblem(
        data,
        _folds(rng, data, seed),
        gammas,
        taus,
        str(rng.choice(["length", "length", "variance", "none"])),
        str(rng.choice(["fold", "fold", "global", "none"])),
    )


def _design(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    kind = rng.choice(["normal", "correlated", "integer", "signs", "one-hot", "low rank", "rare", "heavy"])
    X = rng.normal(size=(n, p))
    if kind == "correlated":
        X += rng.uniform(0.5, 5.0) * rng.normal(size=(n, 1))
    elif kind == "integer":
        X = np.round(X * rng.choice([0.7, 2.0]))
    elif kind == "signs":
        X = rng.choice([-1.0, 1.0], size=(n, p))
    elif kind == "one-hot":
        X = _one_hot(rng, n, p)
    elif kind == "low rank":
        k = int(rng.integers(1, p + 1))
        X = rng.normal(size=(n, k)) @ np.round(rng.normal(size=(k, p)))
    elif kind == "rare":
        X = (rng.random((n, p)) < 1.5 / n).astype(float)
    elif kind == "heavy":
        X = rng.standard_cauchy(size=(n, p))
    if p > 1 and rng.random() < 0.35:
        for _ in range(int(rng.integers(1, p))):
            i, j = rng.choice(p, size=2, replace=False)
            X[:, j] = X[:, i] * rng.choice([1.0, -1.0, 2.0, -0.3]) + rng.choice([0.0, 0.0, 1.0])
            X[:, j] += rng.choice([0.0, 0.0, 0.0, 1e-2, 1e-6]) * rng.normal(size=n)
    if p > 2 and rng.random() < 0.2:
        X[:, -1] = X[:, 0] + X[:, 1]
    if p > 1 and rng.random() < 0.1:
        X[:, rng.integers(p)] = rng.choice([0.0, 3.7])
    if rng.random() < 0.3:
        X += rng.choice([1.0, 30.0, 1e3]) * rng.normal(size=p)
    if rng.random() < 0.2:
        X *= 10.0 ** rng.uniform(-3, 3, size=p)
    return X


def _one_hot(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Blocks of indicators, every level present as a column."""
    blocks, left = [], p
    while left:
        k = min(left, int(rng.integers(2, 5)))
        blocks.append((rng.integers(0, k, size=n)[:, None] == np.arange(k)).astype(float))
        left -= k
    return np.hstack(blocks)


def _target(rng: np.random.Generator, X: FloatArray) -> FloatArray:
    n, p = X.shape
    size = X.std(axis=0) + 1e-300
    signal = (X / size) @ (np.round(3.0 * rng.normal(size=p)) * (rng.random(p) < 0.5))
    kind = rng.choice(["noisy", "noisy", "span", "integer", "binary", "noise", "one"])
    if kind == "noisy":
        y = signal + rng.choice([0.03, 1.0, 10.0]) * rng.normal(size=n)
    elif kind == "span":
        y = signal + rng.choice([0.0, 0.0, 1e-6]) * rng.normal(size=n)
    elif kind == "integer":
        y = np.round(signal + rng.normal(size=n))
    elif kind == "binary":
        y = (signal + rng.normal(size=n) > 0.0).astype(float)
    elif kind == "one":
        y = np.eye(1, n, int(rng.integers(n)))[0]
    else:
        y = rng.normal(size=n)
    return np.asarray(y + rng.choice([0.0, 0.0, 5.0, 1e3]))


def _labels(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Fold ids 0..k-1, every one used, at least two rows outside each."""
    while True:
        k = int(rng.integers(2, min(n, 6) + 1))
        labels = rng.integers(0, k, size=n)
        counts = np.bincount(labels, minlength=k)
        if counts.min() > 0 and n - counts.max() >= 2:
            return labels


def _folds(rng: np.random.Generator, data: Dataset, seed: int) -> FoldPlan:
    kind = rng.choice(["K", "loo", "loo", "blocks", "holdout", "groups", "column", "labels"])
    if kind == "K":
        return make_folds(str(int(rng.integers(2, min(data.n, 10) + 1))), data, seed)
    if kind == "blocks":
        return make_folds(f"blocks:{int(rng.integers(1, data.n // 2 + 1))}", data, seed)
    if kind == "holdout":
        return make_folds(f"holdout:{rng.uniform(0.15, 0.65):.2f}", data, seed)
    if kind == "labels":
        labels = data.aux["id"].astype(np.int64)
        return folds_from_labels(labels - 1 if labels.max() > 0 else labels, "holdout:some")
    return make_folds({"loo": "loo", "groups": "groups:id", "column": "column:id"}[str(kind)], data, seed)


def numbers(seed: int, kind: str, rows: int, columns: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target: so few rows and at most 7 columns that all supports can be tried."""
    drawn = random_problem(seed, rows=rows, columns=columns)
    X, y = np.array(drawn.data.X), np.array(drawn.data.y)
    rng = np.random.default_rng([91, seed])
    n, p = X.shape
    if kind == "one-hot blocks":
        X = np.eye(p)[rng.integers(0, p, n)] * rng.choice([1.0, 3.0])
    elif kind == "near copies":
        X = X[:, :1] + 1e-8 * rng.normal(size=(n, p)) * max(float(np.abs(X).max()), 1e-300)
    elif kind == "huge offsets":
        X = X + 10.0 ** rng.integers(3, 9) * (np.abs(X).max() + 1.0)
        y = y + 10.0 ** rng.integers(0, 9) * (np.abs(y).max() + 1.0)
    elif kind == "extreme units":
        X, y = unit(X) * 10.0 ** rng.integers(-150, 151, p), unit(y) * 10.0 ** rng.integers(-150, 151)
    elif kind == "float32":
        X, y = (unit(part).astype(np.float32).astype(float) for part in (X, y))
    elif kind == "few rows":
        few = int(rng.integers(3, 8))  # down to two rows of training
        X, y = X[:few], y[:few]
    elif kind == "perfect":
        X = unit(X)
        y = X @ (rng.normal(size=p) * (rng.random(p) < 0.6)) + 10.0 ** rng.integers(-15, -1) * rng.normal(size=n)
    return X, y


def unit(values: np.ndarray) -> np.ndarray:
    """Numbers over the largest of them."""
    return values / (np.abs(values).max() or 1.0)


def drawn_pairs(rng: np.random.Generator, n: int, growing: bool) -> list[Pair]:
    """Draw scored rows, and training rows among the others; if `growing`, each trains on what the one before does."""
    pairs: list[Pair] = []
    while len(pairs) < int(rng.integers(2, 7)):
        scored = rng.permutation(n)[: int(rng.integers(1, max(2, n // 3)))]
        others = np.setdiff1d(np.arange(n), scored)
        train = others[rng.random(len(others)) < rng.choice([0.6, 1.0])]
        if growing and pairs:
            train = np.union1d(train, pairs[-1][0])
            scored = np.setdiff1d(scored, train)
        if len(train) >= 2 and len(scored):
            pairs.append((train, scored))
    return pairs


def drawn_folds(rng: np.random.Generator, data: Dataset, kind: str, seed: int) -> FoldPlan:
    """Draw folds of a kind."""
    n, repeats = data.n, int(rng.integers(2, 5))
    k = int(rng.integers(2, min(n - 2, 7) + 1))
    if kind == "repeated":
        return make_folds(f"{repeats}x{k}", data, seed)
    if kind == "forward":
        return make_folds(f"forward:{min(k, n // 2 - 1)}", data)
    if kind == "strata":
        return make_folds(f"{repeats if seed % 2 else 1}xstratified:{k}", data, seed)
    if kind == "holdouts":
        return make_folds(f"{2 * repeats}xholdout:{rng.uniform(0.1, 0.6):.2f}", data, seed)
    if kind == "many":  # as trees that all folds share are made for
        return make_folds(LeavePOut(2), data) if n < 12 else make_folds(f"{-(-26 // k)}x{k}", data, seed)
    if kind == "splitter":
        splitters = (
            RepeatedKFold(n_splits=k, n_repeats=2, random_state=seed), ShuffleSplit(k, random_state=seed),
            TimeSeriesSplit(2, gap=int(n > 8), max_train_size=max(2, n // 2)),
        )  # fmt: skip
        return make_folds(splitters[seed % 3], data)
    return make_folds(drawn_pairs(rng, n, kind == "growing"), data)


def random_restrictions(rng: np.random.Generator, names: tuple[str, ...], kind: str) -> Restrictions:
    """Restrictions of one kind, or of all with forced columns."""

    def some(least: int, most: int) -> tuple[str, ...]:
        return tuple(rng.permutation(names)[: int(rng.integers(least, max(most, least) + 1))].tolist())

    p, asked = len(names), {}
    if kind in ("at_most", "all"):
        asked["at_most"] = tuple(AtMost(int(rng.integers(0, 3)), some(1, p)) for _ in range(rng.integers(1, 4)))
    if kind in ("hierarchy", "all") and p > 1:
        drawn = [some(2, min(4, p)) for _ in range(rng.integers(1, 4))]
        asked["hierarchy"] = tuple(Parents(one[0], one[1:], bool(rng.integers(2))) for one in drawn)
    if kind in ("sign", "all"):
        sign = np.full(p, 1) if rng.random() < 0.3 else rng.integers(-1, 2, p)
        asked["nonnegative"] = tuple(np.array(names)[sign > 0].tolist())
        asked["nonpositive"] = tuple(np.array(names)[sign < 0].tolist())
    if kind in ("forced", "all") and p > 2:
        asked["force_in"], asked["force_out"] = (names[int(rng.integers(p - 1))],), (names[-1],)
    return Restrictions(**asked)


def hostile_problem(
    seed: int, kind: str, folds: str, weights: str, restricted: str, rows: int = 24, columns: int = 6
) -> RandomProblem:
    """Draw numbers, folds, weights of rows and restrictions of some kinds; may raise `BadInput`."""
    rng = np.random.default_rng([41, seed])
    case = random_problem(seed, rows, columns)
    X, y = numbers(seed, kind, rows, columns)
    few = len(y) < case.data.n
    data = Dataset.from_arrays(X, y, aux={name: column[: len(y)] for name, column in case.data.aux.items()})

    def deal(rows: Dataset) -> FoldPlan:
        if few:
            return make_folds("loo", rows)
        return _folds(rng, rows, seed) if folds == "as drawn" else drawn_folds(rng, rows, folds, seed)

    if weights == "none":
        plan = deal(data)
    else:
        weight = rng.integers(0, 4, data.n) if weights == "whole" else 10.0 ** rng.uniform(-3.0, 3.0, data.n)
        weight[:5] = np.maximum(weight[:5], 1)
        data, plan = weighted(data, weight.astype(float), deal, name="w")
    asked = random_restrictions(rng, data.names, restricted).resolve_names(data.names)
    low, high = len(asked.force_in), data.p - len(asked.force_out)
    taus = sorted({min(max(tau, low), high) for tau in case.taus})
    return replace(case, data=data, folds=plan, taus=taus, restrictions=asked)


def nearly_perfect_problem(seed: int) -> tuple[Dataset, FoldPlan, dict[str, Any]]:
    """Linear targets with noise of 1e-14 to 1e-2, offsets up to 1e8 and columns that may be nearly collinear."""
    rng = np.random.default_rng([77, seed])
    n, p = int(rng.integers(8, 40)), int(rng.integers(2, 9))
    X = rng.normal(size=(n, p))
    if rng.random() < 0.3:
        X = np.round(X * 3)
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0] + 10.0 ** rng.integers(-8, 0) * rng.normal(size=n)
    X = X * 10.0 ** rng.integers(-3, 4) + (10.0 ** rng.integers(0, 8) if rng.random() < 0.5 else 0)
    beta = np.where(rng.random(p) < 0.5, rng.normal(size=p), 0)
    noise = 10.0 ** rng.integers(-14, -2) if rng.random() < 0.8 else 0.0
    offset = 10.0 ** rng.integers(0, 9) if rng.random() < 0.5 else 0.0
    y = (X - X.mean(0)) @ beta
    y = y / (np.abs(y).max() or 1) + noise * rng.normal(size=n) + offset
    y = y * 10.0 ** rng.integers(-6, 7)
    data = Dataset.from_arrays(X, y)
    folds = str(rng.choice(["3", "loo", "4", "blocks:4"]))
    asked: dict[str, Any] = {
        "method": str(rng.choice(["auto", "rounds", "joint", "algorithm1", "grid", "descent"])),
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "global", "none"])),
        "gap": float(rng.choice([0, 1e-4, 0.05])),
        "one_se": bool(rng.random() < 0.3),
        "gammas": np.sort(10.0 ** rng.uniform(-8, 2, int(rng.integers(1, 4)))).tolist(),
        "taus": range(int(rng.integers(0, 2)), p + 1),
        "threads": 1,
    }
    return data, make_folds(folds, data, seed), asked


def forced_problem(seed: int, rows: int = 40, columns: int = 10) -> RandomProblem:
    """A random problem with some columns forced in or out, and every size that is left."""
    case = random_problem(seed, rows, columns)
    rng = np.random.default_rng([7, seed])
    able = rng.permutation(varying_columns(case.data.X))
    inside = able[: int(rng.integers(0, min(len(able), 4) + 1))]
    outside = able[len(inside) : len(inside) + int(rng.integers(0, 3))]
    outside = outside[: len(able) - max(len(inside), 1)]
    names = case.data.names
    restrictions = Restrictions(
        tuple(names[j] for j in sorted(inside.tolist())), tuple(names[j] for j in sorted(outside.tolist()))
    )
    sizes = np.arange(len(inside), case.data.p - len(outside) + 1)
    taus = np.unique(rng.choice(sizes, size=min(len(sizes), 4))).tolist()
    return replace(case, taus=taus, restrictions=restrictions)


def chained(rng: np.random.Generator, n: int, p: int, rho: float) -> FloatArray:
    """Draw rows whose columns are each correlated with the one before."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def chained_problem(key: list[int], columns: int = 14) -> tuple[Dataset, float, np.random.Generator]:
    """Rows of correlation 0 to 0.99, fewer than columns every other time; gamma, and what else is drawn from."""
    rng = np.random.default_rng(key)
    p = int(rng.integers(2, columns + 1))
    n = int(rng.integers(4, p + 2)) if key[-1] % 2 and p > 3 else int(rng.integers(p + 2, 40))
    X = chained(rng, n, p, float(rng.choice([0.0, 0.5, 0.9, 0.99])))
    y = X[:, : max(p // 3, 1)].sum(axis=1) + rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=n)
    return Dataset.from_arrays(X, y), float(10.0 ** rng.uniform(-3, 1)), rng
