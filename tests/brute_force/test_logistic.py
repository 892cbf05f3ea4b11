"""Best subsets of logistic and Poisson regression against an enumeration with its own Newton, in long double."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from logistic_truth import (
    Listed,
    best_of_size,
    counted,
    drawn,
    enumerated,
    harder,
    judged,
    listed,
    long_rows,
    quadratic_value,
)
from sklearn.linear_model import PoissonRegressor
from slow import slow

from sparsecv_mio.problem.glm import GlmProblem, minorant
from sparsecv_mio.trees import glm_tree
from sparsecv_mio.trees.glm_subsets import GlmSubsets, bound_around_points
from sparsecv_mio.trees.subsets import UNLIMITED, is_never_expired

FEW = 4  # columns of the problems here; the campaign has up to 7


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 24))])
def test_bounds_hold_the_truth(seed: int) -> None:
    judged(seed, FEW)


@pytest.mark.parametrize(
    "seed", [*range(6), 382, *slow(range(6, 12))]
)  # the last: all columns are in, how many copies of each is open
def test_bounds_hold_with_weights_far_apart_copies_and_tiny_units(seed: int) -> None:
    judged(seed, 5, harder)


@pytest.mark.parametrize("seed", [*range(3), *slow(range(3, 12))])
def test_a_bound_that_will_do_is_reached_or_the_best_subset_is_proved(seed: int) -> None:
    subsets = GlmSubsets(drawn(7000 + seed, 5))
    truth = enumerated(subsets.fits.bounding_problem)
    for size in range(1, subsets.fits.problem.p):
        least = truth[best_of_size(truth, size)]
        value, off = float(least.value), 1e-9 * float(least.value) + least.off
        for share in (0.5, 0.9, 0.999, 1.0, 1.001, 1.2):
            found = GlmSubsets(subsets.fits.problem).solve([size], cutoffs={size: share * value}).by_size[size]
            assert found.lower <= value + off and found.upper >= value - off, (seed, size, share)
            assert isinstance(found.complete, bool)
            assert found.complete or found.lower >= share * value * (1.0 - 1e-12), (seed, size, share)
            assert not found.complete or found.upper - found.lower <= 2.0 * off, (seed, size, share)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 16))])
def test_quadratics_are_below_the_objective_on_their_level_set(seed: int) -> None:
    fits = GlmSubsets(drawn(1000 + seed, FEW)).fits
    problem = fits.bounding_problem
    truth = enumerated(problem)
    everything = fits.fit(range(problem.p))[0]
    for S, room in ((S, room) for S in truth for room in (1e-9, 0.05, 0.3)):
        point, _, upper = fits.fit(S)
        level = upper * (1.0 + room)
        for share in (0.0, 0.3, 1.0):
            below = minorant(fits.bounding_problem, (1.0 - share) * point + share * everything, level)
            if below is None:
                continue
            for other, exact in truth.items():
                if exact.value <= level:
                    bound = quadratic_value(below.moments, other) - below.shift
                    assert bound <= float(exact.value) + 1e-11 * below.moments.yy, (seed, S, other)


@pytest.mark.parametrize("seed", [*range(3), *slow(range(3, 6))])
def test_ranges_of_fits_with_some_columns_hold_them_and_their_quadratics_are_below(seed: int) -> None:
    problem = GlmSubsets(drawn(3500 + seed, 5)).fits.bounding_problem
    truth = enumerated(problem)
    fits = GlmSubsets(problem).fits
    for size in range(2, problem.p):
        level = float(truth[best_of_size(truth, size)].value) * 1.2
        point = 0.6 * fits.fit(best_of_size(truth, size))[0] + 0.4 * fits.fit(range(problem.p))[0]
        for inside in ((0,), (problem.p - 1,), (0, problem.p - 1)):
            of_these = GlmSubsets(problem, np.array(inside, dtype=np.int64)).fits
            for below, _, ranges in bound_around_points(of_these, [point, point], size, level, is_never_expired):
                for S, exact in truth.items():
                    if len(S) == size and set(inside) <= set(S) and exact.value <= level:
                        margins = problem.y * (long_rows(problem.select_columns(np.array(S))) @ exact.theta)
                        assert np.all(ranges.low <= margins + 1e-9) and np.all(margins - 1e-9 <= ranges.high), (seed, S)
                        bound = quadratic_value(below.moments, S) - below.shift
                        assert bound <= float(exact.value) + 1e-11 * below.moments.yy, (seed, S)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 5, *slow(range(2, 5))])
def test_trees_that_split_as_often_as_they_can_hold_the_truth(
    seed: int, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glm_tree, "LEAPS_WORK", 1)
    monkeypatch.setattr(glm_tree, "SMOOTH_COLUMNS", 4 + seed)  # more columns are treated as very many are
    problem = (harder if hard else drawn)(7000 + seed, 7)
    truth, nodes = enumerated(problem), 0
    for size in range(1, problem.p + 1):
        result = GlmSubsets(problem).solve([size], node_limit=400)
        best, exact = result.by_size[size], truth[best_of_size(truth, size)]
        nodes += result.nodes
        assert best.lower <= exact.value <= best.upper + exact.off, (seed, size)
    assert nodes >= problem.p


def test_nearly_all_sizes_of_plain_problems_are_proved() -> None:
    counts = [judged(8 * seed, FEW) for seed in range(5)]
    assert sum(proved for _, proved in counts) == sum(asked for asked, _ in counts)


def test_what_a_limit_leaves_is_a_support_with_valid_bounds() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 20))
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0, 1.0, -1.0)
    problem = GlmProblem(X, y, np.ones(60), np.ones(20), 1e-2)
    subsets = GlmSubsets(problem)
    short, whole = subsets.solve([4], node_limit=0).by_size[4], subsets.solve([4]).by_size[4]
    stopped = GlmSubsets(problem).solve([4], is_expired=lambda: True).by_size[4]
    assert whole.complete and whole.upper - whole.lower < 1e-9 * whole.upper
    for best in (short, stopped):
        assert len(best.support) <= 4 and best.lower <= whole.upper and best.upper >= whole.lower
    assert not stopped.complete


def far_problem(n: int = 60, p: int = 12, gamma: float = 1e-2) -> GlmProblem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0, 1.0, -1.0)
    return GlmProblem(X, y, np.ones(n), np.ones(p), gamma)


def test_offsets_and_scales_change_nothing_but_the_units() -> None:
    plain = far_problem()
    scale, offset = 2.0 ** np.arange(-12, 12, 2), 1e6 * np.arange(12)
    moved = GlmProblem(plain.X * scale + offset, plain.y, plain.v, plain.weight * scale**2, plain.gamma)
    sizes, support = [1, 3, 5], [np.array([0, 1, 7])]
    one, other = GlmSubsets(plain), GlmSubsets(moved)
    for a, b in zip(one.solve(sizes).by_size.values(), other.solve(sizes).by_size.values(), strict=True):
        assert a.complete and b.complete and a.support.tolist() == b.support.tolist()
        assert a.upper == pytest.approx(b.upper, rel=1e-7)
    here, there = one.refit(support), other.refit(support)
    assert here.coefficients == pytest.approx(there.coefficients * scale, rel=1e-5)
    mask = np.isin(np.arange(12), support)[None, :]
    low, high = other.fits.decisions(mask, other.fits.refit(mask), moved.X)
    reported = there.intercept[0] + moved.X @ there.coefficients[0]
    assert np.all(low[0] - 1e-5 <= reported) and np.all(reported <= high[0] + 1e-5)
    assert np.all(high - low < 1e-9)


def test_rows_without_weight_are_not_there() -> None:
    problem = far_problem()
    v = np.where(np.arange(60) < 50, 1.0, 0.0)
    less = GlmProblem(problem.X[:50], problem.y[:50], np.ones(50), problem.weight, problem.gamma)
    with_them = GlmSubsets(replace(problem, v=v)).solve([2]).by_size[2]
    without = GlmSubsets(less).solve([2]).by_size[2]
    assert (with_them.upper, with_them.support.tolist()) == (without.upper, without.support.tolist())


def test_copies_and_complements_fill_a_support_and_are_all_named() -> None:
    problem = far_problem(p=6, gamma=1e-6)
    X = np.hstack([problem.X, -problem.X[:, :1], problem.X[:, 1:2]])
    X[:, 2] = problem.X[:, 2] > 0
    X[:, 3] = 1.0 - X[:, 2]
    twice = GlmProblem(X, problem.y, problem.v, np.ones(8) * (1.0 + np.arange(8) * 1e-16), problem.gamma)
    subsets = GlmSubsets(twice)
    assert subsets.fits.copies.tolist() == [2, 2, 2, 0, 1, 1, 0, 0]
    truth = enumerated(twice)
    for size, best in subsets.solve(range(1, 9)).by_size.items():
        exact = truth[best_of_size(truth, size)]
        assert best.complete and best.lower <= exact.value * (1.0 + 1e-12) and exact.value <= best.upper + exact.off
        assert best.upper - best.lower <= 1e-9 * best.upper
        if size == 2:
            own = {tuple(support.tolist()) for support in best.candidates}
            assert {(0, 1), (0, 7), (1, 6), (6, 7)} <= own
    for size in (2, 3, 4):
        values = sorted((float(exact.value), S) for S, exact in truth.items() if len(S) == size)
        below = listed(subsets, size, values[-2][0] * (1.0 + 1e-7))
        assert below.unseen == np.inf
        assert {len(support) for support in below.supports} == {size}
        assert len(below.supports) == sum(value <= values[-2][0] * (1.0 + 2e-7) for value, _ in values)


def test_columns_that_centring_alone_makes_equal_are_no_copies() -> None:
    """They differ in the last bit of a row, which a fit without a ridge to speak of would use: F was said too large."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=30) + 0.3
    x[5] = 1e-6
    other = np.where(np.arange(30) == 5, np.nextafter(x, 1.0), x)
    y = np.where(rng.random(30) < 0.5, -1.0, 1.0)
    problem = GlmProblem(np.column_stack([x, other, -2.0 * x]), y, np.ones(30), np.array([1.0, 1.0, 4.0]), 1e-60)
    subsets = GlmSubsets(problem)
    assert subsets.fits.copies.tolist() == [2, 1, 0]
    without_the_row = GlmSubsets(replace(problem, v=(np.arange(30) != 5).astype(float)))
    least = without_the_row.solve([1]).by_size[1].upper
    assert subsets.solve([2]).by_size[2].lower <= least


def test_lists_are_all_supports_up_to_an_objective() -> None:
    problem = far_problem(p=7)
    truth = enumerated(problem)
    values = sorted((float(exact.value), S) for S, exact in truth.items() if len(S) == 3)
    below = listed(GlmSubsets(problem), 3, values[9][0] * (1.0 + 1e-9))
    assert below.unseen == np.inf
    assert set(below.supports) == {S for _, S in values[:10]}
    assert all(lower <= upper for lower, upper in below.supports.values())
    best = listed(GlmSubsets(problem), 3, 1e3, most=5)
    assert best.unseen == np.inf and {S for _, S in values[:5]} <= set(best.supports)
    assert best.level == pytest.approx(values[4][0], rel=1e-9)


def test_a_list_that_is_cut_off_says_what_others_have_at_least() -> None:
    problem = far_problem(p=9)
    truth = {S: float(exact.value) for S, exact in enumerated(problem).items() if len(S) == 4}
    level = sorted(truth.values())[100]
    for looks in (3, 30, 300, 1000):
        wanted, count = Listed(level), iter(range(looks))
        search = GlmSubsets(problem).listing(4, wanted, lambda count=count: next(count, None) is None)
        search.solve(4, UNLIMITED, np.inf)
        for S, value in truth.items():
            assert S in wanted.supports or value >= min(search.unseen, level) * (1.0 - 1e-12), (looks, S)


def test_an_open_size_holds_the_loss_of_its_best_support() -> None:
    problem = far_problem(gamma=1.0)
    subsets = GlmSubsets(problem)
    best = subsets.solve([3]).by_size[3]
    X, y = problem.X[:10] * 1.3, problem.y[:10]
    _, (lower,), (upper,) = subsets.score_supports([best.support], X, y)
    low, high = subsets.open_fold_interval(3, best.upper, X, y)
    assert 0.0 < low <= lower <= upper <= high < 100.0 and upper - lower < 1e-9
    assert subsets.open_fold_interval(3, np.inf, X, y) == (0.0, np.inf)
    assert subsets.open_fold_interval(3, best.upper, X, y, is_expired=lambda: True) == (0.0, np.inf)


@pytest.mark.parametrize(("n", "p"), [(400, 60), (60, 300)])
def test_no_step_takes_long_between_two_looks_at_the_clock(n: int, p: int) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, :5].sum(axis=1) + rng.logistic(size=n) > 0, 1.0, -1.0)
    subsets = GlmSubsets(GlmProblem(X, y, np.ones(n), np.ones(p), 0.3))
    subsets.solve([5], node_limit=2)  # kernels are compiled
    for looks in (0, 1, 5, 25, 120):
        times: list[float] = []

        def is_expired(times: list[float] = times, looks: int = looks) -> bool:
            times.append(process_time())
            return len(times) > looks

        best = GlmSubsets(subsets.fits.problem).solve([5], is_expired=is_expired).by_size[5]
        times.append(process_time())
        assert best.lower <= best.upper < np.inf and max(np.diff(times)) < 0.5
        assert len(times) < looks + 40  # once it has expired, what remains is little


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 24))])
def test_every_claim_about_counts(seed: int) -> None:
    asked, proved = judged(seed, 5, counted)
    assert proved == asked


@pytest.mark.parametrize("seed", range(3))
def test_fits_of_all_columns_are_those_of_scikit_learn(seed: int) -> None:
    """Its objective is the mean of half deviances, weighted, and alpha / 2 times the squares."""
    problem = counted(8 * seed)  # plain ones: columns about 1, weights 1
    alpha = problem.gamma / problem.v.sum()
    model = PoissonRegressor(
        alpha=alpha, fit_intercept=problem.intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(problem.X, problem.y, sample_weight=problem.v)
    fits = GlmSubsets(problem).refit([np.arange(problem.p)])
    assert fits.coefficients[0] == pytest.approx(model.coef_, rel=1e-8, abs=1e-8)
    assert fits.intercept[0] == pytest.approx(model.intercept_, rel=1e-8, abs=1e-8)
