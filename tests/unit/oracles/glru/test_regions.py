"""The balls that hold the new optimum: which lies in which."""

from __future__ import annotations

import numpy as np
import pytest
from conjugates import conjugate, penalty_conjugate

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    IntervalMethod,
    Logistic,
    Regularizer,
    Squared,
    change_columns,
    change_rows,
    coefficient_intervals,
    make_problem,
    prediction_intervals,
    region_of,
    regions,
)

from .problems import LOSSES, RIDGES, fitted


def test_the_midpoint_ball_lies_in_the_papers_and_best_in_all() -> None:
    for loss in LOSSES:
        region = change_rows(fitted(loss, RIDGES[0]), [0])
        shift = float(np.linalg.norm(region.center - region.w))
        assert shift + region.radius <= region.primal_radius * (1 + 1e-9)
        assert region.radius <= region.primal_radius / np.sqrt(2.0) * (1 + 1e-9)
        assert region.radius_about_w <= region.primal_radius * (1 + 1e-9)
        assert region.dual_radius_sharp <= region.dual_radius * (1 + 1e-9)
        assert 0.5 * region.gap * (1 - 1e-9) <= region.slack <= region.gap
        boxes = {method: coefficient_intervals(region, method) for method in IntervalMethod}
        for method in (IntervalMethod.PRIMAL, IntervalMethod.DUAL, IntervalMethod.SHARP):
            assert np.all(boxes[IntervalMethod.BEST].lower >= boxes[method].lower - 1e-12)
            assert np.all(boxes[IntervalMethod.BEST].upper <= boxes[method].upper + 1e-12)


def gap(
    loss: ConjugateLoss, regularizer: Regularizer, X: np.ndarray, y: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> float:
    """`P(w) - D(alpha)` from the definitions alone."""
    n = len(y)
    primal = loss.value(X @ w, y).sum() / n + regularizer.value(w)
    return float(primal + conjugate(loss, -alpha, y).sum() / n + penalty_conjugate(regularizer, X.T @ alpha / n))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", RIDGES, ids=str)
def test_equations_18_to_21(loss: ConjugateLoss, regularizer: Regularizer) -> None:
    fit = fitted(loss, regularizer)
    X, y = fit.problem.design.X, fit.problem.y
    rng = np.random.default_rng(1)
    rows, y_rows, columns = rng.normal(size=(2, 6)), np.array([1.0, -1.0]), rng.normal(size=(14, 2))
    keep = np.delete(np.arange(14), [3, 8])
    expected = gap(loss, regularizer, X[keep], y[keep], fit.w, fit.alpha[keep])
    assert change_rows(fit, [8, 3]).gap == pytest.approx(expected, rel=1e-9, abs=1e-13)
    alpha = np.concatenate([fit.alpha, -loss.derivative(rows @ fit.w, y_rows)])
    expected = gap(loss, regularizer, np.vstack([X, rows]), np.concatenate([y, y_rows]), fit.w, alpha)
    assert change_rows(fit, add=(rows, y_rows)).gap == pytest.approx(expected, rel=1e-9, abs=1e-13)
    keep = np.delete(np.arange(6), [0, 4])
    expected = gap(loss, regularizer, X[:, keep], y, fit.w[keep], fit.alpha)
    assert change_columns(fit, [4, 0]).gap == pytest.approx(expected, rel=1e-9, abs=1e-13)
    w = np.concatenate([fit.w, regularizer.minimizer(columns.T @ fit.alpha / 14)])
    expected = gap(loss, regularizer, np.hstack([X, columns]), y, w, fit.alpha)
    assert change_columns(fit, add=columns).gap == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_a_dual_point_that_cannot_be_repaired_gives_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted(Logistic(), Regularizer(0.3, intercept=True))
    monkeypatch.setattr(regions.risk, "shift", lambda *_: None)
    region = change_rows(fit, [2])
    assert region.gap == np.inf
    for method in IntervalMethod:
        bracket = prediction_intervals(region, np.ones((1, region.d)), method)
        assert bracket.lower[0] == -np.inf and bracket.upper[0] == np.inf
        assert np.all(np.isinf(coefficient_intervals(region, method).lower))


@pytest.mark.parametrize(
    "call",
    [
        lambda fit: change_rows(fit, [14]),
        lambda fit: change_rows(fit, [-1]),
        lambda fit: change_rows(fit, [2, 2]),
        lambda fit: change_rows(fit, np.arange(14)),
        lambda fit: change_rows(fit, add=(np.ones((1, 5)), [1.0])),
        lambda fit: change_rows(fit, add=(np.ones((1, 6)), [0.5])),
        lambda fit: change_rows(fit, add=(np.full((1, 6), np.nan), [1.0])),
        lambda fit: change_columns(fit, [6]),
        lambda fit: change_columns(fit, [1, 1]),
        lambda fit: change_columns(fit, np.arange(6)),
        lambda fit: change_columns(fit, add=np.ones((13, 1))),
        lambda fit: prediction_intervals(region_of(fit), np.ones((1, 5))),
        lambda fit: make_problem(np.ones((3, 1)), [1.0, 1.0], Logistic(), Regularizer(1.0)),
        lambda fit: make_problem(np.ones((2, 0)), [1.0, 1.0], Logistic(), Regularizer(1.0)),
        lambda fit: make_problem([[np.inf]], [1.0], Logistic(), Regularizer(1.0)),
        lambda fit: make_problem([[1.0]], [np.nan], Squared(1.0), Regularizer(1.0)),
    ],
)
def test_misuse_is_one_clear_line(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput) as caught:
        call(fitted(Logistic(), RIDGES[0]))
    assert "\n" not in str(caught.value)
