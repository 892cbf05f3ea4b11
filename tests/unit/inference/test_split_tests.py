"""Tests of single splits agree with statsmodels, and their combination with its definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from slow import slow

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.inference import split_tests
from sparsecv_mio.inference.split_tests import combine_intervals, combine_p_values, jackknife_covariance, test_terms
from sparsecv_mio.targets import Loss

sm: Any = pytest.importorskip("statsmodels.api")
test_terms.__test__ = False  # type: ignore[attr-defined]

RNG = np.random.default_rng(2)
N = 60
LEVEL = np.eye(3)[RNG.integers(3, size=N)]
X = np.column_stack([RNG.normal(size=(N, 4)), LEVEL])
NAMES = ["a", "b", "c", "d", "f=u", "f=v", "f=w"]
FACTOR = ("f=u", "f=v", "f=w")
TARGETS = {
    Loss.SQUARED: X[:, 0] + RNG.normal(size=N),
    Loss.LOGISTIC: (X[:, 0] + RNG.logistic(size=N) > 0.0).astype(float),
    Loss.POISSON: RNG.negative_binomial(2, 0.4, size=N).astype(float),
}


def make_data(loss: Loss, columns: Any = X) -> Dataset:
    return Dataset.from_arrays(columns, TARGETS[loss], NAMES[: columns.shape[1]])


def jackknife_by_definition(
    Z: np.ndarray, weights: np.ndarray, residuals: np.ndarray, clusters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance from fits without each cluster, and Satterthwaite's degrees of freedom from dense matrices.

    Each change of a coefficient is linear in the scaled errors; the products of these linear forms under equal
    variances give the mean and the variance of the estimated variance.
    """
    root = np.sqrt(weights)
    A, e, kept = Z * root[:, None], root * residuals, np.unique(clusters)
    residual_maker = np.eye(len(A)) - A @ np.linalg.pinv(A)
    forms = []
    for one in kept:
        rows = clusters != one
        shift = np.zeros((A.shape[1], len(A)))
        shift[:, rows] = np.linalg.pinv(A[rows])
        forms.append(shift @ residual_maker)
    changes = np.array([form @ e for form in forms])
    linear = np.stack(forms, axis=1)  # coefficients, clusters, errors
    products = linear @ linear.transpose(0, 2, 1)
    df = np.trace(products, axis1=1, axis2=2) ** 2 / (products**2).sum(axis=(1, 2))
    return (len(kept) - 1) / len(kept) * changes.T @ changes, df


ROWS = np.arange(N)


@pytest.mark.parametrize("clusters", [ROWS, ROWS // 4, RNG.integers(12, size=N)])
def test_covariance_and_degrees_of_freedom_agree_with_fits_without_each_cluster(clusters: np.ndarray) -> None:
    Z, weights = sm.add_constant(X[:, :3] * 1.0), RNG.uniform(0.5, 3.0, size=N)
    residuals = np.asarray(sm.WLS(TARGETS[Loss.SQUARED], Z, weights=weights).fit().resid)
    covariance, df = jackknife_covariance(Z, weights, residuals, clusters)
    expected, expected_df = jackknife_by_definition(Z, weights, residuals, clusters)
    assert covariance == pytest.approx(expected) and df == pytest.approx(expected_df)


def test_the_degrees_of_freedom_for_two_groups_are_those_of_the_smaller_one() -> None:
    two = (np.arange(400) < 5).astype(float)
    Z = np.column_stack([np.ones(400), two])
    df = jackknife_covariance(Z, np.ones(400), RNG.normal(size=400), np.arange(400))[1]
    assert 4.0 <= df[1] < 4.3  # Welch: the mean of 5 rows has 4 degrees of freedom


def test_least_squares_with_a_factor_and_an_adjusted_column() -> None:
    tests, note = test_terms(make_data(Loss.SQUARED), [("a",), ("c",), FACTOR], ["d"], Loss.SQUARED, True, ROWS)
    Z = sm.add_constant(X[:, [3, 0, 2, 5, 6]])
    fit = sm.OLS(TARGETS[Loss.SQUARED], Z).fit(cov_type="HC3")
    V, df = jackknife_by_definition(Z, np.ones(N), np.asarray(fit.resid), ROWS)
    assert note == "" and pytest.approx(fit.cov_params() * (N - 1) / N) == V
    error = np.sqrt(np.diag(V))[2:4]
    assert [test.estimate for test in tests[:2]] == pytest.approx(fit.params[2:4])
    assert [test.standard_error for test in tests[:2]] == pytest.approx(error)
    assert [test.df for test in tests[:2]] == pytest.approx(df[2:4])
    p_values = 2.0 * stats.t.sf(abs(fit.params[2:4]) / error, df[2:4])
    assert [test.p_value for test in tests[:2]] == pytest.approx(p_values)
    factor, b = tests[2], fit.params[4:]
    wald, least = b @ np.linalg.solve(V[4:, 4:], b), df[4:].min()
    assert factor.term == "f" and factor.estimate is None and factor.df == pytest.approx(least)
    assert factor.p_value == pytest.approx(stats.f.sf(wald * (least - 1.0) / (2.0 * least), 2, least - 1.0))


def test_row_weights_give_the_jackknife_whatever_their_unit() -> None:
    weights = RNG.uniform(0.5, 3.0, size=N)
    fit = sm.WLS(TARGETS[Loss.SQUARED], sm.add_constant(X[:, [0, 2]]), weights=weights).fit(cov_type="HC3")
    error = fit.bse[1:] * np.sqrt((N - 1) / N)
    for unit in (1.0, 7.0):
        data = replace(make_data(Loss.SQUARED), weights="w", row_weights=unit * weights)
        tests = test_terms(data, [("a",), ("c",)], [], Loss.SQUARED, True, ROWS)[0]
        assert [test.standard_error for test in tests] == pytest.approx(error)
        t = abs(fit.params[1:]) / error
        assert [test.p_value for test in tests] == pytest.approx(2.0 * stats.t.sf(t, [test.df for test in tests]))


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_generalised_linear_models(loss: Loss) -> None:
    exposure = RNG.uniform(0.5, 2.0, size=N) if loss.target.has_counts else None
    data = replace(make_data(loss), exposure=None if exposure is None else "e", row_exposure=exposure)
    tests, note = test_terms(data, [("a",), ("c",)], ["d"], loss, True, ROWS)
    family = sm.families.Poisson() if loss.target.has_counts else sm.families.Binomial()
    Z = sm.add_constant(X[:, [3, 0, 2]])
    fit = sm.GLM(TARGETS[loss], Z, family, offset=None if exposure is None else np.log(exposure)).fit()
    variance = family.variance(fit.fittedvalues)
    V, df = jackknife_by_definition(Z, variance, (TARGETS[loss] - fit.fittedvalues) / variance, ROWS)
    error = np.sqrt(np.diag(V))[2:]
    assert note == "" and [test.estimate for test in tests] == pytest.approx(fit.params[2:])
    assert [test.standard_error for test in tests] == pytest.approx(error)
    assert [test.p_value for test in tests] == pytest.approx(2.0 * stats.t.sf(abs(fit.params[2:]) / error, df[2:]))


def test_terms_that_the_rows_cannot_test_have_the_p_value_1() -> None:
    dependent = X.copy()
    dependent[:, 3] = X[:, 0] + X[:, 1]
    data = make_data(Loss.SQUARED, dependent)
    tests, note = test_terms(data, [("a",), ("b",), ("d",), ("c",)], [], Loss.SQUARED, True, ROWS)
    assert [test.p_value for test in tests[:3]] == [1.0] * 3 and tests[0].estimate is None
    assert note == "" and tests[3].p_value < 1.0
    few, note = test_terms(data.take(np.arange(3)), [("a",), ("c",), ("b",)], [], Loss.SQUARED, True, np.arange(3))
    assert note == split_tests.TOO_FEW and {test.p_value for test in few} == {1.0}
    separated = Dataset.from_arrays(X, (X[:, 0] > 0.0).astype(float), NAMES)
    apart, note = test_terms(separated, [("a",), ("c",)], [], Loss.LOGISTIC, True, ROWS)
    assert note == split_tests.SEPARATED and {test.p_value for test in apart} == {1.0}


@pytest.mark.parametrize("loss", list(TARGETS))
def test_a_factor_is_tested_without_missing_values_and_absent_levels(loss: Loss) -> None:
    level = np.arange(N) % 3
    level[[4, 20]] = 3  # two missing values
    if not loss.target.has_classes:
        level[31] = 5  # a level with one row, which would separate two classes
    columns = np.eye(6)[level]  # no row has the level `none`
    names = ["dose=high", "dose=low", "dose=mid", "dose=(missing)", "dose=none", "dose=rare"]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 4, 0, 1, 2]):
        data = Dataset.from_arrays(np.column_stack([columns[:, order], X[:, 0]]), TARGETS[loss], [
            *(names[j] for j in order), "a",
        ])  # fmt: skip
        terms = [tuple(names[j] for j in order), ("a",)]
        (test, _), note = test_terms(data, terms, [], loss, True, ROWS)
        present = [j for j in (1, 2, 3, 5) if columns[:, j].any()]
        Z = np.column_stack([np.ones(N), columns[:, present], X[:, 0]])
        families = {Loss.POISSON: sm.families.Poisson(), Loss.LOGISTIC: sm.families.Binomial()}
        fit = sm.GLM(TARGETS[loss], Z, families.get(loss)).fit(tol=1e-14)
        variance = fit.family.variance(fit.fittedvalues)
        V, df = jackknife_by_definition(Z, variance, (TARGETS[loss] - fit.fittedvalues) / variance, ROWS)
        least = min(df[1:3])
        wald = fit.params[1:3] @ np.linalg.solve(V[1:3, 1:3], fit.params[1:3])
        p_value = stats.f.sf(wald * (least - 1.0) / (2.0 * least), 2, least - 1.0)
        assert note == "" and test.term == "dose" and test.df == pytest.approx(least)
        assert test.p_value == pytest.approx(p_value)


def test_two_levels_of_which_one_is_missing_values_are_compared() -> None:
    level = (np.arange(N) % 3 == 0).astype(float)
    data = Dataset.from_arrays(np.column_stack([1.0 - level, level]), TARGETS[Loss.SQUARED], ["s=m", "s=(missing)"])
    (test,), _ = test_terms(data, [data.names], [], Loss.SQUARED, True, ROWS)
    plain = Dataset.from_arrays(level[:, None], TARGETS[Loss.SQUARED], ["s=(missing)"])
    (single,), _ = test_terms(plain, [plain.names], [], Loss.SQUARED, True, ROWS)
    assert test.p_value == pytest.approx(single.p_value)


def test_a_coefficient_that_one_row_determines_is_not_tested_and_leaves_the_others_as_without_the_row() -> None:
    alone = np.zeros((N, 4))
    alone[:, 1:], alone[5, 0] = X[:, 1:4], 1.0
    data = make_data(Loss.SQUARED, alone)
    single, note = test_terms(data, [("a",), ("c",)], [], Loss.SQUARED, True, ROWS)
    without = np.delete(ROWS, 5)
    other = test_terms(data.take(without), [("c",)], [], Loss.SQUARED, True, without)[0][0]
    assert note == "" and single[0] == split_tests.SplitTest("a")
    assert single[1].estimate == pytest.approx(other.estimate) and single[1].df == pytest.approx(other.df)
    assert single[1].standard_error == pytest.approx(other.standard_error * np.sqrt(59.0 / 60.0 * 59.0 / 58.0))


@pytest.mark.parametrize("loss", list(TARGETS))
def test_a_large_mean_of_a_column_changes_no_test(loss: Loss) -> None:
    for y in (TARGETS[loss], np.exp(3.0 * X[:, 0]) // 1.0 if loss.target.has_counts else (X[:, 0] > 0.0) * 1.0):
        found = []
        for mean in (0.0, 1e8):
            moved = X[:, :3] + [mean, 0.0, 0.0]
            data = Dataset.from_arrays(np.column_stack([moved, np.full(N, 1e8)]), y, NAMES[:4])
            found.append(test_terms(data, [("a",), ("b",), ("d",)], [], loss, True, ROWS))
        (tests, note), (again, same) = found
        assert note == same and again[2] == split_tests.SplitTest("d")
        for one, other in zip(tests, again, strict=True):
            assert one.p_value == pytest.approx(other.p_value, rel=1e-4)
    assert (note == split_tests.SEPARATED) == loss.target.has_classes


NULLS = {
    "equal variances": (0.5, 1.0), "half, ratio 2": (0.5, 2.0), "a tenth, ratio 2": (0.1, 2.0),
    "a fifth, ratio 5": (0.2, 5.0), "a tenth, ratio 5": (0.1, 5.0),
}  # fmt: skip
HARDEST_NULL = "a tenth, ratio 5"


@pytest.mark.parametrize("name", [HARDEST_NULL, *slow(name for name in NULLS if name != HARDEST_NULL)])
def test_the_error_is_at_most_5_per_cent_for_groups_with_unequal_variances(name: str) -> None:
    """The classical test of two groups of which a tenth has a fivefold standard deviation has the error 0.95."""
    (share, ratio), n, n_splits, n_sets = NULLS[name], 80, 8, 60
    rng, n_false = np.random.default_rng(65), 0
    x = (np.arange(n) < share * n).astype(float)
    for _ in range(n_sets):
        y, p_values = np.where(x > 0.0, ratio, 1.0) * rng.normal(size=n), []
        data = Dataset.from_arrays(x[:, None], y, ["x"])
        for _ in range(n_splits):
            rows = rng.permutation(n)[n // 2 :]
            p_values.append(test_terms(data.take(rows), [("x",)], [], Loss.SQUARED, True, rows)[0][0].p_value)
        n_false += combine_p_values(np.array(p_values)) <= 0.05
    assert n_false <= 0.05 * n_sets


def combine_by_definition(p_values: np.ndarray) -> float:
    """Search the quantiles of the levels on a fine grid, which contains every multiple of 1 / B."""
    n = len(p_values)
    least = max(0.05, 1.0 / n)
    levels = np.unique(np.concatenate([np.linspace(least, 1.0, 997), np.arange(1, n + 1) / n]))
    ranked, levels = np.sort(p_values), levels[levels >= least]
    places = np.ceil(np.round(levels * n, 9)).astype(int) - 1  # rounded, because 0.07 * 100 is above 7
    quantiles = np.minimum(1.0, ranked[places] / levels)
    return min(1.0, (1.0 - np.log(least)) * float(quantiles.min()))


@pytest.mark.parametrize("n", [1, 2, 7, 20, 41, 100])
def test_combined_p_values_and_intervals_agree_with_their_definition(n: int) -> None:
    estimate, error = RNG.normal(1.0, 0.3, size=n), RNG.uniform(0.2, 0.4, size=n)
    size, df, chosen = RNG.integers(1, 4, size=n), RNG.uniform(1.5, 40.0, size=n), n - n // 4

    def combine(value: float) -> float:
        p_values = np.ones(n)
        single = 2.0 * stats.t.sf(np.abs(estimate - value) / error, df)
        p_values[:chosen] = np.minimum(1.0, size * single)[:chosen]
        assert combine_p_values(p_values) == pytest.approx(combine_by_definition(p_values))
        return combine_p_values(p_values)

    tests = list(zip(estimate.tolist(), error.tolist(), df.tolist(), size.tolist(), strict=True))[:chosen]
    interval = combine_intervals(tests, n, 0.95)
    assert interval is not None
    for end, sign in zip(interval, (-1.0, 1.0), strict=True):
        assert combine(end + 1e-9 * sign) <= 0.05 < combine(end - 1e-9 * sign)
        assert all(combine(end + far * sign) <= 0.05 for far in (0.1, 1.0, 10.0))


def test_a_term_in_too_few_models_has_no_finite_interval() -> None:
    assert combine_intervals([(1.0, 0.1, 20, 1)], 40, 0.95) is None
    assert combine_intervals([(1.0, 0.1, 20, 1)] * 2, 40, 0.95) is not None
    low, high = combine_intervals([(0.0, 0.001, 20, 1), (9.0, 0.001, 20, 1)], 2, 0.95) or (0.0, 0.0)
    assert low > high  # every value is rejected
