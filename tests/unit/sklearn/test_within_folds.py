"""Scales and fills of the training rows alone, in the estimators that choose by cross-validation."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import sparsecv_mio as sc
from sparsecv_mio.errors import BadInput

RNG = np.random.default_rng(61)
X = RNG.normal(size=(60, 3)) * RNG.exponential(2.0, size=(60, 1))
Y = X[:, 0] - 0.5 * X[:, 2] + RNG.normal(size=60)
CV = list(KFold(4).split(X))
ONE_PAIR: dict[str, Any] = {"taus": [2], "gammas": [3.0], "cv": CV}


def with_holes() -> np.ndarray[Any, Any]:
    holes = X.copy()
    holes[::7, 0], holes[3::9, 2] = np.nan, np.nan
    return holes


def test_scales_of_the_training_rows_give_the_error_of_cross_val_predict() -> None:
    labels = (Y > 0.0).astype(int)
    chance = cross_val_predict(sc.BestSubsetLogistic(2, gamma=3.0), X, labels, cv=CV, method="predict_proba")
    outside = log_loss(labels, chance)
    fits = (sc.BestSubsetLogisticCV(**ONE_PAIR, scale_within=rows).fit(X, labels) for rows in ("all", "folds"))
    of_all, of_folds = fits
    assert of_folds.cv_error_ == pytest.approx(outside, rel=1e-9) and of_all.cv_error_ != pytest.approx(
        outside, rel=1e-4
    )
    squared = cross_val_predict(sc.BestSubsetRidge(2, gamma=3.0), X, Y, cv=CV)
    ridge = sc.BestSubsetRidgeCV(**ONE_PAIR, scale_within="folds").fit(X, Y)
    assert ridge.cv_error_ == pytest.approx(np.mean((Y - squared) ** 2), rel=1e-9)
    counts = np.round(np.exp(np.clip(Y, -2.0, 2.0)))
    assert (
        sc.BestSubsetPoissonCV(**ONE_PAIR, scale_within="folds").fit(X, counts).record_.request.scale_within == "folds"
    )


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_empty_values_are_filled_by_the_training_rows(rule: str) -> None:
    holes = with_holes()
    steps = make_pipeline(SimpleImputer(strategy=rule), sc.BestSubsetRidge(2, gamma=3.0))
    outside = np.mean((Y - cross_val_predict(steps, holes, Y, cv=CV)) ** 2)
    model = sc.BestSubsetRidgeCV(**ONE_PAIR, na=rule, na_within="folds", scale_within="folds").fit(holes, Y)
    assert model.cv_error_ == pytest.approx(outside, rel=1e-9)
    filled = SimpleImputer(strategy=rule).fit_transform(holes)
    assert model.predict(holes) == pytest.approx(model.predict(filled), rel=1e-12)
    assert (pickle.loads(pickle.dumps(model)).predict(holes) == model.predict(holes)).all()
    assert model.mse_path_.mean() == pytest.approx(model.cv_error_, rel=1e-9)
    with pytest.raises(AttributeError, match="with 'folds', models of other sizes are not stored; give 'all'"):
        _ = model.coef_path_
    frame = pd.DataFrame(holes, columns=["a", "b", "c"])
    named = sc.BestSubsetRidgeCV(**ONE_PAIR, na=rule).fit(frame, pd.Series(Y, name="target"))
    sc.verify(named.record_, frame.assign(target=Y), named._search.folds).raise_if_failed()
    assert named.predict(frame) == pytest.approx(named.record_.predict(frame), rel=1e-12)


def test_what_cannot_be_filled_is_refused_in_one_line() -> None:
    holes = with_holes()
    with pytest.raises(BadInput, match="^na_within folds: requires na mean or median"):
        sc.BestSubsetRidgeCV(**ONE_PAIR, na_within="folds").fit(X, Y)
    with pytest.raises(BadInput, match="^na: 'drop' is not supported by estimators; use error, mean or median$"):
        sc.BestSubsetRidgeCV(**ONE_PAIR, na="drop").fit(holes, Y)
    with pytest.raises(BadInput, match="contains NaN"):
        sc.BestSubsetRidgeCV(**ONE_PAIR).fit(holes, Y)
    model = sc.BestSubsetRidgeCV(**ONE_PAIR, na="mean").fit(holes, Y)
    new, filled = X[:2].copy(), X[:2].copy()
    new[0, 1], filled[0, 1] = np.nan, X[:, 1].mean()  # a column that had no empty value in the fit
    assert model.predict(new) == pytest.approx(model.predict(filled), rel=1e-12)
