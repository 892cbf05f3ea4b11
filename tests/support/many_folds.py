"""Small hostile problems of two classes in many folds, and the ends of their CV errors by fits of all supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from logistic_truth import fitted
from two_class_cases import TwoClassCase

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.data.weights import Scored, weighted_rows
from sparsecv_mio.problem.objective import varying_columns

TIED = 1e-10  # of an objective
FEWEST = 26  # rows: every row is a fold, or one of some pairs of rows


def many_folds_case(seed: int, most: int = 4) -> TwoClassCase:
    """Draw a case: separable classes, a rare one, near copies, dummies, weights; leave-one-out or folds of two rows.

    Parameters
    ----------
    seed : int
    most : int
        Columns.
    """
    rng = np.random.default_rng(seed)
    pairs = bool(seed % 2)
    n, p = int(rng.integers(FEWEST, 46)) * (1 + pairs), int(rng.integers(2, most + 1))
    X, kind = rng.normal(size=(n, p)), int(rng.integers(0, 6))
    if kind == 1:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-5.0, -1.0) * X[:, 1]
    if kind == 2:
        X = (X > 0.3).astype(float)
    if kind == 3:
        X[:, 1] = X[:, 0] * rng.choice([-1.0, 1.0])
    margins = X @ (rng.normal(size=p) * rng.choice([0.3, 1.0, 3.0])) + 0.5 * rng.normal()
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-margins))
    if kind == 4:
        y = margins > np.median(margins)
    if kind == 5 or not 3 <= y.sum() <= n - 3:
        y = np.zeros(n, dtype=bool)
        y[rng.choice(n, 3, replace=False)] = True
    if rng.random() < 0.2:
        X = X * 10.0 ** rng.uniform(-4.0, 4.0, size=p) + rng.choice([0.0, 1e3])
    data = as_two_classes(Dataset.from_arrays(X, y.astype(float)))
    if rng.random() < 0.3:
        weights = rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
        weights[rng.random(n) < 0.1 * (kind != 5)] = 0.0
        data = weighted_rows(data, weights, "w")
    gammas = sorted((10.0 ** rng.uniform(-4.0, 2.0, size=int(rng.integers(1, 3)))).tolist())
    how = {
        "scale": str(rng.choice(["length", "none"])), "intercept": str(rng.choice(["fold", "fold", "fold", "none"])),
        "gap": float(rng.choice([0.0, 1e-4, 1e-2])),
    }  # fmt: skip
    folds = make_folds(str(n // 2) if pairs else "loo", data, seed)
    return TwoClassCase(data, folds, gammas, list(range(p + 1)), how)


def ends_of_errors(case: TwoClassCase, gamma: float) -> dict[int, tuple[float, float]]:
    """By tau, the ends of the CV error over all supports that are optimal in a fold, by the definition.

    Parameters
    ----------
    case : TwoClassCase
    gamma : float
    """
    data, plan, columns = case.data, case.folds, varying_columns(case.data.X).tolist()
    how = {"scale": case.how["scale"], "intercept": case.how["intercept"], "weights": data.row_weights}
    ends = {tau: np.zeros(2) for tau in case.taus}
    supports = [s for size in range(len(columns) + 1) for s in combinations(columns, size)]
    for fold in range(plan.k):
        rows, out = plan.train_rows(fold), plan.scored_rows(fold)
        models = [fitted(data.X, data.y, s, gamma, rows=rows, **how) for s in supports]
        weights = np.ones(len(out)) if data.row_weights is None else data.row_weights[out]
        losses = np.array([float(model.losses(data.X[out], data.y[out], weights).sum()) for model in models])
        off = np.array([float((weights * model.doubt(data.X[out])).sum()) * 4.0 for model in models])
        values, sizes = np.array([model.objective for model in models]), np.array([len(s) for s in supports])
        for tau in case.taus:
            small = sizes <= tau
            best = small & (values <= values[small].min() * (1.0 + TIED) + 1e-300)
            ends[tau] += float((losses - off)[best].min()), float((losses + off)[best].max())
    total = Scored.of(data, plan).total
    return {tau: (float(low) / total, float(high) / total) for tau, (low, high) in ends.items()}
