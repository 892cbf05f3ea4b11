"""Leaps and bounds by fits beside an enumeration of all supports."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from logistic_truth import drawn, harder

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.kernels import glm_leaps
from sparsecv_mio.kernels.glm_newton import Columns
from sparsecv_mio.kernels.smooth_losses import new_state
from sparsecv_mio.problem.glm import GlmProblem, Ranges, level_ranges, minorant
from sparsecv_mio.problem.row_losses import PoissonLoss
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_subsets import GlmSubsets

ROOM = 1.0 + 1e-12


def region_at(fits: GlmFits, level: float) -> glm_leaps.FitRanges | None:
    """Return ranges by the penalty, or by a quadratic, which are narrower and need not exist."""
    problem, point = fits.bounding_problem, fits.fit(range(fits.problem.p))[0]
    free = np.flatnonzero(problem.penalty == 0.0)
    found = Ranged(*level_ranges(problem, point, level))
    if int(level * 1e6) % 2:
        below = minorant(problem, point, level)
        if below is None:
            return None
        found = Ranged(below.ranges, below.ellipsoid.centre, below.reach)
    return glm_leaps.FitRanges(
        np.array(found.ends), free, found.middle[free], found.half[free], np.abs(fits.rows.W).max(axis=1)
    )


class Ranged(NamedTuple):
    ends: Ranges
    middle: FloatArray
    half: FloatArray


def values_of(fits: GlmFits, sizes: range) -> dict[tuple[int, ...], tuple[float, float]]:
    supports = [S for size in sizes for S in combinations(range(fits.problem.p), size)]
    fitted = fits.refit(np.array([fits.mask(S) for S in supports]))
    return dict(zip(supports, zip(fitted.lower.tolist(), fitted.upper.tolist(), strict=True), strict=True))


def same_columns(fits: GlmFits) -> bool:
    return fits.problem.p > 2 and bool(np.all(fits.copies == 1))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_any_point_are_below_every_fit_of_interest(seed: int) -> None:
    fits = GlmSubsets((harder if seed % 2 else drawn)(7000 + seed, 6)).fits
    if not same_columns(fits):
        return
    p, first, rng = fits.problem.p, fits.problem.first_coefficient, np.random.default_rng(seed)
    truth = values_of(fits, range(1, p + 1))
    level = float(np.quantile([high for _, high in truth.values()], 0.7))
    region = region_at(fits, level)
    if region is None:
        return
    W, response, penalty = fits.rows.W, fits.rows.response, fits.bounding_problem.penalty
    Z = Columns(W, np.arange(len(W)))
    everything, state, g, costs = fits.fit(range(p))[0], new_state(W.shape[1]), np.empty(first + p), np.empty(p)
    buffer, heap, H, factor = np.empty(first + p), np.empty(first + p + 1), *np.empty((2, first + p, first + p))
    for inside, most in ((0, 1), (0, p - 1), (1, 2), (2, p)):
        of_node = [
            low for S, (low, high) in truth.items() if len(S) <= most and set(range(inside)) <= set(S) and high <= level
        ]
        least = min(of_node, default=np.inf)
        theta = everything + rng.standard_normal(first + p) * rng.choice([0.0, 1e-3, 1.0])
        glm_leaps.evaluate(Z, response, penalty, theta, state)
        for j in range(first + p):
            g[j] = float((fits.problem.signs * response.v * state.falls) @ W[j])
        base, share = glm_leaps.worth(response, state, g, float(response.v @ np.abs(state.falls)), region)
        costs[:] = (np.abs(g[first:]) + share * region.size[first:]) ** 2 / (4.0 * penalty[first:])
        assert glm_leaps.bound_supports(base, costs, inside, most, buffer, heap) <= least * ROOM
        fit = glm_leaps.NodeFit(Z, inside, penalty, region.size, theta, costs, H, factor)
        wanted = glm_leaps.SizesWanted(inside, most, level, False, True)
        bound, _, base = glm_leaps.settle(fit, response, region, wanted, level, inside > 0)
        assert bound <= least * ROOM or (bound > level and least > level)
        raised, _ = glm_leaps.tighten(fit, response, region, wanted, level, (bound, base))
        assert bound <= raised and (raised <= least * ROOM or raised > level < least)


@pytest.mark.parametrize("most_fits", [1, 7, 1_000])
@pytest.mark.parametrize("seed", range(10))
def test_supports_up_to_a_level_are_those_of_an_enumeration(seed: int, most_fits: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 8)) * 10.0 ** rng.uniform(-2, 2, 8)
    y = np.where(X[:, 0] / X[:, 0].std() + rng.logistic(size=40) > 0, 1.0, -1.0)
    fits = GlmSubsets(GlmProblem(X, y, rng.uniform(0.5, 2.0, 40), X.var(axis=0), 10.0 ** rng.uniform(-2, 2))).fits
    for sizes in ((3, 3), (2, 4)):
        truth = values_of(fits, range(sizes[0], sizes[1] + 1))
        level = float(np.quantile([low for low, _ in truth.values()], 0.2))
        region = region_at(fits, level)
        assert region is not None
        start, waiting, met = fits.fit(range(8))[0], [(np.arange(1, 9), 0, 0.0)], set()
        while waiting:
            columns, inside, bound = waiting.pop()
            nodes = glm_leaps.one_node(columns, inside, sizes[1], most_fits, start, bound)
            masks = np.zeros((5, 9), dtype=np.bool_)
            left, count, last = glm_leaps.process_nodes(
                fits.rows, region, glm_leaps.SizesWanted(*sizes, level, False, most_fits != 7), nodes, most_fits, masks
            )
            assert last == level
            met |= {tuple(np.flatnonzero(mask[1:]).tolist()) for mask in masks[:count]}
            waiting += [
                (nodes.columns[at, : nodes.width[at]].copy(), int(nodes.inside[at]), float(nodes.bound[at]))
                for at in range(left)
            ]
        wanted = {S for S, (low, _) in truth.items() if low <= level}
        assert wanted <= met
        assert most_fits == 7 or all(truth[S][0] <= level * (1.0 + 1e-6) for S in met)


def test_a_level_falls_to_what_is_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 9))
    y = np.where(X[:, 0] + X[:, 1] + rng.logistic(size=60) > 0, 1.0, -1.0)
    fits = GlmSubsets(GlmProblem(X, y, np.ones(60), np.ones(9), 0.5)).fits
    truth = values_of(fits, range(2, 3))
    best, worst = min(truth.values()), max(high for _, high in truth.values())
    region = region_at(fits, worst)
    assert region is not None
    nodes = glm_leaps.one_node(np.arange(1, 10), 0, 2, 1_000, fits.fit(range(9))[0], 0.0)
    masks = np.zeros((50, 10), dtype=np.bool_)
    left, count, level = glm_leaps.process_nodes(
        fits.rows, region, glm_leaps.SizesWanted(2, 2, worst, True, True), nodes, 1_000, masks
    )
    assert left == 0 < count < len(truth)
    assert best[0] <= level <= best[1] * (1.0 + 1e-2)
    assert min(truth, key=lambda S: truth[S]) in {tuple(np.flatnonzero(mask[1:]).tolist()) for mask in masks[:count]}


def counts(n: int, p: int, seed: int = 0) -> GlmFits:
    rng = np.random.default_rng(seed)
    y = (rng.poisson(1.0, n) + (np.arange(n) == 0.0)).astype(float)
    return GlmSubsets(GlmProblem(rng.standard_normal((n, p)), y, np.ones(n), np.ones(p), 0.5, loss=PoissonLoss())).fits


def test_points_far_away_whose_model_rounding_leaves_without_curvature() -> None:
    """There one row has all of the curvature, and what the intercept leaves of it may be below 0."""
    for seed in range(180, 200):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((12, 4)), (rng.poisson(1.0, 12) + (np.arange(12) == 0.0)).astype(float)
        problem = GlmProblem(X, y, np.ones(12), np.full(4, 1e-6), 0.5, loss=PoissonLoss())
        rows, far = GlmSubsets(problem).fits.rows, 10.0 ** rng.uniform(1.5, 3.5)
        W, point = rows.W.copy(), rng.standard_normal(5) * far
        W[4], point[4] = 0.0, 0.0
        ends, size = np.array([np.full(12, -50.0), np.full(12, 50.0)]), np.abs(W).max(axis=1)
        region = glm_leaps.FitRanges(ends, np.array([0]), np.array([0.0]), np.array([50.0]), size)
        penalty = np.array([0.0, *problem.ridge])
        curved = (W * np.exp(np.minimum(point @ W, 600.0))) @ W.T + np.diag(2.0 * penalty)
        fit = glm_leaps.NodeFit(Columns(W, np.arange(5)), 1, penalty, size, point, np.zeros(4), curved, np.eye(5))
        wanted = glm_leaps.SizesWanted(2, 2, 60.0, False, True)
        glm_leaps.tighten(fit, rows.response, region, wanted, 60.0, (-np.inf, 0.0))


def test_a_node_without_a_hessian_is_split_all_the_same() -> None:
    """An intercept at which every rate is 0 in floats; two of five columns are ten supports."""
    fits = counts(30, 5)
    region, start = region_at(fits, 60.0), fits.fit(range(5))[0]
    assert region is not None
    start[0] -= 900.0
    nodes = glm_leaps.one_node(np.arange(1, 6), 0, 2, 1_000, start, 0.0)
    masks = np.zeros((50, 6), dtype=np.bool_)
    left, count, _ = glm_leaps.process_nodes(
        fits.rows, region, glm_leaps.SizesWanted(2, 2, 60.0, False, True), nodes, 1_000, masks
    )
    assert (left, count) == (0, sum(low <= 60.0 for low, _ in values_of(fits, range(2, 3)).values()))
