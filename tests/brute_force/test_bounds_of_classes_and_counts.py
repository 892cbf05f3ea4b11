"""Bounds on coefficients of classes and counts: searches against an enumeration with a separate Newton method."""

from __future__ import annotations

import threading
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from glm_cases import count_case, two_class_case
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one

Ends = tuple[float | None, float | None]


class Case(NamedTuple):
    """Data, how they are asked, and bounds (p,) on coefficients."""

    data: Dataset
    low: np.ndarray
    high: np.ndarray
    asked: dict[str, Any]
    gammas: list[float]
    taus: list[int]


def drawn(seed: int) -> Case:
    """Return data with bounds of eight kinds, weights, offsets or exposures, forced features, and leave-one-out."""
    rng = np.random.default_rng([650, seed])
    loss = ("logistic", "poisson")[seed % 2]
    n, p = int(rng.integers(14, 30)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.6 * rng.normal(size=(p, p))) * 10.0 ** rng.integers(-1, 2, p)
    score = X @ (rng.normal(size=p) / X.std(axis=0)) * rng.choice([0.4, 1.0])
    if seed % 2:
        y = rng.poisson(np.exp(np.minimum(0.5 + score, 4.0))) + 1.0 * (np.arange(n) % 7 == 0)
    else:
        y = 1.0 * (score + rng.logistic(size=n) > 0.0)
        y[:4] = 0.0, 1.0, 0.0, 1.0
    names = [f"x{j}" for j in range(p)]
    data = Dataset.from_arrays(
        X + rng.normal(size=p), y, names, aux={"o": rng.normal(size=n), "e": rng.uniform(0.5, 3.0, n)}
    )
    asked: dict[str, Any] = {"loss": loss, "scale": ("length", "none", "variance")[seed % 3]}
    asked["intercept"] = "none" if seed % 11 == 5 else "fold"
    asked |= {"offset": "o"} if seed % 5 in (1, 4) else {}
    asked |= {"exposure": "e"} if seed % 10 in (3, 9) else {}
    data = weighted_rows(data, rng.choice([0.5, 1.0, 3.0], n), "w") if seed % 4 == 2 else data
    low, high, bounds = np.full(p, -np.inf), np.full(p, np.inf), dict[str, Ends]()
    for j, name in enumerate(names):
        unit = 1.0 / X[:, j].std()
        a, b = np.sort(rng.normal(size=2)) * unit
        kinds = [
            (a, b),
            (0.0, abs(b) / 2.0),
            (None, b),
            (a, None),
            (0.0, None),
            (None, 0.0),
            (b, b),
            (0.3 * unit, unit),
        ]
        if rng.random() < 0.75 or (j == p - 1 and not bounds):
            ends = kinds[int(rng.integers(len(kinds)))]
            bounds[name] = tuple(None if end is None else float(end) for end in ends)  # type: ignore[assignment]
            low[j], high[j] = (-np.inf if ends[0] is None else ends[0]), (np.inf if ends[1] is None else ends[1])
    if seed % 6 == 3:  # signs alone
        low[:], high[:] = 0.0, np.inf
        asked["nonnegative"] = "all"
    else:
        asked["coef_bounds"] = bounds
    asked |= {"force_in": "x0"} if seed % 4 == 3 else {}
    gammas = sorted((10.0 ** rng.uniform(-2.0, 1.0, 2)).tolist())
    taus = sorted({1, 2, p} - ({0} if "force_in" in asked else set()))
    return Case(data, low, high, asked | {"folds": "loo" if n < 18 else "4", "gap": 0.0}, gammas, taus)


def losses_and_slopes(case: Case, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the loss, slope and curvature of every row at its linear predictor, without the weight of the row."""
    offset = np.zeros(len(t))
    offset += case.data.aux["o"] if "offset" in case.asked else 0.0
    offset += np.log(case.data.aux["e"]) if "exposure" in case.asked else 0.0
    y, t = case.data.y, np.minimum(t + offset, 300.0)  # no mean overflows far from a fit
    if case.asked["loss"] == "logistic":
        share = 1.0 / (1.0 + np.exp(-t))
        return np.logaddexp(0.0, np.where(y > 0.0, -t, t)), share - y, share * (1.0 - share)
    mean = np.exp(t)
    return mean - y + np.where(y > 0.0, y * (np.log(np.maximum(y, 1.0)) - t), 0.0), mean - y, mean


def fit_within(case: Case, rows: np.ndarray, S: tuple[int, ...], gamma: float) -> tuple[float, np.ndarray]:
    """Return the objective and the intercept with the coefficients of the fit of some columns within their bounds."""
    X, w = case.data.X, np.ones(case.data.n) if case.data.row_weights is None else case.data.row_weights
    first, columns = int(case.asked["intercept"] != "none"), list(S)
    spread = w @ (X[:, columns] - w @ X[:, columns] / w.sum()) ** 2
    square = {"length": spread, "variance": spread / w.sum(), "none": np.ones(len(S))}[case.asked["scale"]]
    unit = np.append(np.ones(first), 1.0 / np.sqrt(np.maximum(spread, 1e-300)))
    Z = np.column_stack([np.ones((len(X), first)), X[:, columns]]) * unit
    ridge = np.append(np.zeros(first), gamma / 2.0 * square) * unit**2
    low, high = (np.append(np.full(first, sign * np.inf), end[columns]) / unit
                 for sign, end in ((-1.0, case.low), (1.0, case.high)))  # fmt: skip
    inside = np.isin(np.arange(len(X)), rows) * w
    theta = np.clip(np.zeros(len(ridge)), low, high)

    def value(at: np.ndarray) -> float:
        return float(inside @ losses_and_slopes(case, Z @ at)[0] + ridge @ at**2)

    for _ in range(300):
        _, slopes, curved = losses_and_slopes(case, Z @ theta)
        g = Z.T @ (inside * slopes) + 2.0 * ridge * theta
        free = ~(((theta <= low) & (g >= 0.0)) | ((theta >= high) & (g <= 0.0)))
        H = (Z * (inside * curved)[:, None]).T @ Z + np.diag(2.0 * ridge)
        step = np.zeros(len(theta))
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], g[free])
        share, now, is_near = 1.0, value(theta), abs(g @ step) < 1e-12
        while not is_near and share > 1e-12 and value(np.clip(theta + share * step, low, high)) > now:
            share /= 2.0
        ahead = np.clip(theta + share * step, low, high)
        if np.array_equal(ahead, theta) or abs(g @ step) < 1e-30 * now:
            break
        theta = ahead
    return value(theta), theta * unit


class Best(NamedTuple):
    """The least objective of a size, and the (S, coefficients) that attain it up to rounding."""

    objective: float
    models: list[tuple[tuple[int, ...], np.ndarray]]


def best_models(case: Case, rows: np.ndarray, gamma: float) -> dict[int, Best]:
    p, fits = case.data.X.shape[1], []
    for size in range(max(case.taus) + 1):
        for S in combinations(range(p), size):
            if "force_in" not in case.asked or 0 in S:
                fits.append((S, *fit_within(case, rows, S, gamma)))
    found = {}
    for tau in case.taus:
        least = min(value for S, value, _ in fits if len(S) <= tau)
        found[tau] = Best(least, [(S, b) for S, value, b in fits if len(S) <= tau and value <= least * (1.0 + 1e-11)])
    return found


def held_out(case: Case, test: np.ndarray, S: tuple[int, ...], theta: np.ndarray) -> float:
    first = len(theta) - len(S)
    t = case.data.X[:, list(S)] @ theta[first:] + (theta[0] if first else 0.0)
    w = np.ones(case.data.n) if case.data.row_weights is None else case.data.row_weights
    return float(w[test] @ losses_and_slopes(case, t)[0][test])


def cv_errors(case: Case) -> dict[tuple[float, int], tuple[float, float]]:
    """Return the bounds of each CV error over the models that are tied in the folds."""
    is_logistic = case.asked["loss"] == "logistic"
    plan = make_folds(case.asked["folds"], as_two_classes(case.data) if is_logistic else case.data)
    w = np.ones(case.data.n) if case.data.row_weights is None else case.data.row_weights
    ends = {(gamma, tau): np.zeros(2) for gamma in case.gammas for tau in case.taus}
    for gamma in case.gammas:
        for fold in range(plan.k):
            for tau, best in best_models(case, plan.train_rows(fold), gamma).items():
                lost = [held_out(case, plan.scored_rows(fold), *model) for model in best.models]
                ends[gamma, tau] += min(lost), max(lost)
    return {pair: tuple(end / w.sum()) for pair, end in ends.items()}


def check(seed: int) -> None:
    """Every interval contains the truth, the certified choice is the true one, and `verify` agrees."""
    case = drawn(seed)
    record = sc.solve(case.data, gammas=case.gammas, taus=case.taus, **case.asked)
    errors = cv_errors(case)
    for row in record.table:
        low, high = errors[row.gamma, row.tau]
        assert row.lower <= low * (1.0 + 1e-9) and row.upper >= high * (1.0 - 1e-9), (seed, row, low, high)
    assert record.status == "proved", seed
    least = min(low for low, _ in errors.values())
    assert errors[record.gamma, record.tau][0] <= least * (1.0 + 1e-9), seed
    assert record.cv_error == pytest.approx(least, rel=1e-8), seed
    best = best_models(case, np.arange(case.data.n), record.gamma)[record.tau]
    assert record.refit.objective == pytest.approx(best.objective, rel=1e-9), seed
    said = np.array([record.coefficients.get(name, 0.0) for name in case.data.names])
    used = said != 0.0
    assert np.all((case.low <= said)[used] & (said <= case.high)[used]), seed
    names, forced = case.data.names, {"x0"} if "force_in" in case.asked else set()
    assert set(record.support) == {names[j] for j in np.flatnonzero(said)} | forced, seed
    spread, models = case.data.X.std(axis=0), np.zeros((len(best.models), len(said)))
    for row, (S, b) in zip(models, best.models, strict=True):
        row[list(S)] = b[len(b) - len(S) :]
    assert (np.abs(models - said) * spread).max(axis=1).min() <= 1e-6 * max((np.abs(said) * spread).max(), 1.0), seed
    checked = sc.verify(record, case.data)
    assert checked.ok, (seed, checked.failures)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 60))])
def test_intervals_contain_the_errors_of_every_support_and_face(seed: int) -> None:
    check(seed)


def test_a_short_limit_and_a_resumed_search_tell_the_truth(tmp_path: Path) -> None:
    case, store = drawn(22), tmp_path / "run.ck"
    asked = case.asked | {"gammas": case.gammas, "taus": case.taus}
    stop, errors = threading.Event(), cv_errors(case)
    cut = sc.solve(case.data, **asked, stop=stop, progress=lambda now: stop.set(), checkpoint=store)
    for row in cut.table:
        low, high = errors[row.gamma, row.tau]
        assert row.lower <= low * (1.0 + 1e-9) and row.upper >= high * (1.0 - 1e-9)
    assert cut.status != "proved"
    resumed, whole = sc.solve(case.data, **asked, resume=store), sc.solve(case.data, **asked)
    assert resumed.status == whole.status == "proved" and resumed.coefficients == whole.coefficients
    assert resumed.cv_error == whole.cv_error


@pytest.mark.parametrize("seed", [3, 8, 12, 17])
def test_fits_of_all_rows_are_the_best_within_bounds(seed: int) -> None:
    case = drawn(seed)
    names = "loss", "scale", "intercept", "offset", "exposure"
    how = {name: case.asked[name] for name in names if name in case.asked}
    within = {name: case.asked[name] for name in case.asked if name not in how and name not in ("folds", "gap")}
    best = best_models(case, np.arange(case.data.n), case.gammas[0])
    path = best_subsets(case.data, gammas=[case.gammas[0]], taus=case.taus, gap=0.0, **how, **within)
    for row in path.path:
        assert row.objective == pytest.approx(best[row.tau].objective, rel=1e-9) and row.proved
    one = fit_one(case.data, tau=case.taus[0], gamma=case.gammas[0], side=SideOptions(**within), **how)
    assert one.status == "proved" and one.objective == pytest.approx(best[case.taus[0]].objective, rel=1e-9)
    for record in (path, one):
        checked = sc.verify(record, case.data)
        assert checked.ok, checked.failures


def test_a_factor_and_bounds_that_exclude_zero() -> None:
    """The tree over terms extends the intervals of free columns to 0, and includes or excludes each of them."""
    rng = np.random.default_rng(5)
    X, level = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    y = 1.0 * (X[:, 0] + 0.8 * level + rng.logistic(size=40) > 0.8)
    columns = np.column_stack([X, *(1.0 * (level == one) for one in range(3))])
    data = Dataset.from_arrays(columns, y, ["x0", "x1", "x2", "f=a", "f=b", "f=c"])
    bounds = {"x0": (0.5, 1.0), "x1": (0.4, 0.9), "x2": (-1.0, 0.0)}
    low, high = (
        np.array([*end, *[sign * np.inf] * 3]) for end, sign in (((0.5, 0.4, -1.0), -1.0), ((1.0, 0.9, 0.0), 1.0))
    )
    asked: dict[str, Any] = {"loss": "logistic", "scale": "length", "intercept": "fold"}
    case = Case(data, low, high, asked, [0.1], [1, 2, 4])
    path = best_subsets(data, gammas=[0.1], taus=[1, 2, 4], gap=0.0, count="factors", coef_bounds=bounds, **asked)
    factor = (3, 4, 5)
    for row in path.path:
        sets = [S for size in range(row.tau + 1) for S in combinations(range(4), size)]
        supports = [tuple(j for j in S if j < 3) + factor * (3 in S) for S in sets]
        least = min(fit_within(case, np.arange(40), S, 0.1)[0] for S in supports)
        assert row.objective == pytest.approx(least, rel=1e-9) and row.proved
    assert sc.verify(path, data).ok


def test_estimators_have_bounds() -> None:
    case = drawn(0)
    ends = {"x0": (0.0, 0.05)}
    model = sc.BestSubsetLogistic(2, gamma=0.1, coef_bounds=ends).fit(case.data.X, case.data.y)
    same = best_subsets(case.data, gammas=[0.1], taus=[2], loss="logistic", coef_bounds=ends).path[0]
    assert {f"x{j}" for j in np.flatnonzero(model.coef_[0])} == set(same.support)
    chosen = sc.BestSubsetPoissonCV(taus=[1, 2], gammas=[1.0], cv=3, nonpositive="all").fit(case.data.X, case.data.y)
    assert np.all(chosen.coef_ <= 0.0)


@pytest.mark.parametrize("seed", [8, 41, *slow([4, 5, 7, 9, 15, 16, 23])])
def test_hostile_cases_verify(seed: int) -> None:
    """Means of a million spreads without an intercept, separated classes, near duplicates and tiny penalties."""
    case, rng = (two_class_case if seed % 2 else count_case)(seed), np.random.default_rng(seed)
    bounds: dict[str, Ends] = {}
    for name, spread in zip(case.data.names, case.data.X.std(axis=0).tolist(), strict=True):
        if spread > 0.0 and rng.random() >= 0.3:
            ends = [(0.0, None), (None, 0.0), (0.0, 0.2), (-0.1, 0.3), (0.1, 1.0), (-0.5, None), (None, -0.2)]
            low, high = ends[int(rng.integers(7))]
            bounds[name] = tuple(None if end is None else end / spread for end in (low, high))  # type: ignore[assignment]
    record = case.solved(coef_bounds=bounds)
    checked = sc.verify(record, case.data, folds=case.folds)
    assert record.status == "proved" and checked.ok, checked.failures
