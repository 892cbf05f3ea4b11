"""Every row by the model fitted without it: as the definition says, and their errors are the CV error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.search import held_out
from sparsecv_mio.search.held_out import held_out_predictions, predictions_by_fold

DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


@pytest.mark.parametrize("folds", ["loo", "5", "holdout:0.3"])
@pytest.mark.parametrize(
    "options", [{}, {"scale": "none", "intercept": "none"}, {"scale": "variance", "intercept": "global"}, {"taus": 0}]
)
def test_predictions_are_those_of_the_definition(folds: str, options: dict[str, Any]) -> None:
    record = sc.solve(DATA, folds=folds, **{"gammas": 0.1, "taus": 3, **options})
    plan = sc.make_folds(folds, DATA)
    predicted = held_out_predictions(record, DATA, plan)
    words = {"scale": record.data.scale, "intercept": record.data.intercept}
    for fold in (0, plan.k - 1):
        support = [DATA.names.index(name) for name in record.chosen_folds[fold].support]
        model = fit(DATA.X, DATA.y, support, record.gamma, rows=plan.train_rows(fold), **words)
        test = plan.scored_rows(fold)
        assert predicted[test] == pytest.approx(model.predict(DATA.X[test]), rel=1e-9)
    held = plan.labels >= 0
    assert np.mean((DATA.y - predicted)[held] ** 2) == pytest.approx(record.cv_error, rel=1e-9)
    assert np.isnan(predicted[~held]).all()
    assert record.mae == pytest.approx(np.mean(np.abs(DATA.y - predicted)[held]), rel=1e-6)
    report = sc.verify(record, DATA)
    assert report.ok and sc.verify(replace(record, mae=1.2 * record.rmse), DATA).failures[0].field == "mae"
    assert sc.verify(replace(record, mae=1e-3 * record.rmse), DATA).failures[0].field == "mae"


@pytest.mark.parametrize("rule", [{"one_se": True}, {"stability": 5.0}])
def test_predictions_and_errors_are_of_the_pair_that_a_rule_chose(rule: dict[str, Any]) -> None:
    record = sc.solve(DATA, folds="10", gammas="0.01,0.1,1", **rule)
    assert record.least is not None and (record.gamma, record.tau) != (record.least.gamma, record.least.tau)
    predicted = held_out_predictions(record, DATA, "10")
    assert np.mean((DATA.y - predicted) ** 2) == pytest.approx(record.cv_error, rel=1e-9)
    assert record.mae == pytest.approx(np.mean(np.abs(DATA.y - predicted)), rel=1e-6)
    assert record.least.cv_error < record.cv_error == record.own_row.cv_error  # type: ignore[union-attr]
    assert sc.verify(record, DATA).failures == ()


def test_a_mean_absolute_error_is_found_where_it_is_soon_found(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated = sc.solve(DATA, folds="3x2", gammas=0.1, taus=2)
    rows, predicted = predictions_by_fold(repeated, DATA, "3x2")
    assert len(rows) == 3 * DATA.n and repeated.mae == pytest.approx(np.mean(np.abs(DATA.y[rows] - predicted)))
    monkeypatch.setattr(held_out, "FEW_FOLDS", 4)
    assert sc.solve(DATA, folds="5", gammas=0.1, taus=2).mae is None
    monkeypatch.undo()
    many = sc.solve(DATA, folds="30", gammas=0.1, taus=2)
    rows, predicted = predictions_by_fold(many, DATA, "30")
    assert many.mae == pytest.approx(np.mean(np.abs(DATA.y[rows] - predicted)))
    assert sc.verify(many, DATA).failures == ()
    monkeypatch.setattr(held_out, "FEW_NUMBERS", 30 * DATA.X.size - 1)
    assert sc.solve(DATA, folds="30", gammas=0.1, taus=2).mae is None
    assert sc.solve(DATA, folds="loo", gammas=0.1, taus=2).mae is not None
    weighted = sc.Dataset.from_arrays(DATA.X, DATA.y, DATA.names, "lpsa", {"w": np.ones(DATA.n)})
    assert sc.solve(weighted, folds="4", gammas=0.1, taus=2).mae is not None


@pytest.mark.parametrize("folds", ["3x4", "forward:4"])
def test_rows_scored_by_several_folds_get_the_mean_of_their_predictions(folds: str) -> None:
    record, plan = sc.solve(DATA, folds=folds, gammas=0.1, taus=2), sc.make_folds(folds, DATA)
    predicted, squares = held_out_predictions(record, DATA, plan), []
    each: list[list[float]] = [[] for _ in range(DATA.n)]
    for fold in range(plan.k):
        support = [DATA.names.index(name) for name in record.chosen_folds[fold].support]
        model = fit(DATA.X, DATA.y, support, record.gamma, rows=plan.train_rows(fold))
        rows = plan.scored_rows(fold)
        for row, value in zip(rows.tolist(), model.predict(DATA.X[rows]).tolist(), strict=True):
            each[row].append(value)
            squares.append((DATA.y[row] - value) ** 2)
    assert predicted == pytest.approx([np.mean(one) if one else np.nan for one in each], rel=1e-9, nan_ok=True)
    assert np.mean(squares) == pytest.approx(record.cv_error, rel=1e-9)
    rows, single = predictions_by_fold(record, DATA, plan)
    assert np.mean((DATA.y[rows] - single) ** 2) == pytest.approx(record.cv_error, rel=1e-9)


def test_other_data_or_folds_are_refused() -> None:
    record = sc.solve(DATA, folds="5", gammas=0.1, taus=2)
    with pytest.raises(sc.SparseCVError, match="not the folds of the record"):
        held_out_predictions(record, DATA, "6")
    with pytest.raises(sc.SparseCVError, match="not the data of the record"):
        held_out_predictions(record, sc.Dataset.from_arrays(DATA.X, DATA.y + 1.0), "5")
