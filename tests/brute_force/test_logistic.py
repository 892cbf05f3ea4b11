"""Best subsets of logistic regression against an enumeration with its own Newton, in long double."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import best_of_size, drawn, enumerated, judged, quadratic_value

from sparsecv_mio.problem.logistic import LogisticProblem, minorant
from sparsecv_mio.trees.logistic_subsets import LogisticSubsets

FEW = 4  # columns of the problems here; the campaign has up to 7


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_the_truth(seed: int) -> None:
    judged(seed, FEW)


@pytest.mark.parametrize("seed", range(16))
def test_quadratics_are_below_the_objective_on_their_level_set(seed: int) -> None:
    fits = LogisticSubsets(drawn(1000 + seed, FEW)).fits
    problem = fits.whole
    truth = enumerated(problem)
    everything = fits.fit(range(problem.p))[0]
    for S, room in ((S, room) for S in truth for room in (1e-9, 0.05, 0.3)):
        point, _, upper = fits.fit(S)
        level = upper * (1.0 + room)
        for share in (0.0, 0.3, 1.0):
            below = minorant(problem, (1.0 - share) * point + share * everything, level)
            if below is None:
                continue
            for other, exact in truth.items():
                if exact.value <= level:
                    bound = quadratic_value(below.moments, other) - below.shift
                    assert bound <= float(exact.value) + 1e-11 * below.moments.yy, (seed, S, other)


def test_columns_that_are_forced_in_are_in_every_support() -> None:
    for seed in range(2000, 2008):
        problem = drawn(seed, FEW)
        forced = np.array([problem.p - 1])
        truth = {S: exact for S, exact in enumerated(problem).items() if problem.p - 1 in S}
        result = LogisticSubsets(problem, forced).solve(range(1, problem.p + 1), effort=200)
        for size, best in result.by_size.items():
            assert problem.p - 1 in best.support
            exact = truth[best_of_size(truth, size)]
            assert best.lower <= exact.value <= best.upper + exact.off, (seed, size)


def test_nearly_all_sizes_of_plain_problems_are_proved() -> None:
    counts = [judged(8 * seed, FEW) for seed in range(5)]
    assert sum(proved for _, proved in counts) == sum(asked for asked, _ in counts)


def test_what_a_limit_leaves_is_a_support_with_valid_bounds() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 20))
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0, 1.0, -1.0)
    problem = LogisticProblem(X, y, np.ones(60), np.ones(20), 1e-2)
    subsets = LogisticSubsets(problem)
    short, whole = subsets.solve([4], effort=0).by_size[4], subsets.solve([4]).by_size[4]
    stopped = LogisticSubsets(problem).solve([4], expired=lambda: True).by_size[4]
    assert whole.complete and whole.upper - whole.lower < 1e-9 * whole.upper
    for best in (short, stopped):
        assert len(best.support) <= 4 and best.lower <= whole.upper and best.upper >= whole.lower
    assert not stopped.complete
