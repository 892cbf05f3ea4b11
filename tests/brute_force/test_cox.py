"""Cox regression against an enumeration of all supports in long double: trees, searches, bounds of open folds."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cox_truth import Case, Dense, all_supports, drawn_case
from slow import slow

import sparsecv_mio as sc
import sparsecv_mio.trees.cox_subsets as cox_subsets
from sparsecv_mio import best_subsets, cross_validate, make_folds, near_optimal, verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import outer_folds
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.cox_objective import Terms
from sparsecv_mio.problem.risk_sets import RiskSets, make_risk_sets
from sparsecv_mio.search.api import nested_cross_validate
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.targets import Loss, Ties
from sparsecv_mio.trees.cox_fits import CoxColumns, CoxFits, cox_minorant, mixed_points
from sparsecv_mio.trees.cox_subsets import CoxSubsets
from sparsecv_mio.trees.glm_subsets import sparse_ellipsoid
from sparsecv_mio.trees.subsets import is_never_expired

QUICK = [(200, "4"), (201, "loo"), (202, "holdout:0.3"), (203, "4"), (204, "2x3"), (205, "4")]
TIED = 1e-9  # relative difference of objectives of supports that a search may treat as tied


def sets_of(case: Case, rows: Any = None) -> RiskSets:
    return make_risk_sets(case.time, case.event, case.entry, case.stratum, case.weights, rows, case.efron)


def fits_of(case: Case, gamma: float, rows: Any = None, forced: Any = None) -> tuple[CoxFits, Any]:
    length = np.sqrt(((case.X - case.X.mean(0)) ** 2).sum(0))
    columns = CoxColumns.from_rows(case.X)
    return CoxFits.from_columns(columns, sets_of(case, rows), length**2, gamma, forced), gamma / 2 * length**2


@pytest.mark.parametrize("seed", [*range(5), *slow(range(5, 30))])
def test_quadratics_are_below_the_objective_wherever_it_is_at_most_the_level(seed: int) -> None:
    case, rng = drawn_case(seed), np.random.default_rng(seed)
    case = case._replace(X=(case.X - case.X.mean(0)) / case.X.std(0))
    p = case.X.shape[1]
    fits, ridge = fits_of(case, float(10.0 ** rng.uniform(-3, 1)))
    ridge_inside = fits.problem.ridge
    truth = Dense(case)
    supports = all_supports(p, p, 1)
    values = {S: truth.fit(S, ridge) for S in supports}
    S, (best, b) = min(values.items(), key=lambda item: (len(item[0]) != 1, item[1][0]))
    level = float(best) * (1.0 + float(rng.choice([1e-9, 0.05, 0.3]))) + 1e-9
    near, everything = np.zeros(p), fits.fit_of_all(fits.varies, np.zeros(p))[0]
    near[list(S)] = b * fits.centring.unit[list(S)]
    n_made = 0
    for theta in mixed_points(near, everything):
        below = cox_minorant(fits.problem, theta, level)  # type: ignore[arg-type]
        if below is None:
            continue
        n_made += 1
        M, c, yy = below.moments.M, below.moments.c, below.moments.yy - below.shift
        for T, (value, _) in values.items():
            i = list(T)
            q = yy - c[i] @ np.linalg.solve(M[np.ix_(i, i)], c[i])
            assert value > level or q <= value + 1e-9 * abs(value)
        for _ in range(20):
            z = near + rng.normal(size=p) * 10.0 ** rng.uniform(-3, 1) * np.linalg.norm(near)
            value = float(truth.derivatives(z / fits.centring.unit)[0]) + float(ridge_inside @ z**2)
            if value <= level:
                assert yy - 2 * c @ z + z @ M @ z <= value + 1e-9 * abs(value)
                low, high = below.ellipsoid.predictions(np.eye(p))
                assert np.all((low <= z) & (z <= high))
    assert n_made


@pytest.mark.parametrize("seed", [*range(5), *slow(range(5, 60))])
def test_quadratics_of_sparse_fits_are_below_the_objective_at_these_fits(seed: int) -> None:
    case, rng = drawn_case(seed), np.random.default_rng(seed)
    case = case._replace(X=(case.X - case.X.mean(0)) / case.X.std(0))
    p = case.X.shape[1]
    fits, ridge = fits_of(case, float(10.0 ** rng.uniform(-2, 1)))
    truth, n_made = Dense(case), 0
    for size in range(1, p):
        inside = np.array([0]) if size > 1 and seed % 2 else np.zeros(0, dtype=np.int64)
        values = {S: truth.fit(S, ridge) for S in all_supports(p, size, 1) if set(inside) <= set(S)}
        S, (best, b) = min(values.items(), key=lambda item: item[1][0])
        level = float(best) * (1.0 + float(rng.choice([1e-9, 0.05, 0.3]))) + 1e-9
        near, everything = np.zeros(p), fits.fit_of_all(fits.varies, np.zeros(p))[0]
        near[list(S)] = b * fits.centring.unit[list(S)]

        region = None
        for theta in mixed_points(near, everything):
            below = cox_minorant(fits.problem, theta, level, region=region)  # type: ignore[arg-type]
            region = below and sparse_ellipsoid(below, 0, size, level, is_never_expired, inside)
            if below is None or region is None:
                continue
            n_made += 1
            M, c, yy = below.moments.M, below.moments.c, below.moments.yy - below.shift
            low, high = region.predictions(np.eye(p))
            for T, (value, coefficients) in values.items():
                if value <= level:
                    i, z = list(T), np.zeros(p)
                    z[i] = coefficients * fits.centring.unit[i]
                    assert yy - c[i] @ np.linalg.solve(M[np.ix_(i, i)], c[i]) <= value + 1e-9 * abs(value)
                    assert np.all((low <= z) & (z <= high))
    assert n_made


@pytest.mark.parametrize("enumerates", [False, True])
@pytest.mark.parametrize("seed", [*range(101, 105), *slow([100, *range(105, 125)])])
def test_best_subsets_are_those_of_all_supports(seed: int, enumerates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not enumerates:
        monkeypatch.setattr(cox_subsets, "FITTED_AT_ONCE", 0)
        monkeypatch.setattr(cox_subsets, "MOST_LISTED", 3)  # so that nodes branch
    case, rng = drawn_case(seed), np.random.default_rng(seed)
    n, p = case.X.shape
    rows = np.sort(rng.permutation(n)[: max(n - 4, 6)])
    if not case.event[rows].any():
        rows = None
    forced = np.array([0]) if seed % 3 == 0 else None
    fits, ridge = fits_of(case, float(10.0 ** rng.uniform(-4, 1)), rows, forced)
    truth, every = Dense(case, rows), sets_of(case)
    subsets = cox_subsets.CoxSubsets(fits)
    for tau, found in subsets.solve(range(1, p + 1)).by_size.items():
        values = {S: truth.fit(S, ridge) for S in all_supports(p, tau, tau) if forced is None or 0 in S}
        best = min(value for value, _ in values.values())
        assert found.lower <= best * (1 + 1e-13) + 1e-13 and best <= found.upper * (1 + 1e-13) + 1e-13
        assert found.complete and found.upper - found.lower <= 1e-9 * found.upper
        tied = {S for S, (value, _) in values.items() if value <= best * (1.0 + 1e-11)}
        assert tied <= {tuple(support.tolist()) for support in found.candidates}
        for S in tied:
            fitted, low, high, middle = subsets.score_held_out([np.array(S)], every)
            eta = case.X[:, list(S)].astype(np.longdouble) @ values[S][1]
            held_out = float(Dense(case).loss(eta) - truth.loss(eta))
            assert low[0] - 1e-12 <= held_out <= high[0] + 1e-12 and high[0] - low[0] <= 1e-7 * max(held_out, 1.0)
            assert fitted.lower[0] <= values[S][0] <= fitted.upper[0]
            assert middle[0] == pytest.approx(held_out, rel=1e-7, abs=1e-9)
            for upper in (float(best) * (1 + 1e-9), float(best) * 1.05):
                least, most = subsets.bound_open_fold(tau, upper, every)
                assert least <= held_out <= most


@pytest.mark.parametrize("seed", range(6))
def test_duplicate_columns_are_merged(seed: int) -> None:
    case = drawn_case(seed, n=25, p=3, plain=True)
    case = case._replace(X=np.column_stack([case.X, -case.X[:, 1], case.X[:, 1]]))
    fits, ridge = fits_of(case, 0.3)
    assert fits.has_copies and fits.copy_of.tolist() == [0, 1, 2, 1, 1]
    truth = Dense(case)
    for tau, found in cox_subsets.CoxSubsets(fits).solve(range(1, 6)).by_size.items():
        best = min(truth.fit(S, ridge)[0] for S in all_supports(5, tau, tau))
        assert found.lower <= best * (1 + 1e-12) and best <= found.upper * (1 + 1e-12)
        assert found.upper - found.lower <= 1e-9 * found.upper


def test_rows_that_change_no_risk_set_have_the_held_out_loss_0_up_to_rounding() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, time, entry = 3.0 * rng.normal(size=(12, 3)), rng.integers(1, 6, 12).astype(float), np.zeros(12)
        time[:3], entry[:3] = 1e3 + np.arange(3), 1e3 - 0.5 + np.arange(3)  # alone in their risk sets
        case = Case(X, time, np.ones(12, dtype=bool), entry, None, None, True)
        subsets = CoxSubsets(fits_of(case, 0.1, np.arange(3, 12))[0])
        _, lower, upper, middle = subsets.score_held_out([np.arange(3), np.array([1])], sets_of(case))
        assert np.all((lower == 0.0) & (middle <= upper) & (upper < 1e-12) & (middle >= 0.0))


def dataset_of(case: Case) -> Dataset:
    survival = Survival(case.event, case.entry, case.stratum, Ties.EFRON if case.efron else Ties.BRESLOW)
    data = Dataset.from_arrays(case.X, case.time, target="time")
    weights = None if case.weights is None else "w"
    return replace(data, survival=survival, event="event", row_weights=case.weights, weights=weights)


@pytest.mark.parametrize(
    ("seed", "spec"),
    [*QUICK, *slow(case for case in product(range(200, 207), ["4", "loo", "holdout:0.3", "2x3"]) if case not in QUICK)],
)
def test_intervals_contain_the_cv_errors_of_all_supports(seed: int, spec: str) -> None:
    case = drawn_case(seed, n=18 if spec == "loo" else 26, p=4, spread=0.7)
    data = dataset_of(case)
    plan, gammas, taus = make_folds(spec, data, seed), [0.02, 0.5], [1, 2, 3]
    try:
        record = cross_validate(data, plan, loss="cox", gammas=gammas, taus=taus, gap=0.0, threads=1)
    except BadInput as error:
        assert "no event" in str(error)
        return
    length = np.sqrt(weighted_squares(case))
    weights = case.event * (1.0 if case.weights is None else case.weights)
    total = float(weights[plan.all_scored].sum())
    low = {(gamma, tau): 0.0 for gamma in gammas for tau in taus}
    high = dict(low)
    for fold in range(plan.k):
        train = plan.train_rows(fold)
        part, whole = Dense(case, train), Dense(case, np.union1d(train, plan.scored_rows(fold)))
        for gamma in gammas:
            for tau in taus:
                fits = {S: part.fit(S, gamma / 2 * length**2) for S in all_supports(4, tau, tau)}
                best = min(value for value, _ in fits.values())
                losses = []
                for S, (value, b) in fits.items():
                    if value <= best * (1 + TIED) + 1e-12:
                        eta = case.X[:, list(S)].astype(np.longdouble) @ b
                        losses.append(float(whole.loss(eta) - part.loss(eta)))
                low[gamma, tau] += min(losses) / total
                high[gamma, tau] += max(losses) / total
    for row in record.table:
        pair = row.gamma, row.tau
        assert row.lower <= high[pair] + 1e-9 and low[pair] <= row.upper + 1e-9
        assert row.folds_decided == row.folds and low[pair] - 1e-9 <= row.cv_error <= high[pair] + 1e-9
    assert record.status == "proved"
    assert record.lower <= min(high.values()) + 1e-9 and min(low.values()) <= record.upper + 1e-9
    report = verify(record, data, plan)
    assert report.ok, report.failures


@pytest.mark.parametrize("enumerates", [False, True])
@pytest.mark.parametrize("seed", [*range(400, 404), *slow(range(404, 430))])
def test_lists_hold_every_near_optimal_support(seed: int, enumerates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not enumerates:
        monkeypatch.setattr(cox_subsets, "FITTED_AT_ONCE", 0)
        monkeypatch.setattr(cox_subsets, "MOST_LISTED", 3)  # so that nodes branch
    case, rng = drawn_case(seed, n=30, p=5, spread=0.7), np.random.default_rng(seed)
    if seed % 4 == 3:
        case.X[:, 4] = -2.0 * case.X[:, 1]
    gamma, within = float(10.0 ** rng.uniform(-3, 0)), float(rng.choice([0.01, 0.1, 1.0]))
    data = dataset_of(case)
    record = near_optimal(data, gamma=gamma, taus="1:4", within=within, by="objective", most=None, loss="cox")
    assert record.status == "proved" and verify(record, data).ok
    truth, ridge = Dense(case), gamma / 2 * weighted_squares(case)
    for size in record.sizes:
        values = {S: float(truth.fit(S, ridge)[0]) for S in all_supports(5, size.tau, size.tau)}
        most = min(values.values()) * (1.0 + within)
        listed = {tuple(data.names.index(name) for name in m.support) for m in record.models if m.tau == size.tau}
        assert {S for S, value in values.items() if value <= most * (1.0 - TIED)} <= listed
        assert all(values[S] <= most * (1.0 + TIED) for S in listed)


def weighted_squares(case: Case) -> Any:
    w = np.ones(len(case.X)) if case.weights is None else case.weights
    return w @ (case.X - w @ case.X / w.sum()) ** 2


@pytest.mark.parametrize("seed", [*range(300, 303), *slow(range(303, 312))])
def test_adjusted_columns_have_no_penalty(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cox_subsets, "FITTED_AT_ONCE", 0)
    case = drawn_case(seed, n=40, p=4, plain=True, spread=0.5)
    weight = np.array([0.0, 1.0, 1.0, 1.0]) * weighted_squares(case._replace(weights=None))
    fits = CoxFits.from_columns(CoxColumns.from_rows(case.X), sets_of(case), weight, 0.2, np.array([0]))
    truth = Dense(case)
    for tau, found in cox_subsets.CoxSubsets(fits).solve(range(4)).by_size.items():
        best = min(truth.fit(S, 0.1 * weight)[0] for S in all_supports(4, tau + 1, tau + 1) if 0 in S)
        assert found.lower <= best * (1 + 1e-12) and best <= found.upper * (1 + 1e-12)
        assert found.complete and found.upper - found.lower <= 1e-9 * found.upper


@pytest.mark.parametrize("seed", [*range(320, 322), *slow(range(322, 326))])
def test_columns_of_a_term_enter_together(seed: int) -> None:
    case = drawn_case(seed, n=40, p=5, plain=True)
    fits, ridge = fits_of(case, 0.3)
    terms = ((0, 1), (2,), (3, 4))
    truth = Dense(case)
    for tau, found in cox_subsets.CoxSubsets(fits, terms).solve(range(1, 4)).by_size.items():
        sets = all_supports(3, tau, tau)
        values = {S: truth.fit(tuple(j for t in S for j in terms[t]), ridge)[0] for S in sets}
        best = min(values.values())
        assert found.lower <= best * (1 + 1e-12) and best <= found.upper * (1 + 1e-12) and found.complete


@pytest.mark.parametrize("seed", [200, 203])
def test_nested_errors_are_those_of_the_definition(seed: int) -> None:
    data = dataset_of(drawn_case(seed, n=40, p=3, spread=0.5))
    folds = make_folds("3", data)
    record = nested_cross_validate(data, folds, 2, [0.5], [1, 2], SearchOptions(loss=Loss.COX), Hooks())
    assert record.nested is not None and len(record.nested.folds) == 2
    outer, total = outer_folds(2, folds, data), 0.0
    for model in record.nested.folds:
        train, test = outer.train_rows(model.fold), outer.scored_rows(model.fold)
        path = best_subsets(data.take(train), gammas=[0.5], taus=[model.tau], loss="cox").path
        eta = data.X @ [path[0].coefficients.get(name, 0.0) for name in data.names]
        loss = Terms(data, np.sort(np.concatenate([train, test]))).loss(eta)[0] - Terms(data, train).loss(eta)[0]
        assert model.error * data.weight_of(test) == pytest.approx(loss, rel=1e-9)
        total += loss
    assert record.nested.error * data.weight_of(slice(0, data.n)) == pytest.approx(total, rel=1e-9)
    assert verify(record, data, folds).ok


def _solved(frame: pd.DataFrame, **how: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sc.solve(frame, "t", loss="cox", event="e", threads=1, **how)


HARD = {  # training losses of 0, and numbers that cancel
    "no comparison in a fold": (
        {"a": [0.3, -1, 2, 0.5, 1, -2], "b": [1, 0, 2, 1, 0.4, 3], "s": [0, 0, 1, 2, 3, 4]},
        {},
    ),
    "separated": ({"a": [6.0, 5, 4, 3, 2, 1], "b": [0.1, 0.4, -0.3, 0.2, 0.8, -1]}, {}),
    "weights": ({"a": [1.0, 5, 4, 3, 2, 6], "b": [1, 0, 1, 0, 1, 1], "w": [1e6, 1e-6, 3, 1e5, 1e-3, 20]}, {}),
    "copies": ({"a": [6.0, 5, 4, 3, 2, 1], "b": [12.0, 10, 8, 6, 4, 2], "s": [0, 1, 2, 3, 3, 4]}, {}),
    "constant in strata": (
        {"a": [1, 1, 1, 0, 0, 0], "b": [1, 0, 2, 1, 0.4, 3], "s": [0, 0, 0, 1, 1, 1]},
        {"taus": [2]},
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_losses_near_zero_end_proved_and_verify(name: str) -> None:
    columns, how = HARD[name]
    frame = pd.DataFrame(columns | {"t": np.arange(1.0, 7.0), "e": 1})
    how = {"taus": [1, 2]} | how | ({"weights": "w"} if "w" in columns else {})
    how |= {"strata": "s"} if "s" in columns else {}
    record = _solved(frame, gammas=[1e-8, 1e-2], gap=0.0, folds="3", **how)
    assert record.status == "proved" and sc.verify(record, frame).ok
    for change in ({"cv_error": record.cv_error * (1.0 + 1e-5) + 1e-7}, {"lower": record.upper * 1.001 + 1e-6}):
        altered = {**json.loads(record.to_json()), **change}
        assert not sc.verify(type(record).from_json(json.dumps(altered)), frame).ok


def test_column_that_varies_only_in_rows_that_are_never_at_risk_is_a_feature() -> None:
    columns = {"a": [1.0, 0, 0, 0, 0, 0], "t": [1.0, 2, 2, 5, 0, 0], "e": [0, 0, 0, 0, 1, 1], "s": [1, 3, 5, 4, 3, 4]}
    frame = pd.DataFrame(columns)
    record = _solved(frame, gammas=[1.0], taus=[1], strata="s", folds="3")
    assert record.support == ("a",) and record.coefficients["a"] == 0.0
    report = sc.verify(record, frame)
    assert report.ok, report.failures


def test_outlier_beyond_long_precision_keeps_its_loss() -> None:
    """Exponents of a stratum differ by more than those of long precision: a refit without bounds changes no loss."""
    columns = {"a": [1.1, 2, 3.3, 4, 5.7, 2e4], "t": [6.0, 4, 5, 3, 1, 2], "e": 1, "h": [0, 1, 0, 1, 0, 2]}
    frame = pd.DataFrame(columns)
    record = _solved(frame, gammas=[1e-6], taus=[1], scale="none", folds="column:h")
    row = record.table[0]
    width = row.upper - row.lower
    assert width <= 1e-6 * row.upper
    assert abs(row.cv_error - 0.5 * (row.lower + row.upper)) <= 0.1 * width
    assert sc.verify(record, frame).ok
