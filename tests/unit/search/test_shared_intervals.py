"""First intervals and first supports of every fold, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.fold import points_of
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.leave_fold_out import RootNode
from sparsecv_mio.search.shared_intervals import (
    decide_by_reuse,
    first_intervals,
    fold_duals,
    offer_supports,
    only_support,
    training_residual,
    well_known,
)

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_first_intervals_hold_the_truth(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    first_intervals(root)
    case.check_cells()
    assert np.isfinite(case.cells.upper).mean() > 0.9 and np.isfinite(case.cells.nominal).all()
    assert not case.cells.decided.any()


def test_a_cell_shows_the_best_support_offered() -> None:
    case = Enumerated(7)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    first_intervals(root)
    offered = [(support, size - 1) for size in case.taus.tolist() for support in case.supports(size)]
    offer_supports(root, [support for support, _ in offered], [t for _, t in offered])
    np.testing.assert_allclose(case.cells.nominal[0], case.truth(), rtol=1e-8)
    case.check_cells()


def test_a_support_whose_error_is_not_known_is_not_shown() -> None:
    case = Enumerated()
    root = RootNode(case.leave_out, 0, [0, 1])
    scores = root.scores(0, case.folds.k).copy()
    scores.error[0, 3] = scores.held_out[0, 3] + 1.0
    known = well_known(root, scores)
    assert not known[0, 3] and known[0, :3].all() and not known[2].any()  # nothing was asked of the last row


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_residuals_of_the_training_rows(spec: str, intercept: str) -> None:
    case = Enumerated(5, spec=spec, intercept=intercept)
    problem = case.all_rows.problem(0)
    b = np.random.default_rng(0).normal(size=case.p)
    slope, square = training_residual(problem, b, case.leave_out.rows(0, case.folds.k), case.data.intercept)
    for fold, moments in training_moments(case.data, case.folds):
        here = moments.problem(case.data, case.gamma)
        np.testing.assert_allclose(slope[fold], here.c - here.Q @ b, rtol=1e-9, atol=1e-12)
        assert square[fold] == pytest.approx(here.yy - 2.0 * here.c @ b + b @ here.Q @ b, rel=1e-9)


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_duals_of_all_folds(spec: str, intercept: str) -> None:
    """The dual value in the fold's own centred moments, by plain numpy."""
    case = Enumerated(5, n=60, p=6, spec=spec, intercept=intercept, gamma=2.0)
    points = points_of(unit_diagonal(case.all_rows.problem(0)), range(1, 7))
    assert points is not None
    k, size, root = case.folds.k, 3, RootNode(case.leave_out, 0, range(5))
    b, w = points.beta[points.of(size)], 0.6 * points.diagonal
    quad, dual, d = fold_duals(root, b, size, case.leave_out.rows(0, k), np.tile(w, (k, 1)))
    for fold, moments in training_moments(case.data, case.folds):
        here = moments.problem(case.data, case.gamma)
        G = here.M - np.diag(w)
        g = here.c - G @ b
        np.testing.assert_allclose(d[fold], g * g / w, rtol=1e-8, atol=1e-12)
        expected = here.yy - b @ G @ b - np.sort(g * g / w)[-size:].sum()
        assert dual[fold] == pytest.approx(expected, rel=1e-9)
        assert quad[fold] >= b @ G @ b * (1.0 - 1e-9)


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_other_support_is_above_the_cutoff(spec: str, intercept: str) -> None:
    sure = 0
    for seed in range(3):
        case = Enumerated(seed, spec=spec, intercept=intercept, gamma=2.0)
        root, k = RootNode(case.leave_out, 0, [0, 1, 2]), case.folds.k
        points = points_of(unit_diagonal(root.problem), case.taus.tolist())
        assert points is not None
        for t, size in enumerate(case.taus.tolist()):
            best = case.best(size)
            mask = np.array([[j in s for j in range(case.p)] for s in best])
            cutoffs, at, rows = root.cutoffs(0, k)[t], points.of(size), case.leave_out.rows(0, k)
            only = only_support(root, (points, at), rows, np.minimum(root.leverage, 1.0), cutoffs, mask)
            for fold in np.flatnonzero(only).tolist():
                others = [case.inside[s][fold] for s in case.of_size(size) if s != best[fold]]
                assert min(others) > cutoffs[fold]
            sure += int(only.sum())
    assert sure > 0


@pytest.mark.parametrize("spec", ["loo", "blocks:3"])
def test_cells_decided_without_branching(spec: str) -> None:
    case = Enumerated(spec=spec, gamma=2.0)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    points = points_of(unit_diagonal(root.problem), case.taus.tolist())
    assert points is not None
    asked, decided = decide_by_reuse(root, points)
    assert 0 < decided == case.cells.decided.sum() <= asked <= case.cells.decided.size
    assert not case.cells.branched.any()
    case.check_cells()
