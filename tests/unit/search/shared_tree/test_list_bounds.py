"""What a list of near-optimal supports on all rows proves of the folds, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.shared_tree.list_bounds import (
    apply_by_refits,
    apply_in_closed_form,
    incumbent_values,
    least_threshold,
)
from sparsecv_mio.search.shared_tree.near_optimal import NearOptimal, SupportList
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

from .enumerated import VARIANTS, Enumerated

CASES = [(seed, *variant) for seed in range(3) for variant in VARIANTS]


def listed(case: Enumerated, t: int, above: bool = True) -> SupportList:
    """A list up to a random threshold above the optimum, or below it: without supports then."""
    f = [case.f[s] for s in case.of_size(t + 1)]
    ends = (min(f), 1.5 * max(f)) if above else (0.9 * min(f), min(f))
    threshold = float(np.random.default_rng(case.seed).uniform(*ends))
    found, _ = NearOptimal(case.all_rows, 0).below(t + 1, threshold, 100_000)
    assert found is not None
    return found


def solver_of(case: Enumerated) -> CellSolver:
    accelerators = Accelerators(case.context, case.all_rows, ())
    return CellSolver(FoldSolver(case.state, accelerators))


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_all_folds_at_once(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    first_intervals(root)
    for t in range(3):
        assert apply_in_closed_form(root, t, listed(case, t, above=False)).any()
        case.check_cells()
        apply_in_closed_form(root, t, listed(case, t))
        case.check_cells()


def test_supports_beside_the_incumbents_raise_more() -> None:
    """Every support but the incumbents, as a list up to the largest objective: what is left is exact."""
    case = Enumerated()
    root = RootNode(case.leave_out, 0, [1])
    first_intervals(root)
    known = {tuple(np.sort(support).tolist()) for support in root.supports}
    rest = tuple(np.array(s) for s in case.of_size(2) if s not in known)
    served = apply_in_closed_form(root, 1, SupportList(rest, np.inf))
    assert served.all()
    np.testing.assert_allclose(case.cells.lower[0, 1], case.truth()[1], rtol=1e-8)
    case.check_cells()


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_one_fold_after_the_other(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    first_intervals(RootNode(case.leave_out, 0, [0, 1, 2]))
    solver, folds = solver_of(case), np.arange(case.folds.k)
    for t in range(3):
        apply_by_refits(solver, (0, t), folds, listed(case, t))
        case.check_cells()
    assert case.cells.decided.any()


def test_a_goal_that_is_reached_leaves_the_rest() -> None:
    case = Enumerated()
    first_intervals(RootNode(case.leave_out, 0, [0, 1, 2]))
    solver, folds = solver_of(case), np.arange(case.folds.k)
    before = case.cells.lower.copy()
    apply_by_refits(solver, (0, 1), folds, listed(case, 1), goal=float(before[0, 1].sum()))
    assert np.array_equal(case.cells.lower, before)


def test_incumbent_values_are_above_the_optimum() -> None:
    case = Enumerated(1)
    first_intervals(RootNode(case.leave_out, 0, [0, 1, 2]))
    folds = np.array([3, 0, 7])
    values = incumbent_values(solver_of(case), (0, 1), folds)
    for value, fold in zip(values, folds.tolist(), strict=True):
        shown = tuple(case.cells.pool.supports[case.cells.support[0, 1, fold]].tolist())
        assert case.inside[shown][fold] <= value <= case.inside[shown][fold] * (1.0 + 1e-8)


def test_the_least_threshold_reaches_the_goal() -> None:
    rng = np.random.default_rng(0)
    lower, ubar = rng.uniform(0, 1, 20), rng.uniform(5, 6, 20)
    expected = lower + rng.uniform(0, 2, 20)
    for share in (0.1, 0.5, 0.99):
        goal = float((lower + share * (expected - lower)).sum())
        threshold = least_threshold(lower, expected, ubar, goal)

        def reached(value: float) -> float:
            return float(np.maximum(lower, np.minimum(value - ubar, expected)).sum())

        assert reached(threshold) >= goal > reached(threshold - 1e-6)
    assert least_threshold(lower, expected, ubar, float(expected.sum()) + 1.0) == np.inf
