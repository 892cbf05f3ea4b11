"""The best exchange of one feature for another against trying all."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.certificate.refits import Exchanges
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds


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
