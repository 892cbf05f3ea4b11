"""What a file of a fitted estimator holds: plain data, and what version 0.2.0 wrote."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.sklearn.kept import KeptSearch

PLAIN = (bool, int, float, str, type(None), np.ndarray, dict, list, tuple)


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X[:, 0] - X[:, 2] + rng.normal(size=40)


def inside(value: Any) -> list[Any]:
    """A value and all that it is made of."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [value, *(part for one in values for part in inside(one))]


@pytest.mark.parametrize(
    "model", [sc.BestSubsetRidgeCV(cv=4), sc.BestSubsetRidgeCV(cv=4, model="average"), sc.BestSubsetRidge(tau=2)]
)
def test_a_stored_estimator_is_plain_and_knows_what_it_knew(model: Any) -> None:
    X, y = data()
    model.fit(X, y)
    assert all(isinstance(part, PLAIN) for part in inside(model.__getstate__()))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X)) and again.record_ == model.record_
    if isinstance(model, sc.BestSubsetRidgeCV):
        assert np.array_equal(again.mse_path_, model.mse_path_)
        assert np.array_equal(again.coef_path_, model.coef_path_)


def test_folds_that_overlap_are_stored() -> None:
    X, y = data()
    dealt = [(np.arange(20, 40), np.arange(0, 10)), (np.arange(0, 30), np.arange(35, 40))]
    model = sc.BestSubsetRidgeCV(cv=dealt).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.mse_path_.shape[-1] == 2 and again._kept.folds.digest == model._kept.folds.digest


def test_the_state_of_0_2_0_is_read() -> None:
    """There the record and what is kept of the search were objects."""
    X, y = data()
    model = sc.BestSubsetRidgeCV(cv=4).fit(X, y)
    old, again = dict(vars(model)), sc.BestSubsetRidgeCV(cv=4)
    assert isinstance(old["_kept"], KeptSearch)
    again.__setstate__(old)
    assert np.array_equal(again.predict(X), model.predict(X)) and np.array_equal(again.mse_path_, model.mse_path_)
