"""Bounds on all folds by near-best supports of the full data, against fits of all supports."""

from __future__ import annotations

import numpy as np
import pytest
from glm_cases import many_folds_case

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.problems.smooth import SmoothProblems
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.near_best_held_out import NearBestHeldOut
from sparsecv_mio.trees.subsets import is_never_expired

ROUNDING = 1e-7  # of a CV error
SEEDS = [0, 1, 2, 4, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_contain_the_truth_before_and_after_a_list(seed: int) -> None:
    try:
        case = many_folds_case(seed)
        data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
    except BadInput:
        return
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    problems = SmoothProblems(data, case.folds, grid)
    context = Context(
        data, case.folds, grid, SearchOptions(loss="logistic").request(grid), Deadline(None, None), 1
    )  # fmt: skip
    n_solved = 0
    for g, gamma in enumerate(case.gammas):
        for tau in case.taus:
            subset = problems.full(g).solve([tau], [], 0, is_never_expired).by_size[tau]
            near_best = problems.full(g).make_near_optimal_list(tau, [subset.support], is_never_expired)
            assert isinstance(near_best, NearBestHeldOut)
            least, most = near_best.bound_all_fits(subset.upper)
            for has_list in (False, True):
                if has_list:
                    near_best.compute_exactly()
                    near_best.list_supports(max(near_best.cutoff_to_solve(most), subset.upper), 1 << 12, 1)
                folds = near_best.bound_folds(least, most)
                low, high = case.truth.h(gamma, tau)
                assert folds.lower.sum() * context.cv_error_factor <= high * (1.0 + ROUNDING), (
                    seed,
                    gamma,
                    tau,
                    has_list,
                )
                assert folds.upper.sum() * context.cv_error_factor >= low * (1.0 - ROUNDING), (
                    seed,
                    gamma,
                    tau,
                    has_list,
                )
                n_solved += int(folds.is_listed.sum()) * has_list
    assert n_solved > 0


def test_more_than_the_admitted_supports_lower_the_level() -> None:
    from sparsecv_mio.trees.near_best_held_out import _NearBestList
    from sparsecv_mio.trees.subsets import MOST_REFITTED

    near_best, objectives = _NearBestList(1e3), np.random.default_rng(0).permutation(2 * MOST_REFITTED) / 8.0
    for number, objective in enumerate(objectives.tolist()):
        near_best.take(np.array([number]), objective, objective)
    assert near_best.level < 1e3 and len(near_best.objectives) <= MOST_REFITTED
    kept = sorted(near_best.objectives.values())
    assert kept == sorted(objectives)[: len(kept)]
