"""Cells filled and columns measured by the training rows of each fold: every interval holds the enumerated CV error."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from exact import ExactProblem
from glm_referee import Referee
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.errors import BadInput

METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", "descent")
FOLDS = ("3", "4", "loo", "2x3", "forward:3", "holdout:0.3", "labels", "groups:g")
LOSSES = ("squared", "logistic")
TIED = 1e-9  # of an objective
ENDS = 1e-8  # of a CV error


class Drawn(NamedTuple):
    """A table with empty cells, and how it is asked."""

    frame: pd.DataFrame
    names: list[str]
    folds: Any
    how: dict[str, Any]
    gammas: list[float]


def drawn(seed: int, loss: str = "squared") -> Drawn:
    """Return a small problem."""
    rng = np.random.default_rng([12, seed])
    n, p = int(rng.integers(10, 19 if loss == "squared" else 25)), int(rng.integers(2, 5 if loss == "squared" else 4))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 5.0, 1e3]) * rng.normal(size=p)
    y = (X - X.mean(axis=0)) @ rng.normal(size=p) + rng.choice([0.1, 1.0]) * rng.normal(size=n)
    kind = seed % 4
    if kind == 1:  # near copies and copies, of which cells may be empty
        X[:, -1] = rng.choice([1.0, -2.0]) * X[:, 0] + rng.choice([0.0, 1e-7, 1e-3]) * rng.normal(size=n)
    if kind == 2:
        X[:, 0] = rng.random(n) < 0.3
    X[rng.random((n, p)) < rng.choice([0.05, 0.15, 0.4])] = np.nan
    if kind == 1 and rng.random() < 0.5:  # empty where the other is
        X[np.isnan(X[:, 0]), -1] = np.nan
    if loss == "logistic":
        y = (y + rng.normal(size=n) > np.median(y)).astype(float)
    names = [f"x{j}" for j in range(p)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, g=rng.integers(0, 3, size=n))
    how: dict[str, Any] = {
        "na": str(rng.choice(["mean", "median"])), "scale": str(rng.choice(["length", "length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "fold", "none"])), "na_within": str(rng.choice(["folds", "folds", "all"])),
    }  # fmt: skip
    if how["scale"] != "none":
        how["scale_within"] = str(rng.choice(["folds", "all"]))
    if rng.random() < 0.3:
        how["na_indicator"] = True
    if rng.random() < 0.4:
        frame["w"] = rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
        how["weights"] = "w"
    if loss == "squared":
        how["method"] = METHODS[seed % len(METHODS)] if seed % 3 else "auto"
        if rng.random() < 0.2 and how["method"] != "descent":
            how["adjust"] = "x0"
    elif loss == "logistic":
        how["loss"] = loss
    if rng.random() < 0.2 and "adjust" not in how:
        how["force_in"] = "x1"
    how["gap"] = 0.0 if rng.random() < 0.3 and how.get("method") != "bounds" else 1e-4
    folds = FOLDS[seed % len(FOLDS)]
    gammas = [0.02, 1.0] if seed % 2 else [0.1]
    if loss == "squared" and how["method"] != "descent" and rng.random() < 0.15:
        gammas = [0.0, 1.0]
    return Drawn(frame, names, rng.permutation(np.arange(n) % 3) if folds == "labels" else folds, how, gammas)


class Fold(NamedTuple):
    """What a fold sees: all rows as it fills and measures them, those it trains on and scores."""

    Z: FloatArray
    train: IntArray
    scored: IntArray


def filled(raw: FloatArray, rows: IntArray, how: dict[str, Any], holed: IntArray) -> FloatArray:
    """Return the features, filled by some rows, with a column of zeros and ones for every one of `holed`."""
    columns = []
    for j in range(raw.shape[1]):
        column, empty = raw[:, j].copy(), np.isnan(raw[:, j])
        there = column[rows][~empty[rows]]
        if empty.any():
            assert len(there)
            column[empty] = np.median(there) if how["na"] == "median" else np.mean(there)
        columns.append(column)
        if how.get("na_indicator") and j in holed:
            columns.append(empty.astype(float))
    return np.column_stack(columns)


def scales_of(X: FloatArray, weights: FloatArray, rows: IntArray, how: dict[str, Any]) -> FloatArray:
    """Return what the penalty takes for the unit of each column, by some rows; 0 where it is constant there."""
    w = weights[rows]
    mean = w @ X[rows] / w.sum()
    norm = np.sqrt(w @ (X[rows] - mean) ** 2)
    norm[np.ptp(X[rows], axis=0) <= 1e-15 * np.abs(X[rows]).max(axis=0)] = 0.0
    unit = {"length": 1.0, "variance": np.sqrt(w.sum()), "none": np.inf}[how["scale"]]
    return np.ones(X.shape[1]) if np.isinf(unit) else norm / unit


def of_rows(case: Drawn, train: IntArray, scored: IntArray) -> Fold:
    """Return what a fold sees, columns over their scales."""
    raw = case.frame[case.names].to_numpy()
    every = np.arange(len(raw))
    weights = case.frame["w"].to_numpy() if "weights" in case.how else np.ones(len(raw))
    holed = np.flatnonzero(np.isnan(raw).any(axis=0))
    whole = filled(raw, every, case.how, holed)
    seen = filled(raw, train if case.how["na_within"] == "folds" else every, case.how, holed)
    scale = scales_of(whole, weights, every, case.how)
    if case.how.get("scale_within") == "folds":
        own = scales_of(seen, weights, train, case.how)
        scale = np.where((own > 0.0) & (scale > 0.0), own, scale)
    return Fold(seen / np.where(scale > 0.0, scale, 1.0), train, scored)


def fitted(case: Drawn, fold: Fold, support: tuple[int, ...], gamma: float) -> tuple[float, float]:
    """Return the training objective of a support, and its loss over the scored rows."""
    y = case.frame["y"].to_numpy()
    weights = case.frame["w"].to_numpy() if "weights" in case.how else np.ones(len(y))
    Z = fold.Z[:, list(support)]
    if case.how.get("loss") == "logistic":
        sign, one = np.where(y > 0.5, 1.0, -1.0), np.ones(len(y))
        referee = Referee("logistic", Z, sign, weights, one, "none", case.how["intercept"] == "fold")
        fits = referee.fits_of(fold.train, gamma, [tuple(range(len(support)))])
        return float(fits.value[0]), float(weights[fold.scored] @ fits.losses[0][fold.scored])
    if case.how["intercept"] == "fold":
        Z = Z - weights[fold.train] @ Z[fold.train] / weights[fold.train].sum()
        Z = np.column_stack([Z, np.ones(len(y))])
    free = [i for i, j in enumerate(support) if "adjust" in case.how and j == 0]
    penalty = np.full(Z.shape[1], gamma / 2.0)
    penalty[[*free, *range(len(support), Z.shape[1])]] = 0.0
    root = np.sqrt(weights)
    A = np.vstack((root[fold.train, None] * Z[fold.train], np.diag(np.sqrt(penalty))))
    beta = np.linalg.lstsq(A, np.append(root[fold.train] * y[fold.train], np.zeros(len(penalty))), rcond=None)[0]
    losses = weights * (y - Z @ beta) ** 2
    return float(losses[fold.train].sum() + penalty @ beta**2), float(losses[fold.scored].sum())


def truth(case: Drawn, folds: list[Fold], gamma: float, tau: int, total: float) -> tuple[float, float]:
    """Return the least and the largest CV error of a pair, over supports that are tied within folds."""
    ends = np.zeros(2)
    for fold in folds:
        tried = [fitted(case, fold, support, gamma) for support in supports_of(case, fold.Z, tau)]
        best = min(objective for objective, _ in tried)
        held = [loss for objective, loss in tried if objective <= best * (1.0 + TIED) + 1e-12]
        ends += min(held), max(held)
    return float(ends[0]) / total, float(ends[1]) / total


def supports_of(case: Drawn, Z: FloatArray, tau: int) -> list[tuple[int, ...]]:
    """Return the supports of a size, columns that are adjusted for beside it."""
    vary = [j for j in range(Z.shape[1]) if np.ptp(Z[:, j]) > 0.0]
    place = [name for name in made_names(case)]
    inside = [place.index(case.how[word]) for word in ("adjust", "force_in") if word in case.how]
    size = min(tau + ("adjust" in case.how), len(vary))
    rest = [j for j in vary if j not in inside]
    return [(*sorted(inside), *some) for some in combinations(rest, min(size - len(inside), len(rest)))]


def made_names(case: Drawn) -> list[str]:
    """Return the names of the features."""
    names = []
    for name in case.names:
        names.append(name)
        if case.how.get("na_indicator") and case.frame[name].isna().any():
            names.append(f"{name}=(missing)")
    return names


def check(seed: int, loss: str = "squared") -> str:
    """Solve a drawn problem; return `solved` where all holds, else why it is refused, rightly."""
    case = drawn(seed, loss)
    raw = case.frame[case.names].to_numpy()
    how = {**case.how, "features": case.names}
    reading = {name: how[name] for name in ("na", "na_indicator") if name in how}
    data = sc.read_dataset(case.frame, "y", features=case.names, aux=("g",), weights=how.get("weights"), **reading)
    data = as_two_classes(data) if loss == "logistic" else data  # whose folds are dealt class by class
    try:
        plan = make_folds(case.folds, data, 0)
        record = sc.solve(case.frame, "y", folds=case.folds, gammas=case.gammas, taus=f"{'force_in' in how:d}:2", **how)
    except BadInput as error:
        said = str(error)
        empty = re.match(r"na_within folds: column '(x\d)' is empty in every training row of fold (\d+) of \d+: ", said)
        if empty:
            column = case.frame[empty[1]].to_numpy()[plan.train_rows(int(empty[2]) - 1)]
            assert np.isnan(column).all()
            return "empty in a fold"
        told = (
            "is constant",
            "no ridge weight",
            "no intercept fits",
            "without a penalty",
            "is empty in every row",
            "tau",
            "gamma 0: ",
        )
        assert any(words in said for words in told), said
        return "refused"
    every = np.arange(data.n)
    folds = [of_rows(case, plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    total = sum(float(data.weight_of(fold.scored)) for fold in folds)
    for row in record.table:
        low, high = truth(case, folds, row.gamma, row.tau, total)
        assert row.lower <= low * (1.0 + ENDS) + 1e-12, (seed, row, low, high)
        assert row.upper >= high * (1.0 - ENDS) - 1e-12, (seed, row, low, high)
        if row.folds_decided == row.folds:
            assert row.lower * (1.0 - ENDS) - 1e-12 <= low, (seed, row, low, high)
            assert row.upper * (1.0 + ENDS) + 1e-12 >= high, (seed, row, low, high)
    whole = of_rows(case, every, every)
    tried = {
        support: fitted(case, whole, support, record.gamma)[0] for support in supports_of(case, whole.Z, record.tau)
    }
    names = made_names(case)
    mine = tuple(sorted(names.index(name) for name in record.coefficients))
    least = min(tried.values())
    mine_value = fitted(case, whole, mine, record.gamma)[0]
    assert record.refit.lower <= least * (1.0 + ENDS) and mine_value <= least * (1.0 + ENDS) or not record.refit.proved
    X = filled(raw, every, how, np.flatnonzero(np.isnan(raw).any(axis=0)))
    predicted = X[:, list(mine)] @ np.array([record.coefficients[names[j]] for j in mine]) + record.intercept
    if loss == "squared":
        assert np.allclose(record.predict(case.frame), predicted)
        assert mine_value == pytest.approx(record.refit.objective, rel=1e-7, abs=1e-9)
    assert (record.request.na_within == "folds") == (how["na_within"] == "folds")
    report = sc.verify(record, data, replace(plan, spec=record.folds.spec))
    assert report.ok, (seed, report.failures[:3])
    return "solved"


@pytest.mark.parametrize(
    ("seeds", "loss", "least"),
    [(range(12), "squared", 6), (range(5), "logistic", 2), *slow((range(24, 324), loss, 150) for loss in LOSSES)],
)
def test_every_interval_holds_the_truth(seeds: range, loss: str, least: int) -> None:
    assert [check(seed, loss) for seed in seeds].count("solved") >= least


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 24))])
def test_scales_of_folds_round_no_bound(seed: int) -> None:
    """Columns far from 0 and nearly perfect fits, where a rounded division by the scales would show."""
    rng = np.random.default_rng([13, seed])
    n, p, gamma, tau = int(rng.integers(6, 14)), 3, float(10.0 ** rng.integers(-6, 2)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, p) + rng.choice([0.0, 1e3, 1e8], p)
    y = X @ rng.normal(size=p) + rng.choice([1e-9, 1e-3, 1.0]) * rng.normal(size=n)
    data = sc.Dataset.from_arrays(X, y)
    intercept, scale = ("fold", "none")[seed % 2], ("length", "variance")[seed % 3 % 2]
    plan, ends = make_folds("3", data), [Fraction(0), Fraction(0)]
    for fold in range(plan.k):
        train, scored = plan.train_rows(fold).tolist(), plan.scored_rows(fold).tolist()
        training = ExactProblem.of(X[train].tolist(), y[train].tolist(), None, [], (scale, intercept), range(p))
        problem = ExactProblem.of(X.tolist(), y.tolist(), None, [(train, scored)], ("none", intercept), range(p))
        for place, error in enumerate(replace(problem, column_weight=training.column_weight).cv_error(gamma, tau)):
            ends[place] += len(scored) * error / n
    how: dict[str, Any] = {"gammas": [gamma], "taus": [tau], "intercept": intercept, "scale": scale}
    record = sc.cross_validate(data, plan, scale_within="folds", **how)
    assert Fraction(record.lower) <= ends[1] and Fraction(record.upper) >= ends[0]
    assert sc.verify(record, data, plan).ok
