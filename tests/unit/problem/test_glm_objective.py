"""The definition with logistic loss against scikit-learn, and the certified refit against the definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from logistic_truth import fitted
from sklearn.linear_model import LogisticRegression

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem import glm_objective
from sparsecv_mio.problem.glm_refit import GlmRowFit, refit_glm
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.row_losses import LOG_LOSS
from sparsecv_mio.targets import Loss


def draw(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 60)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3, 3, size=p) + rng.choice([0.0, 1e3])
    y = (rng.random(n) < 0.5).astype(float)
    y[:2] = 0.0, 1.0
    data = as_two_classes(Dataset.from_arrays(X, y))
    return weighted_rows(data, rng.choice([0.5, 1.0, 3.0], size=n), "w") if seed % 2 else data


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_fit_of_scikit_learn(seed: int) -> None:
    data, gamma = draw(seed), 10.0 ** (seed - 4.0)
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    model = fitted(X, data.y, range(data.p), gamma, scale="none", weights=data.row_weights)
    peer = LogisticRegression(C=1.0 / gamma, tol=1e-12, max_iter=10_000).fit(X, data.y, data.row_weights)
    assert model.beta == pytest.approx(peer.coef_[0], rel=1e-4, abs=1e-6)
    assert model.intercept == pytest.approx(peer.intercept_[0], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("far", [1e3, 1e4, 1e5])
def test_a_fit_ends_where_steps_are_rounding(far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns far from 0 without an intercept leave decrements above what is rounding elsewhere."""
    rng, looks, root = np.random.default_rng(1), [0], glm_objective._root
    X = far + rng.normal(size=(30, 3))
    y = (X[:, 0] - far + rng.logistic(size=30) > 0.0).astype(float)

    def counted(*given: Any) -> Any:
        looks[0] += 1
        return root(*given)

    monkeypatch.setattr(glm_objective, "_root", counted)
    ours = fitted(X, y, range(3), 0.001, intercept="none")
    assert looks[0] < 50
    monkeypatch.setattr(glm_objective, "RISES", glm_objective.MOST_STEPS)
    longest = fitted(X, y, range(3), 0.001, intercept="none")
    assert looks[0] > glm_objective.MOST_STEPS
    assert ours.objective == pytest.approx(longest.objective, rel=1e-11)  # so many steps may each add rounding


@pytest.mark.parametrize("scale", ["length", "variance", "none"])
@pytest.mark.parametrize("intercept", ["fold", "none"])
@pytest.mark.parametrize("seed", range(12))
def test_the_certified_refit_holds_the_definition(seed: int, intercept: str, scale: str) -> None:
    rng, data = np.random.default_rng(seed), draw(seed)
    gamma = 10.0 ** rng.uniform(-5, 2)
    rows, out = np.arange(data.n)[:-4], np.arange(data.n)[-4:]
    std = standardize(data, scale, intercept, loss=Loss.LOGISTIC)
    support = rng.permutation(std.q)[: int(rng.integers(0, std.q + 1))]
    fit = refit_rows(std, rows, np.sort(support), gamma)
    assert isinstance(fit, GlmRowFit)
    exact = fitted(
        data.X, data.y, std.columns[fit.support].tolist(), gamma, scale=scale, intercept=intercept, rows=rows,
        weights=data.row_weights,
    )  # fmt: skip
    rounding = 1e-12 * exact.objective
    assert abs(fit.objective - exact.objective) <= fit.objective_error + rounding
    held, off = fit.held_out(std, out)
    weights = None if data.row_weights is None else data.row_weights[out]
    truth = float(exact.losses(data.X[out], data.y[out], weights).sum())
    assert abs(held - truth) <= off + float(exact.doubt(data.X[out]).sum()) * 3.0 + rounding
    coefficients, level = std.coefficients(fit.support, fit.beta, np.zeros(std.q), fit.r_mean)
    spread = {name: float(data.X[:, data.names.index(name)].std()) for name in coefficients}
    size = max((abs(value) * spread[name] for name, value in coefficients.items()), default=0.0)
    for name, value in coefficients.items():
        place = data.names.index(name)
        theirs = exact.beta[exact.support.index(place)]
        assert abs(value - theirs) * spread[name] <= 1e-6 * size
    assert level == pytest.approx(exact.intercept, rel=1e-6, abs=1e-6 * (1.0 + abs(exact.intercept)))


def test_a_ball_that_is_not_known_is_infinite() -> None:
    """Two columns that a penalty of nothing does not tell apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    data = as_two_classes(Dataset.from_arrays(np.column_stack([x, x * (1.0 + 1e-15)]) + 1e6, (x > 0).astype(float)))
    std = standardize(data, "none", "none", loss=Loss.LOGISTIC)
    fit = refit_glm(std, slice(0, 30), np.arange(std.q), 1e-20)
    assert fit.held_out(std, np.arange(5))[1] == np.inf and np.all(np.isinf(fit.spread))


def test_the_loss_of_frequencies_counts_weights() -> None:
    X, y, rows = np.zeros((3, 1)), np.array([0.0, 1.0, 1.0]), np.array([0, 1, 2, 2])
    data = Dataset.from_arrays(X, y)
    null = glm_objective.null_loss(data, Loss.LOGISTIC, rows)
    assert null == pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75))
    assert glm_objective.null_loss(data, Loss.LOGISTIC, np.array([1, 2])) == 0.0
    weighed = weighted_rows(data, [2.0, 2.0, 9.0], "w")
    assert glm_objective.null_loss(weighed, Loss.LOGISTIC, np.array([0, 1])) == pytest.approx(np.log(2.0))
    counted = glm_objective.null_loss(data, Loss.POISSON, np.array([0, 1]))
    assert counted == pytest.approx(0.5 * np.log(2.0))


def test_a_column_that_is_constant_in_training_has_no_part() -> None:
    """Its mean is rounded: what is left of it is no column."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 2))
    X[:15, 1] = 0.1 + 1e-17
    X[15:, 1] = 7.0
    y = np.append((X[:15, 0] > 0.0).astype(float), rng.integers(0, 2, 5))
    rows, weights = np.arange(15), np.full(20, 0.3)
    for gamma in (1e-6, 1.0, 1e3):
        both = fitted(X, y, [0, 1], gamma, rows=rows, weights=weights)
        one = fitted(X, y, [0], gamma, rows=rows, weights=weights)
        assert both.beta[1] == 0.0 and both.objective == pytest.approx(one.objective, rel=1e-12)


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
@pytest.mark.parametrize("seed", range(40))
def test_a_model_near_the_minimum_bounds_it(seed: int, loss: Loss) -> None:
    rng, data = np.random.default_rng(seed), draw(seed)
    if loss is Loss.POISSON:
        counts = rng.poisson(rng.choice([0.5, 5.0, 1e4]), size=data.n).astype(float)
        data = as_counts(replace(data, y=counts + (counts.sum() == 0.0), classes=None))
    gamma, every = 10.0 ** rng.uniform(-8, 2), range(data.p)
    how = {"scale": "length", "intercept": "fold"}
    exact = glm_objective.fit_of_data(data, loss, every, gamma, **how)
    start = glm_objective.fit_of_data(data, loss, range(data.p - 1), gamma, **how)
    for begin in (None, start):
        near = glm_objective.fit_of_data(data, loss, every, gamma, near=True, start=begin, **how)
        off = 1e-11 * exact.objective
        assert exact.objective - off <= near.objective <= exact.objective + near.decrement**2 + off
        again = glm_objective.fit_of_data(data, loss, every, gamma, start=near, **how)
        assert again.objective == pytest.approx(exact.objective, rel=1e-14, abs=1e-300)
        assert again.predictors(data.X) == pytest.approx(exact.predictors(data.X), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e5])
def test_the_largest_ridge_is_taken_as_it_is(loss: Loss, size: float) -> None:
    """`b = X'(y - m) / (gamma weight)`, m the mean: a part of it alone left coefficients 1e6 times too large."""
    rng = np.random.default_rng(1)
    X, y = size * rng.standard_normal((40, 2)), rng.integers(0, 2, 40).astype(float)
    centred = X - X.mean(axis=0)
    weight = (centred**2).sum(axis=0)
    fit = glm_objective.fit_of_data(Dataset.from_arrays(X, y), loss, [0, 1], 1e300, scale="length", intercept="fold")
    assert fit.beta == pytest.approx(centred.T @ (y - y.mean()) / weight / 1e300, rel=1e-9, abs=0.0)


def test_losses_of_far_margins() -> None:
    found = LOG_LOSS.losses(np.array([1e4, -1e4, -2.0]), np.ones(3))
    assert found[:2].tolist() == [0.0, 1e4] and found[2] == pytest.approx(np.log1p(np.exp(2.0)))
