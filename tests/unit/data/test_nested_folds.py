"""Outer folds keep together what inner folds keep together, and inner folds are dealt to the rows that are left."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, folds_from_labels, folds_of, make_folds
from sparsecv_mio.data.nested_folds import inner_folds, is_dealt, outer_folds
from sparsecv_mio.errors import BadInput

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
    assert is_dealt(plan) and outer.digest == make_folds("4", DATA, plan.seed or 0).digest
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
    plan = folds_of(given, DATA)
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
        ("5", 25, "nested: 25 outer folds of 24 rows, ask for at most 24"),
        ("groups:g", 8, "keep rows together in 8 groups, ask for at most 7"),
        (np.arange(ROWS) % 2, 2, "in 2 groups, nested folds need at least three"),
    ],
)
def test_too_many_outer_folds_are_refused(given: str, count: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        outer_folds(count, folds_of(given, DATA), DATA)
