"""The methods `bootstrap`, `stability_selection` and `infer` of the estimators."""

from __future__ import annotations

import pickle
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetLogisticCV, BestSubsetPoissonCV, BestSubsetRidgeCV

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
SIGNAL = 1.5 * X[:, 0] + RNG.normal(size=40)
GRID: dict[str, Any] = {"gammas": [0.1], "taus": [1, 2], "cv": 4}
FITS = [
    pytest.param(BestSubsetRidgeCV(**GRID), SIGNAL, {}, id="squared"),
    pytest.param(BestSubsetRidgeCV(**GRID), SIGNAL, {"sample_weight": 1.0 + np.arange(40) % 3}, id="weights"),
    pytest.param(BestSubsetLogisticCV(**GRID), np.where(SIGNAL > 0.0, "yes", "no"), {}, id="classes"),
    pytest.param(
        BestSubsetPoissonCV(**GRID), np.floor(np.exp(0.5 * SIGNAL)), {"exposure": 1.0 + np.arange(40) % 2}, id="counts"
    ),
]


@pytest.mark.parametrize(("model", "y", "given"), FITS)
def test_methods_repeat_the_procedure_of_the_fit(model: Any, y: Any, given: dict[str, Any]) -> None:
    model.fit(X, y, **given)
    found = model.bootstrap(4, seed=1).bootstrap
    assert len(found.chosen) == 4 and found.plan.seed == 1 and found.features[0].feature == "x0"
    assert model.record_.bootstrap is None
    halves = model.stability_selection(2, threshold=0.9).stability_selection
    assert halves.pairs == 2 and halves.plan.requested == 4
    if find_spec("statsmodels") is not None:
        tested = model.infer("splits:3", seed=1).inference
        assert tested.plan.requested == len(tested.splits) == 3 and tested.terms[0].term == "x0"
    again = pickle.loads(pickle.dumps(model))
    assert again.bootstrap(4, seed=1).bootstrap == found


def test_the_method_agrees_with_the_function() -> None:
    model = BestSubsetRidgeCV(**GRID).fit(X, SIGNAL)
    data = Dataset.from_arrays(X, SIGNAL)
    record = sc.cross_validate(data, "4", gammas=[0.1], taus=[1, 2], threads=1)
    alone = sc.bootstrap(record, data, 5, threads=1)
    assert model.bootstrap(5).bootstrap == alone.bootstrap
    for method in (model.bootstrap, model.stability_selection, model.infer, model.compare_baselines):
        with pytest.raises(BadInput, match=f"^{method.__name__}: takes no data: the estimator stores "):
            method(X, SIGNAL, 20)
    assert sc.verify(replace(alone, warnings=()), data).ok
