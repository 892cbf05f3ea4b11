from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, cross_val_predict

import sparsecv_mio as sc
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.api import with_full_data_model
from sparsecv_mio.search.options import SearchOptions

RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(RNG.normal(size=(24, 4)), columns=list("abcd")).assign(
    y=lambda table: (table.a + table.b + 0.3 * table.c > 0.2).astype(float)
)
FRAME.loc[[1, 4, 9, 20], "a"] = np.nan
FRAME.loc[[2, 4, 14], "b"] = np.nan


@pytest.mark.parametrize("how", [{}, {"loss": "logistic"}, {"method": "grid"}, {"time_limit": 60.0}, {"adjust": "a"}])
def test_the_model_is_that_of_all_rows(how: dict[str, Any]) -> None:
    data = sc.read_dataset(FRAME, "y", na="mean")
    record = sc.solve(data, folds="3", gammas=0.5, taus=2, na_within="folds", scale_within="folds", **how)
    by_all = sc.solve(data, folds="3", gammas=0.5, taus=2, **how)
    assert record.refit.proved and record.coefficients == pytest.approx(by_all.coefficients, rel=1e-6)
    assert record.support == by_all.support and record.intercept == pytest.approx(by_all.intercept, rel=1e-6)
    assert record.data == by_all.data and record.folds == by_all.folds
    assert record.cv_error != pytest.approx(by_all.cv_error, rel=1e-4) and record.stability is None
    assert record.warnings[0] == (
        "7 empty cells imputed by the mean of their column over the training rows of each fold; for the model of all "
        "rows, over all rows, in 'a', 'b'"
    )
    assert sc.verify(record, data).ok


def test_without_time_nothing_of_it_is_proved() -> None:
    data = sc.read_dataset(FRAME, "y", na="mean")
    record = sc.solve(data, folds="3", gammas=0.5, taus=2)
    quick = with_full_data_model(record, standardize(data), sc.make_folds("3", data), SearchOptions(), None)
    assert not quick.refit.proved and quick.support == record.support
    assert quick.coefficients == pytest.approx(record.coefficients)


def test_without_time_it_begins_with_the_supports_of_the_folds() -> None:
    data = sc.read_dataset(FRAME, "y", na="mean")
    found = sc.solve(data, folds="3", gammas=0.5, taus=2)
    assert found.support == ("a", "b") and set(found.chosen_folds.supports) == {("a", "b")}
    poor = replace(found, support=("c", "d"))  # as where all rows were not searched yet
    for is_expired in (None, lambda: True):
        record = with_full_data_model(poor, standardize(data), sc.make_folds("3", data), SearchOptions(), is_expired)
        assert record.support == ("a", "b") and not record.refit.proved
        assert record.refit.objective == pytest.approx(found.refit.objective)


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(20, 300))).rename(columns=str).assign(y=lambda table: table["3"] - table["7"])
    frame.loc[4, "3"] = frame.loc[8, "7"] = np.nan
    data = sc.read_dataset(frame, "y", na="median")
    record = sc.solve(data, folds="4", gammas=1.0, taus="0:2", na_within="folds")
    assert record.support == ("3", "7") and record.refit.proved and sc.verify(record, data).ok


def test_what_it_does_not_go_with() -> None:
    data = sc.read_dataset(FRAME, "y", na="mean")
    for how, words in (
        ({"nested": 3}, "nested: not supported with na_within"), ({"gammas": "0.1..1"}, "na_within requires a grid"),
        ({"model": "average"}, "requires model pair"), ({"stability": 1.0}, "requires na_within all, not folds"),
        ({"intercept": "global"}, "requires intercept fold or none"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            sc.solve(data, folds="3", **{"gammas": 0.5, "taus": 1} | how, na_within="folds")
    both = 'scale_within="folds" and na_within="folds"'
    with pytest.raises(BadInput, match=f"^nested: not supported with {both}; leave out {both}, or"):
        sc.solve(data, folds="3", gammas=0.5, taus=1, nested=3, na_within="folds", scale_within="folds")
    _check_advice_on_nested(FRAME.assign(y=FRAME["y"] > FRAME["y"].median()))
    record = sc.solve(data, folds="3", gammas=0.5, taus=1, scale_within="folds")
    with pytest.raises(
        BadInput, match="^interval: not supported if each fold imputes or scales with its own training rows"
    ):
        record.predict_interval(data.X, 0.5, data)


def _check_advice_on_nested(frame: pd.DataFrame) -> None:
    """Run the advice of the error about nested cross-validation: without groups and with groups."""
    groups = np.arange(len(frame)) // 2
    rows = sc.read_dataset(frame.assign(who=groups, y=frame["y"].astype(int)), "y", na="mean", drop=["who"])
    X, y = frame.drop(columns="y").to_numpy(float), frame["y"].to_numpy(int)
    how = {"gammas": 0.5, "taus": 1, "loss": "logistic", "na_within": "folds"}
    with pytest.raises(BadInput, match="pass BestSubsetLogisticCV with these settings to cross_val_predict"):
        sc.solve(rows, folds="3", nested=3, **how)
    model = sc.BestSubsetLogisticCV(gammas=0.5, taus=1, cv=3, na="mean", na_within="folds")
    assert cross_val_predict(model, X, y, cv=3).shape == y.shape
    with pytest.raises(BadInput) as error:
        sc.solve(frame.assign(who=groups), "y", folds="groups:who:3", nested=4, na="mean", **how)
    advice = re.search(
        r"for each \(train, test\) of (.*), fit (\w+) with .* and cv=(.*) by (fit\(.*\)) and", str(error.value)
    )
    assert advice is not None
    split, name, cv, fit = advice.groups()
    given = {"X": X, "y": y, "groups": groups, "GroupKFold": GroupKFold}
    for train, test in eval(split, given):
        model = getattr(sc, name)(gammas=0.5, taus=1, cv=eval(cv, given), na="mean", na_within="folds")
        fitted = eval(f"model.{fit}", given | {"model": model, "train": train})
        assert fitted.predict(X[test]).shape == test.shape and fitted.record_.folds.k == 3


def test_a_warning_on_the_data_is_given_once() -> None:
    frame = FRAME.assign(a=FRAME["a"].where(FRAME.index != 3, -999.0))
    data = sc.read_dataset(frame, "y", na="mean")
    record = sc.solve(data, folds="3", gammas=0.5, taus=1, na_within="folds")
    assert sum("holds -999" in words for words in record.warnings) == 1
