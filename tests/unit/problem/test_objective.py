"""The plain-numpy definition of f(S) and h, against formulas it does not use."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from every_support import brute_force_cell, brute_force_cv_error
from exact import ExactProblem

from sparsecv_mio.problem.objective import (
    fit,
    fit_bounded_ridge,
    held_out_error,
    r_squared,
    scales,
    standard_error,
    varying_columns,
)

SCALES = ["length", "variance", "none"]
INTERCEPTS = ["fold", "global", "none"]


def instance(seed: int, n: int = 12, p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 30, p) + rng.normal(size=p) * 10
    return X, X @ rng.normal(size=p) + rng.normal(size=n) + 5.0


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_fit_solves_the_normal_equations_with_an_explicit_intercept(scale: str, intercept: str) -> None:
    X, y = instance(0)
    support, gamma, rows = [0, 3, 4], 0.7, np.arange(3, 12)
    s = {"length": X.std(axis=0) * np.sqrt(12), "variance": X.std(axis=0), "none": np.ones(5)}[scale]
    A, t = X[:, support], y
    if intercept == "global":
        A, t = A - A.mean(axis=0), t - t.mean()
    A, t = A[rows], t[rows]
    penalty = gamma / 2 * s[support] ** 2
    if intercept == "fold":
        A, penalty = np.column_stack([np.ones(9), A]), np.append(0.0, penalty)
    solution = np.linalg.solve(A.T @ A + np.diag(penalty), A.T @ t)
    objective = np.sum((t - A @ solution) ** 2) + penalty @ solution**2

    model = fit(X, y, support, gamma, scale=scale, intercept=intercept, rows=rows)
    assert model.objective == pytest.approx(objective, rel=1e-10)
    assert model.beta == pytest.approx(solution[-3:], rel=1e-8)
    assert model.predict(X) == pytest.approx(model.intercept + X[:, support] @ model.beta, rel=1e-9)
    if intercept == "fold":
        assert model.intercept == pytest.approx(solution[0], rel=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("test", [[4], [0, 5, 7]])
def test_leaving_rows_out_agrees_with_theory_section_5(intercept: str, test: list[int]) -> None:
    X, y = instance(1)
    S, gamma = [1, 2], 0.3
    shift = (X.mean(axis=0), y.mean()) if intercept != "none" else (0.0, 0.0)
    A, t = (X - shift[0])[:, S], y - shift[1]
    H = A @ np.linalg.solve(A.T @ A + gamma / 2 * np.diag(scales(X)[S] ** 2), A.T)
    if intercept == "fold":
        H = H + 1.0 / 12
    e = (t - (H if intercept != "fold" else H - 1.0 / 12) @ t)[test]
    left = np.linalg.solve(np.eye(len(test)) - H[np.ix_(test, test)], e)
    model = fit(X, y, S, gamma, intercept=intercept, rows=np.setdiff1d(np.arange(12), test))
    assert model.objective == pytest.approx(fit(X, y, S, gamma, intercept=intercept).objective - e @ left, rel=1e-9)
    assert held_out_error(model, X, y, np.array(test)) == pytest.approx(left @ left, rel=1e-9)


@pytest.mark.parametrize("scale", ["length", "variance"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_units_of_any_size(scale: str, intercept: str) -> None:
    X, y = instance(2)
    labels = np.arange(12) % 3
    factor = np.array([2.0**500, 1.0, 2.0**-498, 1.0, 2.0**30])
    plain = brute_force_cv_error(X, y, labels, 2, 0.5, scale=scale, intercept=intercept)
    scaled = brute_force_cv_error(X * factor, y * 2.0**490, labels, 2, 0.5, scale=scale, intercept=intercept)
    assert np.array(scaled) / 2.0**980 == pytest.approx(np.array(plain), rel=1e-10)
    small = brute_force_cv_error(X, y * 2.0**-480, labels, 2, 0.5, scale=scale, intercept=intercept)
    assert np.array(small) * 2.0**960 == pytest.approx(np.array(plain), rel=1e-10)


def test_a_tie_is_an_interval() -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 0.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    labels = np.array([-1, -1, -1, -1, 0])
    assert len(brute_force_cell(X, y, 1, 0.1, rows=np.arange(4), scale="none").fits) == 2
    low, high = brute_force_cv_error(X, y, labels, 1, 0.1, scale="none")
    assert low < 0.1 < high
    assert high == pytest.approx(1.0)


def test_constant_columns_never_enter() -> None:
    X, y = instance(5)
    X[:, 1] = 0.1
    assert varying_columns(X).tolist() == [0, 2, 3, 4]
    assert brute_force_cell(X, y, 5, 0.4).supports == ((0, 2, 3, 4),)


def test_h_is_per_scored_row() -> None:
    X, y = instance(6)
    labels = np.full(12, -1)
    labels[[2, 9]] = 0
    model = fit(X, y, [0], 1.0, rows=np.flatnonzero(labels < 0))
    residual = y[[2, 9]] - model.predict(X[[2, 9]])
    error = held_out_error(model, X, y, np.array([2, 9])) / 2
    assert error == pytest.approx(np.mean(residual**2))
    assert r_squared(y, np.array([2, 9]), error) == pytest.approx(
        1.0 - np.sum(residual**2) / np.sum((y[[2, 9]] - y[[2, 9]].mean()) ** 2)
    )


def test_standard_error_of_repeats_is_the_root_mean_square_of_theirs() -> None:
    rng, sizes = np.random.default_rng(0), np.array([4, 4, 4])
    repeats = [errors * 60.0 / errors.sum() for errors in rng.uniform(size=(5, 3))]  # of one mean
    own = [standard_error(errors, sizes) for errors in repeats]
    together = standard_error(np.concatenate(repeats), np.tile(sizes, 5), 5.0)
    assert together == pytest.approx(np.sqrt(np.mean(np.square(own))))


def test_standard_error_of_single_rows_is_the_textbook_one() -> None:
    errors = np.array([0.3, 1.2, 0.7, 2.2])
    assert standard_error(errors, np.ones(4, dtype=np.int64)) == pytest.approx(errors.std(ddof=1) / 2.0)
    assert standard_error(errors * 1e300, np.ones(4, dtype=np.int64)) == pytest.approx(errors.std(ddof=1) / 2.0 * 1e300)


def test_standard_error_with_an_empty_fold_is_that_of_a_ratio() -> None:
    assert standard_error(np.array([1.0, 3.0, 0.0]), np.array([1, 1, 0])) == pytest.approx(
        np.sqrt(3.0 * 2.0 / 4.0 / 2.0)
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_is_zero_on_the_training_rows_has_no_coefficient(seed: int) -> None:
    """Of units 1e100 apart, rounding of the others' coefficients would show in the row where it is not zero."""
    rng = np.random.default_rng(seed)
    X, y = np.zeros((14, 3)), 1e128 * rng.normal(size=14)
    X[2, 0], X[2, 2], X[10, 1] = 1e-8, 1e118, 1e27
    weights = 10.0 ** rng.uniform(-3, 3, 14)
    train = np.delete(np.arange(14), 10)
    model = fit(X, y, [0, 1, 2], 100.0, scale="none", rows=train, weights=weights)
    assert model.beta[1] == 0.0
    mean = np.average(y[train], weights=weights[train])
    both = fit(X, y, [0, 2], 100.0, scale="none", rows=train, weights=weights)
    expected = weights[10] * (y[10] - both.intercept) ** 2
    assert np.isclose(held_out_error(model, X, y, np.array([10]), weights), expected, rtol=1e-9)
    assert abs(both.intercept - mean) <= np.abs(y).max()


def test_a_column_of_units_that_the_penalty_swamps_changes_no_other() -> None:
    """The square of its penalty overflowed, and every coefficient was lost."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(19, 3)) * [1e36, 1e-255, 1e48]
    y = X[:, 0] * 1e-9 + 1e26 * rng.normal(size=19)
    with np.errstate(over="raise"):
        all_three, two = (fit(X, y, support, 1.0, scale="none") for support in ([0, 1, 2], [0, 2]))
    assert np.allclose(all_three.beta[[0, 2]], two.beta, rtol=1e-9) and two.beta[0] != 0.0
    assert np.isclose(all_three.objective, two.objective, rtol=1e-12)


def test_digits_of_fewer_rows_than_columns() -> None:
    """Columns 1e6 from 0 that are nearly alike, without an intercept: floats left 7 digits of a held-out error."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((8, 5))
    X[:, [1, 4]] = X[:, :1] + 1e-3 * rng.standard_normal((8, 2))
    X += 1e6
    y, gamma, rows = X @ np.array([1.0, 0.0, 1.0, 0.0, 0.0]) + 1e-3 * rng.standard_normal(8), 3e-7, np.arange(4)
    model = fit(X, y, range(5), gamma, intercept="none", rows=rows)
    exact = ExactProblem.of(X.tolist(), y.tolist(), None, [(range(4), range(4, 8))], ("length", "none"), range(5))
    value, error = exact.of_support(gamma, range(5))
    assert model.objective == pytest.approx(float(value), rel=1e-9)
    assert held_out_error(model, X, y, np.arange(4, 8)) / 4.0 == pytest.approx(float(error), rel=1e-9)


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_a_nearly_perfect_fit_at_a_bound_keeps_its_digits(intercept: str) -> None:
    """Floats leave few digits of residuals of 1e-10; the fractions of the definition give all of them."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 2))
    y = X @ [0.5, -1.0] + 1e-13 * rng.normal(size=8)
    ends = np.array([-np.inf, -np.inf]), np.array([0.5 - 1e-10, np.inf])
    made = fit_bounded_ridge(X, y, [0, 1], 0.0, ends, scale="none", intercept=intercept)
    x, t = ([Fraction(v) for v in column.tolist()] for column in (X[:, 1], y))
    t = [target - Fraction(float(ends[1][0])) * Fraction(v) for target, v in zip(t, X[:, 0].tolist(), strict=True)]
    if intercept == "fold":
        x, t = ([value - sum(values) / 8 for value in values] for values in (x, t))
    b = sum(map(operator.mul, x, t)) / sum(map(operator.mul, x, x))
    residuals = [target - b * value for target, value in zip(t, x, strict=True)]
    assert made.is_exact and made.beta.tolist() == [float(ends[1][0]), float(b)]
    assert made.objective == pytest.approx(float(sum(e * e for e in residuals)), rel=1e-14)
    assert made.residuals(X, y, np.arange(8)) * made.coordinates.y_unit == pytest.approx(
        [float(e) for e in residuals], rel=1e-14
    )
