"""Estimators of counts: what scikit-learn expects of a regressor, and the same numbers as its own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetLogistic, BestSubsetPoisson, BestSubsetPoissonCV


def drawn(n: int = 80, p: int = 5) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    X, exposure = rng.normal(size=(n, p)), rng.uniform(0.2, 5.0, size=n)
    return X, rng.poisson(exposure * np.exp(0.3 + X[:, 1] - 0.5 * X[:, 3])).astype(float), exposure


@parametrize_with_checks([BestSubsetPoisson(), BestSubsetPoissonCV(taus=[0, 1], cv=3, gammas=[0.1], gap=0.05)])
def test_what_scikit_learn_asks_of_a_regressor(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("gamma", [0.01, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_all_features_are_the_fit_of_scikit_learn(gamma: float, intercept: bool) -> None:
    X, y, exposure = drawn()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=len(y))
    for e, w in ((np.ones(80), np.ones(80)), (exposure, weights)):
        ours = BestSubsetPoisson(5, gamma=gamma, scale="none", fit_intercept=intercept).fit(X, y, w, exposure=e)
        alpha = gamma / float(w @ e)
        theirs = PoissonRegressor(alpha=alpha, tol=1e-12, solver="newton-cholesky", fit_intercept=intercept)
        theirs.fit(X, y / e, sample_weight=w * e)
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-6)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
        assert ours.predict(X) == pytest.approx(theirs.predict(X), rel=1e-6)
        assert ours.predict(X, e) == pytest.approx(e * theirs.predict(X), rel=1e-6)
        assert ours.score(X, y, w, exposure=e) == pytest.approx(theirs.score(X, y / e, w * e), abs=1e-6)
    assert ours.score(X, y, exposure=1.0) == pytest.approx(theirs.score(X, y), abs=1e-6)


def test_the_search_its_exposures_and_its_record() -> None:
    X, y, exposure = drawn()
    model = BestSubsetPoissonCV(gammas=[0.1, 1.0], cv=4).fit(X, y, exposure=exposure)
    assert model.status_ == "proved" and model.lower_ <= model.cv_error_ <= model.upper_
    assert model.scores_.shape == (2, 5) and model.scores_.max() == pytest.approx(-model.cv_error_, rel=1e-3)
    assert model.loss_path_.shape == (2, 5, 4) and model.coef_path_.shape == (5, 5)
    data = Dataset.from_arrays(X, y, aux={"exposure": exposure})
    assert sc.verify(model.record_, data).ok
    same = sc.solve(data, folds="4", gammas=[0.1, 1.0], loss="poisson", exposure="exposure")
    assert same.cv_error == model.cv_error_ and dict(same.coefficients) == dict(model.record_.coefficients)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.loss_path_, model.loss_path_) and np.array_equal(again.coef_path_, model.coef_path_)
    averaged = BestSubsetPoissonCV(gammas=[0.1, 1.0], cv=4, model="average").fit(X, y, exposure=exposure)
    assert averaged.record_.average is not None and sc.verify(averaged.record_, data).ok
    assert averaged.predict(X, exposure) == pytest.approx(averaged.record_.predict(as_counts(data, "exposure")))


def test_rates_that_are_not_whole_are_verified_as_they_were_fitted() -> None:
    X, y, exposure = drawn()
    model = BestSubsetPoissonCV(gammas=1.0, taus=[1, 2], cv=3).fit(X, y / exposure, sample_weight=exposure)
    named = Dataset.from_arrays(X, y / exposure, aux={"sample_weight": exposure})
    assert sc.verify(model.record_, named).ok
    given = BestSubsetPoisson(2, gamma=1.0, scale="none").fit(X, y, exposure=exposure)
    rates = BestSubsetPoisson(2, gamma=1.0, scale="none").fit(X, y / exposure, exposure)
    assert given.coef_ == pytest.approx(rates.coef_, rel=1e-9)


def test_exposures_are_routed_through_pipelines_and_searches() -> None:
    X, y, exposure = drawn()
    with config_context(enable_metadata_routing=True):
        inner = BestSubsetPoisson(2).set_fit_request(exposure=True).set_score_request(exposure=True)
        search = GridSearchCV(make_pipeline(StandardScaler(), inner), {"bestsubsetpoisson__tau": [1, 2, 3]}, cv=3)
        search.fit(X, y, exposure=exposure)
    alone = BestSubsetPoisson(search.best_params_["bestsubsetpoisson__tau"])
    alone.fit(StandardScaler().fit_transform(X), y, exposure=exposure)
    assert search.best_estimator_[-1].coef_ == pytest.approx(alone.coef_)


def test_a_score_without_the_exposures_or_offsets_of_the_fit_is_refused() -> None:
    X, y, exposure = drawn()
    model = BestSubsetPoisson(2).fit(X, y, exposure=exposure)
    with pytest.raises(BadInput, match=r"^exposure: .* fitted with exposure, .* set_score_request\(exposure=True\)"):
        model.score(X, y)
    assert model.score(X, y, exposure=exposure) > model.score(X, y, exposure=1.0)
    labels = BestSubsetLogistic(2).fit(X, y > 1, offset=np.log(exposure))
    with pytest.raises(BadInput, match="^offset: the model was fitted with offset, but `score` has none"):
        labels.score(X, y > 1)
    assert BestSubsetPoisson(2).fit(X, y).score(X, y) > 0.0


def test_what_is_refused() -> None:
    X, y, exposure = drawn()
    with pytest.raises(BadInput, match="y is -1 in row 2; give counts, numbers of at least 0"):
        BestSubsetPoisson(2).fit(X, np.where(np.arange(80) == 1, -1.0, y))
    with pytest.raises(BadInput, match="y is 0 in every row"):
        BestSubsetPoisson(2).fit(X, np.zeros(80))
    with pytest.raises(BadInput, match="exposure is 0 in row 3; give a number above 0"):
        BestSubsetPoisson(2).fit(X, y, exposure=np.where(np.arange(80) == 2, 0.0, exposure))
    with pytest.raises(BadInput, match=r"exposure has the shape \(3,\); give a number above 0 for each of 80 rows"):
        BestSubsetPoissonCV(cv=3).fit(X, y, exposure=[1.0, 2.0, 3.0])
    chosen = BestSubsetPoissonCV(refit=False, gammas=0.1, taus=1, cv=3).fit(X, y)
    assert chosen.tau_ == 1 and not any(hasattr(chosen, name) for name in ("coef_", "predict"))
