"""Baselines on the folds of a record: the fits of other solvers, the paired error, true statements."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.certificate.inference_parts import Baseline
from sparsecv_mio.certificate.read_back import read_record, rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import outer_folds
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.inference import baselines, penalised_paths
from sparsecv_mio.inference.baselines import compare_baselines, parse_baselines
from sparsecv_mio.inference.penalised_paths import L1_RATIOS, FitRows, fit_path, make_penalties
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, RowLoss
from sparsecv_mio.report.optional_parts import (
    baseline_table,
    certified_lines,
    nested_lines,
    plot_baselines,
    round_percentage,
)
from sparsecv_mio.report.publication import publication_text
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.search.answer.fold_models import held_out_predictions

N, P = 60, 5
SMALL: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": [1, 2, 3], "threads": 1}


@pytest.fixture(autouse=True)
def short_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penalised_paths, "N_SMOOTH_ALPHAS", 12)


@cache
def rows(loss: str) -> Dataset:
    """Data whose columns have different scales, with weights, exposures and groups."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, P)) * np.geomspace(0.2, 20.0, P) + 5.0
    signal = (X[:, 0] - 5.0) / 0.2 - (X[:, 2] - 5.0) / 4.0
    exposure = rng.uniform(0.5, 3.0, N)
    y = {
        "squared": signal + rng.normal(size=N),
        "logistic": (signal + 2.0 * rng.normal(size=N) > 0.0).astype(float),
        "poisson": rng.poisson(exposure * np.exp(0.4 * signal)).astype(float),
    }[loss]
    aux = {"w": rng.choice([0.5, 1.0, 3.0], N), "e": exposure, "g": np.arange(N) % 7, "o": rng.normal(size=N)}
    return Dataset.from_arrays(X, y, aux=aux)


@cache
def answered(loss: str = "squared", names: str = "lasso,ridge,elasticnet", **how: Any) -> Record:
    record = sc.solve(rows(loss), loss=loss, **{"folds": "5", **SMALL, **how})
    return compare_baselines(record, rows(loss), baselines=names)


def standardised(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    mean = np.average(X, axis=0, weights=w)
    return np.asarray((X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w)))


def fit_smooth(
    loss: str, X: np.ndarray, y: np.ndarray, v: np.ndarray, alpha: float, ratio: float, offset: Any = 0.0
) -> np.ndarray:
    """Intercept and coefficients for classes or rates, by L-BFGS-B in the positive and negative parts."""
    p = X.shape[1]

    def objective(parts: np.ndarray) -> tuple[float, np.ndarray]:
        b = parts[1 : p + 1] - parts[p + 1 :]
        t = parts[0] + X @ b + offset
        if loss == "logistic":
            signs = 2.0 * y - 1.0
            value, slopes = np.logaddexp(0.0, -signs * t), -signs / (1.0 + np.exp(signs * t))
        else:
            value, slopes = np.exp(t) - y * t, np.exp(t) - y
        slopes = v * slopes / v.sum()
        smooth = X.T @ slopes + alpha * (1.0 - ratio) * b
        penalty = alpha * (ratio * parts[1:].sum() + (1.0 - ratio) / 2.0 * (b @ b))
        return v @ value / v.sum() + penalty, np.concatenate(
            [[slopes.sum()], smooth + alpha * ratio, -smooth + alpha * ratio]
        )

    bounds = [(None, None)] + [(0.0, None)] * (2 * p)
    found = minimize(objective, np.zeros(1 + 2 * p), jac=True, method="L-BFGS-B", bounds=bounds,
                     options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10**5, "maxfun": 10**6})  # fmt: skip
    return np.append(found.x[0], found.x[1 : p + 1] - found.x[p + 1 :])


def fit_again(loss: str, one: Baseline, X: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Intercept and coefficients of a baseline by other solvers: those of scikit-learn where it has the penalty."""
    alpha, ratio = one.alpha, one.l1_ratio
    assert alpha is not None and ratio is not None
    if loss == "squared":
        net = ElasticNet(alpha, l1_ratio=ratio, tol=1e-12, max_iter=10**6)
        model = Ridge(alpha * v.sum()) if ratio == 0.0 else net
    elif ratio != 0.0:
        return fit_smooth(loss, X, y, v, alpha, ratio)
    elif loss == "logistic":
        model = LogisticRegression(C=1.0 / (alpha * v.sum()), tol=1e-9, max_iter=10**5)
    else:
        model = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=10**5)
    model.fit(X, y, sample_weight=v)
    return np.append(model.intercept_, model.coef_)


def losses_at(loss: str, t: np.ndarray, y: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    if loss == "squared":
        return np.asarray((y - t) ** 2)
    if loss == "logistic":
        return np.logaddexp(0.0, (1.0 - 2.0 * y) * t)
    mean = exposure * np.exp(t)
    return np.asarray(np.where(y > 0.0, y * np.log(np.where(y > 0.0, y, 1.0) / mean), 0.0) - y + mean)


@pytest.mark.parametrize(
    ("loss", "how"),
    [
        ("squared", {"folds": "2x3"}), ("squared", {"weights": "w", "folds": "groups:g", "scale_within": "folds"}),
        ("logistic", {"weights": "w"}), ("poisson", {"weights": "w", "exposure": "e"}),
    ],
)  # fmt: skip
def test_held_out_errors_equal_those_of_scikit_learn(loss: str, how: dict[str, Any]) -> None:
    names = "lasso,ridge" if loss == "poisson" else "lasso,ridge,elasticnet"
    record = answered(loss, names, **how)
    data, plan = rows_and_folds_of_record(record, rows(loss))
    w = np.ones(N) if data.row_weights is None else data.row_weights
    exposure = np.ones(N) if data.row_exposure is None else data.row_exposure
    assert record.baselines is not None and [one.method for one in record.baselines.methods] == names.split(",")
    for one in record.baselines.methods:
        errors, total = [], 0.0
        for fold in range(plan.k):
            train, test = plan.train_rows(fold), plan.scored_rows(fold)
            X = standardised(data.X, w)
            if "scale_within" in how:
                mean = np.average(data.X[train], axis=0, weights=w[train])
                spread = np.sqrt(np.average((data.X[train] - mean) ** 2, axis=0, weights=w[train]))
                X = (data.X - mean) / spread
            v = w[train] * exposure[train]
            assert one.alpha is not None
            own = replace(one, alpha=one.alpha * w[train].sum() / v.sum())  # the helpers divide losses by the sum of v
            model = fit_again(loss, own, X[train], data.y[train] / exposure[train], v)
            predictors = model[0] + X[test] @ model[1:]
            errors.append(w[test] @ losses_at(loss, predictors, data.y[test], exposure[test]))
            total += w[test].sum()
        assert one.fold_errors == pytest.approx(errors, rel=1e-5)
        assert one.cv_error == pytest.approx(sum(errors) / total, rel=1e-6)
    assert verify(record, rows(loss)).ok


def test_offsets_of_classes_are_added_to_the_predictors(monkeypatch: pytest.MonkeyPatch) -> None:
    record, data = answered("logistic", "lasso,ridge", offset="o"), rows("logistic")
    plan, X, offset, v = (
        sc.make_folds("stratified:5", data),
        standardised(data.X, np.ones(N)),
        data.aux["o"],
        np.ones(N),
    )
    assert record.baselines is not None and plan.digest == record.folds.digest and verify(record, data).ok
    for one in record.baselines.methods:
        assert one.alpha is not None and one.l1_ratio is not None
        for fold in range(2):
            train, test = plan.train_rows(fold), plan.scored_rows(fold)
            model = fit_smooth("logistic", X[train], data.y[train], v[train], one.alpha, one.l1_ratio, offset[train])
            predictors = model[0] + X[test] @ model[1:] + offset[test]
            error = losses_at("logistic", predictors, data.y[test], v[test]).sum()
            assert one.fold_errors[fold] == pytest.approx(error, rel=1e-4)
    monkeypatch.setattr(penalised_paths, "import_abess", lambda: None)
    with pytest.raises(BadInput, match="baselines: abess does not support offset with two classes"):
        compare_baselines(record, data, baselines="abess")


@pytest.mark.parametrize("unit", [1e6, 1e-3])
def test_comparisons_do_not_depend_on_the_unit_of_the_target(unit: float) -> None:
    data = rows("squared")
    record = answered()
    other = compare_baselines(
        sc.solve(replace(data, y=unit * data.y), folds="5", **SMALL), replace(data, y=unit * data.y)
    )
    assert record.baselines is not None and other.baselines is not None
    for one, same in zip(record.baselines.methods, other.baselines.methods, strict=True):
        assert same.cv_error == pytest.approx(unit**2 * one.cv_error, rel=1e-8)
        assert one.alpha is not None and same.alpha is not None
        assert one.l1_ratio is not None and same.l1_ratio is not None
        assert same.alpha * same.l1_ratio == pytest.approx(unit * one.alpha * one.l1_ratio)
        assert same.alpha * (1.0 - same.l1_ratio) == pytest.approx(one.alpha * (1.0 - one.l1_ratio), rel=1e-6)
    assert certified_lines(other) == certified_lines(record)


def test_the_unit_of_exposures_does_not_change_the_penalty() -> None:
    data, made = rows("poisson"), list[Baseline]()
    for unit in (1.0, 1000.0):
        own = replace(data, aux={**data.aux, "e": unit * data.aux["e"]})
        record = compare_baselines(
            sc.solve(own, loss="poisson", folds="5", exposure="e", **SMALL), own, baselines="lasso"
        )
        assert record.baselines is not None
        made += record.baselines.methods
    assert made[1].alpha == pytest.approx(made[0].alpha) and made[1].cv_error == pytest.approx(made[0].cv_error)


def test_the_penalty_has_the_smallest_cv_error_of_the_path() -> None:
    record = answered()
    assert record.baselines is not None
    one, plan, X = record.baselines.methods[0], sc.make_folds("5", rows("squared")), standardised(
        rows("squared").X, np.ones(N)
    )  # fmt: skip
    y = rows("squared").y
    largest = np.abs(X.T @ (y - y.mean())).max() / N
    alphas = np.geomspace(1.0, 1e-4, 100) * largest
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]  # of equal size, as LassoCV averages
    found = LassoCV(cv=splits, alphas=alphas, tol=1e-9, max_iter=10**6).fit(X, y)
    assert one.alpha == pytest.approx(found.alpha_, rel=1e-8)
    assert one.cv_error == pytest.approx(found.mse_path_.mean(axis=1).min(), rel=1e-6)
    own = Lasso(one.alpha, tol=1e-12, max_iter=10**6).fit(X, y)
    assert {*one.support} == {f"x{j}" for j in np.flatnonzero(own.coef_)}
    fitted = np.array([one.coefficients.get(f"x{j}", 0.0) for j in range(P)]) * rows("squared").X.std(axis=0)
    assert fitted == pytest.approx(own.coef_, rel=1e-4, abs=1e-6)
    predicted = one.intercept + rows("squared").X @ (fitted / rows("squared").X.std(axis=0))
    assert predicted == pytest.approx(own.predict(X), rel=1e-3, abs=1e-4)


def test_the_standard_error_is_that_of_paired_differences() -> None:
    record = answered(folds="loo")
    data = rows("squared")
    own = (data.y - held_out_predictions(record, data, "loo")) ** 2
    assert record.baselines is not None
    for one in record.baselines.methods:
        differences = np.array(one.fold_errors) - own
        assert one.difference == pytest.approx(differences.mean(), rel=1e-6)
        assert one.standard_error == pytest.approx(differences.std(ddof=1) / math.sqrt(N), rel=1e-6)
        assert one.cv_error - record.cv_error == pytest.approx(one.difference, rel=1e-6)


def test_missing_cells_are_imputed_from_the_training_rows() -> None:
    frame = pd.DataFrame(rows("squared").X, columns=list("abcde")).assign(y=rows("squared").y)
    frame.loc[::7, "a"] = np.nan
    record = sc.solve(frame, target="y", na="mean", na_within="folds", folds=5, **SMALL)
    compared = compare_baselines(record, frame, baselines="ridge")
    model = sc.BestSubsetRidgeCV(cv=5, gammas=[0.1, 1.0], taus=[1, 2, 3], na="mean", na_within="folds", n_jobs=1)
    assert compared.baselines is not None and verify(compared, frame).ok
    (one,), plan = compared.baselines.methods, sc.make_folds("5", rows("squared"))
    fitted = model.fit(frame[list("abcde")], frame["y"]).compare_baselines("ridge").baselines
    assert fitted is not None and fitted.methods[0].fold_errors == one.fold_errors
    scales = frame.fillna(frame.mean()).drop(columns="y").std(ddof=0)
    for fold, error in enumerate(one.fold_errors):
        train, test = plan.train_rows(fold), plan.scored_rows(fold)
        X = frame.fillna(frame.iloc[train].mean()).drop(columns="y") / scales
        assert one.alpha is not None
        ridge = Ridge(one.alpha * len(train)).fit(X.iloc[train], frame["y"].iloc[train])
        residuals = frame["y"].iloc[test] - ridge.predict(X.iloc[test])
        assert error == pytest.approx((residuals**2).sum(), rel=1e-8)


def test_a_method_that_is_listed_twice_is_refused() -> None:
    record = answered(names="ridge")
    assert record.baselines is not None
    twice = replace(record.baselines, methods=record.baselines.methods * 2)
    failures = verify(replace(record, baselines=twice), rows("squared")).failures
    assert [failure.field for failure in failures] == ["baselines.methods[1].method"]


@pytest.mark.parametrize("how", [{"intercept": "global"}, {"intercept": "none"}, {"scale": "none"}])
def test_intercept_and_scale_are_those_of_the_record(how: dict[str, Any]) -> None:
    record, data = answered(names="ridge", **how), rows("squared")
    plan = sc.make_folds("5", data)
    assert record.baselines is not None
    (one,) = record.baselines.methods
    centre = 0.0 if how.get("intercept") == "none" else data.X.mean(axis=0)
    X = (data.X - centre) / (1.0 if "scale" in how else data.X.std(axis=0))
    level = data.y.mean() if how.get("intercept") == "global" else 0.0
    for fold, error in enumerate(one.fold_errors):
        train, test = plan.train_rows(fold), plan.scored_rows(fold)
        assert one.alpha is not None
        model = Ridge(one.alpha * len(train), fit_intercept="intercept" not in how).fit(X[train], data.y[train] - level)
        assert error == pytest.approx(((data.y[test] - level - model.predict(X[test])) ** 2).sum(), rel=1e-8)
    assert verify(record, data).ok


def test_adjustment_columns_are_not_penalised_and_forced_out_ones_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    record, data = answered(adjust=("x1",), force_out=("x3",), taus=(1, 2)), rows("squared")
    plan, X = sc.make_folds("5", data), standardised(data.X, np.ones(N))
    assert record.baselines is not None
    one = record.baselines.methods[0]
    train, test = plan.train_rows(0), plan.scored_rows(0)
    used, free = [0, 2, 4], X[:, [1]]
    residuals = [
        values - LinearRegression().fit(free[train], values[train]).predict(free) for values in (X[:, used], data.y)
    ]
    assert one.alpha is not None
    model = Lasso(one.alpha, tol=1e-12, fit_intercept=False).fit(residuals[0][train], residuals[1][train])
    error = ((residuals[1][test] - residuals[0][test] @ model.coef_) ** 2).sum()
    assert one.fold_errors[0] == pytest.approx(error, rel=1e-5)
    assert "x1" in one.coefficients and "x1" not in one.support and "x3" not in one.coefficients
    assert verify(record, data).ok
    assert Record.from_json(record.to_json()) == record
    monkeypatch.setattr(penalised_paths, "import_abess", lambda: None)
    with pytest.raises(BadInput, match="baselines: abess does not support adjust"):
        compare_baselines(record, data, baselines="abess")


def make_fit_rows(X: np.ndarray, y: np.ndarray, v: np.ndarray, loss: RowLoss) -> FitRows:
    n, p = X.shape
    return FitRows(np.column_stack([np.ones(n), X]), np.array([0]), np.arange(1, 1 + p), y, v, v.sum(), loss, False)


def make_rows(loss: str, seed: int = 0) -> FitRows:
    rng = np.random.default_rng(seed)
    X, v = rng.normal(size=(40, 6)), rng.uniform(0.5, 2.0, 40)
    signal = X[:, 0] - X[:, 1]
    if loss == "logistic":
        return make_fit_rows(X, np.where(signal + rng.normal(size=40) > 0, 1.0, -1.0), v, LOG_LOSS)
    return make_fit_rows(X, rng.poisson(np.exp(signal)) * 1e-6, v, PoissonLoss())  # such as counts per hour


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_paths_satisfy_the_optimality_conditions(loss: str, l1_ratio: float) -> None:
    """The gradient of the loss lies in the subgradient of the penalty, and is 0 for the intercept."""
    made = make_rows(loss)
    alphas = make_penalties(made, l1_ratio)[::2]
    models, scale = fit_path(made, l1_ratio, alphas), alphas[0]
    assert not models[0, 1:].any() or l1_ratio == 0.0
    for alpha, theta in zip(alphas, models, strict=True):
        signs = made.loss.signs(made.y)
        slopes = -signs * made.loss.negative_gradient(signs * (made.design @ theta), made.y, made.v) / made.v.sum()
        b, gradient = theta[1:], made.design[:, 1:].T @ slopes
        assert abs(slopes.sum()) < 1e-3 * scale
        expected = -alpha * (l1_ratio * np.sign(b) + (1.0 - l1_ratio) * b)
        assert gradient[b != 0.0] == pytest.approx(expected[b != 0.0], abs=2e-3 * scale)
        assert (np.abs(gradient[b == 0.0]) <= l1_ratio * alpha + 1e-3 * scale).all()


def test_separated_classes_have_a_path() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    made = make_fit_rows(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), np.ones(30), LOG_LOSS)
    models = fit_path(made, 1.0, make_penalties(made, 1.0))
    assert np.isfinite(models).all() and made.objective(models[-1], 0.0, 1.0) < 0.05


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_abess_chooses_its_size_on_the_folds(loss: str) -> None:
    pytest.importorskip("abess")
    record = answered(loss, "abess")
    assert record.baselines is not None
    (one,) = record.baselines.methods
    assert one.alpha is None and len(one.support) in record.request.taus and one.cv_error > 0.0
    assert verify(record, rows(loss)).ok
    if loss == "squared":
        data, plan = rows(loss), sc.make_folds("5", rows(loss))
        best = np.inf
        for size in (1, 2, 3):  # few columns: the best subset of every size by enumeration, as abess finds it
            errors = 0.0
            for fold in range(5):
                train, test = plan.train_rows(fold), plan.scored_rows(fold)
                errors += _best_subset_error(data, size, train, test)
            best = min(best, errors / N)
        assert one.cv_error == pytest.approx(best, rel=1e-6)


def _best_subset_error(data: Dataset, size: int, train: np.ndarray, test: np.ndarray) -> float:
    from itertools import combinations

    def residuals(support: list[int], at: np.ndarray) -> float:
        model = LinearRegression().fit(data.X[np.ix_(train, support)], data.y[train])
        return float(((data.y[at] - model.predict(data.X[np.ix_(at, support)])) ** 2).sum())

    support = min(map(list, combinations(range(P), size)), key=lambda columns: residuals(columns, train))
    return residuals(support, test)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "abess", None)
    with pytest.raises(BackendUnavailable, match=r'run pip install abess, or pip install "\.\[peers\]"'):
        parse_baselines("lasso,abess", rows("squared"), None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("lasso,lso", "baselines: unknown word 'lso'"),
        ("lasso,lasso", "once"),
        (3, "'3'"),
        ([], "the list is empty"),
        ("", "''"),
    ],
)  # fmt: skip
def test_wrong_names_are_refused(given: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_baselines(given, rows("squared"), None)


def test_no_pair_of_the_grid_beats_the_stated_gain() -> None:
    """With every pair solved, the best one attains the bound."""
    record = answered(gap=0.0)
    assert record.baselines is not None
    for one in record.baselines.methods:
        assert one.possible_gain is not None
        gains = [100.0 * (1.0 - row.cv_error / one.cv_error) for row in record.table]
        assert max(gains) <= one.possible_gain + 1e-6 and max(gains) == pytest.approx(one.possible_gain, abs=1e-4)


def with_bound(lower: float, status: str = "proved", error: float = 1.0) -> Record:
    """A record with this lower bound and one baseline of this CV error."""
    record = answered(names="lasso")
    assert record.baselines is not None
    gain = 100.0 * (error - lower) / error if lower > 0.0 and error > 0.0 else None
    one = replace(record.baselines.methods[0], cv_error=error, possible_gain=gain)
    return replace(record, lower=lower, status=status, baselines=replace(record.baselines, methods=(one,)))


@pytest.mark.parametrize(
    ("lower", "error", "status", "words"),
    [
        (0.98765, 1.0, "proved", "no CV error of best-subset selection is more than 1.3% below that of the lasso"),
        (0.505, 1.0, "limit", "more than 50% below that of the lasso; a longer search may lower these percentages"),
        (1.03456, 1.0, "proved", "every CV error of best-subset selection is at least 3.4% above that of the lasso"),
        (1.0, 1.0, "proved", "no CV error of best-subset selection is below that of the lasso"),
        (0.1, 0.0, "proved", "no CV error of best-subset selection is below that of the lasso"),
        (0.0, 1.0, "limit", "no certified lower bound on the CV error is known"),
    ],
)
def test_the_statement_follows_from_the_bound(lower: float, error: float, status: str, words: str) -> None:
    record = with_bound(lower, status, error)
    (line,) = certified_lines(record)
    assert words in line and (line.startswith("certified over the grid: ") or lower == 0.0)
    limits = Restrictions(count=(record.data.names[:2],))  # a counted factor forbids no model
    assert certified_lines(replace(record, request=replace(record.request, restrictions=limits))) == [line]
    limits = replace(limits, force_in=record.data.names[:1])
    (line,) = certified_lines(replace(record, request=replace(record.request, restrictions=limits)))
    assert line.startswith("certified over the grid within the restrictions: ") or lower == 0.0


@pytest.mark.parametrize("lower", [1.0, 1.03456])
def test_penalties_explain_why_ridge_regression_is_better_than_a_grid_that_has_it(lower: float) -> None:
    record = with_bound(lower)
    assert record.baselines is not None
    ridge = replace(record.baselines.methods[0], method="ridge")
    record = replace(record, baselines=replace(record.baselines, methods=(ridge,)))
    for taus, has_ridge in (((1, record.data.p), True), ((1, 2), False)):
        (line,) = certified_lines(replace(record, request=replace(record.request, taus=taus)))
        words = f"ridge regression is best-subset selection with all {record.data.p} features, at other penalties"
        assert line.startswith(words) == has_ridge and ("CV error of best-subset selection" in line) != has_ridge


def test_percentages_are_rounded_to_the_safe_side() -> None:
    for value in np.random.default_rng(0).uniform(1e-4, 300.0, 200).tolist():
        assert round_percentage(value, False) <= value <= round_percentage(value, True)
    assert round_percentage(0.0, False) == 0.0


def test_the_seconds_of_the_search_do_not_include_the_start_of_the_process() -> None:
    record = answered(names="lasso")
    late = replace(record, work=replace(record.work, seconds=record.work.seconds + 100.0))
    expected = f"{sum(work.seconds for work in record.work.sources):.2f}"
    assert baseline_table(late).rows[0][-1] == expected
    before = replace(record, work=replace(record.work, sources=()))
    assert baseline_table(before).rows[0][-1] == "?"


def test_a_single_fold_has_no_standard_error() -> None:
    record = answered(names="lasso", folds="holdout:0.3")
    assert record.baselines is not None and record.baselines.methods[0].standard_error is None
    assert baseline_table(record).rows[1][3] == "?" and verify(record, rows("squared")).ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cv_error", 0.5), ("difference", -0.5), ("difference", None), ("standard_error", 0.1), ("possible_gain", 90.0),
        ("possible_gain", None), ("fold_errors", (1.0,) * 5), ("fold_errors", (1.0,)), ("fold_models", ((0.0,),) * 5),
        ("support", ()),
    ],
)  # fmt: skip
def test_verify_names_an_altered_field(field: str, value: Any) -> None:
    record = answered()
    assert record.baselines is not None
    first, *others = record.baselines.methods
    altered = replace(first, **{field: value}, **({"coefficients": {}} if field == "support" else {}))
    report = verify(replace(record, baselines=replace(record.baselines, methods=(altered, *others))), rows("squared"))
    if field == "support":
        assert report.ok  # the full-data fit is only read
        return
    assert not report.ok and report.failures[0].field.startswith(f"baselines.methods[0].{field}")


def test_fold_models_that_are_not_stored_are_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "MAX_STORED_COEFFICIENTS", 10)
    record = compare_baselines(answered(), rows("squared"), baselines="lasso")
    assert record.baselines is not None and record.baselines.methods[0].fold_models == ()
    report = verify(record, rows("squared"))
    assert report.ok and "baselines.methods[].fold_errors" in report.caveat


def test_a_stop_keeps_the_baselines_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, plain = threading.Event(), replace(answered(), baselines=None)
    fit_one = baselines.fit_baseline

    def fit_and_stop(method: str, *rest: Any) -> list[Baseline]:
        made = fit_one(method, *rest)
        stop.set()
        return made

    monkeypatch.setattr(baselines, "fit_baseline", fit_and_stop)
    record = compare_baselines(plain, rows("squared"), stop=stop)
    assert record.baselines is not None and [one.method for one in record.baselines.methods] == ["lasso"]
    assert record.warnings[-1] == "baselines: the run was interrupted before these were fitted: ridge, elasticnet"
    assert verify(record, rows("squared")).ok
    record = compare_baselines(plain, rows("squared"), time_limit=1e-9)
    assert (
        record.baselines is None
        and "the time limit ended before these were fitted: lasso, ridge" in record.warnings[-1]
    )
    assert replace(record, warnings=plain.warnings) == plain


def test_data_and_records_of_other_kinds_are_refused() -> None:
    with pytest.raises(BadInput, match="time_limit: 'x' is not a number"):
        compare_baselines(answered(), rows("squared"), time_limit="x")  # type: ignore[arg-type]
    path = sc.best_subsets(rows("squared"), gammas=[0.1], taus=[1], threads=1)
    with pytest.raises(BadInput, match="requires a record of `solve`"):
        compare_baselines(path, rows("squared"))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="not the data of the record"):
        compare_baselines(answered(), Dataset.from_arrays(rows("squared").X, rows("squared").y + 1.0))


def test_estimators_compare_with_weights_and_classes() -> None:
    data, w = rows("logistic"), rows("logistic").aux["w"]
    model = sc.BestSubsetLogisticCV(cv=5, gammas=[0.1, 1.0], taus=[1, 2, 3], n_jobs=1)
    y = np.where(data.y > 0.0, "yes", "no")
    found = model.fit(data.X, y, sample_weight=w).compare_baselines("ridge").baselines
    expected = answered("logistic", "ridge", weights="w").baselines
    assert found is not None and expected is not None
    assert found.methods[0].fold_errors == pytest.approx(expected.methods[0].fold_errors, rel=1e-9)


def test_baselines_in_table_report_and_figure() -> None:
    record = answered()
    assert record.baselines is not None
    frame = record.baselines.to_frame()
    assert frame["method"].tolist() == list(L1_RATIOS) and frame["features"].max() <= P
    text = report_text(record, "md", "RECORD", None, "DATA")
    assert "## Baselines" in text and "Certified over the grid: " in text and "| elasticnet |" in text
    ax = plot_baselines(record)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["best subset", *L1_RATIOS]
    assert "<svg" in report_text(record, "html", "RECORD", None, "DATA")


def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, data = tmp_path / "record.json", str(INSTANCES / "prostate.csv")
    small = ["solve", data, "-t", "lpsa", "--gamma", "0.1,1", "--tau", "1:3", "--threads", "1"]
    assert run([*small, "--baselines", "lasso,ridge", "--time-limit", "50", "--json", str(place)]) == 0
    screen = capsys.readouterr().out
    assert "baselines on the same folds" in screen and "certified over the grid: " in screen
    record = read_record(place)
    assert isinstance(record, Record) and record.baselines is not None and record.request.time_limit == 50.0
    assert json.loads(place.read_text())["baselines"]["versions"]["scikit-learn"]
    assert run(["verify", str(place), data]) == 0
    assert "held-out errors of baselines by their stored fold models" in capsys.readouterr().out
    assert run(["plot", str(place), "--panel", "baselines", "-o", str(tmp_path / "b.png")]) == 0
    with pytest.raises(BadInput, match="panel baselines: requires a record of `solve --baselines`"):
        plot_baselines(replace(record, baselines=None))
    assert run([*small, "--criterion", "common", "--baselines", "lasso"]) == 2
    assert run([*small, "--baselines", "lasso,net"]) == 2
    said = capsys.readouterr().err
    assert "--baselines: not supported with --criterion common" in said and "--baselines: unknown word 'net'" in said


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_one_standard_error_rule_chooses_a_second_penalty(loss: str) -> None:
    """The reported pair of this rule is next to baselines of the same rule, and next to its own minimum."""
    data = rows(loss)
    record = sc.solve(data, folds="5", loss=loss, one_se=True, **SMALL)
    compared = compare_baselines(record, data, baselines="lasso,elasticnet,ridge", folds="5")
    assert compared.baselines is not None and verify(compared, data, "5").ok
    methods = compared.baselines.methods
    assert [one.label for one in methods[:3]] == ["lasso", "lasso (one SE)", "elasticnet"] and len(methods) == 6
    seen = baselines.ComparedRows.from_record(record, data, sc.make_folds(record.folds.spec, data))
    sizes = np.array([data.weight_of(seen.plan.scored_rows(fold)) for fold in range(5)])
    for least, simple in zip(methods[::2], methods[1::2], strict=True):
        candidates, fit = baselines.make_candidates(least.method, seen, lambda: None)
        sums = np.array([seen.held_out_errors(seen.fit_models(fit, fold), fold) for fold in range(5)])
        means, total = sums.sum(axis=0) / sizes.sum(), sizes.sum()
        best = int(np.argmin(means))
        apart = (sums[:, best] / sizes - means[best]) ** 2
        spread = math.sqrt(float(sizes @ apart) / total / 4)
        allowed = [k for k in range(len(means)) if candidates[k][1] == candidates[best][1]]
        chosen = max((k for k in allowed if means[k] <= means[best] + spread), key=lambda k: candidates[k][0] or 0.0)
        assert least.alpha == candidates[best][0] and simple.alpha == candidates[chosen][0]
        assert simple.cv_error == pytest.approx(means[chosen], rel=1e-9) and simple.cv_error >= least.cv_error
        assert len(simple.support) <= len(least.support)
    assert methods[1].cv_error > methods[0].cv_error
    alone = replace(compared, baselines=replace(compared.baselines, methods=methods[::2]))
    assert certified_lines(compared) == certified_lines(alone)
    table = baseline_table(compared)
    assert table is not None and "(one SE: the simplest model within one standard error" in table.caption
    labels, least_pair = [row[0] for row in table.rows], (record.certificate.gamma, record.certificate.tau)
    assert labels[0] == "best subset (one SE)" and labels[-6:] == [one.label for one in methods]
    assert ("best subset (minimum)" in labels) == (least_pair != (record.gamma, record.tau))
    assert ("best subset (minimum)" in labels) == (loss == "squared")
    assert "CV error of lasso (one SE) is" in publication_text(compared, "md")
    far = replace(methods[1], one_se=False), replace(methods[0], one_se=True)
    for wrong in (far, (methods[1], methods[1])):
        swapped = replace(compared, baselines=replace(compared.baselines, methods=(*wrong, *methods[2:])))
        assert not verify(swapped, data, "5").ok
    assert not verify(replace(compared, one_se=None), data, "5").ok


def test_the_table_does_not_count_the_terms_of_the_best_pair_as_columns() -> None:
    """The record has no model of the pair with the smallest CV error, whose tau counts a factor as one term."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a", "b", "c", "d"])
    frame["site"] = rng.choice(list("ABCD"), 60)
    effects = frame["site"].map({"A": 0, "B": 2, "C": -2, "D": 1})
    frame["y"] = frame["a"] + 0.2 * frame["b"] + effects + rng.normal(size=60)
    data = sc.read_dataset(frame, "y", encode="onehot")
    record = sc.solve(data, folds="5", gammas=[0.1], taus="1:5", one_se=True, count="factors", threads=1)
    assert record.certificate.tau != record.tau
    table = baseline_table(compare_baselines(record, data, baselines="lasso", folds="5"))
    assert table is not None and table.head[4] == "columns" and table.rows[0][4] == str(len(record.support))
    assert table.rows[1][4:6] == ("?", f"tau = {record.certificate.tau}, gamma = 0.1")


@pytest.mark.parametrize("loss", ["squared", "logistic", *slow(["poisson"])])
def test_nested_errors_are_those_of_baselines_chosen_on_the_rows_outside_each_outer_fold(loss: str) -> None:
    """In every outer fold the public functions make the same models from a frame of the other rows, imputed alone."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    signal = frame["a"] - frame["b"]
    frame = frame.mask(rng.random(frame.shape) < 0.1).assign(y={
        "squared": signal + rng.normal(size=40), "logistic": (signal + rng.normal(size=40) > 0.0).astype(int),
        "poisson": rng.poisson(np.exp(0.5 * signal)),
    }[loss])  # fmt: skip
    how: dict[str, Any] = {"na_within": "folds", "scale_within": "folds", "loss": loss, "one_se": True, **SMALL}
    data = sc.read_dataset(frame, "y", na="mean")
    record = compare_baselines(sc.solve(data, folds="3", nested=3, **how), data, baselines="lasso,ridge")
    assert record.nested is not None and record.baselines is not None and verify(record, data).ok
    outer = outer_folds(3, sc.make_folds(record.folds.spec, data), data)
    weights = np.array([len(outer.scored_rows(fold)) for fold in range(3)])
    for entry in record.baselines.methods:
        nested, errors = entry.nested, list[float]()
        assert nested is not None
        for fold, stated in enumerate(nested.fold_errors):
            train, test = outer.train_rows(fold), outer.scored_rows(fold)
            own = sc.read_dataset(frame.iloc[train].reset_index(drop=True), "y", na="mean")
            chosen = compare_baselines(sc.solve(own, folds="3", **how), own, baselines=entry.method).baselines
            assert chosen is not None
            model = next(one for one in chosen.methods if one.one_se == entry.one_se)
            held_out = frame.iloc[test].fillna(frame.iloc[train].mean())
            predictor = model.intercept + sum(value * held_out[name] for name, value in model.coefficients.items())
            y, m = held_out["y"].to_numpy(float), np.asarray(predictor)
            losses = {
                "squared": (y - m) ** 2, "logistic": np.logaddexp(0.0, np.where(y > 0.0, -m, m)),
                "poisson": np.exp(m) - y * m - (y - xlogy(y, y)),
            }[loss]  # fmt: skip
            errors.append(float(losses.mean()))
            assert stated == pytest.approx(errors[-1], rel=1e-6)
        differences = np.array(errors) - [one.error for one in record.nested.folds]
        spread = math.sqrt(weights @ (differences - np.average(differences, weights=weights)) ** 2 / weights.sum() / 2)
        assert nested.error == pytest.approx(np.average(errors, weights=weights), rel=1e-6)
        assert nested.difference == pytest.approx(nested.error - record.nested.error, abs=1e-6)
        assert nested.standard_error == pytest.approx(spread, rel=1e-4)
    assert "nested CV errors of the baselines, with their differences" in nested_lines(record)[0]
    entry = record.baselines.methods[0]
    assert entry.nested is not None
    false = replace(entry, nested=replace(entry.nested, fold_errors=(0.1, *entry.nested.fold_errors[1:])))
    altered = replace(record, baselines=replace(record.baselines, methods=(false, *record.baselines.methods[1:])))
    assert verify(altered, data).failures[0].field == "baselines.methods[0].nested.fold_errors[0]"
    wrong = replace(record.nested, folds=(replace(record.nested.folds[0], fold=7), *record.nested.folds[1:]))
    assert verify(replace(record, nested=wrong), data).failures[0].field == "nested.folds"


def test_a_limit_within_the_outer_folds_keeps_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows("squared")
    record, stop = sc.solve(data, folds="3", nested=3, **SMALL), threading.Event()

    def add_none(*given: Any) -> None:
        stop.set()
        given[-1]()

    monkeypatch.setattr(baselines, "add_nested_errors", add_none)
    found = compare_baselines(record, data, baselines="lasso", stop=stop)
    assert found.baselines is not None and [one.nested for one in found.baselines.methods] == [None]
    assert found.warnings[-1] == "baselines: the run was interrupted before their nested CV errors were computed"
