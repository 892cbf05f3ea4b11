"""Tests of single splits agree with statsmodels, and their combination with its definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

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


def test_least_squares_with_a_factor_and_an_adjusted_column() -> None:
    tests, df, note = test_terms(make_data(Loss.SQUARED), [("a",), ("c",), FACTOR], ["d"], Loss.SQUARED, True, None)
    fit = sm.OLS(TARGETS[Loss.SQUARED], sm.add_constant(X[:, [3, 0, 2, 5, 6]])).fit()
    assert df == fit.df_resid and note == ""
    assert [test.p_value for test in tests[:2]] == pytest.approx(fit.pvalues[2:4])
    assert [test.estimate for test in tests[:2]] == pytest.approx(fit.params[2:4])
    assert [test.standard_error for test in tests[:2]] == pytest.approx(fit.bse[2:4])
    factor = tests[2]
    assert factor.term == "f" and factor.estimate is None
    assert factor.p_value == pytest.approx(float(fit.f_test(np.eye(6)[4:]).pvalue))


def test_row_weights_give_the_jackknife_whatever_their_unit() -> None:
    weights = RNG.uniform(0.5, 3.0, size=N)
    found = []
    for unit in (1.0, 7.0):
        data = replace(make_data(Loss.SQUARED), weights="w", row_weights=unit * weights)
        found.append(test_terms(data, [("a",), ("c",)], [], Loss.SQUARED, True, np.arange(N))[0])
    fit = sm.WLS(TARGETS[Loss.SQUARED], sm.add_constant(X[:, [0, 2]]), weights=weights).fit(cov_type="HC3")
    error = fit.bse[1:] * np.sqrt((N - 1) / N)
    for tests in found:
        assert [test.standard_error for test in tests] == pytest.approx(error)
        assert [test.p_value for test in tests] == pytest.approx(2.0 * stats.t.sf(abs(fit.params[1:]) / error, N - 3))


def test_groups_are_left_out_one_by_one() -> None:
    groups, y = np.arange(N) // 4, TARGETS[Loss.SQUARED]
    Z = sm.add_constant(X[:, :2])
    beta = np.linalg.lstsq(Z, y, rcond=None)[0]
    without = [np.linalg.lstsq(Z[groups != g], y[groups != g], rcond=None)[0] - beta for g in range(15)]
    expected = 14.0 / 15.0 * np.transpose(without) @ without
    shuffled = RNG.permutation(N)
    residuals = (y - Z @ beta)[shuffled]
    found = jackknife_covariance(Z[shuffled], np.ones(N), residuals, groups[shuffled])
    assert found == pytest.approx(expected)
    tests, df, note = test_terms(make_data(Loss.SQUARED), [("a",), ("b",)], [], Loss.SQUARED, True, groups)
    assert df == 12
    assert [test.standard_error for test in tests] == pytest.approx(np.sqrt(np.diag(expected))[1:])


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_generalised_linear_models(loss: Loss) -> None:
    exposure = RNG.uniform(0.5, 2.0, size=N) if loss.target.has_counts else None
    data = replace(make_data(loss), exposure=None if exposure is None else "e", row_exposure=exposure)
    tests, df, note = test_terms(data, [("a",), ("c",)], ["d"], loss, True, None)
    family = sm.families.Poisson() if loss.target.has_counts else sm.families.Binomial()
    Z = sm.add_constant(X[:, [3, 0, 2]])
    fit = sm.GLM(TARGETS[loss], Z, family, offset=None if exposure is None else np.log(exposure)).fit()
    scale = max(1.0, fit.pearson_chi2 / (N - 4)) if loss.target.has_counts else 1.0
    assert scale > 1.1 or not loss.target.has_counts  # the counts of the test are overdispersed
    t = fit.params[2:] / (fit.bse[2:] * np.sqrt(scale))
    assert [test.p_value for test in tests] == pytest.approx(2.0 * stats.t.sf(abs(t), N - 4))
    assert [test.estimate for test in tests] == pytest.approx(fit.params[2:])


def test_terms_that_the_rows_cannot_test_have_the_p_value_1() -> None:
    dependent = X.copy()
    dependent[:, 3] = X[:, 0] + X[:, 1]
    data = make_data(Loss.SQUARED, dependent)
    tests, df, note = test_terms(data, [("a",), ("b",), ("d",), ("c",)], [], Loss.SQUARED, True, None)
    assert [test.p_value for test in tests[:3]] == [1.0] * 3 and tests[0].estimate is None
    assert df == N - 4 and tests[3].p_value < 1.0
    few, _, note = test_terms(data.take(np.arange(3)), [("a",), ("c",), ("b",)], [], Loss.SQUARED, True, None)
    assert note == split_tests.TOO_FEW and {test.p_value for test in few} == {1.0}
    separated = Dataset.from_arrays(X, (X[:, 0] > 0.0).astype(float), NAMES)
    apart, _, note = test_terms(separated, [("a",), ("c",)], [], Loss.LOGISTIC, True, None)
    assert note == split_tests.SEPARATED and {test.p_value for test in apart} == {1.0}
    alone = np.zeros((N, 4))
    alone[:, 1:], alone[5, 0] = X[:, 1:4], 1.0
    single, _, note = test_terms(make_data(Loss.SQUARED, alone), [("a",), ("c",)], [], Loss.SQUARED, True, np.arange(N))
    assert note == split_tests.ALONE and {test.p_value for test in single} == {1.0}


def combine_by_definition(p_values: np.ndarray) -> float:
    """Search the quantiles of the levels on a fine grid, which contains every multiple of 1 / B."""
    n = len(p_values)
    least = max(0.05, 1.0 / n)
    levels = np.unique(np.concatenate([np.linspace(least, 1.0, 997), np.arange(1, n + 1) / n]))
    quantiles = [min(1.0, float(np.quantile(p_values, t, method="inverted_cdf")) / t) for t in levels[levels >= least]]
    return min(1.0, (1.0 - np.log(least)) * min(quantiles))


@pytest.mark.parametrize("n", [1, 2, 7, 20, 41, 100])
def test_combined_p_values_and_intervals_agree_with_their_definition(n: int) -> None:
    estimate, error = RNG.normal(1.0, 0.3, size=n), RNG.uniform(0.2, 0.4, size=n)
    size, df, chosen = RNG.integers(1, 4, size=n), RNG.integers(5, 40, size=n), n - n // 4

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
    assert combine_intervals([(0.0, 0.001, 20, 1), (9.0, 0.001, 20, 1)], 2, 0.95) is None  # every value is rejected
