"""Rows dealt out to folds: sizes, seeds that mean the same for ever, and every refusal."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import (
    fold_columns,
    folds_from_labels,
    folds_from_splitter,
    holdout_labels,
    inner_folds,
    is_dealt,
    make_folds,
    outer_folds,
)
from sparsecv_mio.errors import BadInput

from .plans import check, data_of, refused


@pytest.mark.parametrize(("share", "n", "held"), [("0.2", 10, 2), ("0.25", 10, 3), ("0.001", 10, 1), ("1e-1", 5, 1)])
def test_holdout_rounds_to_the_nearest_and_holds_at_least_one(share: str, n: int, held: int) -> None:
    labels = holdout_labels(share, n, 0)
    assert np.sum(labels == 0) == held and np.sum(labels == -1) == n - held


@pytest.mark.parametrize(
    ("n", "spec", "sizes"),
    [
        (23, "5", [5, 5, 5, 4, 4]),
        (23, "loo", [1] * 23),
        (23, "23", [1] * 23),
        (23, "blocks:10", [12, 11]),
        (20, "blocks:10", [10, 10]),
        (29, "blocks:10", [15, 14]),
        (7, "blocks:1", [1] * 7),
        (23, "holdout:0.2", [5]),
        (23, "holdout:0.001", [1]),
    ],
)
def test_sizes(n: int, spec: str, sizes: list[int]) -> None:
    plan = make_folds(spec, data_of(n), seed=1)
    check(plan, n)
    assert plan.sizes.tolist() == sizes and plan.spec == spec


def test_seed_decides_the_shuffle_and_digest_is_of_the_labels() -> None:
    data = data_of(40)
    first, again, other = (make_folds("10", data, seed) for seed in (0, 0, 1))
    assert first.digest == again.digest != other.digest
    assert first.digest == "sha256:" + hashlib.sha256(first.labels.astype("<i8").tobytes()).hexdigest()
    assert first.seed == 0 and make_folds("loo", data, 5).seed is None
    assert folds_from_labels(first.labels).digest == first.digest
    assert not np.array_equal(np.sort(first.labels), first.labels), "the rows are shuffled"
    with pytest.raises(ValueError, match="read-only"):
        first.labels[0] = 3


def test_frozen_labels_of_a_shuffled_plan() -> None:
    """Records written today must find the same folds tomorrow."""
    assert make_folds("3", data_of(9), 0).labels.tolist() == [1, 0, 0, 0, 2, 2, 1, 2, 1]


def test_groups_take_any_names_in_sorted_order() -> None:
    data = data_of(6, g=["b", "a", "b", "c", "a", "c"], year=[2003, 1998, 1998, 2003, 2010, 2010], w=[0.5, 1.5] * 3)
    assert make_folds("groups:g", data).labels.tolist() == [1, 0, 1, 2, 0, 2]
    assert make_folds("groups:year", data).labels.tolist() == [1, 0, 0, 1, 2, 2]
    assert make_folds("groups:w", data).k == 2
    assert fold_columns("groups:g") == ("g",) and fold_columns("column:a:b") == ("a:b",) and fold_columns("loo") == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("1", "fewer than two folds"),
        ("0", "fewer than two folds"),
        ("13", "need 13 rows but the data have 12"),
        ("-3", "are unknown"),
        ("2.5", "are unknown"),
        ("ten", "are unknown"),
        ("", "are unknown"),
        ("loocv", "are unknown"),
        ("lo", "did you mean 'loo'"),
        ("9" * 400, "need"),
        ("kfold:5", "are unknown; use K, RxK (R repeats), loo"),
        ("blocks:", "are unknown"),
        ("blocks:0", "empty blocks"),
        ("blocks:7", "fewer than two blocks"),
        ("holdout:0", "between 0 and 1"),
        ("holdout:1", "between 0 and 1"),
        ("holdout:half", "between 0 and 1"),
        ("holdout:nan", "between 0 and 1"),
        ("holdout:0.95", "only 1 training row"),
        ("0x5", "the number of repeats is out of range; give 1 to 10,000 repeats"),
        ("10000000000x5", "give 1 to 10,000 repeats"),
        ("1000000x2", "give 1 to 10,000 repeats"),
        ("holdout:٠.٢", "between 0 and 1"),
        ("holdout:0.1_5", "between 0 and 1"),
        ("٣", "are unknown"),
        ("3xloo", "cannot be repeated; repeat K"),
        ("3xgroups:g", "cannot be repeated; repeat K"),
        ("2x", "do not state what to repeat; for example, 2x10 repeats 10 folds 2 times"),
        ("2x1", "fewer than two folds"),
        ("2xten", "are unknown"),
        ("stratified:1", "fewer than two folds"),
        ("stratified:13", "need 13 rows but the data have 12"),
        ("forward:1", "fewer than two folds"),
        ("forward:12", "need more than 12 rows but the data have 12"),
        ("forward:11", "only 1 training row"),
        ("forward:x", "are unknown"),
        ("forward", "are unknown"),
        ("groups:no", "the data have no column 'no'"),
        ("groups:", "the data have no column ''"),
        ("groups:one", "single fold"),
        ("column:one", "single fold"),
        ("groups:hole", "column 'hole' has no id in row 3"),
        ("groups:nan", "column 'nan' has no id in row 1"),
        ("file:", "are unknown"),
        ("file:/no/such/file.csv", "does not exist"),
        ("column:most", "only 1 training row"),
        ("column:never", "with at least one fold"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    hole = np.array(["a", "b", None, *"cdefghijk"], dtype=object)
    aux = {"one": [3] * 12, "hole": hole, "nan": [np.nan, *range(11)], "most": [0] * 11 + [1], "never": [-1] * 12}
    refused(message, spec, data_of(12, **aux))


def test_unreadable_fold_file_and_negative_seed(tmp_path: Path) -> None:
    refused("it is a folder", f"file:{tmp_path}", data_of(4))
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe1")
    refused("cannot be read as CSV", f"file:{tmp_path / 'b.csv'}", data_of(4))
    refused("seed -1 is negative", "2", data_of(4), seed=-1)
    refused("only 1 training row", "loo", data_of(2))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2, 2, 0], "no row has the label 1; every fold must hold out a row"),
        ([0, 0, 0, 0], "single fold"),
        ([-1, 0, 0, -1], "single fold"),
        ([-2, 0, 1, 1], "labels must be 0..k-1"),
        ([0, 1, 2, 9], "need 10 folds but the data have 4 rows"),
        ([0.0, 1.0, 0.0, 1.0], "one whole number per row"),
        ([[0, 1], [1, 0]], "only 1 training row"),
        ([[0, 0], [1, 0], [2, 1], [1, 3]], "no row has the label 2; every fold must hold out a row"),
        ([[[0, 0]]], "one whole number per row"),
        ([], "one whole number per row"),
    ],
)
def test_bad_labels(labels: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        folds_from_labels(labels)


def test_holdout_labels_are_accepted_under_their_spec() -> None:
    assert folds_from_labels([-1, 0, 0, -1], spec="holdout:0.5").k == 1


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(4),
        KFold(4, shuffle=True, random_state=2),
        LeaveOneOut(),
        GroupKFold(3),
        PredefinedSplit([0, 0, 1, 1, 2, 2, -1, -1, -1, 0, 1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_splitters_that_leave_each_row_out_at_most_once(splitter: Any) -> None:
    data = data_of(12)
    groups = np.arange(12) % 4
    plan = folds_from_splitter(splitter, data, groups)
    check(plan, 12)
    for j, (train, test) in enumerate(splitter.split(data.X, data.y, groups)):
        assert np.array_equal(plan.scored_rows(j), np.sort(test)) and np.array_equal(plan.train_rows(j), np.sort(train))
    assert plan.spec == f"splitter:{type(splitter).__name__}"


@pytest.mark.parametrize(
    "splitter",
    [
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        TimeSeriesSplit(3),
        TimeSeriesSplit(3, gap=1, max_train_size=4),
        ShuffleSplit(3, random_state=0),
        ShuffleSplit(1, test_size=0.25, random_state=0),
        LeavePOut(2),
        StratifiedKFold(3),
    ],
)
def test_splitters_of_any_kind(splitter: Any) -> None:
    data = replace(data_of(12), y=np.arange(12.0) % 3)
    plan = folds_from_splitter(splitter, data)
    pairs = list(splitter.split(data.X, data.y))
    assert plan.k == len(pairs)
    for j, (train, test) in enumerate(pairs):
        assert np.array_equal(plan.scored_rows(j), np.sort(test)) and np.array_equal(plan.train_rows(j), np.sort(train))


def test_labels_with_a_column_per_repeat() -> None:
    labels = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    plan = make_folds(labels, data_of(4))
    assert [plan.scored_rows(j).tolist() for j in range(4)] == [[0, 1], [2, 3], [1, 3], [0, 2]] and plan.repeats == 2


def test_repeats_are_dealt_anew_and_the_first_is_that_without_repeats() -> None:
    data = data_of(20)
    for spec, size in (("4", 4), ("stratified:4", 4), ("blocks:6", 3), ("holdout:0.3", 1)):
        once, thrice = make_folds(spec, data, 5), make_folds(f"3x{spec}", data, 5)
        assert once.k == size and thrice.k == 3 * size and thrice.repeats == 3 and thrice.seed == 5
        assert all(np.array_equal(once.scored_rows(j), thrice.scored_rows(j)) for j in range(size))
        assert len({thrice.scored_rows(r * size).tobytes() for r in range(3)}) == 3
        assert make_folds(f"1x{spec}", data, 5).digest == once.digest


def test_frozen_repeats_and_strata() -> None:
    """Records written today must find the same folds tomorrow."""
    plan = make_folds("2x3", data_of(9), 0)
    assert [plan.scored_rows(j).tolist() for j in range(3, 6)] == [[2, 4, 6], [1, 5, 8], [0, 3, 7]]
    assert make_folds("stratified:3", data_of(9), 0).labels.tolist() == [2, 1, 0, 2, 0, 1, 0, 2, 1]


def test_pairs_serve_as_splitter() -> None:
    pairs = [([2, 3], [0, 1]), ([0, 1], [3, 2])]
    assert folds_from_splitter(pairs, data_of(4)).labels.tolist() == [0, 0, 1, 1]
    masks = [(np.isin(np.arange(4), train), np.isin(np.arange(4), test)) for train, test in pairs]
    assert folds_from_splitter(masks, data_of(4)).labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("splitter", "message"),
    [
        (KFold(13), "cannot split the data"),
        (StratifiedKFold(3), "cannot split the data"),
        ([], "makes no fold"),
        ([(range(2, 12), [0, 1]), (range(12), [])], "fold 1 scores no row"),
        ([([2, 3], [0, 99])], "fold 0: scored rows: position 99 is not one of the positions 0 to 11"),
        ([([2, -1], [0])], "fold 0: training rows: position -1 is not one of the positions 0 to 11"),
        ([([2, 3], [0, 0, 1])], "fold 0: scored rows: position 0 .counted from 0. is listed twice"),
        ([([2, 3, 2], [0, 1])], "fold 0: training rows: position 2 .counted from 0. is listed twice"),
        ([([2, 3], [3, 1])], "fold 0 scores position 3 .counted from 0., which is also a training row; remove it"),
        ([([2.5, 3], [1])], "must be row numbers"),
        ([([True, False], [1])], "must be row numbers"),
        ([([2], [1])], "only 1 training row"),
        ([3, 4], "cannot split the data"),
    ],
)
def test_bad_splitters(splitter: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        folds_from_splitter(splitter, data_of(12))
    assert "\n" not in str(caught.value)


def test_groups_go_with_a_splitter_alone() -> None:
    data = data_of(4)
    groups = [0, 1, 1, 2]
    assert make_folds(LeaveOneGroupOut(), data, groups=groups).labels.tolist() == groups
    for given in (2, "2", [0, 1, 0, 1], make_folds(2, data)):
        with pytest.raises(BadInput, match="^groups: require a splitter"):
            make_folds(given, data, groups=groups)


ROWS = 24
GROUPS = np.repeat(np.arange(8), 3)
DATA = Dataset.from_arrays(np.zeros((ROWS, 1)), np.zeros(ROWS), aux={"g": GROUPS})


def whole(outer: FoldPlan, plan: FoldPlan) -> None:
    """Every row is in one outer fold, and the inner folds are of the others alone."""
    assert sorted(outer.order.tolist()) == list(range(ROWS))
    for fold in range(outer.k):
        rows = outer.train_rows(fold)
        inner = inner_folds(plan, rows, DATA.take(rows))
        assert inner.n == len(rows) == ROWS - outer.sizes[fold]


@pytest.mark.parametrize("spec", ["5", "loo", "blocks:4", "holdout:0.3"])
def test_folds_that_are_dealt_are_dealt_anew(spec: str) -> None:
    plan = make_folds(spec, DATA, 3)
    outer = outer_folds(4, plan, DATA)
    assert is_dealt(plan) and outer.digest == make_folds("4", DATA, 3).digest
    rows = outer.train_rows(0)
    assert inner_folds(plan, rows, DATA.take(rows)).digest == make_folds(spec, DATA.take(rows), 3).digest
    whole(outer, plan)


def test_outer_folds_of_forward_chaining_look_ahead_too() -> None:
    outer = outer_folds(3, make_folds("forward:2", DATA), DATA)
    assert outer.spec == "forward:3" and outer.digest == make_folds("forward:3", DATA).digest
    for fold in range(3):
        rows, held = outer.train_rows(fold), outer.scored_rows(fold)
        assert rows.max() < held.min()
        inner = inner_folds(make_folds("forward:2", DATA), rows, DATA.take(rows))
        assert inner.digest == make_folds("forward:2", DATA.take(rows)).digest


@pytest.mark.parametrize("given", ["groups:g", "column:g", GROUPS])
def test_groups_and_stated_folds_are_kept_together(given: str) -> None:
    plan = make_folds(given, DATA)
    outer = outer_folds(3, plan, DATA)
    assert not is_dealt(plan) and outer.k == 3 and outer.seed == 0
    for group in range(8):
        assert len(set(outer.labels[group == GROUPS].tolist())) == 1
    whole(outer, plan)
    assert sorted(len(set(GROUPS[outer.scored_rows(j)].tolist())) for j in range(3)) == [2, 3, 3]


def test_rows_that_no_fold_holds_out_stay_so() -> None:
    labels = np.where(GROUPS < 6, GROUPS, -1)
    plan = folds_from_labels(labels)
    outer = outer_folds(3, plan, DATA)
    assert len(set(outer.labels[labels < 0].tolist())) == 1
    rows = outer.train_rows(int(outer.labels[0]))
    assert np.array_equal(inner_folds(plan, rows, DATA.take(rows)).labels < 0, labels[rows] < 0)


def test_weighted_rows_are_dealt_as_others() -> None:
    plan = make_folds("3", DATA, 1)
    named = FoldPlan(plan.spec + " weighted", plan.seed, plan.n, plan.k, plan.order, plan.starts)
    assert outer_folds(2, named, DATA).digest == outer_folds(2, plan, DATA).digest


@pytest.mark.parametrize(
    ("given", "count", "message"),
    [
        ("5", 1, "nested: 1 is out of range"),
        ("5", 25, "nested: 25 outer folds are too many for 24 rows; give at most 24"),
        ("groups:g", 8, r"form 8 groups \(each stays in one fold\), so at most 7 outer folds are possible"),
        (np.arange(ROWS) % 2, 2, r"stays in one fold\); outer folds need at least three groups"),
    ],
)
def test_too_many_outer_folds_are_refused(given: str, count: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        outer_folds(count, make_folds(given, DATA), DATA)


def test_labels_may_be_texts() -> None:
    data = Dataset.from_arrays(np.zeros((6, 1)), np.arange(6.0))
    labels = ["b", "a", "c", "b", "a", "c"]
    for given in (labels, np.array(labels), np.array(labels, dtype=object)):
        assert make_folds(given, data).labels.tolist() == [1, 0, 2, 1, 0, 2]
    with pytest.raises(BadInput, match="folds: the list of labels has no id in row 2"):
        make_folds(["b", None, "c", "b", "a", "c"], data)


def test_an_exhausted_generator_is_named() -> None:
    data = Dataset.from_arrays(np.zeros((6, 1)), np.arange(6.0))
    pairs = KFold(2).split(data.X)
    assert make_folds(pairs, data).k == 2
    with pytest.raises(BadInput, match="folds: the generator is exhausted"):
        make_folds(pairs, data)


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 0), (3, 7), (5, 1)])
def test_groups_stay_whole_in_folds(k: int, seed: int) -> None:
    rng = np.random.default_rng(k)
    groups = rng.integers(0, 9, 60)
    data = Dataset.from_arrays(np.zeros((60, 1)), np.zeros(60), aux={"g": groups.astype(str)})
    plan = make_folds(f"groups:g:{k}", data, seed)
    assert plan.k == k and plan.seed == seed and fold_columns(plan.spec) == ("g",)
    assert all(len(set(plan.labels[groups == group].tolist())) == 1 for group in range(9))
    assert plan.sizes.max() - plan.sizes.min() <= np.bincount(groups).max()
    outer = outer_folds(2, make_folds("groups:g:5", data), data)
    assert all(len(set(outer.labels[groups == group].tolist())) == 1 for group in range(9))


@pytest.mark.parametrize(
    ("spec", "words"),
    [("groups:g:4", "need 4 groups but the column has 3"), ("groups:g:1", "fewer than two"), ("groups:h:2", "'h'"),
     ("2xgroups:g:2", "cannot be repeated"), ("forward:2:2", "with a gap of 2, the first fold has 0 training rows"),
     ("forward:2:x", "unknown")],
)  # fmt: skip
def test_folds_of_groups_and_gaps_that_cannot_be(spec: str, words: str) -> None:
    data = Dataset.from_arrays(np.zeros((6, 1)), np.zeros(6), aux={"g": np.array([0, 0, 1, 1, 2, 2])})
    with pytest.raises(BadInput, match=words):
        make_folds(spec, data)


@pytest.mark.parametrize(("k", "gap"), [(2, 0), (2, 3), (4, 1)])
def test_a_gap_is_that_of_scikit_learn(k: int, gap: int) -> None:
    data = Dataset.from_arrays(np.zeros((23, 1)), np.zeros(23))
    plan = make_folds(f"forward:{k}:{gap}", data)
    for fold, (train, test) in enumerate(TimeSeriesSplit(k, gap=gap).split(data.X)):
        assert plan.train_rows(fold).tolist() == train.tolist() and plan.scored_rows(fold).tolist() == test.tolist()
    assert outer_folds(3, plan, data).spec == f"forward:3:{gap}"


def test_folds_of_a_record_made_in_python_are_given_again() -> None:
    frame = pd.DataFrame({"a": np.arange(12.0) % 5, "b": np.arange(12.0) % 3, "y": np.arange(12.0), "w": 1.0})
    data, labels = Dataset.from_frame(frame.drop(columns="w"), "y"), np.arange(12) % 3
    for given in (KFold(3), labels, list(KFold(3).split(frame)), make_folds(KFold(3), data)):
        record = sc.solve(frame.drop(columns="w"), "y", folds=given, gammas=0.1, taus=1)
        assert sc.verify(record, frame, folds=given).ok and not sc.verify(record, frame, folds=4).ok
        assert record.predict_interval(frame.head(2), 0.5, data=frame, folds=given).shape == (2, 2)
        with pytest.raises(BadInput, match=r"was made in Python, .* pass the folds again, as in sc.verify"):
            sc.verify(record, frame)
        with pytest.raises(BadInput, match="was made in Python"):
            record.predict_interval(frame, 0.5, data=frame)
    record = sc.solve(frame, "y", folds=KFold(3), weights="w", gammas=0.1, taus=1)
    assert sc.verify(record, frame, folds=list(KFold(3).split(frame))).ok
    plain = sc.solve(frame.drop(columns="w"), "y", folds=KFold(3), gammas=0.1, taus=1)
    assert sc.verify(plain, frame, folds=np.repeat(np.arange(3), 4)).ok
    for given in (KFold(3), labels, PredefinedSplit(labels)):
        record = sc.solve(frame, "y", folds=given, weights="w", gammas=0.1, taus=1)
        assert sc.verify(record, frame, folds=given).ok


def test_labels_of_any_kind() -> None:
    data, days = data_of(4), np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[[0, 1, 1, 0]]
    for given in (days, days.tolist(), pa.array(["u", "v", "v", "u"]), pd.Series(list("uvvu"), index=[3, 2, 1, 0])):
        assert make_folds(given, data).labels.tolist() == [0, 1, 1, 0]
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 3.0], "y": [0.0, 1.0, 2.0, 3.0]})
    with pytest.raises(BadInput, match="folds: the labels have the same index as the data in another order"):
        sc.solve(frame, "y", folds=pd.Series(list("uvvu"), index=[3, 2, 1, 0]))


def test_folds_that_cannot_be_made_name_the_remedy() -> None:
    with pytest.raises(BadInput, match="make_folds needs a Dataset, but the data are DataFrame"):
        make_folds("5", pd.DataFrame({"a": [1.0]}))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match='folds: LeaveOneGroupOut needs the group of each row; .*"groups:COLUMN"'):
        make_folds(LeaveOneGroupOut(), data_of(4))
