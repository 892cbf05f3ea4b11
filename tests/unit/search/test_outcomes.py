"""From the outcomes of trees in a fold to bounds on its held-out losses, against all subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.problems.fold_fits import enclose_held_out
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.problems.protocol import Fits
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.trees.subsets import BestSubset, is_never_expired

from .drawn_subproblem import TAUS, best_support, context_of, fold_of

EVERY = tuple(range(len(TAUS)))


@dataclass(frozen=True, eq=False)
class OtherFits(SquaredProblem):
    """A problem whose fits a test makes worse."""

    tied: bool = False
    vague: float = 0.0

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        fits = super().fit(supports)
        slack = self.vague * fits.held_out
        value = np.full_like(fits.objective, fits.objective[0]) if self.tied else fits.objective
        return replace(
            fits, objective=value, objective_lower=value if self.tied else fits.objective_lower,
            objective_upper=value if self.tied else fits.objective_upper, held_out_lower=fits.held_out_lower - slack,
            held_out_upper=fits.held_out_upper + slack, is_accurate=fits.is_accurate & (self.vague == 0.0),
        )  # fmt: skip


def problems_of(context: Context) -> SquaredProblems:
    return SquaredProblems(context, BestOnAllRows(context.data, context.grid))


def incumbent(support: tuple[int, ...]) -> BestSubset:
    """What a tree says that found a support and proved nothing."""
    return BestSubset(len(support), np.array(support, dtype=np.int64), 0.0, np.inf, (), (), 0.0, False, False)


def complete(problem: SparseProblem, supports: Sequence[tuple[int, ...]]) -> BestSubset:
    """What a tree says that listed these supports as all that can be optimal."""
    values = tuple(ridge(problem, support)[1] for support in supports)
    listed = tuple(np.array(support, dtype=np.int64) for support in supports)
    return BestSubset(len(supports[0]), listed[0], min(values), max(values), listed, values, 1e9, True, True)


def held(bounds: SubproblemBounds, place: int) -> list[int]:
    """The support that a subproblem shows."""
    return sorted(bounds.supports[int(bounds.best[place, 0])].tolist())


def test_relaxations_narrow_what_the_ridge_ball_leaves() -> None:
    context = context_of(1)
    problem = problems_of(context).fold(0, 1)
    known = [incumbent(best_support(context, (1, t, 0))) for t in EVERY]
    ball, relaxed = (
        bound_subproblems(problem, 1, EVERY, 0, known, False, lambda late=late: late) for late in (True, False)
    )  # fmt: skip
    widths = [(bounds.upper - bounds.lower)[1:, 0] for bounds in (ball, relaxed)]
    assert np.all(widths[1] <= widths[0] * (1.0 + 1e-9)) and widths[1].sum() < 0.9 * widths[0].sum()


def test_values_that_the_fits_do_not_confirm_solve_nothing() -> None:
    problem = problems_of(context_of()).fold(0, 0)
    found = problem.solve([2], [], 1 << 40, is_never_expired)
    wrong = replace(found.by_size[2], values=tuple(1.01 * value for value in found.by_size[2].values))
    bounds = bound_subproblems(problem, 0, (2,), 0, [wrong], True, is_never_expired)
    assert not bounds.is_solved.any() and bounds.lower[0, 0] <= bounds.upper[0, 0] < np.inf


def test_ties_widen_a_solved_subproblem() -> None:
    """Two supports of the same training objective: the interval holds the losses of both."""
    problem = SquaredProblems(context_of(), problems_of(context_of()).full_data, OtherFits).fold(0, 0)
    supports = [(1, 5), (0, 1)]
    fits = problem.fit([np.array(support) for support in supports])
    assert isinstance(problem, OtherFits)
    tied = replace(problem, tied=True)
    bounds = bound_subproblems(tied, 0, (2,), 0, [complete(problem.problem, supports)], True, is_never_expired)
    assert bounds.is_solved.all() and bounds.is_branched.all() and bounds.tied == {(0, 0): [0, 1]}
    assert bounds.lower[0, 0] <= fits.held_out.min() and fits.held_out.max() <= bounds.upper[0, 0]
    assert bounds.tie[0, 0] == pytest.approx(np.ptp(fits.held_out))
    assert held(bounds, 0) == [0, 1]  # the first in the order of columns


def test_a_held_out_loss_that_is_not_known_well_solves_nothing() -> None:
    problem = SquaredProblems(context_of(), problems_of(context_of()).full_data, OtherFits).fold(0, 0)
    exact = problem.fit([np.array([1, 5])]).held_out[0]
    assert isinstance(problem, OtherFits)
    vague = replace(problem, vague=0.1)
    bounds = bound_subproblems(vague, 0, (2,), 0, [complete(problem.problem, [(1, 5)])], True, is_never_expired)
    assert not bounds.is_solved.any() and bounds.is_final.all() and bounds.held_out[0, 0] == exact
    assert bounds.lower[0, 0] == pytest.approx(0.9 * exact) and bounds.upper[0, 0] == pytest.approx(1.1 * exact)


def test_without_relaxations_every_support_below_the_value_is_inside() -> None:
    """The ridge ball knows nothing of tau: what it says holds for every b with f(b) <= upper."""
    here = fold_of(context_of(1), 0, 0)
    supports = [np.array(support) for size in (1, 2, 3) for support in combinations(range(6), size)]
    fits = here.fit(supports)
    upper = float(np.median(fits.objective))
    found = enclose_held_out(here, [3], np.array([upper]), supports[-1:], False)
    assert 0.0 < found.objective_lower[0] <= fits.objective.min()
    inside = fits.held_out[fits.objective <= upper]
    assert len(inside) > 5 and found.lower[0] <= inside.min() and inside.max() <= found.upper[0]
