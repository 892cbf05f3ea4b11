"""Bounds on coefficients: each CV error is that of an enumeration of supports and faces, and `verify` agrees."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.problem import capped_penalty, gamma_to_lam
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments

GAMMAS, K = [0.01, 0.5], 4
SCALES = ("length", "variance", "none")


class Case(NamedTuple):
    """Data with bounds (q,) on coefficients, as numbers and as an option; a model has at most one of `rivals`."""

    data: sc.Dataset
    low: np.ndarray
    high: np.ndarray
    asked: dict[str, tuple[float | None, float | None]]
    rivals: frozenset[int] = frozenset()


def drawn(seed: int) -> Case:
    """Return data with columns of different units, some of them bounded in one of six ways."""
    rng = np.random.default_rng([65, seed])
    n, q = int(rng.integers(15, 32)), int(rng.integers(3, 6))
    X = rng.normal(size=(n, q)) @ (np.eye(q) + 0.5 * rng.normal(size=(q, q))) * 10.0 ** rng.integers(-2, 3, q)
    y = X @ (rng.normal(size=q) / X.std(axis=0)) + rng.normal(size=n) * rng.choice([0.1, 1.0, 3.0])
    weights = rng.integers(1, 3, n).astype(float)
    data = sc.Dataset.from_arrays(X + rng.normal(size=q), y + 1.0, [f"x{j}" for j in range(q)])
    low, high, asked = np.full(q, -np.inf), np.full(q, np.inf), {}
    for j in range(q):
        a, b = (np.sort(rng.normal(size=2)) / X[:, j].std()).tolist()
        ends = [(a, b), (0.0, abs(b)), (None, b), (a, None), (0.0, None), (b, b)][int(rng.integers(6))]
        if rng.random() < 0.7 or (j == q - 1 and not asked):
            asked[f"x{j}"] = ends
            low[j], high[j] = (-np.inf if ends[0] is None else ends[0]), (np.inf if ends[1] is None else ends[1])
    data = weighted_rows(data, weights, "w") if seed % 4 == 0 else data
    return Case(data, low, high, asked)


def minimise(M: np.ndarray, c: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the minimiser of `b'Mb - 2c'b` within bounds, by trying every face of the box."""
    best, least = np.clip(np.zeros(len(c)), low, high), np.inf
    for face in product((-1, 0, 1), repeat=len(c)):
        at = np.array(face)
        b = np.where(at < 0, low, np.where(at > 0, high, 0.0))
        if not np.isfinite(b).all():
            continue
        off = at == 0
        b[off] = np.linalg.solve(M[np.ix_(off, off)], c[off] - M[np.ix_(off, ~off)] @ b[~off])
        if np.all((low <= b) & (b <= high)) and (value := b @ M @ b - 2.0 * c @ b) < least:
            best, least = b, value
    return best


def fit_subset(case: Case, rows: np.ndarray, S: list[int], gamma: float, how: dict[str, str]) -> tuple[float, Any, Any]:
    """Return the objective, the coefficients and the intercept of the fit of some columns within their bounds."""
    X, y, whole = case.data.X[:, S], case.data.y, case.data.X[:, S]
    heft = np.ones(len(y)) if case.data.row_weights is None else case.data.row_weights
    w = heft[rows] / heft[rows].sum()
    x_mean, y_mean = (w @ X[rows], w @ y[rows]) if how["intercept"] == "fold" else (np.zeros(len(S)), 0.0)
    spread = heft @ (whole - heft @ whole / heft.sum()) ** 2
    square = {"length": spread, "variance": spread / heft.sum(), "none": np.ones(len(S))}[how["scale"]]
    A, t = X[rows] - x_mean, y[rows] - y_mean
    M, c = A.T @ (heft[rows, None] * A) + np.diag(gamma / 2.0 * square), A.T @ (heft[rows] * t)
    unit = 1.0 / np.sqrt(np.diag(M))
    b = minimise(M * np.outer(unit, unit), c * unit, case.low[S] / unit, case.high[S] / unit) * unit
    return float(heft[rows] @ t**2 + b @ M @ b - 2.0 * c @ b), b, y_mean - x_mean @ b


def best_models(case: Case, rows: np.ndarray, tau: int, gamma: float, how: dict[str, str]) -> tuple[float, list[Any]]:
    """Return the minimum objective, and the supports, coefficients and intercepts that attain it up to rounding."""
    q = case.data.X.shape[1]
    fits = [(fit_subset(case, rows, list(S), gamma, how), list(S)) for size in range(min(tau, q) + 1)
            for S in combinations(range(q), size) if len(case.rivals.intersection(S)) <= 1]  # fmt: skip
    least = min(fit[0] for fit, _ in fits)
    return least, [(S, fit[1], fit[2]) for fit, S in fits if fit[0] <= least * (1.0 + 1e-10)]


def cv_error(case: Case, tau: int, gamma: float, how: dict[str, str]) -> float:
    """Return the CV error of a pair; ties have equal coefficients, because they differ by columns at zero."""
    plan, total = make_folds(K, case.data), 0.0
    heft = np.ones(case.data.n) if case.data.row_weights is None else case.data.row_weights
    for fold in range(K):
        test = plan.scored_rows(fold)
        _, ((S, b, b0), *_) = best_models(case, plan.train_rows(fold), tau, gamma, how)
        total += float(heft[test] @ (case.data.y[test] - b0 - case.data.X[np.ix_(test, S)] @ b) ** 2)
    return total / float(heft.sum())


def check(seed: int, method: str = "auto") -> None:
    """The choice under drawn bounds is that of brute force, its record verifies, and no coefficient crosses a bound."""
    case = drawn(seed)
    how = {"scale": SCALES[seed % 3], "intercept": ("fold", "none")[seed % 5 == 4]}
    taus = [1, 2, 3]
    record = sc.solve(
        case.data, gammas=GAMMAS, taus=taus, folds=K, gap=0.0, coef_bounds=case.asked, method=method, **how
    )
    errors = {(tau, gamma): cv_error(case, tau, gamma, how) for tau in taus for gamma in GAMMAS}
    assert record.status == "proved" and record.cv_error == pytest.approx(min(errors.values()), rel=1e-8), seed
    assert errors[record.tau, record.gamma] == pytest.approx(record.cv_error, rel=1e-8), seed
    least, models = best_models(case, np.arange(case.data.n), record.tau, record.gamma, how)
    assert record.refit.objective == pytest.approx(least, rel=1e-8, abs=1e-12), seed
    full = np.array([record.coefficients.get(name, 0.0) for name in case.data.names])
    S, b, _ = models[0]
    expected = np.zeros(len(full))
    expected[S] = b
    length = np.sqrt(((case.data.X - case.data.X.mean(axis=0)) ** 2).sum(axis=0))
    assert np.abs((full - expected) * length).max() <= 1e-6 * np.linalg.norm(case.data.y), seed
    used = full != 0.0
    assert np.all((case.low <= full)[used] & (full <= case.high)[used]), seed
    assert sc.verify(record, case.data).ok, (seed, sc.verify(record, case.data).failures)


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_that_of_every_support_and_face(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [3, 11, 13, 20])
def test_a_feature_of_a_group_whose_bounds_exclude_zero(seed: int) -> None:
    """A node is closed by a fit only if no interval of its columns was extended to 0."""
    rng = np.random.default_rng([66, seed])
    X = rng.normal(size=(12, 3)).round(1)
    asked = {"x0": (0.5, 0.9), "x1": (-0.9, -0.5), "x2": (0.0, None)}
    data = sc.Dataset.from_arrays(X, 0.4 * X[:, 0] + 0.1 * (X[:, 1] + rng.normal(size=12)), ["x0", "x1", "x2"])
    inf = np.inf
    case = Case(data, np.array([0.5, -0.9, 0.0]), np.array([0.9, -0.5, inf]), asked, frozenset({0, 1}))
    how, taus = {"scale": "length", "intercept": "fold"}, [1, 2]
    record = sc.solve(data, gammas=[0.001], taus=taus, folds=4, gap=0.0, coef_bounds=asked, at_most="1:x0,x1")
    for row in record.table:
        assert row.cv_error == pytest.approx(cv_error(case, row.tau, 0.001, how), rel=1e-8)
        assert row.lower <= row.cv_error <= row.upper
    assert sc.verify(record, data).ok


def exact_cv_error(data: sc.Dataset, tau: int, gamma: float, high: list[float]) -> Fraction:
    """Return the CV error without rounding, for columns without common rows, lower bounds of 0 and no intercept."""
    X, y = [list(map(Fraction, row)) for row in data.X.tolist()], list(map(Fraction, data.y.tolist()))
    plan, q, total = make_folds(3, data), range(data.X.shape[1]), Fraction(0)
    means = [sum(row[j] for row in X) / len(X) for j in q]
    ridge = [Fraction(gamma) / 2 * sum((row[j] - means[j]) ** 2 for row in X) / len(X) for j in q]
    for fold in range(3):
        rows = plan.train_rows(fold).tolist()
        M = [ridge[j] + sum(X[i][j] ** 2 for i in rows) for j in q]
        c = [sum(X[i][j] * y[i] for i in rows) for j in q]
        b = [max(min(c[j] / M[j], Fraction(high[j])), Fraction(0)) for j in q]
        fall = sorted(((2 * c[j] - M[j] * b[j]) * b[j], j) for j in q)
        chosen = [j for _, j in fall[max(len(fall) - tau, 0) :]]
        total += sum((y[i] - sum(X[i][j] * b[j] for j in chosen)) ** 2 for i in plan.scored_rows(fold).tolist())
    return total / len(X)


@pytest.mark.parametrize("long", [1e11, 1e14])
@pytest.mark.parametrize("side", [
    {"coef_bounds": {"x0": (0.0, None), "x1": (0.0, 0.25)}},
    {"nonnegative": "x0,x1"},
    {"coef_bounds": {"x0": (0.0, None), "x1": (0.0, 0.25)}, "at_most": "2:x0,x1"},
    {"nonnegative": "x0,x1", "hierarchy": "x0=x1"},
])  # fmt: skip
def test_bounds_include_a_coefficient_near_0_that_a_long_held_out_row_shows(side: dict[str, Any], long: float) -> None:
    """The training coefficient of x0 is 1e-18 or less without the first row, which is up to 1e14 long."""
    X = np.array([[long, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [0.0, 3.0]])
    data = sc.Dataset.from_arrays(X, [2.0, 1.5, 0.25, 0.5, 1.0, 2.0, 2.0], ["x0", "x1"])
    how = {"folds": 3, "scale": "variance", "intercept": "none", "gap": 0.0}
    record = sc.solve(data, gammas=[0.001, 0.5], taus=[2], **how, **side)
    high = [1e300, 0.25 if "coef_bounds" in side else 1e300]
    for row in record.table:
        assert row.lower <= exact_cv_error(data, row.tau, row.gamma, high) <= row.upper
    assert sc.verify(record, data).ok


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "algorithm1", "grid"])
def test_many_choices_are_those_of_every_support_and_face(method: str) -> None:
    for seed in range(8, 48):
        check(seed, method)


def test_fits_of_supports_are_within_their_error_bounds() -> None:
    how = {"scale": "length", "intercept": "fold"}
    for seed in (1, 2, 4, 5, 7):
        case = drawn(seed)
        data = standardize(case.data, "length", "fold", Restrictions(coef_bounds=case.asked))
        every = np.arange(case.data.n)
        for gamma in GAMMAS:
            problem = row_moments(data, every).problem(data, gamma)
            assert np.allclose(problem.penalty, capped_penalty(gamma_to_lam(gamma), data.weight))
            supports = [np.array(S) for size in (1, 2, 3) for S in combinations(range(data.q), size)]
            made = fit_from_moments(problem, supports, data.coefficient_bounds)
            for i, support in enumerate(supports):
                rows = refit_squares(data, every, support, gamma)
                exact = fit_subset(case, every, support.tolist(), gamma, how)
                value = exact[0] / data.loss_unit
                slack = 1e-9 * value
                assert abs(made.value[i] - value) <= made.value_error[i] + slack
                assert abs(rows.objective - value) <= rows.objective_error + slack
                assert abs(made.value[i] - rows.objective) <= made.value_error[i] + rows.objective_error
                beta = exact[1] * data.divisor[support] / data.y_unit
                for found in (made.coefficients(i), rows.beta):
                    assert np.abs(found - beta).max() <= 1e-7 * max(np.abs(beta).max(), 1.0)
                assert np.all(np.abs(made.coefficients(i) - rows.beta) <= made.spread[i, : len(support)] + rows.spread)


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_to_all_rows_forces_a_bounded_feature_in(seed: int) -> None:
    case, how = drawn(seed), {"scale": "length", "intercept": "fold"}
    ends = {name: value for name, value in case.asked.items() if name != "x0"} | {"x0": (0.5, 0.7)}
    case = case._replace(low=case.low.copy(), high=case.high.copy(), asked=ends)
    case.low[0], case.high[0] = 0.5, 0.7
    record = fit_one(case.data, tau=2, gamma=0.5, side=SideOptions(force_in="x0", coef_bounds=ends))
    q = case.data.X.shape[1]
    least = min(fit_subset(case, np.arange(case.data.n), S, 0.5, how)[0] for S in [[0], *([0, j] for j in range(1, q))])
    assert record.status == "proved" and record.objective == pytest.approx(least, rel=1e-8)
    assert 0.5 <= record.coefficients["x0"] <= 0.7 and sc.verify(record, case.data).ok


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_error_bounds_of_fits_at_bounds_are_narrow(intercept: str) -> None:
    for seed in range(60):
        case = drawn(seed)
        data = standardize(case.data, "length", intercept, Restrictions(coef_bounds=case.asked))
        for gamma in (0.0, 0.01):
            for rows in (np.arange(case.data.n), np.arange(0, case.data.n, 2), np.arange(1, case.data.n)):
                found = refit_squares(data, rows, np.arange(data.q), gamma)
                assert found.objective_error <= 1e-9 * max(found.objective, 1e-3), (seed, gamma, len(rows))
