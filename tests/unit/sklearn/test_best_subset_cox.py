"""Estimators of survival times: scikit-survival's conventions, its numbers, and scikit-learn's tools."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_no_attributes_set_in_init, check_parameters_default_constructible

from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetCox, BestSubsetCoxCV

SURVIVAL = [("event", bool), ("time", float)]


def as_target(event: Any, time: Any) -> Any:
    return np.array(list(zip(event, time, strict=True)), dtype=SURVIVAL)


def drawn(n: int = 60, p: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    time = np.ceil(8.0 * rng.exponential(size=n) * np.exp(-X[:, 1] + 0.8 * X[:, 3]))
    return X, as_target(rng.uniform(size=n) < 0.7, time)


@pytest.mark.parametrize("estimator", [BestSubsetCox(), BestSubsetCoxCV()])
def test_checks_of_scikit_learn_that_fit_no_plain_target(estimator: Any) -> None:
    """The other checks of scikit-learn fit targets that are numbers, which have no events."""
    check_parameters_default_constructible(type(estimator).__name__, estimator)
    check_no_attributes_set_in_init(type(estimator).__name__, estimator)
    assert clone(estimator).get_params() == estimator.get_params()


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_all_features_are_the_fit_of_scikit_survival(ties: str) -> None:
    linear_model = pytest.importorskip("sksurv.linear_model", reason="scikit-survival, a peer of the tests, is absent")
    X, y = drawn()
    ours = BestSubsetCox(4, gamma=0.5, scale="none", ties=ties).fit(X, y)
    theirs = linear_model.CoxPHSurvivalAnalysis(alpha=0.5, ties=ties, tol=1e-12, n_iter=200).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-7)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    for one, other in zip(ours.predict_survival_function(X[:5]), theirs.predict_survival_function(X[:5]), strict=True):
        assert one(ours.unique_times_) == pytest.approx(other(ours.unique_times_), abs=1e-7)


def test_a_path_its_predictions_and_a_copy() -> None:
    X, y = drawn()
    model = BestSubsetCox([1, 2], gamma=0.1).fit(X, y)
    assert model.coef_path_.shape == (4, 2) and model.status_ == "proved"
    assert np.flatnonzero(model.support_).tolist() == [1, 3]
    assert np.ptp(model.predict(X) - X @ model.coef_) < 1e-12
    times, survival = model.unique_times_, model.predict_survival_function(X[:3], return_array=True)
    hazard = model.predict_cumulative_hazard_function(X[:3], return_array=True)
    assert survival.shape == hazard.shape == (3, len(times)) and survival == pytest.approx(np.exp(-hazard))
    assert np.all(np.diff(survival, axis=1) <= 0.0) and 0.5 < model.score(X, y) <= 1.0
    assert pickle.loads(pickle.dumps(model)).predict(X) == pytest.approx(model.predict(X))


def test_survival_functions_end_at_the_last_time() -> None:
    X, y = drawn()
    (survival,) = BestSubsetCox(2, gamma=0.1).fit(X, y).predict_survival_function(X[:1])
    assert survival.domain == (0.0, y["time"].max()) and np.isfinite(survival([0.0, y["time"].max()])).all()
    for times in (-0.1, [0.1, 1.001 * y["time"].max()], np.nan):
        with pytest.raises(BadInput, match="no row of the fit is observed outside 0 to "):
            survival(times)


def test_the_search_and_its_record() -> None:
    X, y = drawn()
    model = BestSubsetCoxCV(gammas=[0.1, 1.0], cv=3).fit(X, y, strata=np.arange(60) % 2)
    assert model.status_ == "proved" and model.lower_ <= model.cv_error_ <= model.upper_
    assert model.record_.data.unit_of_errors == "event" and model.record_.data.total_weight == y["event"].sum()
    doubled = BestSubsetCoxCV(gammas=[0.1], taus=[2], cv=3).fit(X, y, sample_weight=np.full(60, 2.0))
    assert doubled.record_.data.total_weight == 2.0 * y["event"].sum()


def test_estimators_in_the_tools_of_scikit_learn() -> None:
    X, y = drawn()
    tuned = GridSearchCV(make_pipeline(StandardScaler(), BestSubsetCox(2)), {"bestsubsetcox__gamma": [0.1, 1.0]}, cv=2)
    tuned.fit(X, y)
    assert tuned.best_score_ > 0.5 and tuned.predict(X).shape == (60,)


@pytest.mark.parametrize(
    ("event", "time", "words"),
    [
        ([False] * 60, [1.0, 2.0] * 30, "y has 0 events; a Cox regression needs at least two"),
        ([True] * 60, [-1.0] * 60, "y has the time -1 in row 1; give times of at least 0"),
    ],
)
def test_targets_that_do_not_suit(event: Any, time: Any, words: str) -> None:
    with pytest.raises(BadInput, match=f"^{words}"):
        BestSubsetCox(1).fit(drawn()[0], as_target(event, time))
    with pytest.raises(BadInput, match="^y is not a structured array of events and times; give np.array"):
        BestSubsetCox(1).fit(drawn()[0], time)


def test_bounds_on_coefficients_are_refused() -> None:
    for estimator in (BestSubsetCox(1, nonnegative=[0]), BestSubsetCoxCV(cv=3, coef_bounds={0: (0.0, 1.0)})):
        with pytest.raises(BadInput, match="loss cox"):
            estimator.fit(*drawn())


def test_conditional_logistic_regression_is_strata_with_one_event() -> None:
    models = pytest.importorskip("statsmodels.discrete.conditional_models", reason="statsmodels is absent")
    rng, sets = np.random.default_rng(5), np.repeat(np.arange(30), 3)
    X, case = rng.normal(size=(90, 2)), np.zeros(90, dtype=bool)
    for matched in range(30):
        chance = np.exp(X[sets == matched, 0])
        case[3 * matched + rng.choice(3, p=chance / chance.sum())] = True
    theirs = models.ConditionalLogit(case.astype(float), X, groups=sets)
    ours = BestSubsetCox(2, gamma=1e-9, scale="none").fit(X, as_target(case, np.ones(90)), strata=sets)
    assert theirs.score(ours.coef_) == pytest.approx(1e-9 * ours.coef_, abs=1e-8)
    assert theirs.loglike(ours.coef_) == pytest.approx(-ours.objective_, rel=1e-8)
