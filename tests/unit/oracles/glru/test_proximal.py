"""The proximal Newton step: the minimiser of the second-order model of P with its L1 term."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import Logistic, Regularizer, Squared
from sparsecv_mio.oracles.glru.proximal import proximal_target
from sparsecv_mio.oracles.glru.training import assess_with_intercept

from .problems import random_problem


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "regularizer", [Regularizer(0.1, 0.05), Regularizer(0.1, 0.05, True), Regularizer(0.0, 0.02)], ids=str
)
def test_no_other_point_is_lower_in_the_model(loss, regularizer: Regularizer) -> None:  # type: ignore[no-untyped-def]
    problem = random_problem(loss, regularizer)
    rng = np.random.default_rng(0)
    fit = assess_with_intercept(problem, 0.1 * rng.standard_normal(problem.design.d))
    h = loss.curvature(fit.t, problem.y) / problem.n
    slope = loss.derivative(fit.t, problem.y) / problem.n

    def model(u: np.ndarray) -> float:
        v = problem.design.forward(u - fit.w)
        return float(slope @ v + 0.5 * h @ v**2 + regularizer.value(u))

    best = proximal_target(fit, h)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(100):
            other = best + size * rng.standard_normal(best.size) * (rng.random(best.size) < 0.4)
            assert model(best) <= model(other) + 1e-9 * abs(model(best))
    assert model(best) < model(fit.w)
