"""The checker's own enumeration and held-out errors against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from every_support import brute_force_cv_error

from sparsecv_mio.certificate.enumeration import UnitColumns, fold_optima, held_out_errors
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.objective import fit, held_out_error

from .enumerated import small, truth


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("spec", ["loo", "blocks:2", "blocks:13", "3"])
def test_enumeration_equals_brute_force(spec: str, intercept: str) -> None:
    for seed in range(4):
        data = small(seed, n=29 if spec == "blocks:13" else 14)
        plan, design = make_folds(spec, data, seed), UnitColumns.of(data, "length", intercept)
        for gamma, tau in ((1e-4, 3), (0.3, 2), (1e4, 1)):
            optima = fold_optima(design, plan, gamma, tau)
            found = optima.low.sum() / plan.n, optima.high.sum() / plan.n
            expected = brute_force_cv_error(data.X, data.y, plan.labels, tau, gamma, intercept=intercept)
            assert found == pytest.approx(expected, rel=1e-9)


def test_a_row_of_full_leverage_is_refitted() -> None:
    """A column that is nonzero in one row only: I - H vanishes there and the identity has nothing to divide by."""
    data = small(9)
    X = data.X.copy()
    X[:, 3] = 0.0
    X[5, 3] = 1e6
    spiky = Dataset.from_arrays(X, data.y)
    for gamma in (1e-4, 1e-9):
        assert verify(truth(spiky, make_folds("loo", spiky), [gamma], [2, 3]), spiky).failures == ()


def test_held_out_errors_by_identity_and_by_refit_agree() -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(8000, 4))
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=8000))
    plan = make_folds("loo", data)
    supports = [(0, 2) if j % 3 else (0, 1) for j in range(8000)]
    errors, absolute, how = held_out_errors(UnitColumns.of(data, "length", "fold"), plan, supports, 0.5)
    assert how == "leave-out identity" and absolute is None
    for fold in (0, 1, 777, 7999):
        model = fit(X, data.y, supports[fold], 0.5, rows=plan.train_rows(fold))
        expected = held_out_error(model, X, data.y, plan.scored_rows(fold))
        assert errors[fold] == pytest.approx(expected, rel=1e-8)
