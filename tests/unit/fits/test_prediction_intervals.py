"""Prediction intervals by the models of the folds, against a plain computation of CV+ (Barber and others 2021)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import problems
import pytest
from sklearn.model_selection import KFold

import sparsecv_mio as sc
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.prediction_intervals import check_level, with_fold_models
from sparsecv_mio.search.answer.fold_models import with_mae
from sparsecv_mio.targets import Loss


def lengths(X: Any) -> Any:
    return np.linalg.norm(X - X.mean(axis=0), axis=0)


def plain_intervals(record: Any, data: Any, labels: Any, new: Any, level: float, by_fold: Any = None) -> Any:
    """CV+ row by row: a ridge fit on the support of each fold, all predictions in one list, sorted.

    `by_fold` has the rows, the new rows and the lengths of columns of each fold, if they differ by fold.
    """
    seen = by_fold or [(data.X, new, lengths(data.X))] * record.folds.k
    low, high = [], []
    for i in range(len(new)):
        below, above = [], []
        for fold, (X, rows, length) in enumerate(seen):
            x = rows[i]
            held, S = labels == fold, [data.names.index(name) for name in record.chosen_folds[fold].support]
            A, b = X[~held][:, S], data.y[~held]
            penalty = np.diag(record.gamma / 2.0 * length[S] ** 2)
            middle, mean = A.mean(axis=0), b.mean()
            beta = np.linalg.solve((A - middle).T @ (A - middle) + penalty, (A - middle).T @ (b - mean))
            missed = np.abs(data.y[held] - mean - (X[held][:, S] - middle) @ beta)
            predicted = mean + (x[S] - middle) @ beta
            below += (predicted - missed).tolist()
            above += (predicted + missed).tolist()
        alpha, n = 1.0 - level, data.n
        low.append(sorted(below)[math.floor(round(alpha * (n + 1), 9)) - 1])
        high.append(sorted(above)[math.ceil(round((1.0 - alpha) * (n + 1), 9)) - 1])
    return np.column_stack([low, high])


@pytest.mark.parametrize("seed", range(6))
def test_intervals_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(19, 40)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, p) + rng.normal(size=p)
    data = sc.Dataset.from_arrays(X, X[:, 0] / np.std(X[:, 0]) + rng.normal(size=n))
    folds = str(rng.choice(["loo", "3", "7"]))
    record = sc.solve(data, folds=folds, gammas=[0.01, 1.0])
    labels = sc.make_folds(folds, data).labels
    for level in (0.5, 0.8, 0.9, 0.95):
        ours = record.predict_interval(X[:4], level, data)
        assert ours == pytest.approx(plain_intervals(record, data, labels, X[:4], level), rel=1e-8)
        assert (ours[:, 0] <= ours[:, 1]).all()


@pytest.mark.parametrize("within", [("na",), ("scale",), ("na", "scale")])
def test_each_fold_imputes_and_scales_for_its_model(within: tuple[str, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 4)) * [1.0, 3.0, 0.2, 1.0], columns=list("abcd"))
    frame["y"] = frame["a"] + frame["b"] / 3.0 - 5.0 * frame["c"] + 0.1 * rng.normal(size=40)
    new = frame.iloc[:6, :4].copy()
    new.iloc[[0, 1, 1, 5], [0, 1, 2, 0]] = new.iloc[4, 3] = np.nan  # column d has no missing cell in the data
    frame.loc[rng.choice(40, 9, replace=False), "a"] = frame.loc[rng.choice(40, 9, replace=False), "b"] = np.nan
    data = sc.read_dataset(frame, "y", na="mean")
    how = {f"{name}_within": "folds" for name in within}
    labels = np.arange(40) // 8  # as KFold(5)
    record = sc.solve(data, folds=labels, gammas=0.2, taus=3, **how)
    X, by_fold = frame.drop(columns="y"), []
    for fold in range(5):
        mean = X[labels != fold].mean() if "na" in within else X.mean()
        rows = X.fillna(mean).to_numpy()
        length = lengths(rows[labels != fold] if "scale" in within else X.fillna(X.mean()).to_numpy())
        by_fold.append((rows, new.fillna(mean).to_numpy(), length))
    plain = plain_intervals(record, data, labels, new, 0.8, by_fold)
    assert record.predict_interval(new, 0.8, data, labels) == pytest.approx(plain, rel=1e-9)
    assert plain_intervals(record, data, labels, new.fillna(X.mean()).to_numpy(), 0.8) != pytest.approx(plain, rel=1e-4)
    new.to_csv(tmp_path / "new.csv", index=False)
    assert record.predict_interval(tmp_path / "new.csv", 0.8, data, labels) == pytest.approx(plain, rel=1e-9)
    model = sc.BestSubsetRidgeCV(gammas=[0.2], taus=[3], cv=KFold(5), na="mean", **how).fit(X, frame["y"])
    plain = plain_intervals(model.record_, data, labels, new, 0.8, by_fold)
    assert model.predict_interval(new, 0.8) == pytest.approx(plain, rel=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sc.read_dataset("instances/prostate.csv", "lpsa")
    record = sc.solve(data, gammas=[0.1])
    whole = record.predict_interval(data, data=data)
    monkeypatch.setattr("sparsecv_mio.fits.prediction_intervals.BLOCK_NUMBERS", 500)
    frame = pd.DataFrame(data.X, columns=data.names)
    assert record.predict_interval(frame, data=data) == pytest.approx(whole, rel=1e-13)  # products of other shapes
    with pytest.raises(BadInput, match=r"^data: predict_interval\(X, 0.8\) needs the data of the record, .* add data="):
        record.predict_interval(frame, 0.8)
    with pytest.raises(BadInput, match=r"^data: predict_interval\(X, 0.9\) needs the data of the record"):
        record.predict_interval(frame, data)  # type: ignore[arg-type]  # the order before
    inside = (whole[:, 0] <= data.y) & (data.y <= whole[:, 1])
    assert inside.mean() >= 0.9


def test_every_level_has_the_rows_that_it_takes() -> None:
    assert [check_level(0.9, n) for n in (9, 18, 19, 99)] == [1, 1, 2, 10]
    assert check_level(0.99, 99) == 1 and check_level(np.float32(0.5), 99) == 50  # type: ignore[arg-type]
    with pytest.raises(
        BadInput, match="^interval: a level of 0.99 needs 99 rows, and the model was fitted to 98; give a lower level$"
    ):
        check_level(0.99, 98)
    for level in (0.0, 1.0, -1.0, math.nan, "0.9", None):
        with pytest.raises(BadInput, match="^interval: .* is out of range; give a level between 0 and 1, "):
            check_level(level, 100)  # type: ignore[arg-type]


def test_what_has_no_intervals_is_refused_in_one_line() -> None:
    data = sc.read_dataset("instances/prostate.csv", "lpsa")

    def refused(record: Any, said: str, rows: Any = data) -> None:
        with pytest.raises(BadInput, match=f"^[^\n]*{said}[^\n]*$"):
            record.predict_interval(data.X, data=rows)

    with pytest.raises(BadInput, match="does not have a model for each fold"):
        with_fold_models(sc.best_subsets(data, gammas=0.1))
    averaged = sc.solve(data, gammas=0.1, model="average", folds="4")
    refused(averaged, "not supported with the averaged model, which has no fold models; solve again with --model pair")
    for folds in ("2x5", "forward:4", "holdout:0.3"):
        refused(
            sc.solve(data, gammas=0.1, folds=folds, taus="1:3"),
            f"folds '{folds}' do not hold out every row exactly once",
        )
    weighted = weighted_rows(data, np.arange(data.n) % 3 + 1.0, "w")
    refused(sc.solve(weighted, gammas=0.1, taus="1:3"), "rows with equal weight", weighted)
    other = sc.Dataset.from_arrays(data.X, data.y + 1.0, data.names, data.target)
    refused(sc.solve(data, gammas=0.1, taus="1:3"), "not the data of the record", other)
    labels = np.arange(data.n) % 4
    by_labels = sc.solve(data, gammas=0.1, taus="1:3", folds=labels)
    assert by_labels.predict_interval(data.X[:3], data=data, folds=labels).shape == (3, 2)


def test_models_are_fitted_again_for_as_long_as_there_is_time() -> None:
    """After a limit one of each of hundreds of folds took minutes; without them the answer is the same."""
    data = as_two_classes(problems.classes(0, 30, 3, {0: 1.0}))
    plan = sc.make_folds("loo", data)
    record = sc.solve(data, folds="loo", gammas=[0.1], taus=[2], loss="logistic", threads=1)
    assert record.classes is not None and record.classes.accuracy is not None
    bare = replace(record, classes=replace(record.classes, accuracy=None, auc=None, brier=None))
    standard = standardize(data, loss=Loss.LOGISTIC)
    assert with_mae(bare, standard, plan) == record
    assert with_mae(bare, standard, plan, seconds=-1.0) == bare
