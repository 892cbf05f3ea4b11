from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy

import sparsecv_mio as sc
from sparsecv_mio.data.folds import inner_folds, outer_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.draws import bootstrap_draws
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
        "7 missing values imputed by the mean of their column over the training rows of each fold; for the model of "
        "all rows, over all rows, in 'a', 'b'"
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
        ({"gammas": "0.1..1"}, "na_within requires a grid"),
        ({"model": "average"}, "requires model pair"), ({"stability": 1.0}, "requires na_within all, not folds"),
        ({"intercept": "global"}, "requires intercept fold or none"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            sc.solve(data, folds="3", **{"gammas": 0.5, "taus": 1} | how, na_within="folds")


@pytest.mark.parametrize("na", ["mean", "median"])
def test_folds_of_a_draw_impute_and_scale_by_the_copies_of_their_training_rows(na: str) -> None:
    """A draw has the answer of a file with the copied rows, all copies of a row in one fold."""
    data = sc.read_dataset(FRAME, "y", na=na)
    how: dict[str, Any] = {"na_within": "folds", "scale_within": "folds", "gammas": [0.2, 2.0], "taus": [1, 2, 3]}
    record = sc.solve(data, folds="3", **how)
    found = sc.bootstrap(record, data, draws=6, seed=2).bootstrap
    folds = sc.make_folds("3", data)
    assert found is not None and len(found.chosen) == 6
    for draw, chosen in zip(bootstrap_draws(data, folds, 6, 2), found.chosen, strict=True):
        labels = inner_folds(folds, draw.rows, draw.select_rows(data)).labels
        copied = FRAME.iloc[draw.rows.repeat(draw.weights)].reset_index(drop=True)
        own = sc.solve(sc.read_dataset(copied, "y", na=na), folds=labels.repeat(draw.weights), **how)
        assert (chosen.gamma, chosen.tau, chosen.support) == (own.gamma, own.tau, own.support)
        assert chosen.coefficients == pytest.approx(own.coefficients, rel=1e-8)
        assert chosen.cv_error == pytest.approx(own.cv_error, rel=1e-8)
    tested = sc.infer(record, data, "splits:4")
    assert tested.inference is not None and sc.verify(tested, data).ok


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_outer_training_rows_impute_and_scale(loss: str) -> None:
    """Each outer model is that of its training rows alone, which impute the held-out rows too."""
    target = {"squared": FRAME["c"] + FRAME["d"], "logistic": FRAME["y"].astype(int), "poisson": RNG.poisson(2.0, 24)}
    frame = FRAME.assign(y=target[loss])
    data, how = sc.read_dataset(frame, "y", na="median"), {"gammas": [0.1, 2.0], "taus": [1, 2], "loss": loss}
    how |= {"na_within": "folds", "scale_within": "folds", "folds": "2", "seed": 4}
    record = sc.solve(data, nested=4, **how)
    assert record.nested is not None and not any("before, and are not imputed" in words for words in record.warnings)
    outer = outer_folds(4, sc.make_folds(record.folds.spec, data, 4), data)
    for fold, model in enumerate(record.nested.folds):
        train, test = outer.train_rows(fold), outer.scored_rows(fold)
        own = sc.solve(sc.read_dataset(frame.iloc[train].reset_index(drop=True), "y", na="median"), **how)
        assert (model.gamma, model.tau, set(model.support)) == (own.gamma, own.tau, set(own.support))
        assert model.cv_error == pytest.approx(own.cv_error, rel=1e-9)
        held, predicted = frame.iloc[test], own.predict(frame.iloc[test].drop(columns="y"))
        y = held["y"].to_numpy(float)
        if loss == "squared":
            error = np.mean((y - predicted) ** 2)
        elif loss == "logistic":
            error = -np.mean(np.log(np.where(y == 1, predicted, 1.0 - predicted)))
        else:
            error = np.mean(xlogy(y, y / predicted) - y + predicted)
        assert model.error == pytest.approx(error, rel=1e-6)
    assert sc.verify(record, data).ok
    outer_models = record.nested.folds
    wrong = replace(outer_models[1], error=outer_models[1].error * 1.001)
    altered = replace(record, nested=replace(record.nested, folds=(outer_models[0], wrong, *outer_models[2:])))
    assert any(failure.field == "nested.folds[1].error" for failure in sc.verify(altered, data).failures)


def test_outer_folds_with_groups_and_factors() -> None:
    rng = np.random.default_rng(8)
    frame = FRAME.assign(who=np.arange(24) // 2, site=rng.choice(["x", "y", "z"], 24))
    frame.loc[[3, 12, 17], "site"] = None
    how = {"na": "mean", "encode": "onehot", "na_within": "folds", "folds": "groups:who:3", "count": "factors"}
    record = sc.solve(frame, "y", loss="logistic", gammas=0.5, taus=[1, 2], nested=3, **how)
    assert record.nested is not None and len(record.nested.folds) == 3 and sc.verify(record, frame).ok


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_forced_factor_may_lack_a_level_in_an_outer_training_set(loss: str) -> None:
    """The model of such rows is that of a file that never had the level; separate levels would change the sizes."""
    site = np.array(["x", "y", "z"], dtype="U4")[np.arange(24) % 3]
    site[7] = "rare"
    frame = FRAME[["c", "d"]].assign(site=site, y=FRAME["y"].astype(int) if loss == "logistic" else FRAME["c"])
    how = {"encode": "onehot", "force_in": "site", "loss": loss, "gammas": 0.5, "taus": [2], "count": "factors"}
    with pytest.raises(BadInput, match="'site=rare' is constant.+ give --count factors"):
        sc.solve(frame, "y", folds="2", nested=3, **(how | {"taus": [4], "count": "columns"}))
    data = sc.read_dataset(frame, "y", encode="onehot")
    record = sc.solve(frame, "y", folds="2", nested=3, **how)
    assert record.nested is not None and sc.verify(record, frame).ok
    outer = outer_folds(3, sc.make_folds(record.folds.spec, data), data)
    for fold in (fold for fold in range(3) if 7 in outer.scored_rows(fold)):
        train, model = outer.train_rows(fold), record.nested.folds[fold]
        own = sc.solve(frame.iloc[train].reset_index(drop=True), "y", folds="2", **how)
        assert {*model.support} - {"site=rare"} >= {"site=x", "site=y", "site=z"}
        assert {*model.support} - {"site=rare"} == {*own.support}
        assert model.cv_error == pytest.approx(own.cv_error, rel=1e-6)
    drawn = sc.bootstrap(sc.solve(frame, "y", folds="2", **how), frame, draws=6)
    assert drawn.bootstrap is not None and len(drawn.bootstrap.chosen) == 6 and sc.verify(drawn, frame).ok
    halves = sc.infer(record, frame, "splits:4")
    assert halves.inference is not None and sc.verify(halves, frame).ok


def test_a_forced_feature_that_is_constant_is_still_refused() -> None:
    for names in ({"one": 1.0}, {"one=a": 1.0, "one=b": 0.0}):
        frame = FRAME[["c", "d", "y"]].assign(**names)
        with pytest.raises(BadInput, match="force_in: feature 'one.*' is constant, so it cannot be selected"):
            sc.solve(frame, "y", folds="3", gammas=0.5, taus=2, force_in=list(names))


@pytest.mark.parametrize("there", [(0,), (0, 23), (0, 1, 23)])
def test_an_outer_fold_without_values_to_impute_from(there: tuple[int, ...]) -> None:
    data = sc.read_dataset(FRAME.assign(a=FRAME["c"].where(FRAME.index.isin(there))), "y", na="mean")
    with pytest.raises(BadInput, match=r"^nested, with outer fold \d held out: na_within folds: column 'a' is empty"):
        sc.solve(data, folds="3", gammas=0.5, taus=1, nested=2, na_within="folds")


def test_a_warning_on_the_data_is_given_once() -> None:
    frame = FRAME.assign(a=FRAME["a"].where(FRAME.index != 3, -999.0))
    data = sc.read_dataset(frame, "y", na="mean")
    record = sc.solve(data, folds="3", gammas=0.5, taus=1, na_within="folds")
    assert sum("holds -999" in words for words in record.warnings) == 1
