"""Small problems made to lose digits, and what the search is asked of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds

OFFSETS = (0.0, 0.0, 1.0, 1e3, 1e6, 1e8)
METHODS = ("auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent")


def hostile_problem(seed: int) -> tuple[Dataset, FoldPlan, dict[str, Any]]:
    """Offsets to 1e8, near-perfect fits, ties and copies, scales of 1e-6 to 1e6, every mode, method and gap."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 24)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, p))
    kind = rng.choice(["normal", "whole", "one-hot", "copies", "near copies", "scaled"])
    if kind == "whole":
        X = np.round(X)
    elif kind == "one-hot":
        X = np.eye(p)[rng.integers(0, p, size=n)]
    elif kind == "copies" and p > 1:
        X[:, -1] = X[:, 0] * rng.choice([1.0, -1.0, 2.0])
    elif kind == "near copies" and p > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-7, -1) * rng.normal(size=n)
    elif kind == "scaled":
        X *= 10.0 ** rng.uniform(-6, 6, size=p)
    X = X + rng.choice(OFFSETS) * rng.choice([0.0, 1.0]) * (np.abs(X).max(axis=0) + 1e-9)
    X[0, 0] += 1.0
    beta = rng.normal(size=p) * (rng.random(p) < 0.5) / (X.std(axis=0) + 1e-300)
    y = X @ np.where(X.std(axis=0) > 0.0, beta, 0.0)
    y = y + rng.choice([0.0, 1e-9, 1e-6, 1e-2, 1.0, 1.0]) * rng.normal(size=n)
    if rng.random() < 0.2:
        y = np.round(y)
    y[0] += 0.5 if rng.random() < 0.5 or np.ptp(y) == 0.0 else 0.0
    y = y * 10.0 ** rng.choice([0.0, 0.0, -6.0, -3.0, 6.0]) + rng.choice(OFFSETS)
    data = Dataset.from_arrays(X, y)
    plan = make_folds(str(rng.choice(["loo", "3", "5", "blocks:2", "holdout:0.3"])), data, seed)
    gammas = {float(g) for g in 10.0 ** rng.uniform(-5, 3, size=rng.integers(1, 4))}
    method = str(rng.choice(METHODS, p=[0.3, 0.15, 0.15, 0.15, 0.1, 0.05, 0.1]))
    asked: dict[str, Any] = {
        "gammas": sorted(gammas),
        "taus": sorted({int(t) for t in rng.integers(0, p + 1, size=3)}),
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "global", "none"])),
        "gap": float(rng.choice([0.0, 1e-4, 5e-2])),
        "one_se": bool(plan.k > 1 and rng.random() < 0.4),
        "refine": bool(method != "descent" and rng.random() < 0.1),
        "method": method,
        "threads": 1,
    }
    return data, plan, asked


def nearly_perfect_problem(seed: int) -> tuple[Dataset, FoldPlan, dict[str, Any]]:
    """Targets that are linear but for noise of 1e-14 to 1e-2, on offsets to 1e8, of columns that may be near copies."""
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
