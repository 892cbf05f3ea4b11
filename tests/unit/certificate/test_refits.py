"""The best exchange of one feature for another against trying all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.certificate.refits import Exchanges
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_the_best_exchange_is_that_of_trying_all(intercept: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 9)) + 1.0
    small = Dataset.from_arrays(X, X @ rng.normal(size=9) + 5.0)
    plan = make_folds("5", small)
    for gamma in (0.01, 1.0):
        design = RidgeDesign.from_restrictions(small, "length", intercept, None)
        for fold in range(5):
            support, train = tuple(sorted(rng.permutation(9)[:3].tolist())), plan.train_rows(fold)
            found = Exchanges(design, gamma).best(plan.scored_rows(fold), support)
            tried = [tuple(sorted({*support, i} - {j})) for j in support for i in range(9) if i not in support]
            best = min(tried, key=lambda s: design.refit(s, gamma, train).objective)
            mine = design.refit(support, gamma, train).objective
            assert found == (best if design.refit(best, gamma, train).objective < mine else None)


def test_a_size_without_a_fit_may_have_the_fit_of_a_smaller_size() -> None:
    """So a path states that a limit ended; a certified row has a feature for each unit of its size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    data = Dataset.from_arrays(X, X[:, 0] - X[:, 7] + rng.normal(size=60))
    record = best_subsets(data, gammas=[0.1], taus=range(1, 20), time_limit=1e-9)
    assert record.status == "limit" and verify(record, data).ok
    for proved in (False, True):
        row = replace(record.path[9], tau=11, proved=proved, lower=record.path[9].upper if proved else 0.0)
        path = (*record.path[:10], row, *record.path[11:])
        report = verify(replace(record, path=path), data)
        assert ("path[10].support" in {failure.field for failure in report.failures}) == proved
