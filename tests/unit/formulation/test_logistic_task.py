"""Tasks of logistic loss: bounds for every support as good as the start, and a start within side constraints."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import drawn, enumerated, harder

from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import ScaledLosses, feasible_start, fit_glm, loss_task, unbounded_task
from sparsecv_mio.problem.constraints import FREE, SideConstraints


@pytest.mark.parametrize("seed", range(32))
def test_every_fit_as_good_as_the_start_is_within_the_bounds(seed: int) -> None:
    problem = (drawn if seed % 4 else harder)(seed, 4).centre_columns()[0]
    least = {S: float(truth.value) for S, truth in enumerated(problem).items()}
    for tau in range(problem.p + 1):
        start = feasible_start(problem, tau, FREE)
        assert start is not None and len(start.support) <= tau
        for first in (start, fit_glm(problem, ())):
            task = loss_task(problem, tau, FREE, first, KnownBounds())
            scaled = task.scaled
            assert isinstance(scaled, ScaledLosses)
            best = min(value for S, value in least.items() if len(S) <= tau)
            assert scaled.objective(task.floor) <= best * (1.0 + 1e-9)
            for S, value in least.items():
                if value <= first.objective and len(S) <= tau:
                    u, phi = scaled.fit_support(np.isin(np.arange(problem.p), S) * 1.0)
                    r = scaled.factor @ u
                    assert np.all(task.lo <= u[: problem.p]) and np.all(u[: problem.p] <= task.hi)
                    assert np.all(scaled.low <= r) and np.all(r <= scaled.high)
                    assert scaled.objective(phi) >= value * (1.0 - 1e-12)
                    smooth = scaled.row_weights @ scaled.losses_and_slopes(r)[0] + scaled.w @ u[: problem.p] ** 2
                    assert smooth == pytest.approx(value / scaled.unit**2, rel=1e-9)


def test_side_constraints_hold_and_none_is_said() -> None:
    problem = drawn(10, 5).centre_columns()[0]
    last = problem.p - 1
    start = feasible_start(problem, 1, SideConstraints(forced_in=(last,)))
    assert start is not None and start.support == (last,)
    assert feasible_start(problem, 0, SideConstraints(forced_in=(last,))) is None


def test_without_bounds() -> None:
    problem = drawn(10, 5).centre_columns()[0]
    none = fit_glm(problem, ())
    task = unbounded_task(problem, 1, SideConstraints(forced_out=(0,)), none, KnownBounds(lower=0.25))
    assert task.scaled.objective(task.floor) == pytest.approx(0.25) and task.z_hi[0] == 0.0
    assert task.scaled.yy == none.objective and np.all(np.isinf(task.hi))
    assert task.start_u.tolist() == [0.0] * problem.p + [none.intercept] * problem.first_coefficient


def test_a_row_that_weighs_nearly_all_leaves_bounds_of_solvers_untrusted() -> None:
    problem = harder(3036, 3).centre_columns()[0]
    assert loss_task(problem, 1, FREE, fit_glm(problem, ()), KnownBounds()).scaled.has_uneven_weights
    problem = drawn(10, 3).centre_columns()[0]
    assert not loss_task(problem, 1, FREE, fit_glm(problem, ()), KnownBounds()).scaled.has_uneven_weights
