"""Cells that a vendor solves: what is made of supports whose columns are collinear to rounding."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import full_problem
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.subproblem import vendor_listing as vendor_cell
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing


def far_from_the_origin() -> SparseProblem:
    """Products of columns that are all one number: next to 1e16 the penalty is rounded away."""
    return SparseProblem(np.full((3, 3), 1e16), np.full(3, 1e8), 2.0, np.ones(3), 1e-3, 4, np.zeros(3), 0.0)


def test_a_support_that_moments_cannot_fit_has_no_known_value() -> None:
    problem, pair = far_from_the_origin(), np.array([0, 1])
    assert vendor_cell._value(problem, pair) == np.inf
    assert 2.0 <= vendor_cell._value(problem, np.zeros(0, dtype=np.int64)) <= 2.0 * (1.0 + 1e-12)
    cell = vendor_cell._as_cell(problem, 2, vendor_cell.Listed([pair], 0.5, True, 0))
    assert not cell.complete and cell.candidates == ()
    assert cell.lower == 0.5 and cell.upper == np.inf


def test_it_is_no_point_to_cut_at() -> None:
    cells = VendorListing("highs", Deadline(None, None))
    cells.remember(far_from_the_origin(), np.array([0, 1]))
    assert len(cells.points) == 0


def test_every_tied_support_is_listed() -> None:
    """Two pairs of columns, alike up to rounding: each of the four choices is as good."""
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    rng = np.random.default_rng(0)
    once = rng.normal(size=(40, 2))
    data = Dataset.from_arrays(
        np.hstack([once, once + 1e-12 * rng.normal(size=once.shape), rng.normal(size=(40, 1))]),
        once @ [2.0, -1.0] + 0.3 * rng.normal(size=40),
    )
    problem = full_problem(standardize(data), 0.5)
    listing = VendorListing("highs", Deadline(None, None))
    cell = listing.solve(problem, 2, [np.array([1, 4])]).cells[2]
    every = {s: ridge(problem, s)[1] for s in combinations(range(5), 2)}
    tied = {s for s, value in every.items() if value <= min(every.values()) * (1.0 + 1e-9)}
    assert len(tied) == 4 and cell.complete and {tuple(s.tolist()) for s in cell.candidates} == tied
    assert cell.lower <= min(every.values()) <= cell.upper and len(listing.points) == 1
    alone = listing.solve(problem, 5, []).cells[5]
    assert alone.complete and alone.support.tolist() == list(range(5))


def test_after_the_limit_the_best_start_is_kept() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 4))
    problem = full_problem(standardize(Dataset.from_arrays(X, X[:, 0] + X[:, 3] + 0.1 * rng.normal(size=20))), 0.1)
    found = VendorListing("highs", Deadline(-1.0, None)).solve(problem, 2, [np.array([1, 2]), np.array([0, 3])])
    cell = found.cells[2]
    assert not cell.complete and not found.finished and cell.lower == 0.0
    best = min(combinations(range(4), 2), key=lambda s: ridge(problem, s)[1])
    assert cell.support.tolist() == list(best)


@pytest.mark.parametrize("method", ["grid", "joint"])
def test_near_ties_that_a_vendor_leaves_are_listed_by_our_own_trees(method: str) -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    a = [-0.3671, -1.6379, 0.0258, 1.1266, -0.7264, 1.6279]
    b = np.array([-2.3245, 0.2766, -0.1144, -0.0582, 1.1595, -0.8081])
    c = np.array([0.5822, -0.8066, 0.6203, -0.6028, -1.3161, -0.3488])
    y = [0.6674, -0.3188, 1.2167, -0.4563, 0.1081, -1.5969]
    data = Dataset.from_arrays(np.column_stack([a, b, c, -c, -c, b]), y)  # three copies of one column, two of another
    record = cross_validate(
        data, make_folds("holdout:0.4", data, 3), gammas=[5e-6], taus=[4], scale="variance", method=method,
        backend="highs", gap=0.0, threads=1,
    )  # fmt: skip
    assert record.status == "proved" and record.chosen_folds.decided.all()
