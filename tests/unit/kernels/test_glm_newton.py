"""Fits of logistic regression and their proofs against numpy, and against long double."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import drawn, least, mask_of
from scipy.optimize import lsq_linear

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.kernels.glm_newton import (
    Columns,
    Rows,
    bound_minimum,
    bound_norm,
    clip_to_ends,
    decisions,
    evaluate,
    evaluate_with_rounding,
    factor,
    fill_squared_lengths,
    find_bounded_target,
    fit_and_prove,
    gram,
    hessian,
    merge_copies,
    newton,
    pulls,
    refit,
    take_columns,
    worst_ratio,
)
from sparsecv_mio.kernels.smooth_losses import Response, new_state
from sparsecv_mio.problem import glm_refit, row_losses
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.row_losses import PoissonLoss

SEEDS = range(300, 332)


def plain_newton(problem: GlmProblem, theta: FloatArray) -> tuple[FloatArray, float]:
    """Damped Newton in numpy, on all columns."""
    Z, y, v, penalty = problem.rows, problem.y, problem.v, problem.penalty
    value = problem.objective(theta)
    for _ in range(200):
        share = 1.0 / (1.0 + np.exp(np.clip(y * (Z @ theta), -700, 700)))
        gradient = 2.0 * penalty * theta - Z.T @ (v * y * share)
        H = (Z * (v * share * (1.0 - share))[:, None]).T @ Z + np.diag(2.0 * penalty)
        step = -np.linalg.solve(H, gradient)
        size = 1.0
        while size > 1e-12 and not problem.objective(theta + size * step) < value:
            size /= 2.0
        if size <= 1e-12:
            break
        theta = theta + size * step
        value = problem.objective(theta)
    return theta, value


def rows_of(problem: GlmProblem, copy_of: list[int] | None = None) -> Rows:
    W = np.ascontiguousarray(problem.rows.T)
    first = problem.first_coefficient
    places = np.arange(len(W)) if copy_of is None else np.array([*range(first), *(j + first for j in copy_of)])
    response = Response(problem.v, problem.y, problem.loss.find_code(problem.y))
    return Rows(W, response, problem.penalty, places, first, float(problem.start()[0]) if first else 0.0)


def every(W: FloatArray) -> Columns:
    return Columns(W, np.arange(len(W)))


def centred(seed: int) -> GlmProblem:
    return drawn(seed).centre_columns()[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_fits_are_those_of_numpy(seed: int) -> None:
    problem = centred(seed)
    if seed % 8 == 5:  # so badly scaled that numpy's own solve is no judge; long double is, below
        return
    rows, theta = rows_of(problem), problem.start()
    value = newton(every(rows.W), rows.response, rows.penalty, theta, 1e-28, np.inf, 0.0)
    twin, best = plain_newton(problem, problem.start())
    assert value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert problem.rows @ theta == pytest.approx(problem.rows @ twin, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_value_lies_between_its_bounds_from_any_point(seed: int) -> None:
    problem = centred(seed)
    rows, rng, start = rows_of(problem), np.random.default_rng(seed), problem.start()
    truth = least(problem)
    data, theta = (every(rows.W), rows.response, rows.penalty), start.copy()
    upper, lower, radius = fit_and_prove(*data, theta, start, np.inf)
    assert lower <= truth.value and truth.value - truth.off <= upper
    if seed % 8 != 1:
        assert radius < np.inf and upper - lower <= 1e-10 * (upper + 1.0)
    for far in (1e-8, 1e-4, 1e-2, 1.0):
        point = theta + far * rng.standard_normal(len(theta)) * np.maximum(np.abs(theta), 1e-3)
        upper, lower, _ = bound_minimum(*data, point)
        assert lower <= truth.value and truth.value - truth.off <= upper
    bar = 0.9 * upper
    upper, lower, _ = fit_and_prove(*data, start.copy(), start, bar)
    assert lower <= truth.value and truth.value - truth.off <= upper and (lower > bar or bar > 0.999 * truth.value)


def refitted(rows: Rows, masks: np.ndarray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    count = len(masks)
    lower, upper, radii, points = np.empty(count), np.empty(count), np.empty(count), np.zeros((count, len(rows.W)))
    refit(rows, masks, points, np.inf, True, (lower, upper, radii))
    return lower, upper, radii, points


def test_many_supports_are_fitted_as_one_by_one() -> None:
    problem = centred(307)
    rows = rows_of(problem)
    masks = np.array([mask_of((j,), problem.p) for j in range(problem.p)])
    lower, upper, _, _ = refitted(rows, masks)
    for j in range(problem.p):
        places, penalty = merge_copies(rows, masks[j])
        assert places.tolist() == [0, 1 + j] and penalty.tolist() == [0.0, problem.ridge[j]]
        start = np.array([rows.origin, 0.0])
        alone = fit_and_prove(Columns(rows.W, places), rows.response, penalty, np.zeros(2), start, np.inf)
        assert (upper[j], lower[j]) == alone[:2]


@pytest.mark.parametrize("seed", range(300, 308))
def test_what_is_left_unproved_is_above_the_bar_and_the_others_have_bounds(seed: int) -> None:
    problem = centred(seed)
    rows = rows_of(problem)
    masks = np.array([mask_of((j,), problem.p) for j in range(problem.p)])
    lower, upper, _, _ = refitted(rows, masks)
    bar = float(np.median(upper))
    ends, points = tuple(np.empty((3, len(masks)))), np.zeros((len(masks), len(rows.W)))
    refit(rows, masks, points, bar, False, ends)
    left = np.isinf(ends[1])
    assert np.all(upper[left] >= bar) and np.all(ends[0][left] == 0.0) and np.all(np.isinf(ends[2][left]))
    assert np.all(ends[0][~left] <= upper[~left]) and np.all(lower[~left] <= ends[1][~left])
    assert np.all(upper[~left] <= bar * (1.0 + 1e-9))


def test_a_fit_from_where_losses_overflow_begins_again() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.poisson(2.0, 30).astype(float)
    rows = rows_of(GlmProblem(X, y, np.ones(30), np.ones(2), 0.5, intercept=True, loss=PoissonLoss()))
    masks, points = np.ones((2, 2), dtype=bool), np.array([[0.0, 1e4, 1e4], [rows.origin, 0.0, 0.0]])
    lower, upper, radius = np.empty(2), np.empty(2), np.empty(2)
    refit(rows, masks, points, np.inf, True, (lower, upper, radius))
    assert upper == pytest.approx(upper[1]) and lower == pytest.approx(upper[1]) and np.all(radius < 1e-6)


def test_copies_are_fitted_as_one_column_and_predict_as_two() -> None:
    plain = centred(304)
    twice = GlmProblem(
        np.hstack([plain.X, -plain.X[:, :1]]), plain.y, plain.v, np.append(plain.weight, plain.weight[0]), plain.gamma
    )
    rows = rows_of(twice, [*range(plain.p), 0])
    mask = np.ones((1, twice.p), dtype=bool)
    places, penalty = merge_copies(rows, mask[0])
    assert len(places) == plain.p + 1 and penalty[1] == plain.ridge[0] / 2.0
    lower, upper, radii, points = refitted(rows, mask)
    truth = least(twice)
    assert lower[0] <= truth.value <= upper[0] + truth.off
    outside, signs = np.random.default_rng(0).standard_normal((twice.p + 1, 5)), np.ones(twice.p + 1)
    outside[0], signs[-1] = 1.0, -1.0
    low, high = np.empty((1, 5)), np.empty((1, 5))
    decisions(rows, mask, points, radii, (outside, signs), (low, high))
    theta = np.asarray(truth.theta, dtype=float)
    theta[0] -= float(twice.X[0] @ theta[1:])  # the truth is about the first row
    exact = theta @ outside
    assert np.all(low[0] <= exact + 1e-9) and np.all(exact - 1e-9 <= high[0]) and np.all(high - low < 1e-9)


def test_what_curvature_keeps_is_that_of_numpy_and_below_the_exact_ratio() -> None:
    for t in np.concatenate([np.logspace(-12, 3, 400), [0.0]]):
        exact = float(2 * (np.expm1(-np.longdouble(t)) + np.longdouble(t)) / np.longdouble(t) ** 2) if t > 1e-3 else 1.0
        assert worst_ratio(t) == pytest.approx(float(row_losses.worst_ratio(np.array([t]))[0]), rel=1e-15)
        assert worst_ratio(t) <= exact


def test_the_value_at_a_point_is_that_of_numpy() -> None:
    problem, places = centred(300), np.array([0, 2])
    rows, theta = rows_of(problem), np.array([0.3, -0.7])
    Z, state = Columns(rows.W, places), new_state(len(problem.y))
    data = (Z, rows.response, problem.penalty[places], theta, state)
    value = evaluate(*data)
    whole = np.zeros(len(rows.W))
    whole[places] = theta
    assert value == pytest.approx(problem.objective(whole), rel=1e-13)
    assert state.margins == pytest.approx(problem.y * (problem.rows @ whole), rel=1e-12, abs=1e-14)
    assert state.falls + state.others == pytest.approx(1.0)
    off, noise = np.empty(len(problem.y)), np.empty(2)
    again, loose, widest = evaluate_with_rounding(*data, (off, noise))
    sizes = np.abs(rows.W[places]).T @ np.abs(theta)
    assert again == value and 0.0 < loose < 1e-10 * value and widest == off.max()
    assert off == pytest.approx(7 * np.finfo(float).eps * sizes) and np.all(noise > 0.0)


@pytest.mark.parametrize("seed", [300, 302, 306, 307])
def test_the_factor_of_the_hessian_is_that_of_numpy(seed: int) -> None:
    problem = centred(seed)
    rows, k, n = rows_of(problem), problem.first_coefficient + problem.p, len(problem.y)
    theta, noise, state = 0.3 * np.random.default_rng(seed).standard_normal(k), np.empty(k), new_state(n)
    margins = problem.y * (theta @ rows.W)
    share = 1.0 / (1.0 + np.exp(margins))
    H = (rows.W * (problem.v * share * (1.0 - share))) @ rows.W.T + np.diag(2.0 * rows.penalty)
    value, off, doubt, g, inverse = factor(every(rows.W), rows.response, rows.penalty, theta, state, noise)
    exact = problem.v @ np.logaddexp(0.0, -margins.astype(np.longdouble)) + rows.penalty @ theta**2
    assert abs(value - exact) <= off <= 1e-9 * (value + 1.0) and 0.0 < doubt < 0.1
    gradient = 2.0 * rows.penalty * theta - rows.W @ (problem.y * problem.v * share)
    assert np.all(np.abs(g - gradient) <= 4.0 * noise + 1e-14)
    pull, curved = np.empty(k), np.empty((k, k))
    assert pulls(every(rows.W), rows.response, state, pull) == pytest.approx(float(problem.v @ share), rel=1e-12)
    assert pull == pytest.approx(rows.W @ (problem.y * problem.v * share), rel=1e-9, abs=1e-12)
    hessian(every(rows.W), rows.response, rows.penalty, state, curved)
    assert curved == pytest.approx(H, rel=1e-9, abs=1e-12)
    assert bound_norm(inverse, noise) == pytest.approx(noise @ np.linalg.norm(inverse, axis=0), rel=1e-12)
    lengths = np.empty(n)
    fill_squared_lengths(inverse, every(rows.W), lengths)
    assert lengths == pytest.approx(np.einsum("ai,ai->i", rows.W, np.linalg.solve(H, rows.W)), rel=1e-6)


@pytest.mark.parametrize(("k", "n"), [(1, 5), (3, 2_048), (23, 2_049), (24, 7), (30, 5_000)])
def test_products_of_columns_are_those_of_numpy_in_parts_too(k: int, n: int) -> None:
    rng = np.random.default_rng(k)
    W, weights, places, H = rng.standard_normal((k + 2, n)), rng.uniform(size=n), rng.permutation(k), np.empty((k, k))
    gram(Columns(W, places), weights, H)
    assert pytest.approx((W[places] * weights) @ W[places].T, rel=1e-12, abs=1e-10) == H


def test_rows_without_a_weight_change_nothing() -> None:
    problem = centred(302)
    rows, theta = rows_of(problem), problem.start()
    wild = Rows(
        np.column_stack([rows.W, np.full(len(rows.W), 1e6)]),
        Response(np.append(rows.response.v, 0.0), np.append(rows.response.y, 1.0), rows.response.loss), *rows[2:],
    )  # fmt: skip
    again = theta.copy()
    plain = fit_and_prove(every(rows.W), rows.response, rows.penalty, theta, problem.start(), np.inf)
    beside = fit_and_prove(every(wild.W), wild.response, wild.penalty, again, problem.start(), np.inf)
    assert beside == pytest.approx(plain, rel=1e-12) and again == pytest.approx(theta, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_minima_of_quadratics_within_bounds_are_those_of_scipy_and_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    root = np.triu(rng.normal(size=(k, k)) + 2.0 * np.eye(k))
    curved, slope = root.T @ root, 3.0 * rng.normal(size=k)
    kind, size = rng.integers(0, 5, k), rng.uniform(0.0, 1.0, k)
    ends = np.array([[-np.inf] * k, [np.inf] * k])
    ends[0, kind < 3], ends[1, kind == 1], ends[1, kind == 2] = 0.0, size[kind == 1], 0.0
    ends[:, kind == 3] += 1.0 + size[kind == 3]
    ends[0, kind == 3] = 0.5
    theta = np.clip(rng.normal(size=k), *ends)
    target = np.empty(k)
    assert find_bounded_target(curved, slope.copy(), theta, ends, 0.0, np.empty((k, k)), target)
    assert np.allclose(target, glm_refit.find_bounded_target(root, slope, theta, ends, 0.0), atol=1e-12)
    free = ends[0] < ends[1]
    shift = np.linalg.solve(root.T, slope) + root @ theta - root[:, ~free] @ theta[~free]
    found = lsq_linear(root[:, free], shift, ends[:, free], method="bvls", tol=1e-14)
    assert np.allclose(target[free], found.x, atol=1e-8) and np.array_equal(target[~free], theta[~free])


@pytest.mark.parametrize("bounded", [True, False])
def test_columns_have_their_bounds_and_coefficients_are_moved_within_them(bounded: bool) -> None:
    rng, rows, places = np.random.default_rng(3), rows_of(centred(1)), np.array([2, 0])
    ends = np.sort(rng.normal(size=(2, len(rows.W) if bounded else 0)), axis=0)
    columns, theta = take_columns(rows._replace(ends=ends), places), 3.0 * rng.normal(size=2)
    expected = np.clip(theta, *ends[:, places]) if bounded else theta.copy()
    clip_to_ends(columns.ends, theta)
    assert np.array_equal(theta, expected) and columns.places is places
    assert np.array_equal(columns.ends, ends[:, places] if bounded else np.empty((2, 0)))
