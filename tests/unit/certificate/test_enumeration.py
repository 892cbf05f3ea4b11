"""The checker's own enumeration and held-out errors against the definition."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cv_error

from sparsecv_mio.certificate.enumeration import (
    CANDIDATE_RTOL,
    CANDIDATE_SHARE,
    UnitColumns,
    fold_optima,
    gram_fits,
    held_out_errors,
    moments,
)
from sparsecv_mio.certificate.restricted_optima import restricted_optima
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error
from sparsecv_mio.restrictions import Restrictions

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


def test_fits_of_nearly_dependent_columns_are_as_exact_as_their_doubt_says() -> None:
    """Columns at large offsets without an intercept: moments have lost their digits, the rows have not."""
    rng, by_rows = np.random.default_rng(2), 0
    for case in range(40):
        n, q = int(rng.integers(6, 20)), int(rng.integers(2, 6))
        offset = 10.0 ** rng.uniform(2, 7)
        X = rng.normal(size=(n, q)) + offset * rng.choice([-1.0, 1.0, 3.0], size=q)
        data = Dataset.from_arrays(X, X[:, 0] - X[:, 1] + rng.normal(size=n) + offset * (case % 2))
        design, gamma = UnitColumns.of(data, "variance", "none"), float(10.0 ** rng.uniform(-6, 1))
        train, out = moments(design, np.array([0])), design.dataset.X.shape[0]
        for size in range(1, q + 1):
            supports = np.array(list(combinations(range(q), size)))
            for part in gram_fits(design, train, gamma, supports):
                by_rows += int((part.by_rows & np.isfinite(part.objective)).sum())
                exact = [design.refit(support, gamma, np.arange(1, out)) for support in supports]
                objective = np.array([model.objective for model in exact]) / design.y_unit**2
                room = (CANDIDATE_RTOL * objective + CANDIDATE_SHARE * float(train.moment[-1])) / 2.0
                assert np.all(np.abs(part.objective - objective) <= room, where=np.isfinite(part.objective))
                beta = np.stack([model.beta for model in exact])
                x_unit = np.array([np.linalg.norm(X[1:, design.columns[s]], axis=0) for s in supports])
                z_unit = np.sqrt(np.diag(train.gram))[supports]
                said = part.beta * z_unit / np.sqrt(train.moment[-1])
                true = beta * x_unit / np.linalg.norm(data.y[1:])
                near = np.abs(said - true).max(axis=1) <= part.doubt + 1e-9 * np.abs(true).max(axis=1)
                assert np.all(near, where=np.isfinite(part.objective))
    assert by_rows > 50


def test_few_supports_are_refitted_where_columns_are_nearly_dependent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out of 24 x 6 at an offset of 10^6, plain and with signs: some refits a fold, not one a support."""
    rng, count = np.random.default_rng(0), [0]
    X = rng.normal(size=(24, 6)) + 1e6 * np.array([1.0, -0.3, 2.0, 0.5, -1.0, 0.1])
    data = Dataset.from_arrays(X, rng.normal(size=24))
    plan, refit = make_folds("loo", data), UnitColumns.refit

    def counted(self: UnitColumns, *arguments: Any) -> RidgeFit:
        count[0] += 1
        return refit(self, *arguments)

    monkeypatch.setattr(UnitColumns, "refit", counted)
    for asked in (None, Restrictions(nonnegative=("x0", "x2"), nonpositive="x4")):
        design = UnitColumns.within(data, "variance", "none", asked)
        optima, count[0] = (fold_optima if asked is None else restricted_optima), 0
        for tau in (1, 2, 3, 4):
            optima(design, plan, 0.1, tau)
        assert count[0] < 4 * 24 * 3  # of up to 57 supports in each of 24 folds


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_nearly_perfect_fits_at_an_offset_are_enumerated_without_a_refit_of_every_fold(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(27, 3)) + 1e4 * rng.choice([-1.0, 0.5, 1.0], size=3)
    y = X @ [1.0, -0.5, 0.3] + noise * rng.normal(size=27)
    data = Dataset.from_arrays(X, y)
    plan, design = make_folds("loo", data), UnitColumns.of(data, "variance", "none")
    count, refit = [0], UnitColumns.refit

    def counted(*given: Any) -> RidgeFit:
        count[0] += 1
        return refit(*given)

    for gamma, tau in ((0.001, 3), (0.3, 3), (10.0, 2), (0.01, 1)):
        with monkeypatch.context() as patch:
            patch.setattr(UnitColumns, "refit", counted)
            optima = fold_optima(design, plan, gamma, tau)
        for fold in range(0, 27, 5):
            fits = [refit(design, s, gamma, plan.train_rows(fold)) for s in combinations(range(3), tau)]
            best = min(fits, key=lambda model: model.objective)
            true = held_out_error(best, X, y, plan.scored_rows(fold))
            assert optima.low[fold] == pytest.approx(true, rel=1e-8, abs=1e-8 * float(optima.low.mean()))
    assert count[0] <= 27
