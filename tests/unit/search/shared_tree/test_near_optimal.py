"""Lists of near-optimal supports on all rows, against enumeration."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree.near_optimal import NearOptimal
from sparsecv_mio.search.state.context import AllRows, Context
from sparsecv_mio.search.state.deadline import Deadline

from .enumerated import Enumerated

PLENTY = 100_000


@pytest.mark.parametrize("seed", range(4))
def test_every_support_up_to_the_threshold_is_listed(seed: int) -> None:
    case = Enumerated(seed, p=6)
    lists, rng = NearOptimal(case.all_rows, 0), np.random.default_rng(seed)
    assert lists.usable and lists.form is case.all_rows.normal_form(0)
    for size in range(1, 6):
        f = np.array([case.f[s] for s in case.of_size(size)])
        threshold = float(rng.uniform(0.9 * f.min(), f.max()))
        listed, nodes = lists.below(size, threshold, PLENTY)
        assert listed is not None and nodes >= 0 and threshold - lists.margin(threshold) < listed.threshold < threshold
        found = {tuple(np.sort(support).tolist()) for support in listed.supports}
        assert {s for s in case.of_size(size) if case.f[s] <= listed.threshold} <= found
        assert all(case.f[s] <= threshold * (1.0 + 1e-9) for s in found)


def test_all_columns_are_one_support() -> None:
    case = Enumerated(p=3)
    listed, _ = NearOptimal(case.all_rows, 0).below(7, 0.0, PLENTY)
    assert listed is not None and listed.threshold == np.inf and [len(s) for s in listed.supports] == [3]


def test_a_budget_that_does_not_suffice() -> None:
    case = Enumerated(p=6)
    lists = NearOptimal(case.all_rows, 0)
    assert lists.below(3, float(lists.problem.yy), 1)[0] is None


def test_a_time_limit_that_is_over() -> None:
    case = Enumerated(p=6)
    over = Deadline(1e-9, None, time.monotonic() - 1.0)
    late = Context(case.data, case.folds, case.context.grid, 0.0, over, 1)
    assert NearOptimal(AllRows(late), 0).below(3, 1e9, PLENTY) == (None, 0)
