"""Fold ids of a column and of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.fold_plan import FoldPlan, plan_of_labels, plan_of_rows, repeated_folds, repeated_plan, row_lists
from sparsecv_mio.data.folds import folds_from_splitter, make_folds
from sparsecv_mio.errors import BadInput

from .plans import check, data_of, refused


def test_column_ids_are_numbers_or_text_and_minus_one_is_never_held_out() -> None:
    data = data_of(6, f=["10", "2", "2", "10", "2", "10"], g=np.array([2.0, 1, 1, 2, -1, -1]), h=[9, 10, 9, 10, 11, 11])
    with pytest.raises(BadInput, match="no row with fold id 3 although ids run from 2 to 10"):
        make_folds("column:f", data)
    plan = make_folds("column:g", data)
    check(plan, 6)
    assert plan.labels.tolist() == [1, 0, 0, 1, -1, -1]
    assert make_folds("column:h", data).labels.tolist() == [0, 1, 0, 1, 2, 2]
    text = data_of(4, f=np.array(["late", "early", "late", "early"], dtype=object))
    assert make_folds("column:f", text).labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("header", ["", "fold\n", "\ufefffold\n", '"the fold"\n'])
def test_fold_file_with_and_without_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(header + "1\n2\n\n3\n1\n2\n3\n", encoding="utf-8")
    assert make_folds(f"file:{path}", data_of(6)).labels.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("header", ["", "first,second\n"])
def test_fold_file_with_a_column_per_repeat(tmp_path: Path, header: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(header + "1,1\n2,-1\n1,-1\n2,1\n")
    plan = make_folds(f"file:{path}", data_of(4))
    assert [plan.scored_rows(j).tolist() for j in range(plan.k)] == [[0, 2], [1, 3], [0, 3]] and plan.repeats == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n1\n", "has 3 lines but the data have 4 rows"),
        ("fold\n1\n2\n1\n", "has 3 ids below its header but the data have 4 rows"),
        ("1,2\n2,2\n3\n1\n", "line 3 has 1 columns, the first line has 2; give every line one"),
        ("1,2\n2,1\n1,2\n2,2\n3,3\n1,1\n", "has 6 lines but the data have 4 rows"),
        ("1,1\n2,1\n1,3\n2,3\n", "column 2 has no row with fold id 2"),
        ("1\n2\n4\n4\n", "no row with fold id 3"),
        ("1\n1\n1\n1\n", "single fold"),
        ("1\n2\n1\n2\n1\n2\n", "has 6 lines but the data have 4 rows"),
        ("", "has 0 lines"),
        ('1\n""\n2\n2\n', "has no id in row 2"),
    ],
)
def test_bad_fold_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(text)
    refused(message, f"file:{path}", data_of(4))


def pairs(*given: tuple[list[int], list[int]], n: int = 6) -> FoldPlan:
    return folds_from_splitter(given, data_of(n))


OVERLAPPING = pairs(([0, 1, 2], [3, 4]), ([0, 1, 2, 5], [3, 4]), ([4, 5], [0, 3]))
PLANS = [
    plan_of_labels(np.array([1, 0, 1, 0, -1]), "labels"),
    make_folds("3x4", data_of(13), 1),
    make_folds("5xholdout:0.3", data_of(13), 1),
    make_folds("forward:4", data_of(13)),
    OVERLAPPING,
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.spec)
def test_what_a_plan_says_follows_from_its_rows(plan: FoldPlan) -> None:
    rows = [(plan.train_rows(j), plan.scored_rows(j), plan.left_out(j)) for j in range(plan.k)]
    for train, scored, left in rows:
        assert np.array_equal(np.sort(np.concatenate([train, left])), np.arange(plan.n))
        assert np.isin(scored, left).all() and np.all(np.diff(scored) > 0)
    assert plan.sizes.tolist() == [len(scored) for _, scored, _ in rows]
    assert plan.left_sizes.tolist() == [len(left) for _, _, left in rows]
    assert plan.least_training == min(len(train) for train, _, _ in rows)
    assert plan.scores_all_left_out.tolist() == [len(scored) == len(left) for _, scored, left in rows]
    everything = np.concatenate([scored for _, scored, _ in rows])
    assert plan.scored == len(everything) and np.array_equal(plan.all_scored, np.sort(everything))
    assert plan.times_scored == len(everything) / len(set(everything.tolist()))
    distinct = len(set(everything.tolist())) == len(everything)
    assert plan.is_partition == (distinct and bool(plan.scores_all_left_out.all()))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.spec)
def test_one_more_fold_of_all_rows(plan: FoldPlan) -> None:
    more = plan.with_all_rows()
    assert more.k == plan.k + 1
    assert more.scored_rows(plan.k).size == 0 and more.train_rows(plan.k).tolist() == list(range(plan.n))
    assert all(np.array_equal(more.train_rows(j), plan.train_rows(j)) for j in range(plan.k))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.spec)
def test_pieces_cover_the_folds_and_are_what_they_say(plan: FoldPlan) -> None:
    for one in (plan, plan.with_all_rows()):
        assert [first for first, _, _ in one.pieces] == [0, *(end for _, end, _ in one.pieces[:-1])]
        assert one.pieces[-1][1] == one.k
        for first, end, nested in one.pieces:
            left = [set(one.left_out(j).tolist()) for j in range(first, end)]
            if nested:
                assert all(after <= before for before, after in zip(left, left[1:], strict=False))
            else:
                assert sum(map(len, left)) == len(set().union(*left))


def test_repeats_are_pieces_and_growing_training_sets_are_one() -> None:
    assert make_folds("3x4", data_of(13), 1).pieces == ((0, 4, False), (4, 8, False), (8, 12, False))
    assert make_folds("forward:4", data_of(13)).pieces == ((0, 4, True),)


def test_digests_tell_plans_apart_and_those_of_partitions_are_of_the_labels() -> None:
    several = [pairs(([0, 1, 2], [3, 4])), pairs(([0, 1, 2, 5], [3, 4])), pairs(([0, 1], [3, 4])), *PLANS]
    several += [pairs(([0, 1, 2], [3, 4]), n=7), make_folds("3x4", data_of(13), 2)]
    assert len({plan.digest for plan in several}) == len(several)
    again = repeated_plan([make_folds("4", data_of(13), 1)])
    assert again.digest == plan_of_labels(again.labels, "other").digest
    swapped = plan_of_rows(row_lists([np.array([0, 1]), np.array([2, 3])]), None, 6, "one")
    assert swapped.digest == plan_of_labels(np.array([0, 0, 1, 1, -1, -1]), "other").digest


def test_standard_errors_need_folds_that_score_different_rows() -> None:
    assert not pairs(([0, 1], [3, 4]), ([0, 2], [3, 4])).has_standard_error
    assert not make_folds("holdout:0.3", data_of(13)).has_standard_error
    assert all(plan.has_standard_error for plan in PLANS)


def test_labels_are_of_partitions() -> None:
    with pytest.raises(
        BadInput,
        match="treecv: requires folds that score each row at most once and train on all other rows, but folds 'forward",
    ) as caught:
        make_folds("forward:4", data_of(13)).check_partition("treecv")
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="labels: requires folds that score each row at most once and .*'3x4'"):
        _ = PLANS[1].labels


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_labels_are_written_some_folds_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecv_mio.data.fold_plan.CHUNK_ELEMENTS", at_once)
    given = np.array([1, 0, 3, 0, -1, 2, 3, 3])
    assert plan_of_labels(given, "labels").labels.tolist() == given.tolist()


def test_plans_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecv_mio.data.fold_plan.MOST_ROWS", 10)
    with pytest.raises(BadInput, match="forward:2': the training rows of all folds of 9 rows are too many to store"):
        make_folds("forward:2", data_of(9))
    with pytest.raises(BadInput, match="contain 1.1e.01 rows in all, more than 1e.01"):
        plan_of_rows(row_lists([np.arange(4)]), row_lists([np.arange(7)]), 9, "one")


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.spec)
def test_copies_of_a_row_are_wherever_the_row_is(plan: FoldPlan) -> None:
    counts = np.arange(plan.n) % 3
    counts[plan.train_rows(0)[:2]] = 1
    many, of_row = repeated_folds(plan, counts), np.repeat(np.arange(plan.n), counts)
    kept = [j for j in range(plan.k) if counts[plan.scored_rows(j)].any()]
    assert (many.k, many.n, many.repeats) == (len(kept), counts.sum(), plan.repeats)
    for at, j in enumerate(kept):
        assert many.scored_rows(at).tolist() == np.flatnonzero(np.isin(of_row, plan.scored_rows(j))).tolist()
        assert many.train_rows(at).tolist() == np.flatnonzero(np.isin(of_row, plan.train_rows(j))).tolist()
