"""Problems that the solver of a vendor solves, and problems under restrictions: what they state is true."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.formulation.near_ties import MioSettings, VendorListing
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.search.problems.protocol import Capability
from sparsecv_mio.search.problems.restricted import RestrictedProblem
from sparsecv_mio.search.problems.squared import SquaredProblems
from sparsecv_mio.search.problems.vendor import VendorProblem
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.trees.subsets import UNLIMITED, is_never_expired

from .drawn_subproblem import context_of, held_out_error

HIGHS = MioSettings("highs")


def problems_of(context: Context, make: Any) -> SquaredProblems:
    return SquaredProblems(context, BestOnAllRows(context.data, context.grid), make)


def refused(*given: Any, **how: Any) -> None:
    raise AssertionError("the solver was asked")


def test_steps_with_a_limit_on_nodes_are_trees_of_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VendorListing, "solve", refused)
    problems = problems_of(context_of(), partial(VendorProblem, mio=HIGHS))
    assert problems.fold(1, 0).solve([2], [], 0, is_never_expired).by_size[2].support.size == 2
    assert problems.full(0).solve([2], [], UNLIMITED, is_never_expired).by_size[2].complete, (
        "the model of the full data"
    )


def test_a_cutoff_of_the_full_data_is_one_mio_that_bounds_its_optimum() -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    problem = problems_of(context_of(), partial(VendorProblem, mio=HIGHS)).full(1)
    subset = problem.solve([2], [np.array([0, 2])], UNLIMITED, is_never_expired, {2: 1e9}).by_size[2]
    best = min(ridge(problem.problem, support)[1] for support in combinations(range(problem.problem.q), 2))
    assert not subset.complete and len(subset.support) == 2
    assert 0.999 * best <= subset.lower <= best <= subset.upper * (1 + 1e-12) <= 1.001 * best


def test_restricted_problems_enclose_by_the_ball_and_claim_no_capability() -> None:
    context, constraints = context_of(), SideConstraints(at_most=((1, (1, 5)),))
    problem = problems_of(context, partial(RestrictedProblem, constraints=constraints)).fold(2, 0)
    support = np.array([0, 1])
    ends = problem.enclose([2], np.array([ridge(problem.problem, (0, 1))[1]]), [support], is_never_expired)
    error = held_out_error(context, (0, 2, 2), (0, 1))
    assert problem.capabilities == Capability.NONE and ends.lower[0] <= error <= ends.upper[0]
    assert problem.has_one_support(0) and not problem.has_one_support(6)
