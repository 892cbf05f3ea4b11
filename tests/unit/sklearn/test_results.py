"""`cv_results_` says of every pair what the table of the record says."""

from __future__ import annotations

import numpy as np
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.sklearn.results import cv_results

DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


def test_every_pair_has_its_entry() -> None:
    record = sc.solve(DATA, gammas=[0.01, 1.0], taus=range(1, 9))
    found = cv_results(record)
    assert {len(column) for column in found.values()} == {16}
    best = int(np.argmin(found["rank_test_score"]))
    assert found["params"][best] == {"tau": record.tau, "gamma": record.gamma}
    assert found["mean_test_score"][best] == -record.cv_error and found["rank_test_score"][best] == 1
    errors, sizes = record.chosen_folds.error, make_folds("10", DATA).sizes
    assert found["standard_error"][best] == pytest.approx(standard_error(errors, sizes), rel=1e-12)
    for place, row in enumerate(record.table):
        assert (found["lower"][place], found["upper"][place]) == (row.lower, row.upper)
        assert found["decided"][place] == (row.folds_decided == row.folds) and found["status"][place] == row.status


def test_a_pair_without_a_score_comes_last() -> None:
    record = sc.solve(INSTANCES / "prostate.csv", "lpsa", gammas=[0.01, 1.0], taus=range(1, 9), method="bounds")
    found = cv_results(record)
    nothing = ~np.isfinite(found["cv_error"])
    assert np.isnan(found["mean_test_score"][nothing]).all()
    assert (found["rank_test_score"][nothing] > (~nothing).sum()).all()
