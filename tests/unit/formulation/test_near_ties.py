"""Lists of near-optimal supports by the solver of a vendor."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation import near_ties
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.contract import Availability
from sparsecv_mio.formulation.near_ties import MioSettings, VendorListing
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.deadline import Deadline


def far_from_the_origin() -> SparseProblem:
    """Products of columns that are all one number: next to 1e16 the penalty is rounded away."""
    return SparseProblem(np.full((3, 3), 1e16), np.full(3, 1e8), 2.0, np.ones(3), 1e-3, 4, np.zeros(3), 0.0)


def test_a_support_that_moments_cannot_fit_has_no_known_value() -> None:
    problem, pair = far_from_the_origin(), np.array([0, 1])
    assert near_ties.objective_upper(problem, pair) == np.inf
    assert 2.0 <= near_ties.objective_upper(problem, np.zeros(0, dtype=np.int64)) <= 2.0 * (1.0 + 1e-12)
    cell = near_ties._best_subset(problem, 2, [pair], 0.5, True)
    assert not cell.complete and cell.candidates == ()
    assert cell.lower == 0.5 and cell.upper == np.inf


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
    listing = VendorListing(MioSettings("highs"), Deadline(None, None))
    cell = listing.solve(problem, 2, [np.array([1, 4])]).by_size[2]
    every = {s: ridge(problem, s)[1] for s in combinations(range(5), 2)}
    tied = {s for s, value in every.items() if value <= min(every.values()) * (1.0 + 1e-9)}
    assert len(tied) == 4 and cell.complete and {tuple(s.tolist()) for s in cell.candidates} == tied
    assert cell.lower <= min(every.values()) <= cell.upper
    alone = listing.solve(problem, 5, []).by_size[5]
    assert alone.complete and alone.support.tolist() == list(range(5))


def test_after_the_limit_the_best_start_is_kept() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 4))
    problem = full_problem(standardize(Dataset.from_arrays(X, X[:, 0] + X[:, 3] + 0.1 * rng.normal(size=20))), 0.1)
    listing = VendorListing(MioSettings("highs"), Deadline(-1.0, None))
    found = listing.solve(problem, 2, [np.array([1, 2]), np.array([0, 3])])
    cell = found.by_size[2]
    assert not cell.complete and not found.finished and cell.lower == 0.0
    best = min(combinations(range(4), 2), key=lambda s: ridge(problem, s)[1])
    assert cell.support.tolist() == list(best)


def test_a_backend_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    get_backend("native").check_available()
    gone = Availability(False, "no solver here", hint="install it")
    monkeypatch.setattr(type(get_backend("highs")), "available", lambda self: gone)
    with pytest.raises(BackendUnavailable, match="no solver here; install it"):
        get_backend("highs").check_available()
