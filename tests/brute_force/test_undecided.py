"""Intervals of cells that the trees left open, against enumeration."""

from __future__ import annotations

import numpy as np
from bounds_problems import Case, random_case, some_folds, truth
from plain_ridge import ridge

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.problems.fold_fits import FoldData, enclose_held_out
from sparsecv_mio.units import TIE_RTOL, Interval


def intervals(case: Case, seed: int) -> list[tuple[float, float, float, float, float]]:
    """By cell: ends with relaxations, ends by the ridge ball alone and the scale of the sum of squares."""
    weight = case.gamma / 2.0 * case.data.weight
    out = []
    for fold, moments in training_moments(case.data, case.folds, some_folds(case, 3)):
        here = FoldData.from_moments(case.data, case.folds, fold, moments).with_gamma(case.gamma)
        problem, rows = here.problem, here.held_out
        taus = list(range(1, case.data.q))
        supports = [np.sort(case.rng.choice(case.data.q, tau, replace=False)) for tau in taus]
        if seed % 2:  # good incumbents instead of any
            search = FoldBounds(problem, *(problem.own or case.data).rows(case.folds.scored_rows(fold)))
            search.search(taus, swap_rounds=2)
            if search.form is not None:
                supports = [np.flatnonzero(search.supports[tau]) for tau in taus]
        uppers = [ridge(problem, support)[1] * (1.0 + 1e-9) * (1.0 + TIE_RTOL) for support in supports]
        relaxed, ball = (enclose_held_out(here, taus, np.array(uppers), supports, relaxes) for relaxes in (True, False))
        floors, low_floors = relaxed.objective_lower, ball.objective_lower
        sharp_ends, ball_ends = (
            [Interval(*ends) for ends in zip(one.lower, one.upper, strict=True)] for one in (relaxed, ball)
        )
        for tau, ends, plain, floor, low_floor in zip(taus, sharp_ends, ball_ends, floors, low_floors, strict=True):
            least, low, high = truth(case, fold, tau, weight)
            slack = 1e-9 * (high + rows.count * problem.yy / problem.n)
            assert low_floor <= floor <= least * (1.0 + 1e-9) + 1e-12 * problem.yy, (seed, fold, tau)
            assert ends.lower <= low + slack and high <= ends.upper + slack, (seed, fold, tau)
            assert plain.lower <= low + slack and high <= plain.upper + slack, (seed, fold, tau)
            out.append((ends.lower, ends.upper, plain.lower, plain.upper, high))
    return out


def test_relaxations_contain_the_truth_and_narrow_the_ball() -> None:
    found = []
    for seed in range(160):
        case = random_case(seed)
        if case is not None and case.data.q > 1:
            found += intervals(case, seed)
    ends = np.array([row for row in found if np.isfinite(row[3])])
    assert len(ends) > 500
    assert np.all(ends[:, 0] >= ends[:, 2] * (1 - 1e-9)) and np.all(ends[:, 1] <= ends[:, 3] * (1 + 1e-9) + 1e-300)
    assert np.median((ends[:, 1] - ends[:, 0]) / (ends[:, 3] - ends[:, 2] + 1e-300)) < 0.5


def test_an_unknown_level_leaves_the_cell_open() -> None:
    case = random_case(1)
    assert case is not None
    fold, moments = next(training_moments(case.data, case.folds))
    here = FoldData.from_moments(case.data, case.folds, fold, moments)
    ends = enclose_held_out(here, [1], np.array([np.inf]), [np.array([0])], True)
    assert ends.lower[0] == 0.0 and ends.upper[0] == np.inf
