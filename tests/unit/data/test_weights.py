"""Rows that count more or less than others, or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import RowLists, plan_of_rows, repeated_folds
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.rows_of_folds import fills_of_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import Scored, least_rows, repeated, row_weights, weighted, weighted_rows, weights_of
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.search.api import solve

DATA = Dataset.from_arrays([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]], [0.0, 1.0, 2.0], aux={"g": ["a", "b", "c"]})
FOUR = Dataset.from_arrays(np.eye(4), np.arange(4.0))


def test_rows_of_weight_zero_are_gone_with_all_that_belongs_to_them() -> None:
    few = weighted_rows(DATA, [0.5, 0, 2], "w")
    assert few.X.tolist() == [[1.0, 0.0], [3.0, 5.0]] and few.aux["g"].tolist() == ["a", "c"]
    assert few.row_weights is not None and few.row_weights.tolist() == [0.5, 2.0] and few.weights == "w"
    assert not few.row_weights.flags.writeable and few.weight_of(slice(0, 2)) == 2.5
    assert weighted_rows(DATA, [1, 0, 1], "w").row_weights is None


@pytest.mark.parametrize("na", ["mean", "median"])
def test_empty_cells_are_filled_as_if_rows_of_weight_zero_were_not_there(na: str) -> None:
    frame = pd.DataFrame({"a": [9.0, 1.0, None, 4.0, 4.0], "b": [1.0, 5.0, 2.0, 6.0, 1.0], "y": np.arange(5.0)})
    weights = np.array([0.0, 1.0, 2.0, 1.0, 1.0])
    few = weighted_rows(Dataset.from_frame(frame, "y", na=na), weights, "w")
    gone = weighted_rows(Dataset.from_frame(frame[1:], "y", na=na), weights[1:], "w")
    assert few.fingerprint == gone.fingerprint and few.reading is not None and gone.reading is not None
    assert few.reading.means == gone.reading.means and few.holes is not None and gone.holes is not None
    assert np.array_equal(few.holes, gone.holes)
    words = frame.assign(c=[None, "u", None, "v", "u"])
    few = weighted_rows(Dataset.from_frame(words, "y", na=na, encode="onehot"), weights, "w")
    assert few.reading is not None and few.reading.absent == {"c": 1}
    few, gone = (weighted_rows(Dataset.from_frame(frame[k:], "y", na=na), weights[k:], "w") for k in (0, 1))
    plan = folds_from_labels([0, 0, 1, 1])
    assert np.array_equal(fills_of_folds(few, plan), fills_of_folds(gone, plan), equal_nan=True)
    with pytest.raises(BadInput, match="^column 'a' is empty in every row of positive weight; give drop="):
        weighted_rows(Dataset.from_frame(frame, "y", na=na), [0, 0, 1, 0, 0], "w")


def test_weights_are_part_of_the_fingerprint() -> None:
    prints = [weighted_rows(DATA, weights, "w").fingerprint for weights in ([1, 1, 1], [1, 1, 2], [1, 1, 3], [2, 2, 2])]
    assert prints[0] == DATA.fingerprint and len(set(prints)) == 4


def test_rows_are_repeated_for_records_of_the_past() -> None:
    many = weighted_rows(DATA, [2, 0, 1], "w", repeat=True)
    assert many.X.tolist() == [[1.0, 0.0], [1.0, 0.0], [3.0, 5.0]] and many.y.tolist() == [0.0, 0.0, 2.0]
    assert many.row_weights is None and many.weights == "w" and not many.X.flags.writeable
    with pytest.raises(
        BadInput,
        match=r"^w is 0.5 in row 2, but in this record a weight is a number of copies of a row; give whole numbers$",
    ):
        weighted_rows(DATA, [2, 0.5, 1], "w", repeat=True)
    with pytest.raises(BadInput, match=r"^w has the sum 2e\+08, but .* at most 1e\+08 rows are possible"):
        weighted_rows(DATA, [1e8, 1e8, 1], "w", repeat=True)


def test_rows_that_count_are_dealt_once_each() -> None:
    data, plan = weighted(DATA, ["2", "1", "2"], lambda rows: make_folds("3", rows, seed=5), name="w")
    assert (data.n, data.weights, plan.spec, plan.seed, plan.n) == (3, "w", "3 weighted", 5, 3)
    few = [2, 0, 1, 1]
    assert weighted(FOUR, few, lambda rows: make_folds("loo", rows), name="w")[1].labels.tolist() == [0, 1, 2]
    file = folds_from_labels([0, 1, 2, 1])
    assert weighted(FOUR, few, lambda rows: file, name="w", by_row=True)[1].labels.tolist() == [0, 2, 1]
    old = weighted(FOUR, few, lambda rows: make_folds("loo", rows), name="w", repeat=True)
    assert old[0].n == 4 and old[1].labels.tolist() == [0, 0, 1, 2]


def test_copies_stay_in_one_fold_and_folds_without_rows_are_gone() -> None:
    plan = repeated_folds(folds_from_labels([2, 1, 0, -1, 0]), np.array([3, 0, 1, 2, 1]))
    assert plan.labels.tolist() == [1, 1, 1, 0, -1, -1, 0] and plan.k == 2 and plan.spec == "labels"
    assert repeated_folds(make_folds("holdout:0.4", DATA), np.array([2, 2, 2])).k == 1


def test_folds_that_overlap_and_are_given_by_row() -> None:
    scored, left = RowLists(np.array([1, 3]), np.arange(3)), RowLists(np.array([1, 1, 3]), np.array([0, 1, 3]))
    plan = plan_of_rows(scored, left, 4, "forward")
    data, now = weighted(FOUR, [0.5, 0.0, 2.0, 3.0], lambda rows: plan, name="w", by_row=True)
    assert (data.n, now.n, now.k, now.spec) == (3, 3, 1, "forward weighted")
    assert now.scored_rows(0).tolist() == [2] and now.train_rows(0).tolist() == [0, 1]
    assert Scored.of(data, now).by_fold.tolist() == [3.0] and least_rows(data, now) == 2


def test_scored_weights_are_sums_over_folds() -> None:
    data = weighted_rows(FOUR, [0.5, 1.0, 2.0, 4.0], "w")
    scored = Scored.of(data, folds_from_labels([1, 0, 1, -1]))
    assert (scored.by_fold.tolist(), scored.total, scored.times) == ([1.0, 2.5], 3.5, 1.0)
    starts = np.array([0, 2, 4, 5])
    twice = replace(folds_from_labels([0, 1, 0, 1]), k=3, order=np.array([0, 2, 1, 3, 3]), starts=starts)
    assert Scored.of(data, twice).times == 11.5 / 7.5
    assert Scored.of(FOUR, twice).times == twice.times_scored and Scored.of(FOUR, twice).total == 5


def test_whole_weights_say_how_many_rows_there_are() -> None:
    plan = folds_from_labels([0, 1, 0, 1])
    whole, parts = (weighted_rows(FOUR, weights, "w") for weights in ([3, 1, 2, 2], [3, 1, 2, 2.5]))
    assert (least_rows(whole), least_rows(whole, plan)) == (8, 3) and least_rows(parts, plan) == 2
    twice = replace(plan, left=RowLists(np.array([0, 1, 2, 3]), np.array([0, 1, 4])))
    assert least_rows(whole, twice) == 3


@pytest.mark.parametrize("scale", ["length", "variance", "none"])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_standard_rows_are_those_of_repeated_rows(scale: str, intercept: str) -> None:
    rng = np.random.default_rng(2)
    rows = Dataset.from_arrays(rng.normal(size=(7, 3)) + 5.0, rng.normal(size=7) + 3.0)
    counts = np.array([1, 3, 2, 0, 1, 4, 1])
    one = standardize(weighted_rows(rows, counts, "w"), scale, intercept)
    two = standardize(repeated(rows, counts), scale, intercept)
    np.testing.assert_allclose(one.center, two.center, rtol=1e-14)
    np.testing.assert_allclose(one.divisor, two.divisor, rtol=1e-14)
    V, r = (part / one.root[..., None] if part.ndim > 1 else part / one.root for part in one.rows(slice(0, 6)))
    W, s = two.rows(slice(0, 12))
    np.testing.assert_allclose(np.repeat(V, counts[counts > 0], axis=0), W, atol=1e-13)
    np.testing.assert_allclose(np.repeat(r, counts[counts > 0]) * one.y_unit, s * two.y_unit, atol=1e-13)


def test_weights_come_from_a_column_or_a_file(tmp_path: Path) -> None:
    assert weights_of(DATA, "g").tolist() == ["a", "b", "c"]
    place = tmp_path / "w.csv"
    for text in ("w\n1\n2.5\n0\n", "1\n2.5\n0\n"):
        place.write_text(text)
        assert row_weights(weights_of(DATA, f"file:{place}"), DATA).tolist() == [1.0, 2.5, 0.0]
    place.write_text("1\n2\n")
    with pytest.raises(BadInput, match=r"has 2 lines but the data have 3 rows; give one weight per row"):
        weights_of(DATA, f"file:{place}")
    with pytest.raises(BadInput, match=r"^weight file .* does not exist"):
        weights_of(DATA, "file:nowhere.csv")


def test_weights_that_could_be_two_numbers_are_refused(tmp_path: Path) -> None:
    file, place = tmp_path / "d.csv", tmp_path / "w.csv"
    file.write_text("a;w;y\n1;1.376;5\n4;576;6\n7;12;9\n")
    with pytest.raises(
        BadInput, match=r"^column 'w': '1.376' in row 1 is ambiguous; give .*1376. or thousands=.none. .1.376.$"
    ):
        weights_of(read_dataset(file, "y", aux=["w"], drop=["w"], sep=";"), "w")
    for said, first in (({"thousands": "none"}, 1.376), ({"decimal": ",", "thousands": "."}, 1376.0)):
        data = read_dataset(file, "y", aux=["w"], drop=["w"], sep=";", **said)
        assert row_weights(weights_of(data, "w"), data).tolist() == [first, 576.0, 12.0]
    file.write_text("a;w;y\n0.5;1.376;5\n4;576;6\n7;12;9\n")  # the point is a decimal mark
    data = read_dataset(file, "y", aux=["w"], drop=["w"], sep=";")
    assert row_weights(weights_of(data, "w"), data).tolist() == [1.376, 576.0, 12.0]
    place.write_text("1.376\n576\n12\n")
    with pytest.raises(BadInput, match=r"^weight file .*: '1.376' may be 1376 or 1.3760; write it as one of the two"):
        weights_of(DATA, f"file:{place}")
    place.write_text("1.3760\n576\n12\n")
    assert row_weights(weights_of(DATA, f"file:{place}"), DATA).tolist() == [1.376, 576.0, 12.0]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, 2.0], r"w has the shape \(2,\) but the data have 3 rows"),
        ([1.0, 1.0, -1.0], "w is -1 in row 3; give a weight of at least 0 for each row"),
        ([np.nan, 1.0, 1.0], "w is nan in row 1"),
        ([np.inf, 1.0, 1.0], "w is inf in row 1"),
        (["1", "x", "2"], "w is 'x' in row 2; give a weight"),
        ([[1.0], [2.0, 3.0]], "w must hold numbers only"),
        ({}, "w must hold numbers only"),
        ([0.0, 0.0, 0.0], "w: the weights are all zero"),
        (
            [1e40, 1e40, 1e40],
            r"w holds 1e\+40: weights must be from 1e-30 to 1e30; divide all weights by the same "
            r"number",
        ),
        (
            [1e-40, 1e-40, 1e-40],
            r"w holds 1e-40: weights must be from 1e-30 to 1e30; divide all weights by the same "
            r"number",
        ),
        ([1e-7, 1.0, 1e6], r"w goes from 1e-07 to 1e\+06, a range too wide for exact computation; give weight 0"),
    ],
)
def test_what_is_no_weight_is_refused_in_one_line(weights: Any, said: str) -> None:
    with pytest.raises(BadInput, match=f"^{said}[^\n]*$"):
        row_weights(weights, DATA, "w")


def test_the_note_on_imputed_cells_counts_rows_with_weight_and_says_unweighted() -> None:
    frame = pd.DataFrame({"a": [1.0, None, 4.0, None], "b": [None, 1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0, 4.0]})
    data = weighted_rows(Dataset.from_frame(frame, "y", na="mean"), [0.0, 2.0, 1.0, 0.0], "w")
    said = "1 missing value imputed by the unweighted mean of its column over all rows, held-out ones included, in 'a'"
    assert data.reading is not None and data.reading.notes == (said,) and data.X[:, 0].tolist() == [4.0, 4.0]
    whole = weighted_rows(Dataset.from_frame(frame, "y", na="mean"), [0.0, 0.0, 1.0, 0.0], "w")
    assert whole.reading is not None and whole.reading.notes == ()


def test_rows_of_weight_0_are_counted_in_a_note(tmp_path: Path) -> None:
    path, rng = tmp_path / "data.csv", np.random.default_rng(0)
    lines = [f"{x:.2f},{y:.2f},{k % 3}" for k, (x, y) in enumerate(rng.normal(size=(12, 2)))]
    path.write_text("\n".join(["x,y,w", *lines]) + "\n")
    note = "4 of 12 rows with weight 0 in 'w' dropped"
    data = read_dataset(path, "y", weights="w")
    assert data.n == 8 and data.reading is not None and data.reading.notes == (note,)
    with pytest.warns(SparseCVWarning, match=note):
        record = solve(pd.read_csv(path), "y", weights="w", folds=4, gammas=0.1, taus=1)
    assert record.data.n == 8 and record.data.reading is None
    path.write_text("\n".join(["x,y,w", *(line[:-1] + "2" for line in lines)]) + "\n")
    assert read_dataset(path, "y", weights="w").reading is None
