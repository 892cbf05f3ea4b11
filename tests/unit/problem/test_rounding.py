"""What of an objective may be put down to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.rounding import OBJECTIVE_RTOL, objective_slack, size_of_target


def data(offset: float) -> Dataset:
    return Dataset.from_arrays(np.arange(4.0)[:, None] ** 2, offset + np.array([0.0, 2.0, 1.0, -1.0]))


def test_the_size_of_a_target_is_about_its_mean_where_there_is_an_intercept() -> None:
    assert size_of_target(data(100.0), "fold") == size_of_target(data(100.0), "global") == 3.0
    assert size_of_target(data(100.0), "none") == 102.0


@pytest.mark.parametrize("objective", [0.0, 1e-30, 1e-12, 1.0, 50.0])
def test_a_relative_part_and_what_residuals_near_zero_are_off(objective: float) -> None:
    noise = 1e-15 * 3.0 * 2.0
    found = objective_slack(objective, data(0.0), "fold")
    assert found == pytest.approx(OBJECTIVE_RTOL * objective + noise**2 + 2.0 * noise * objective**0.5, rel=1e-12)
    assert objective_slack(objective, data(1e6), "none") > found


def test_no_refit_misses_by_more() -> None:
    """Residuals of 1e-9 beside targets of 1e3: moved by an ulp of the targets, the objective stays within the slack."""
    rng = np.random.default_rng(3)
    residual, target = 1e-9 * rng.normal(size=50), 1e3 * rng.normal(size=50)
    sample = Dataset.from_arrays(rng.normal(size=(50, 1)), target)
    moved = residual + np.spacing(target) * rng.uniform(-1.0, 1.0, size=50)
    objective = float(residual @ residual)
    assert abs(float(moved @ moved) - objective) <= objective_slack(objective, sample, "fold")
