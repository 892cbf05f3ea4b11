"""The objective of logistic regression, and lower bounds of its curvature."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm import GlmProblem, minorant
from sparsecv_mio.problem.row_losses import LOG_LOSS


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


def test_the_curvature_is_below_every_ratio_of_the_range() -> None:
    rng = np.random.default_rng(2)
    m, r = rng.uniform(-40, 40, 600), 10.0 ** rng.uniform(-9, 2, 600)
    c = LOG_LOSS.least_curvature(m, m - r, m + r, np.ones(600))
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
        ({"y": np.ones(30)}, "all of one class"),
        ({"gamma": 0.0}, "gamma must be a positive number"),
    ],
)
def test_what_has_no_fit_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        problem(**changes)


def test_one_class_is_a_problem_without_an_intercept() -> None:
    assert problem(y=np.ones(30), intercept=False).first == 0
