"""Fits without a few rows: intervals against long double, steps against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from logistic_truth import drawn, harder, least, long_losses

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels.glm_newton import Columns, newton
from sparsecv_mio.kernels.rows_out import AllRows, bound_held_out_fits, prepare_row_removal, refine_held_out_fits
from sparsecv_mio.kernels.smooth_losses import Response
from sparsecv_mio.problem.glm import GlmProblem

UNKNOWN = -np.inf, np.inf, np.nan


def centred(problem: GlmProblem) -> GlmProblem:
    return problem.centre_columns()[0]


def near_fit(problem: GlmProblem, off: float = 0.0) -> AllRows:
    """About the fit on all rows, or a point some way from it."""
    W, theta = np.ascontiguousarray(problem.rows.T), problem.start()
    response = Response(problem.v, problem.y, problem.loss.find_code(problem.y))
    Z = Columns(W, np.arange(len(W)))
    newton(Z, response, problem.penalty, theta, 1e-28, np.inf, 0.0)
    return prepare_row_removal(Z, response, problem.penalty, theta * (1.0 + off))


def dealt(n: int, seed: int) -> list[IntArray]:
    """Rows one by one, then by two, and two folds of many."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    pairs = [np.sort(order[i : i + 2]) for i in range(0, n - 1, 2)]
    return [*(np.array([i]) for i in range(n)), *pairs, np.sort(order[: n // 4]), np.sort(order[n // 4 : n // 2])]


def asked(whole: AllRows, folds: list[IntArray], enough: float | None) -> tuple[FloatArray, FloatArray, IntArray]:
    rows, ends = np.concatenate(folds), np.concatenate([[0], np.cumsum([len(fold) for fold in folds])])
    margins, values = np.empty((len(rows), 3)), np.empty((len(folds), 3))
    bound_held_out_fits(whole, rows, ends, margins, values)
    if enough is not None:
        refine_held_out_fits(whole, rows, ends, np.arange(len(folds)), enough, margins, values)
    return margins, values, ends


def judged(problem: GlmProblem, seed: int, enough: float | None, off: float = 0.0, most: int = 12) -> tuple[int, int]:
    """Check the intervals of some folds; returns how many had one and how many were asked."""
    folds, known = dealt(len(problem.y), seed), 0
    margins, values, ends = asked(near_fit(problem, off), folds, enough)
    chosen = np.random.default_rng(seed).permutation(len(folds))[:most]
    count = 0
    for fold in [*chosen.tolist(), len(folds) - 1]:
        out = folds[fold]
        v = problem.v.copy()
        v[out] = 0.0
        if problem.intercept and len(set(problem.y[v > 0].tolist())) < 2:
            continue
        count += 1
        without = replace(problem, v=v)
        truth = least(without)
        low, high, _ = values[fold]
        assert low <= truth.value * (1.0 + 1e-15) and truth.value - truth.off <= high, (seed, fold, low, truth, high)
        lowest, highest = long_losses(without, truth, problem.X[out], problem.y[out])
        here = margins[ends[fold] : ends[fold + 1]]
        ends_of_loss = np.logaddexp(0.0, -here[:, :2])
        assert np.all(ends_of_loss[:, 1] <= highest * (1.0 + 1e-14)), (seed, fold, here, highest)
        assert np.all(lowest <= ends_of_loss[:, 0] * (1.0 + 1e-14) + 1e-300), (seed, fold, here, lowest)
        known += bool(np.isfinite(here[:, :2]).all())
    return known, count


@pytest.mark.parametrize("enough", [None, 1e-9])
@pytest.mark.parametrize("seed", range(12))
def test_intervals_hold_the_fit_without_the_rows(seed: int, enough: float | None) -> None:
    known, count = judged(centred(drawn(seed, 4)), seed, enough)
    if enough is not None and seed % 8 not in (1, 4, 5):  # near copies, rare classes, units far apart
        assert known == count


@pytest.mark.parametrize("seed", range(9))
def test_intervals_hold_with_weights_and_penalties_far_apart(seed: int) -> None:
    problem = centred(harder(seed, 4))
    for enough in (None, 1e-9):
        judged(problem, seed, enough, most=6)


@pytest.mark.parametrize("off", [1e-6, 1e-2, 0.3])
def test_intervals_hold_about_a_point_that_is_not_the_fit(off: float) -> None:
    for seed in (0, 2, 7):
        judged(centred(drawn(seed, 4)), seed, None, off)
        judged(centred(drawn(seed, 4)), seed, 1e-9, off)


def plain(n: int = 80, p: int = 4, gamma: float = 1.0) -> GlmProblem:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] - 0.5 * X[:, 1] + rng.logistic(size=n) > 0, 1.0, -1.0)
    return centred(GlmProblem(X, y, rng.choice([0.5, 1.0, 2.0], n), np.ones(p), gamma))


def step_in_numpy(problem: GlmProblem, theta: FloatArray, out: IntArray) -> FloatArray:
    Z, v = problem.rows * problem.y[:, None], problem.v.copy()
    share = 1.0 / (1.0 + np.exp(Z @ theta))
    v[out] = 0.0
    g = 2.0 * problem.penalty * theta - Z.T @ (v * share)
    H = (Z.T * (v * share * (1.0 - share))) @ Z + np.diag(2.0 * problem.penalty)
    return theta - np.linalg.solve(H, g)


def test_one_step_is_that_of_newtons_method_without_the_rows() -> None:
    problem = plain(n=400)
    whole, folds = near_fit(problem), dealt(400, 1)
    margins, values, ends = asked(whole, folds, None)
    for fold, out in enumerate(folds[:-2]):  # the last ones are too many for one step
        theta = step_in_numpy(problem, whole.theta, out)
        Z, v = problem.rows[out] * problem.y[out, None], problem.v.copy()
        assert margins[ends[fold] : ends[fold + 1], 2] == pytest.approx(Z @ theta, abs=1e-9)
        v[out] = 0.0
        value = replace(problem, v=v).objective(theta) if len(out) == 1 else None
        assert value is None or values[fold, 0] - 1e-9 <= value <= values[fold, 1] + 1e-9


def test_what_a_support_is_about_all_rows() -> None:
    problem = plain()
    whole = near_fit(problem)
    Z, L = whole.Z.W, np.linalg.inv(whole.inverse)
    share = 1.0 / (1.0 + np.exp(problem.y * (whole.theta @ Z)))
    c = problem.v * share * (1.0 - share)
    assert whole.curved == pytest.approx(c) and whole.falls == pytest.approx(problem.v * share)
    assert pytest.approx((Z * c) @ Z.T + np.diag(2.0 * problem.penalty)) == L @ L.T
    t = whole.inverse @ Z
    square = (t * t).sum(axis=0)
    assert pytest.approx((t * (c * square)) @ t.T) == whole.B
    assert (whole.longest, whole.at) == (pytest.approx(np.sqrt(square.max())), int(square.argmax()))
    assert whole.next_longest == pytest.approx(np.sqrt(np.sort(square)[-2])) and whole.delta < 1e-10


def test_steps_with_gradients_of_their_own_settle_margins() -> None:
    problem, folds = plain(), dealt(80, 1)
    first, _, _ = asked(near_fit(problem), folds, None)
    again, values, _ = asked(near_fit(problem), folds, 1e-9)
    assert np.all(values[:, 2] <= 1e-7) and np.all(values[:, 1] - values[:, 0] < 1e-9)
    assert np.all(again[:, 1] - again[:, 0] <= 2e-7)
    assert np.all((first[:, 0] <= again[:, 2]) & (again[:, 2] <= first[:, 1]))


def test_rows_that_separate_the_others_are_left_to_a_fit() -> None:
    problem = plain(n=30, gamma=1e-5)
    y = np.where(problem.X[:, 0] > 0, 1.0, -1.0)
    y[3] = -y[3]  # the one row that keeps the classes from being told apart
    mixed = replace(problem, y=y, v=np.ones(30))
    margins, values, _ = asked(near_fit(mixed), [np.array([3])], None)
    assert tuple(margins[0, :2]) == UNKNOWN[:2] and values[0].tolist() == [0.0, np.inf, np.inf]
    judged(mixed, 3, 1e-9)
    margins, _, _ = asked(near_fit(mixed), [np.array([3])], 1e-9)
    assert margins[0, 1] - margins[0, 0] < 1e-5


def test_without_coefficients_every_fold_is_known() -> None:
    problem = replace(plain(p=2), intercept=False).select_columns(np.zeros(0, dtype=np.int64))
    margins, values, _ = asked(near_fit(problem), dealt(80, 2), 1e-9)
    assert np.abs(margins).max() < 1e-12
    assert values[0, :2] == pytest.approx(np.log(2.0) * (problem.v.sum() - problem.v[0]))
