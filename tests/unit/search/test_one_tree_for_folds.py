"""The list that speaks for every fold: no winner is missing from it."""

from __future__ import annotations

import numpy as np
import pytest
from engines import ENGINES

from sparsecv_mio.search.problems.one_tree_for_folds import (
    EVERY_FOLD,
    grow_alive_folds,
    is_usable,
    list_below_thresholds,
    solve_folds,
)
from sparsecv_mio.search.steps import NodeCount
from sparsecv_mio.trees.subsets import is_never_expired

from .enumerated import VARIANTS, Enumerated


def test_a_budget_that_does_not_suffice() -> None:
    case = Enumerated(p=6)
    found = case.check(list_below_thresholds(case.full_fit([2]), case.wanted([2]), 1, EVERY_FOLD))
    assert found.n_nodes >= 1 and not found.is_solved.any()


def test_nothing_is_decided_by_a_tree_that_did_not_end() -> None:
    case = Enumerated(p=6)
    found = case.check(grow_alive_folds(case.full_fit([1, 2]), case.wanted([1, 2]), 0))
    assert found.n_nodes == 0 and not found.is_solved.any()


def only(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ENGINES[engine]:
        monkeypatch.setattr(*place)


@pytest.mark.parametrize("engine", ["", "enumerate", "shared"])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_engine_solves_subproblems_as_enumeration_does(
    spec: str, intercept: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine:
        only(engine, monkeypatch)
    for seed in range(3):
        case = Enumerated(seed, n=48, spec=spec, intercept=intercept)
        found = case.check(solve_folds(case.full_fit([0, 1, 2]), case.wanted([0, 1, 2]), 100))
        assert (found.n_nodes > 0) >= bool(found.is_solved.any())
        if spec == "loo":
            assert found.is_solved.mean() > 0.9


def test_high_leverages_are_left_to_the_folds() -> None:
    assert is_usable(Enumerated().full_fit([0]))
    case = Enumerated(n=25, p=24, gamma=1e-6)
    supports, taus = case.incumbents([0])
    assert not is_usable(case.full_fit([0])) and case.problem.fit_all_columns(supports, taus) is None
    full_lower = np.zeros(len(case.taus))
    assert case.problem.bound_left_out(supports, taus, full_lower) is None
    assert list(case.problem.solve_left_out(supports, taus, case.is_open, 100, is_never_expired)) == []


def test_only_sizes_that_are_wanted() -> None:
    case = Enumerated(n=40)
    found = case.check(case.problem.solve_left_out(*case.incumbents([1]), case.is_open, 100, is_never_expired))
    assert found.n_nodes > 0 and found.is_solved[1].any() and not found.is_solved[[0, 2]].any()


def test_a_tree_that_the_clock_stops_solves_nothing() -> None:
    case = Enumerated(n=40)
    stopped = case.problem.solve_left_out(*case.incumbents([1]), case.is_open, 100, lambda: True)
    assert all(isinstance(known, NodeCount) or not known.is_solved.any() for known in stopped)
