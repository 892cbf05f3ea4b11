from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data import rows_of_folds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.rows_of_folds import Measures, OfTrainingRows, RowsOfFolds, fills_of_folds
from sparsecv_mio.data.weights import Scored, weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Within

FRAME = pd.DataFrame({
    "a": [1.0, None, 3.0, 8.0, 5.0, 7.0], "b": [2.0, 4.0, 6.0, None, None, 1.0], "c": [1.0, 2.0, 3.0, 4.0, 5.0, 9.0],
    "y": [1.0, 2.0, 4.0, 3.0, 5.0, 7.0],
})  # fmt: skip
BOTH = OfTrainingRows(Within.FOLDS, Within.FOLDS)
BY_FOLD = OfTrainingRows(na=Within.FOLDS)


def read(na: str = "mean") -> Dataset:
    return Dataset.from_frame(FRAME, "y", na=na)


def test_what_fills_empty_cells() -> None:
    plan = folds_from_labels([0, 0, 1, 1, 2, 2])
    assert np.allclose(fills_of_folds(read(), plan)[:, :2], [[23 / 4, 3.5], [13 / 3, 7 / 3], [4.0, 4.0]])
    assert np.allclose(fills_of_folds(read("median"), plan)[:, :2], [[6.0, 3.5], [5.0, 2.0], [3.0, 4.0]])
    assert np.isnan(fills_of_folds(read(), plan)[:, 2]).all()
    empty = FRAME.assign(b=[2.0, 4.0, None, None, None, None])
    with pytest.raises(
        BadInput, match="'b' is empty in every training row of fold 1 of 3; give drop=\\[\"b\"\\], other"
    ):
        fills_of_folds(Dataset.from_frame(empty, "y", na="mean"), plan)


def units(X: FloatArray, w: FloatArray, scale: str) -> FloatArray:
    lengths = np.sqrt(w @ (X - w @ X / w.sum()) ** 2)
    return {"length": lengths, "variance": lengths / np.sqrt(w.sum()), "none": np.ones(X.shape[1])}[scale]


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 1.0, 3.0, 1.0]])
@pytest.mark.parametrize("within", [BY_FOLD, OfTrainingRows(scale=Within.FOLDS), BOTH])
@pytest.mark.parametrize("scale", ["length", "variance", "none"])
@pytest.mark.parametrize("spec", ["3", "loo", "2x2", "forward:2", "holdout:0.3"])
def test_every_fold_sees_rows_of_its_own(
    spec: str, scale: str, within: OfTrainingRows, weights: list[float] | None
) -> None:
    data = read() if weights is None else weighted_rows(read(), weights, "w")
    plan, w = make_folds(spec, data), np.ones(6) if weights is None else np.array(weights)
    own = RowsOfFolds.from_dataset(data, plan, within, scale)
    assert np.array_equal(own.dataset.y, data.y[own.source_rows]) and own.dataset.holes is None
    for fold in range(plan.k):
        train, X = plan.train_rows(fold), data.X.copy()
        assert data.holes is not None
        for j in range(2) if within.na is Within.FOLDS else ():
            X[data.holes[:, j], j] = np.mean(X[train, j][~data.holes[train, j]])
        rows, Z = (train, X) if within.scale is Within.FOLDS else (np.arange(6), data.X)
        unit, of_all = units(Z[rows], w[rows], scale), units(data.X, w, scale)
        scales = np.where(np.ptp(Z[rows], axis=0) > 0.0, unit, of_all)
        stated = np.ones(3) if own.dataset.scales is None else own.dataset.scales.of_rows(own.folds.train_rows(fold))
        assert np.allclose(stated, scales)
        for mine, places in (
            (train, own.folds.train_rows(fold)),
            (plan.scored_rows(fold), own.folds.scored_rows(fold)),
        ):
            assert np.array_equal(np.sort(own.source_rows[places]), mine)
            assert np.allclose(own.dataset.X[places], X[own.source_rows[places]], rtol=1e-15)
    before, after = Scored.of(data, plan), Scored.of(own.dataset, own.folds)
    assert after.total == pytest.approx(before.total) and after.times == pytest.approx(before.times)
    assert after.by_fold.tolist() == pytest.approx(before.by_fold.tolist())


def test_rows_stand_once_for_each_way_that_they_are_filled() -> None:
    plan = folds_from_labels([0, 0, 1, 1, 2, 2])
    own = RowsOfFolds.from_dataset(read(), plan, BY_FOLD, "none")
    assert own.dataset.n == 6 + 3 * 3  # three rows with an empty cell, which no two folds fill alike
    assert not own.folds.is_partition and not own.folds.scores_all_left_out.any()
    same = FRAME.assign(a=2.0, b=[1.0, None, 1.0, 1.0, 1.0, 1.0])
    alike = RowsOfFolds.from_dataset(Dataset.from_frame(same, "y", na="mean"), plan, BY_FOLD, "none")
    assert alike.dataset.n == 6 and alike.folds.is_partition and alike.source_rows.tolist() == list(range(6))
    whole = RowsOfFolds.from_dataset(
        Dataset.from_frame(FRAME.dropna(), "y", na="mean"), folds_from_labels([0, 1, 2]), BOTH, "none"
    )
    assert whole.dataset.n == 3


def test_a_column_that_is_constant_in_a_fold_keeps_its_scale() -> None:
    data = Dataset.from_arrays([[1.0], [1.0], [1.0], [5.0]], [0.0, 1.0, 2.0, 4.0])
    own = RowsOfFolds.from_dataset(data, folds_from_labels([0, 1, 1, 2]), OfTrainingRows(scale=Within.FOLDS), "length")
    scales = own.dataset.scales
    assert scales is not None and np.ptp(own.dataset.X[own.folds.train_rows(2)]) == 0.0
    assert scales.of_rows(own.folds.train_rows(2)) == scales.of_rows(None) != scales.of_rows(own.folds.train_rows(0))
    constant = Measures.from_rows(data, np.ones((4, 1)), "length", slice(0, 4))
    assert constant.scale.tolist() == [1.0] and not constant.varies.any()


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    BY_FOLD.check(read())
    OfTrainingRows(scale=Within.FOLDS).check(Dataset.from_arrays(np.eye(3), np.arange(3.0)))
    for data in (Dataset.from_arrays(np.eye(3), np.arange(3.0)), Dataset.from_frame(FRAME, "y", na="drop")):
        with pytest.raises(BadInput, match="^na_within folds: requires na mean or median"):
            BY_FOLD.check(data)
    monkeypatch.setattr(rows_of_folds, "MOST_ROWS", 50)
    for within in (BY_FOLD, BOTH):
        with pytest.raises(BadInput, match=r"^na_within, scale_within: 6 folds need up to \d+ different"):
            RowsOfFolds.from_dataset(read(), make_folds("loo", read()), within, "length")
