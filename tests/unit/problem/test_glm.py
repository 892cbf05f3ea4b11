"""The objective of logistic regression, and lower bounds of its curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sparsecv_mio.arrays import FloatArray, prepend_ones
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm import Centring, GlmProblem, level_ranges, minorant
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss


def problem(**changes: object) -> GlmProblem:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3))
    y = np.where(X[:, 0] + rng.logistic(size=30) > 0, 1.0, -1.0)
    given = {"X": X, "y": y, "v": np.ones(30), "weight": np.ones(3), "gamma": 0.1, **changes}
    return GlmProblem(**given)  # type: ignore[arg-type]


def test_the_objective_is_that_of_the_formula() -> None:
    data, theta = problem(v=np.arange(30.0)), np.array([0.3, -1.0, 2.0, 0.1])
    margins = data.y * (theta[0] + data.X @ theta[1:])
    assert data.objective(theta) == pytest.approx(
        sum(w * np.log(1.0 + np.exp(-m)) for w, m in zip(data.v, margins, strict=True))
        + 0.05 * float(theta[1:] @ theta[1:])
    )
    assert np.all(problem(weight=np.array([1.0, 2.0, 0.5])).with_gamma(4.0).ridge == [2.0, 4.0, 1.0])


@pytest.mark.parametrize("offset", [0.0, -7.0, 12.0])
def test_the_curvature_is_below_every_ratio_of_the_range(offset: float) -> None:
    rng = np.random.default_rng(2)
    m, r = rng.uniform(-40, 40, 600), 10.0 ** rng.uniform(-9, 2, 600)
    c = LOG_LOSS.least_curvature(m - offset, m - r - offset, m + r - offset, np.full(600, np.exp(offset)))
    assert np.all(c >= 0.0)
    long = m.astype(np.longdouble)
    curvature = 1 / ((1 + np.exp(long)) * (1 + np.exp(-long)))
    assert np.all(c <= curvature)
    for share in (-1.0, -0.6, 0.3, 1.0):
        D = np.where(r > 1e-3, share * r, np.nan).astype(np.longdouble)
        t = long + D
        loss = [np.maximum(-at, 0) + np.log1p(np.exp(-np.abs(at))) for at in (long, t)]
        ratio = 2 * (loss[1] - loss[0] + D / (1 + np.exp(long))) / D**2
        # longdouble itself rounds the ratio by about 1e-19 (losses) / D^2
        noise = 1e-17 * (loss[0] + loss[1] + np.abs(D)) / D**2
        assert not np.any(c > ratio + noise)
    assert np.median(c / np.asarray(curvature, dtype=float)) > 0.3


def test_the_curvature_of_a_range_beside_the_margin_is_below_every_ratio_of_it() -> None:
    rng = np.random.default_rng(4)
    m, far = rng.uniform(-20, 20, 600), 10.0 ** rng.uniform(-5, 1, 600) * rng.choice([-1.0, 1.0], 600)
    ends = np.sort([m + far, m + far * rng.uniform(1.0, 4.0, 600)], axis=0)
    c = LOG_LOSS.least_curvature(m, *ends, np.ones(600))
    long = m.astype(np.longdouble)
    for share in (0.0, 0.4, 1.0):
        t = long + ((1.0 - share) * ends[0] + share * ends[1] - long)
        D = t - long
        loss = [np.maximum(-at, 0) + np.log1p(np.exp(-np.abs(at))) for at in (long, t)]
        noise = 1e-17 * (loss[0] + loss[1] + np.abs(D)) / D**2
        assert not np.any(c > 2 * (loss[1] - loss[0] + D / (1 + np.exp(long))) / D**2 + noise)


def test_a_level_below_the_point_has_no_quadratic() -> None:
    data = problem()
    value = data.objective(data.start())
    assert minorant(data, data.start(), 0.99 * value) is None
    below = minorant(data, data.start(), 1.01 * value)
    assert below is not None and below.moments.yy - below.shift <= value


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y": np.arange(30.0)}, "labels -1 and"),
        ({"y": np.ones(30)}, "are of one class"),
        ({"gamma": 0.0}, "gamma must be a positive number"),
    ],
)
def test_what_has_no_fit_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        problem(**changes)


def test_one_class_is_a_problem_without_an_intercept() -> None:
    assert problem(y=np.ones(30), intercept=False).first_coefficient == 0


def test_columns_that_are_about_centred_and_scaled_stay_as_they_are_without_a_copy() -> None:
    rng = np.random.default_rng(3)
    X = prepend_ones(rng.standard_normal((50, 4)) * [0.1, 1.0, 9.0, 2.0] + [0.0, 0.1, 0.0, -0.2], np.arange(4))[1:].T
    y, v = np.where(rng.uniform(size=50) < 0.5, 1.0, -1.0), np.ones(50)
    for intercept in (True, False):
        inner, W, centring = GlmProblem(X, y, v, np.ones(4), 1.0, intercept).centre_columns()
        assert centring.is_identity and np.shares_memory(W, X) and np.shares_memory(inner.X, X)
        assert np.array_equal(W[int(intercept) :].T, X) and (not intercept or np.all(W[0] == 1.0))
    v[7] = 0.0
    inner, W, centring = GlmProblem(X, y, v, np.ones(4), 1.0).centre_columns()
    assert centring.is_identity and not np.shares_memory(W, X)
    assert np.array_equal(inner.X, np.delete(X, 7, axis=0)) and len(inner.y) == 49


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x + 0.5,  # not centred
        lambda x: 300.0 * x,  # nor scaled
        lambda x: x / 3000.0,
        lambda x: 0.125 - x,  # a copy, once both are centred
        lambda x: 4.0 * x,
        lambda x: np.full_like(x, 0.1),
        lambda x: np.full_like(x, 1e160),  # whose square is not a number
        lambda x: np.where(np.arange(len(x)) == 9, 1.0, 0.0),  # as the first row cannot tell from a column of zeros
    ],
)
def test_columns_that_are_not_or_may_be_copies_are_centred(other: Callable[[FloatArray], FloatArray]) -> None:
    x = np.round(np.random.default_rng(3).standard_normal(60), 2)
    x -= np.round(x.mean(), 2)
    X = np.column_stack([x, other(x), np.where(np.arange(60) == 30, 1.0, 0.0)])
    assert not Centring.from_rows(X, np.ones(60), True).is_identity
    assert Centring.from_rows(X[:, :1], np.ones(60), True).is_identity


def test_the_intercept_ends_where_rows_reach_far() -> None:
    """Under little ridge every loss within reach of it overflowed at once: it had no end, and tangents said nothing."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 2)), rng.poisson(3.0, 20).astype(float)
    counts = GlmProblem(X, y, np.ones(20), np.ones(2), 1e-12, intercept=True, loss=PoissonLoss())
    start = counts.start()
    ranges, middle, half = level_ranges(counts, start, counts.objective(start))
    assert np.isfinite(ranges.low).all() and np.isfinite(ranges.high).all() and np.isfinite(half).all()
    assert np.all(np.abs(middle - start) <= half)


def test_nothing_is_printed_of_rows_without_a_column(capfd: pytest.CaptureFixture[str]) -> None:
    nothing = GlmProblem(np.zeros((4, 0)), np.array([1.0, -1.0, 1.0, 1.0]), np.ones(4), np.ones(0), 1.0, False)
    below = minorant(nothing, np.zeros(0), 4.0)
    assert below is not None and 0.0 <= below.shift + below.moments.yy <= 4.0 * np.log(2.0) <= 4.0
    assert capfd.readouterr() == ("", "")
