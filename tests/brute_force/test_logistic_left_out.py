"""Supports in every fold from their fits on all rows, and bounds by near-best supports, against fits of all."""

from __future__ import annotations

import numpy as np
import problems
import pytest
from glm_cases import GlmCase, many_folds_case, two_class_case
from runs import new_context
from slow import slow

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import rows_out
from sparsecv_mio.problem import glm_refit
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.search.problems.smooth import SmoothProblems
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_left_out
from sparsecv_mio.trees.glm_subsets import GlmSubsets, held_out_losses_at_fits, make_held_out_folds, make_subsets
from sparsecv_mio.trees.near_best_held_out import NearBestHeldOut
from sparsecv_mio.trees.subsets import is_never_expired

MOST_FOLDS = 6


def checked(case: GlmCase, seed: int) -> int:
    """Compare with proved lower bounds of fits on the training rows; returns how many were compared."""
    data = case.standard
    plan, rng, count = case.folds, np.random.default_rng(seed), 0
    whole = make_subsets(data, np.arange(data.n))
    for gamma in case.gammas:
        fits = whole.with_gamma(gamma).fits
        masks = rng.random((2, fits.problem.p)) < 0.5
        folds = make_held_out_folds(data, plan, fits)
        points = fits.refit(masks).points
        values = np.array([folds.values(*given, lambda: False)[0] for given in zip(masks, points, strict=True)])
        for fold in range(min(plan.k, MOST_FOLDS)):
            try:
                here = make_subsets(data, plan.train_rows(fold)).with_gamma(gamma)
            except BadInput:  # one class
                continue
            assert np.all(values[:, fold] >= here.refit(masks).lower)
            count += len(masks)
    return count


@pytest.mark.parametrize("first", [0, *slow([20, 40])])
def test_objectives_from_all_rows_are_upper_bounds(first: int) -> None:
    count = 0
    for seed in range(first, first + 20):
        try:
            count += checked(two_class_case(seed), seed)
        except BadInput:
            continue
    assert count > 100


@pytest.mark.parametrize("seed", [5, 10, 12, 76, 199, 215, 323])
def test_held_out_losses_from_all_rows_are_those_of_the_fits(seed: int) -> None:
    """Near-separable, far from 0 beside their spread: the rows of a fold may move its fit far."""
    case = two_class_case(seed)
    data, plan = case.standard, case.folds
    folds, support = np.arange(plan.k), np.arange(min(data.q, 3))
    for gamma in case.gammas:
        held = held_out_losses_at_fits(data, plan, support, gamma, folds)
        for fold in np.flatnonzero(np.isfinite(held)).tolist():
            loss, off = refit_glm(data, plan.train_rows(fold), support, gamma).held_out(data, plan.scored_rows(fold))
            assert abs(held[fold] - loss) <= 1e-7 * loss + off
    assert np.isfinite(held).mean() > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_a_limit_leaves_second_steps_which_are_as_good(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a limit only folds that a second step does not tell to the last digits have steps of their own."""
    again, more = list[int](), rows_out.refine_held_out_fits
    monkeypatch.setattr(rows_out, "refine_held_out_fits", lambda *given: (again.append(len(given[3])), more(*given)))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 3))
    dataset = as_two_classes(Dataset.from_arrays(X, (X[:, 0] + rng.logistic(size=1500) > 0.0).astype(float)))
    if seed == 2:
        dataset = weighted_rows(dataset, rng.choice([0.0, 0.5, 1.0, 3.0], size=1500), "w")
    data, plan = standardize(dataset, loss=Loss.LOGISTIC), make_folds("loo", dataset)
    support, gamma = np.array([0, 1]), (1e-4, 1.0, 30.0)[seed]
    held = held_out_losses_at_fits(data, plan, support, gamma, np.arange(plan.k), lambda: True)
    assert sum(again) < 0.3 * plan.k and np.isfinite(held).all()
    for fold in {*np.argsort(-held)[:10].tolist(), *rng.choice(plan.k, 30).tolist()}:
        loss, off = refit_glm(data, plan.train_rows(fold), support, gamma).held_out(data, plan.scored_rows(fold))
        assert abs(held[fold] - loss) <= 3e-8 * loss + off, (fold, held[fold], loss)


def test_where_steps_are_too_far_off_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glm_left_out, "FEW", 0)
    dataset = problems.classes(2, 40, 3, {0: 1.0})
    data, plan = standardize(dataset, loss=Loss.LOGISTIC), make_folds("loo", dataset)
    assert (
        np.isnan(held_out_losses_at_fits(data, plan, np.array([0, 1]), 1e-3, np.arange(plan.k), lambda: True)).mean()
        > 0.9
    )


def test_classes_that_are_apart_take_few_steps_and_none_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of Newton's method moves margins by 1, of the 400 that so small a ridge leaves; folds had no clock."""
    again, more = list[int](), rows_out.refine_held_out_fits
    monkeypatch.setattr(rows_out, "refine_held_out_fits", lambda *given: (again.append(len(given[3])), more(*given)))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    dataset = Dataset.from_arrays(X, (X.sum(axis=1) > 0.0).astype(float))
    data, plan = standardize(dataset, loss=Loss.LOGISTIC), make_folds("loo", dataset)
    support, folds, looked, value = np.array([0, 1]), np.arange(plan.k), list[int](), glm_refit._value
    held = held_out_losses_at_fits(data, plan, support, 1e-200, folds, lambda: True, lambda: True)
    assert np.isnan(held).any() and not again
    monkeypatch.setattr(glm_refit, "_value", lambda *given: (looked.append(1), value(*given))[1])
    made = refit_glm(data, slice(0, 400), support, 1e-200)
    whole = make_subsets(data, folds).with_gamma(1e-200).fits.fit([0, 1])
    assert made.objective < 1e-180 and len(looked) < 300 and whole[2] == pytest.approx(made.objective, rel=1e-6)


def test_coefficients_are_those_of_the_optimum_where_rows_are_all_but_separated() -> None:
    """Newton's steps take off a share alone there, and a coefficient hangs on a penalty that weighs next to nothing."""
    case = two_class_case(257)
    data = case.standard
    fit = refit_glm(data, slice(0, data.n), np.array([0, 4]), case.gammas[0])
    beta, _ = data.coefficients(fit.support, fit.beta, np.zeros(data.q), fit.r_mean)
    assert beta["x0"] == pytest.approx(-7.89541703856916e-05, rel=1e-6)  # by 60 digits


@pytest.mark.parametrize("seed", range(6))
def test_a_fold_in_the_columns_of_all_rows_is_the_fold_of_its_own(seed: int) -> None:
    """Best subsets, intervals of what is left out and of open sizes, of rows of 1e3 too; and no array of rows again."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 5)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    X[7] *= 10.0 ** (seed - 2)
    whole = GlmSubsets(GlmProblem(X, y, rng.uniform(0.5, 2.0, 40), np.ones(5), 0.3))
    out = np.array([7]) if seed % 2 else np.array([7, 12])
    kept = np.setdiff1d(np.arange(40), out)
    problem = whole.fits.problem
    own = GlmSubsets(GlmProblem(X[kept], y[kept], problem.v[kept], np.ones(5), 0.3))
    shared = whole.hold_rows_out(out)
    assert shared is not None and shared.fits.rows.W is whole.fits.rows.W
    for here, there in zip(
        own.solve([1, 2, 4]).by_size.values(), shared.solve([1, 2, 4]).by_size.values(), strict=True
    ):
        assert there.complete and here.support.tolist() == there.support.tolist()
        assert max(here.lower, there.lower) <= min(here.upper, there.upper)
        held = [one.score_supports([here.support], X[out], y[out])[1:] for one in (own, shared)]
        assert np.max([low for low, _ in held]) <= np.min([high for _, high in held])
        low, high = shared.open_fold_interval(here.tau, here.upper, X[out], y[out])
        assert low <= held[0][1][0] and held[0][0][0] <= high


@pytest.mark.parametrize("apart", ["constant", "copy", "complement"])
def test_a_fold_whose_rows_tell_columns_less_apart_has_columns_of_its_own(apart: str) -> None:
    rng = np.random.default_rng(1)
    X, y = (rng.random((30, 3)) < 0.5).astype(float), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    X[:, 2] = {"constant": 0.0 * X[:, 0], "copy": X[:, 0], "complement": 1.0 - X[:, 0]}[apart]
    X[4, 2] = 1.0 - X[4, 2]
    whole = GlmSubsets(GlmProblem(X, y, np.ones(30), np.ones(3), 1.0))
    assert not whole.fits.has_copies
    assert whole.hold_rows_out(np.array([4])) is None and whole.hold_rows_out(np.array([5])) is not None


ROUNDING = 1e-7  # of a CV error
SEEDS = [0, 1, 2, *slow(range(4, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_contain_the_truth_before_and_after_a_list(seed: int) -> None:
    try:
        case = many_folds_case(seed)
        data = case.standard
    except BadInput:
        return
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    problems = SmoothProblems(data, case.folds, grid)
    per_row, n_solved = new_context(data, case.folds, grid).cv_error_factor, 0
    n_bounded = 0  # folds in which the loss of every fit has an upper bound; without any, a list cannot solve a fold
    for g, gamma in enumerate(case.gammas):
        for tau in case.taus:
            subset = problems.full(g).solve([tau], [], 0, is_never_expired).by_size[tau]
            near_best = problems.full(g).make_near_optimal_list(tau, [subset.support], is_never_expired)
            assert isinstance(near_best, NearBestHeldOut)
            least, most = near_best.bound_all_fits(subset.upper)
            n_bounded += int(np.isfinite(most).sum())
            for has_list in (False, True):
                if has_list:
                    near_best.compute_exactly()
                    near_best.list_supports(max(near_best.cutoff_to_solve(most), subset.upper), 1 << 12, 1)
                folds = near_best.bound_folds(least, most)
                low, high = case.truth.h(gamma, tau)
                where = (seed, gamma, tau, has_list)
                assert folds.lower.sum() * per_row <= high * (1.0 + ROUNDING), where
                assert folds.upper.sum() * per_row >= low * (1.0 - ROUNDING), where
                n_solved += int(folds.is_listed.sum()) * has_list
    assert n_solved > 0 or not n_bounded


def test_more_than_the_admitted_supports_lower_the_level() -> None:
    from sparsecv_mio.trees.near_best_held_out import _NearBestList
    from sparsecv_mio.trees.subsets import MOST_REFITTED

    near_best, objectives = _NearBestList(1e3), np.random.default_rng(0).permutation(2 * MOST_REFITTED) / 8.0
    for number, objective in enumerate(objectives.tolist()):
        near_best.take(np.array([number]), objective, objective)
    assert near_best.level < 1e3 and len(near_best.objectives) <= MOST_REFITTED
    kept = sorted(near_best.objectives.values())
    assert kept == sorted(objectives)[: len(kept)]
