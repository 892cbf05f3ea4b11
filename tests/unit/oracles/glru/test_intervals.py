"""Every interval of GLRU against retraining: random losses, regularisers and modifications of the data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    DualFit,
    Huber,
    IntervalMethod,
    Logistic,
    OptimumRegion,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    change_columns,
    change_rows,
    coefficient_intervals,
    make_problem,
    prediction_intervals,
    train,
)

QUICK, FULL = 125, 2000
MODIFICATIONS = ("remove rows", "add rows", "swap rows", "remove columns", "add columns", "swap columns")
L1_SLACK = 1e-6  # without strong convexity the gap does not bound the distance of the retrained point


@dataclass(frozen=True)
class Case:
    """An old problem and a new one, the region found from the old, the data of the new."""

    words: str
    region: OptimumRegion
    X: np.ndarray
    y: np.ndarray
    loss: ConjugateLoss
    regularizer: Regularizer


def random_loss(rng: np.random.Generator) -> ConjugateLoss:
    width = float(rng.uniform(0.3, 2.0))
    return [Squared(1.0), Huber(width), SquaredHinge(), SmoothedHinge(width), Logistic()][rng.integers(5)]


def random_regularizer(rng: np.random.Generator) -> Regularizer:
    lam = float(10 ** rng.uniform(-2.5, 1.0))
    net = lam * float(rng.uniform(0.05, 1.0))
    small = min(lam, 0.1)
    return [
        Regularizer(lam),
        Regularizer(lam, net),
        Regularizer(lam, intercept=True),
        Regularizer(lam, net, intercept=True),
        Regularizer(0.0, small, intercept=True),
        Regularizer(0.0, small),
    ][rng.integers(6)]


def random_data(rng: np.random.Generator, n: int, d: int, loss: ConjugateLoss) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1.0, 0.7) + rng.choice([0.0, 0.0, 1.0]) * rng.normal(size=d)
    if rng.random() < 0.3:
        X = X * (rng.random((n, d)) < 0.4)
    signal = X @ rng.normal(size=d) + rng.normal(size=n)
    if loss.labels:
        return X, np.where(signal > np.median(signal), 1.0, -1.0)
    return X, signal


def both_classes(y: np.ndarray) -> bool:
    return bool((y > 0).sum() >= 2 and (y < 0).sum() >= 2)


def random_case(rng: np.random.Generator) -> Case:
    loss, regularizer = random_loss(rng), random_regularizer(rng)
    what = MODIFICATIONS[rng.integers(len(MODIFICATIONS))]
    n, d = int(rng.integers(8, 60)), int(rng.integers(2, 25))
    while True:
        X, y = random_data(rng, n + 5, d + 4, loss)
        rows = rng.permutation(n + 5)
        gone, stay, new = rows[: rng.integers(1, 4)], rows[3:n], rows[n : n + int(rng.integers(1, 5))]
        old_rows = np.sort(rows[:n])
        kept = np.setdiff1d(old_rows, gone) if what in ("remove rows", "swap rows") else old_rows
        final = np.concatenate([kept, new]) if what in ("add rows", "swap rows") else kept
        if not loss.labels or not regularizer.intercept or (both_classes(y[stay]) and both_classes(y[final])):
            break
    columns = np.arange(d)
    lost = np.sort(rng.permutation(d)[: rng.integers(1, d)])
    added = np.arange(d, d + int(rng.integers(1, 5)))
    base = X[np.ix_(old_rows, columns)]
    problem = make_problem(sp.csr_array(base) if rng.random() < 0.3 else base, y[old_rows], loss, regularizer)
    fit = train(problem, tol=float(10 ** rng.uniform(-12, -3)))
    words = f"{what}, {loss}, {regularizer}, n {n}, d {d}, relative gap {fit.relative_gap:.1e}"
    if "rows" in what:
        remove = np.searchsorted(old_rows, gone) if what != "add rows" else None
        add = (X[new][:, columns], y[new]) if what != "remove rows" else None
        region = change_rows(fit, remove, add)
        return Case(words, region, X[final][:, columns], y[final], loss, regularizer)
    remove = lost if what != "add columns" else None
    kept_columns = np.setdiff1d(columns, lost) if what != "add columns" else columns
    block = X[np.ix_(old_rows, added)] if what != "remove columns" else None
    region = change_columns(fit, remove, sp.csr_array(block) if block is not None and rng.random() < 0.3 else block)
    if what != "remove columns":
        kept_columns = np.concatenate([kept_columns, added])
    return Case(words, region, X[np.ix_(old_rows, kept_columns)], y[old_rows], loss, regularizer)


def distance(fit: DualFit) -> float:
    """Bound on the distance of the retrained point to the optimum."""
    ridge = fit.problem.regularizer.ridge
    return float(np.sqrt(2.0 * fit.gap / ridge)) if ridge > 0.0 else L1_SLACK * (1.0 + float(np.abs(fit.w).max()))


def outside(low: Any, high: Any, value: np.ndarray, slack: np.ndarray | float) -> bool:
    return bool(np.any(value < low - slack) or np.any(value > high + slack))


def wrong(case: Case, rng: np.random.Generator) -> list[str]:
    """What the retrained optimum (gap 1e-12) contradicts; nothing, if the intervals are right."""
    region, new = case.region, train(make_problem(case.X, case.y, case.loss, case.regularizer), tol=1e-12)
    away, d, found = distance(new), region.d, []
    assert new.relative_gap < 1e-9, f"not retrained: {case.words}"
    if new.primal - new.gap > region.primal * (1 + 1e-12):
        found.append("P(w) below the optimum")
    test = np.vstack([rng.normal(size=(5, d)), case.X[:5], np.eye(d)[:3]])
    norms = np.sqrt(np.square(test).sum(axis=1))
    full = np.hstack([test, np.ones((test.shape[0], 1))]) if case.regularizer.intercept else test
    level_slack = 0.0
    if case.regularizer.intercept:
        # the intercept of the retrained point is only as good as what the other coefficients leave of it
        level_slack = 1e-6 + away * (1.0 + float(np.sqrt(np.square(case.X).sum(axis=1)).max()))
    for method in IntervalMethod:
        box = coefficient_intervals(region, method)
        slack = np.full(new.w.shape[0], away)
        if case.regularizer.intercept:
            slack[-1] += level_slack
        if outside(box.lower, box.upper, new.w, slack):
            found.append(f"{method} coefficients")
        line = prediction_intervals(region, test, method)
        if outside(line.lower, line.upper, full @ new.w, away * norms + level_slack):
            found.append(f"{method} predictions")
    if case.regularizer.ridge > 0.0:
        w = new.w[:d]
        for name, center, radius in (
            ("(9)", region.w, region.primal_radius),
            ("midpoint ball", region.center, region.radius),
            ("ball about w", region.w, region.radius_about_w),
        ):
            if np.linalg.norm(w - center[:d]) > radius * (1.0 + 1e-9) + away:
                found.append(name)
    return found


def run(count: int, seed: int) -> None:
    rng, seen = np.random.default_rng(seed), Counter[str]()
    for _ in range(count):
        case = random_case(rng)
        seen[case.words.split(",")[0]] += 1
        found = wrong(case, rng)
        assert not found, f"{', '.join(found)}: {case.words}"
    assert len(seen) == len(MODIFICATIONS)


def test_the_retrained_optimum_is_inside() -> None:
    run(QUICK, 7)


@pytest.mark.slow
def test_the_retrained_optimum_is_inside_in_2000_cases() -> None:
    run(FULL, 8)
