"""Objectives of supports in every fold, taken from their fits on all rows, are never below the least ones."""

from __future__ import annotations

import numpy as np
import pytest
from two_class_cases import TwoClassCase, two_class_case

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.logistic_folds import subsets_of
from sparsecv_mio.trees.logistic_left_out import LeftOut
from sparsecv_mio.words import Loss

MOST_FOLDS = 6


def checked(case: TwoClassCase, seed: int) -> int:
    """Compare with proved lower bounds of fits on the training rows; returns how many were compared."""
    data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
    given, plan, rng, count = data.dataset.row_weights, case.folds, np.random.default_rng(seed), 0
    weights = np.ones(data.n) if given is None else np.asarray(given)
    training = np.ones((plan.k, data.n), dtype=bool)
    for fold in range(plan.k):
        training[fold, plan.left_out(fold)] = False
    whole = subsets_of(data, np.arange(data.n))
    for gamma in case.gammas:
        fits = whole.with_gamma(gamma).fits
        masks = rng.random((2, fits.problem.p)) < 0.5
        folds = LeftOut(fits, training, [plan.scored_rows(fold) for fold in range(plan.k)], weights)
        values, _ = folds.values(list(masks), list(fits.refit(masks).points), lambda: False)
        for fold in range(min(plan.k, MOST_FOLDS)):
            try:
                here = subsets_of(data, plan.train_rows(fold)).with_gamma(gamma)
            except BadInput:  # one class
                continue
            assert np.all(values[:, fold] >= here.refit(masks).lower)
            count += len(masks)
    return count


@pytest.mark.parametrize("first", [0, 20, 40])
def test_objectives_from_all_rows_are_upper_bounds(first: int) -> None:
    count = 0
    for seed in range(first, first + 20):
        try:
            count += checked(two_class_case(seed), seed)
        except BadInput:
            continue
    assert count > 100
