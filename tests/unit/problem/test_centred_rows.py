"""Centred rows have the moments of the problem, and the rows that the data keep are left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data import standard
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.centred_rows import CentredRows


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_moments_are_those_of_the_problem(intercept: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(standard, "CACHE_BYTES", 0)
    rng = np.random.default_rng(3)
    data = standard.standardize(
        Dataset.from_arrays(rng.normal(5.0, 2.0, (17, 4)), rng.normal(9.0, 1.0, 17)), "variance", intercept
    )
    folds = make_folds("3", data.dataset, 0)
    before = data.rows(slice(0, data.n))[0].copy()
    for rows in (slice(0, data.n), *map(folds.train_rows, range(folds.k))):
        made, problem = CentredRows.of(data, rows), row_moments(data, rows).problem(data, 0.5)
        assert np.allclose(made.V.T @ made.V, problem.Q, rtol=1e-9, atol=1e-9)
        assert made.V.T @ made.r == pytest.approx(problem.c)
        assert made.r @ made.r == pytest.approx(problem.yy)
        assert made.v_mean == pytest.approx(problem.v_mean) and made.r_mean == pytest.approx(problem.r_mean)
        made.V[:] = np.nan
    assert np.array_equal(data.rows(slice(0, data.n))[0], before)
