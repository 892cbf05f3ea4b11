"""Fits of Cox regression against dense sums in long double, statsmodels and finite differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cox_truth import Case, Dense, drawn_case
from slow import slow

from sparsecv_mio.arrays import LONG
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.problem.cox import (
    PartialLikelihood,
    bound_distance,
    look_at_point,
    partial_loss,
    refit_cox,
    risk_sets_of,
)
from sparsecv_mio.problem.cox_objective import Terms, fit_cox
from sparsecv_mio.targets import Ties


def dataset_of(case: Case) -> Dataset:
    data = Dataset.from_arrays(case.X, case.time)
    survival = Survival(case.event, case.entry, case.stratum, Ties.EFRON if case.efron else Ties.BRESLOW)
    return replace(data, survival=survival, row_weights=case.weights)


def standard(case: Case, scale: str = "length") -> StandardData:
    return standardize(dataset_of(case), scale, "none")


def split(seed: int, n: int) -> tuple[Any, Any]:
    out = np.sort(np.random.default_rng(seed).permutation(n)[: max(n // 6, 1)])
    return np.setdiff1d(np.arange(n), out), out


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 40))])
def test_value_gradient_and_hessian(seed: int) -> None:
    case = drawn_case(seed)
    truth, b = Dense(case), np.random.default_rng(seed).normal(size=case.X.shape[1])
    at = PartialLikelihood(risk_sets_of(dataset_of(case), slice(None)), case.X.astype(LONG) @ b)
    value, g, H = truth.derivatives(b)
    assert at.value == pytest.approx(float(value), rel=1e-15)
    X = case.X.astype(LONG)
    np.testing.assert_allclose(at.gradient(X).astype(float), g.astype(float), rtol=1e-14, atol=1e-14 * np.abs(X).sum())
    np.testing.assert_allclose(
        at.hessian(X)[0].astype(float), H.astype(float), rtol=1e-12, atol=1e-15 * float((X**2).sum())
    )


def test_gradient_is_that_of_finite_differences() -> None:
    case, h = drawn_case(3, n=30, p=3), 1e-6
    sets, X, b = risk_sets_of(dataset_of(case), slice(None)), case.X.astype(LONG), np.array([0.3, -0.2, 0.1])

    def value(b: Any) -> float:
        return float(PartialLikelihood(sets, X @ b).value_and_size[0])

    slopes = [(value(b + h * e) - value(b - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(PartialLikelihood(sets, X @ b).gradient(X).astype(float), slopes, rtol=1e-7)


@pytest.mark.parametrize("efron", [True, False])
@pytest.mark.parametrize("seed", [*range(2), *slow(range(2, 6))])
def test_likelihood_is_that_of_statsmodels(seed: int, efron: bool) -> None:
    phreg = pytest.importorskip("statsmodels.duration.hazard_regression").PHReg
    case = drawn_case(seed, n=60, p=3, plain=True)._replace(weights=None, efron=efron)
    ties = "efron" if efron else "breslow"
    model = phreg(case.time, case.X, status=case.event.astype(int), entry=case.entry, strata=case.stratum, ties=ties)
    b = np.array([0.3, -0.5, 0.2])
    at = PartialLikelihood(risk_sets_of(dataset_of(case), slice(None)), case.X.astype(LONG) @ b)
    assert at.value == pytest.approx(-float(model.loglike(b)), rel=1e-9)
    np.testing.assert_allclose(at.gradient(case.X.astype(LONG)).astype(float), -model.score(b), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 40))])
def test_fit_is_within_its_bounds(seed: int) -> None:
    case = drawn_case(seed)
    data, gamma = standard(case), float(10.0 ** np.random.default_rng(seed).uniform(-3, 1))
    train, out = split(seed, data.n)
    support = np.arange(case.X.shape[1])[: 1 + seed % case.X.shape[1]]
    fit = refit_cox(data, train, support, gamma)
    truth = Dense(case, train)
    ridge = gamma / 2 * (data.weight / 1.0) * data.divisor.astype(LONG) ** 2
    value, b = truth.fit(support, ridge)
    assert abs(fit.objective - float(value)) <= fit.objective_error + 1e-15 * float(value)
    assert fit.objective_error <= 1e-11 * float(value) + 1e-13
    assert np.all(np.abs(fit.beta - (b * data.divisor[support]).astype(float)) <= fit.spread + 1e-15)
    whole = Dense(case)
    eta = case.X[:, support].astype(LONG) @ b
    held_out, error = fit.held_out(data, out)
    expected = float(whole.loss(eta) - truth.loss(eta))
    assert abs(held_out - expected) <= error + 1e-14 * float(value)
    assert error <= 1e-9 * max(float(value), 1.0)
    assert expected >= -1e-12


def test_fit_of_no_column_is_exact() -> None:
    case = drawn_case(5)
    data = standard(case)
    train, out = split(1, data.n)
    fit = refit_cox(data, train, np.zeros(0, dtype=np.int64), 1.0)
    assert fit.objective == pytest.approx(float(Dense(case, train).loss(np.zeros(data.n))), rel=1e-14)
    expected = float(Dense(case).loss(np.zeros(data.n)) - Dense(case, train).loss(np.zeros(data.n)))
    assert fit.held_out(data, out)[0] == pytest.approx(expected, rel=1e-12)
    assert np.all(fit.predictors(data, out) == 0.0) and len(fit.theta) == 0


@pytest.mark.parametrize("seed", [*range(10), *slow(range(10, 30))])
def test_held_out_loss_is_at_least_zero_at_any_coefficients(seed: int) -> None:
    case = drawn_case(seed, n=20)
    rng = np.random.default_rng(seed)
    train, _ = split(seed, 20)
    whole, part = Dense(case), Dense(case, train)
    for size in (0.0, 1.0, 10.0, 100.0):
        eta = (case.X @ rng.normal(size=case.X.shape[1]) * size).astype(LONG)
        assert whole.loss(eta) - part.loss(eta) >= -1e-12


def test_underflowing_risk_sets_keep_their_digits() -> None:
    time, event = np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    X = np.array([[1000.0], [0.0], [0.0]])
    data = replace(Dataset.from_arrays(X, time), survival=Survival(event))
    at = PartialLikelihood(risk_sets_of(data, slice(None)), X[:, 0].astype(LONG))
    assert at.value == pytest.approx(np.log(2.0), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_losses_far_below_their_numbers_keep_their_digits(scale: float) -> None:
    """Of exponents 80, 40 and 0, the loss is log(1 + e^-40 + e^-80) + log(1 + e^-40), for the search and `verify`."""
    time, eta = np.array([1.0, 2.0, 3.0]), np.array([80.0, 40.0, 0.0])
    data = replace(Dataset.from_arrays(eta[:, None], time), row_weights=np.full(3, scale))
    data = replace(data, survival=Survival(np.ones(3, dtype=bool)))
    sets, near, far = risk_sets_of(data, slice(None)), np.exp(-40.0), np.exp(-80.0)
    expected, slope = scale * (np.log1p(near + far) + np.log1p(near)), -scale * (2.0 * near + 2.0 * far) * 40.0
    for value in (PartialLikelihood(sets, eta.astype(LONG)).value, Terms(data, np.arange(3)).loss(eta)[0]):
        assert value == pytest.approx(expected, rel=1e-12)
    for g in (
        PartialLikelihood(sets, eta.astype(LONG)).gradient(eta[:, None].astype(LONG)),
        Terms(data, np.arange(3)).derivatives(eta, eta[:, None])[0],
    ):
        assert float(g[0]) == pytest.approx(slope, rel=1e-12)
    at = look_at_point(sets, eta[:, None].astype(LONG), np.full(1, 1e-30), np.ones(1))
    assert at.value_off <= 1e-13 * expected
    assert Terms(data, np.arange(3)).loss(eta)[1] <= 1e3 * expected


def test_ball_needs_a_trusted_hessian() -> None:
    assert bound_distance(1e-3, 1.0, 0.5) == (np.inf, np.inf)
    radius, drop = bound_distance(1e-3, 1.0, 0.0)
    assert radius == pytest.approx(2e-3, rel=0.5) and drop == pytest.approx(5e-7, rel=0.5)


def test_point_far_from_the_fit_has_a_valid_lower_bound() -> None:
    case = drawn_case(11, n=40, p=3)
    sets, X = risk_sets_of(dataset_of(case), slice(None)), (case.X - case.X.mean(0)).astype(LONG)
    penalty = np.ones(3)
    value, _ = Dense(case).fit(range(3), penalty)
    for size in (0.0, 0.1, 0.3):
        at = look_at_point(sets, X, penalty, np.full(3, size))
        assert at.value - at.drop - at.value_off <= value <= at.value + at.value_off


def test_strata_of_one_event_are_conditional_logistic_regression() -> None:
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models").ConditionalLogit
    rng = np.random.default_rng(7)
    sets, X = np.repeat(np.arange(15), 4), rng.normal(size=(60, 3))
    case = np.tile([True, False, False, False], 15)
    data = replace(Dataset.from_arrays(X, np.ones(60)), survival=Survival(case, stratum=sets))
    model = conditional(case.astype(float), X, groups=sets)
    for b in (np.zeros(3), np.array([0.5, -1.0, 0.2])):
        assert partial_loss(data, X @ b) == pytest.approx(-model.loglike(b), rel=1e-12)


def test_fit_from_a_far_start_is_that_from_zero() -> None:
    X = np.random.default_rng(2).normal(size=(20, 2))
    X[19] = 1e5, -7e4  # far from the minimum, the curvatures vanish although the slopes do not
    survival = Survival(np.arange(20) % 3 > 0)
    data = replace(Dataset.from_arrays(X, np.arange(20.0) % 7), survival=survival)
    ridge = np.array([50.0, 0.0])
    fit = fit_cox(data, (0, 1), ridge)
    for slopes in ([-56.0, 97.0], [-235.0, 1324.0], [26.0, -31.0]):
        moved = fit_cox(data, (0, 1), ridge, start=replace(fit, beta=np.array(slopes)))
        assert moved.objective == pytest.approx(fit.objective, rel=1e-10)
