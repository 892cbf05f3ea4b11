"""Kernels of Cox regression against numpy in long double, with their bounds on rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cox_truth import Case, Dense, drawn_case
from slow import slow

from sparsecv_mio.kernels.cox_newton import (
    CoxRows,
    bound_held_out,
    bound_minimum,
    bound_value_rounding,
    count_pairs,
    evaluate,
    fill_drops,
    fill_end_means,
    fill_hessian,
    fill_row_weights,
    fill_wide_drops,
    fit_and_prove,
    gradient,
    look,
    new_state,
    newton,
    refit,
)
from sparsecv_mio.kernels.glm_newton import Columns
from sparsecv_mio.problem.risk_sets import RiskSets, make_risk_sets

SEEDS = [*range(10), *slow(range(10, 40))]


def sets_of(case: Case, rows: Any = None) -> RiskSets:
    return make_risk_sets(case.time, case.event, case.entry, case.stratum, case.weights, rows, case.efron)


def parts(seed: int) -> tuple[Case, Any, Any, Any, Any, Any]:
    """Return a case with centred columns, its kernels' arguments, and a point."""
    case = drawn_case(seed)
    case = case._replace(X=case.X - case.X.mean(0))
    rng, p = np.random.default_rng(seed), case.X.shape[1]
    places = np.sort(rng.permutation(p)[: max(p - 1, 1)])
    Z = Columns(np.ascontiguousarray(case.X.T), places)
    return case, Z, sets_of(case), 10.0 ** rng.uniform(-3, 1, len(places)), rng.normal(size=len(places)), places


@pytest.mark.parametrize("seed", SEEDS)
def test_value_gradient_and_hessian(seed: int) -> None:
    case, Z, sets, penalty, theta, places = parts(seed)
    state, k = new_state(sets), len(places)
    value, size = evaluate(Z, sets, penalty, theta, state)
    loss, slope, H = Dense(case).derivatives(theta, places)
    truth = float(loss + penalty @ theta**2)
    off, widest, relative = bound_value_rounding(Z, sets, theta, size, state)
    assert abs(value - truth) <= off + 1e-15 * truth
    assert off <= 1e-11 * max(truth, 1.0) and widest < 1e-11 and relative < 1e-11
    g, found, diagonal = np.empty(k), np.empty((k, k)), np.empty(k)
    gradient(Z, sets, penalty, theta, state, g)
    np.testing.assert_allclose(g, (slope + 2 * penalty * theta).astype(float), atol=1e-11 * np.abs(case.X).sum())
    fill_hessian(Z, sets, penalty, state, found, diagonal)
    np.testing.assert_allclose(found, (H + np.diag(2 * penalty)).astype(float), atol=1e-12 * diagonal.max())
    at = look(Z, sets, penalty, theta, state)
    if at.doubt < np.inf:
        assert abs(at.value - truth) <= at.off + 1e-15 * truth
        assert np.all(np.abs(at.g - (slope + 2 * penalty * theta).astype(float)) <= at.noise)
        np.testing.assert_allclose(at.inverse @ found @ at.inverse.T, np.eye(k), atol=1e-7)
    fill_row_weights(sets, state)
    assert state.pull.sum() == pytest.approx(state.fall.sum())


def test_losses_far_below_their_numbers_have_relative_bounds() -> None:
    """Of exponents 80, 40 and 0, the loss is log(1 + e^-40 + e^-80) + log(1 + e^-40)."""
    sets = make_risk_sets(np.arange(3.0), np.ones(3, dtype=bool))
    Z, (near, far) = Columns(np.array([[80.0, 40.0, 0.0]]), np.zeros(1, dtype=np.int64)), np.exp([-40.0, -80.0])
    at = look(Z, sets, np.zeros(1), np.ones(1), new_state(sets))
    value = np.log1p(near + far) + np.log1p(near)
    assert at.value == pytest.approx(value, rel=1e-12) and at.off <= 1e-11 * value
    slope = -40.0 * (2.0 * near + 2.0 * far)
    assert at.g[0] == pytest.approx(slope, rel=1e-12) and at.noise[0] <= 1e-11 * abs(slope)
    assert 1.0 / at.inverse[0, 0] ** 2 == pytest.approx(1600.0 * 2.0 * near, rel=1e-11) and at.doubt < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_curvature_factors_multiply_the_covariances(seed: int) -> None:
    case, Z, sets, penalty, theta, places = parts(seed)
    state, k = new_state(sets), len(places)
    evaluate(Z, sets, penalty, theta, state)
    state.curvature[:] = np.random.default_rng(seed).uniform(0.1, 1.0, len(sets.node))
    found, expected, diagonal = np.empty((k, k)), np.diag(2.0 * penalty), np.empty(k)
    fill_hessian(Z, sets, penalty, state, found, diagonal)
    for b, factor in enumerate(state.curvature):
        alone = new_state(sets)
        evaluate(Z, sets, penalty, theta, alone)
        alone.curvature[:] = np.arange(len(sets.node)) == b
        H = np.empty((k, k))
        fill_hessian(Z, sets, 0.0 * penalty, alone, H, diagonal)
        expected = expected + factor * H
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_drops_bound_all_differences_in_an_ellipsoid(seed: int) -> None:
    case, Z, sets, _, theta, places = parts(seed)
    state, k, rng = new_state(sets), len(places), np.random.default_rng(seed)
    evaluate(Z, sets, np.zeros(k), theta, state)
    means = np.empty((2 * len(sets.node), k))
    fill_end_means(Z, sets, state, means)
    inverse, c, radius = np.tril(rng.normal(size=(k, k))) + 2 * np.eye(k), rng.normal(size=k), rng.uniform(0.1, 2)
    X = Z.W[places]
    drops, wide = np.empty(len(sets.node)), np.empty(len(sets.node))
    fill_drops(sets, inverse @ X, c @ X, means @ inverse.T, means @ c, radius, drops)
    reach = -(c @ X) + radius * np.linalg.norm(inverse @ X, axis=0)
    mean_reach = means @ c + radius * np.linalg.norm(means @ inverse.T, axis=1)
    fill_wide_drops(sets, reach, mean_reach, wide)
    assert np.all(drops <= wide + 1e-12)
    P = Dense(case).shares(case.X[:, places] @ theta)[0].astype(float)
    block = np.repeat(np.arange(len(sets.node)), sets.n_terms)
    order = np.lexsort(np.round((P @ case.X[:, places]), 9).T)
    every_mean = []
    for b in range(len(sets.node)):
        m = sets.n_terms[b]
        for step in range(m):
            f = 1.0 - step / m
            before, own = state.before[b], state.own[b]
            first, last = means[2 * b], means[2 * b + 1]
            low, high = before + own, before + own / m
            total = before + f * own
            share = 1.0 if m == 1 else (f - 1.0 / m) / (1.0 - 1.0 / m)
            every_mean.append((share * first * low + (1.0 - share) * last * high) / total)
    means_of_terms = np.array(every_mean)
    np.testing.assert_allclose(
        means_of_terms[np.lexsort(np.round(means_of_terms, 9).T)], (P @ case.X[:, places])[order], atol=1e-9
    )
    for _ in range(20):
        u = rng.normal(size=k)
        d = c + inverse.T @ (radius * rng.uniform() * u / np.linalg.norm(u))
        for t, b in enumerate(block):
            worst = max(((means_of_terms[t] - X[:, j]) @ d for j in at_risk(case, sets, b)), default=0.0)
            assert worst <= drops[b] + 1e-9
    assert count_pairs(sets) == sum(len(at_risk(case, sets, b)) for b in range(len(sets.node)))


def at_risk(case: Case, sets: RiskSets, b: int) -> Any:
    first = sets.block_rows[sets.block_start[b]]
    t, n = case.time[first], len(case.time)
    inside = (case.time >= t) & (np.ones(n, bool) if case.stratum is None else case.stratum == case.stratum[first])
    return np.flatnonzero(inside & (np.ones(n, bool) if case.entry is None else case.entry < t))


@pytest.mark.parametrize("seed", SEEDS)
def test_fits_are_within_their_bounds(seed: int) -> None:
    case, Z, sets, penalty, _, places = parts(seed)
    ridge = np.zeros(case.X.shape[1])
    ridge[places] = penalty
    value, b = Dense(case).fit(places, ridge)
    theta = np.zeros(len(places))
    upper, lower, radius = fit_and_prove(Z, sets, penalty, theta, np.inf)
    assert lower <= value <= upper
    assert upper - lower <= 1e-10 * float(value) + 1e-11
    np.testing.assert_allclose(theta, b.astype(float), rtol=1e-6, atol=1e-8)
    assert radius < 1e-6
    for share in (0.5, 0.9, 0.99):
        high, low, _, _ = bound_minimum(Z, sets, penalty, share * theta)
        assert low <= value <= high
    rough = np.zeros(len(places))
    f = newton(Z, sets, penalty, rough, 1e-14, np.inf, 0.0)
    assert f == pytest.approx(float(value), rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_refits_and_held_out_losses_of_supports(seed: int) -> None:
    case, _, _, _, _, _ = parts(seed)
    n, p = case.X.shape
    rng = np.random.default_rng(seed)
    out = rng.permutation(n)[: max(n // 6, 1)]
    train = np.setdiff1d(np.arange(n), out)
    ridge = 10.0 ** rng.uniform(-3, 1, p)
    rows = CoxRows(np.ascontiguousarray(case.X.T), sets_of(case, train), ridge, np.arange(p), 0, 0.0)
    masks = rng.random((6, p)) < 0.5
    masks[0] = False
    points, ends = np.zeros((6, p)), (np.empty(6), np.empty(6), np.empty(6))
    refit(rows, masks, points, np.inf, True, ends)
    part, whole = Dense(case, train), Dense(case)
    for mask, point, lower, upper, radius in zip(masks, points, *ends, strict=True):
        value, b = part.fit(np.flatnonzero(mask), ridge)
        assert lower <= value <= upper
        eta = case.X[:, mask].astype(np.longdouble) @ b
        truth = float(whole.loss(eta) - part.loss(eta))
        low, high, middle = bound_held_out(rows, sets_of(case), mask, point, radius)
        assert low <= truth <= high and low <= middle <= high
        assert high - low <= 1e-9 * max(float(value), 1.0)
    bar = float(np.median(ends[0]))
    again, ends_again = np.zeros((6, p)), (np.empty(6), np.empty(6), np.empty(6))
    refit(rows, masks, again, bar, True, ends_again)
    for before, after in zip(ends[0], ends_again[0], strict=True):
        assert after > bar or after == pytest.approx(before, rel=1e-10) or before > bar
