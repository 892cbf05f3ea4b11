"""Quadratics by the kernel of lists beside those of numpy, and what they say of supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from logistic_truth import drawn, quadratic_value

from sparsecv_mio.kernels import glm_lists
from sparsecv_mio.kernels.glm_lists import ABOVE, OPEN, WITHIN, FitsOfInterest
from sparsecv_mio.problem.glm import GlmProblem, minorant, minorant_within
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.units import KEEP_RTOL


@pytest.mark.parametrize("seed", range(24))
def test_quadratics_by_the_kernel_are_those_of_numpy(seed: int) -> None:
    fits = GlmSubsets(drawn(6000 + seed, 7)).fits
    problem, everything = fits.whole, fits.fit(range(fits.problem.p))[0]
    firsts = np.flatnonzero(fits.copies)
    if len(firsts) < problem.p or problem.p < 2:
        return
    point = 0.5 * everything + 0.5 * fits.fit([0])[0]
    level = 1.2 * max(problem.objective(everything), problem.objective(point))
    ball = minorant(problem, point, level)
    if ball is None:
        return
    for centre in (point, everything, fits.fit([0])[0]):
        twin = minorant_within(problem, centre, level, ball.ranges)
        of_interest = FitsOfInterest(firsts, problem.penalty, np.array(ball.ranges), level, KEEP_RTOL)
        made, own = glm_lists.quadratic_about(fits.rows.W, fits.rows.response, centre, of_interest, problem.first)
        assert made == (twin is not None)
        if twin is None or not own.keep < 1e-3:
            continue
        masks = np.array([list(np.binary_repr(i, problem.p)) for i in range(1, 2**problem.p)]) == "1"
        members = np.argsort(~masks, axis=1, kind="stable")
        bounds, known = np.full(len(masks), -np.inf), np.zeros(len(masks), dtype=np.int8)
        above = glm_lists.raise_bounds(own, members, masks.sum(axis=1), level, bounds, known)
        assert above == np.count_nonzero(bounds > level) == np.count_nonzero(known)
        f = [float(quadratic_value(twin.moments, tuple(np.flatnonzero(mask).tolist()))) for mask in masks]
        exact = np.array(f) - twin.shift
        scale = own.constant + twin.moments.yy
        assert np.all(bounds <= exact + 1e-9 * scale), seed
        assert np.all(bounds >= exact - (1e-6 + 2.0 * own.keep) * scale), seed


@pytest.mark.parametrize("seed", range(8))
def test_supports_above_are_those_that_fits_show(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 8))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=50) > 0, 1.0, -1.0)
    fits = GlmSubsets(GlmProblem(X, y, np.ones(50), np.ones(8), 0.1)).fits
    masks = np.array([fits.mask(support) for support in combinations(range(8), 3)])
    exact = fits.refit(masks)
    level = float(np.sort(exact.upper)[2]) * (1.0 + 1e-9)
    near = exact.points[int(np.argmin(exact.upper))]
    ball = minorant(fits.whole, near, level)
    assert ball is not None
    of_interest = FitsOfInterest(np.arange(8), fits.whole.penalty, np.array(ball.ranges), level, KEEP_RTOL)
    bounds, known = np.full(len(masks), -np.inf), np.full(len(masks), OPEN, dtype=np.int8)
    waiting, fitted = len(masks), 0
    while waiting:
        left = glm_lists.screen(fits.rows, masks, of_interest, near, 1, bounds, known)
        assert left == np.count_nonzero(known == OPEN) < waiting
        waiting, fitted = left, fitted + 1
    assert np.array_equal(known == WITHIN, exact.lower <= level) and np.count_nonzero(known == WITHIN) == 3
    assert np.all(known[exact.lower > level] == ABOVE) and np.all(bounds <= exact.upper)
    assert fitted < len(masks)
