"""Peers against plain definitions: forward selection, the relaxed lasso, coefficients in units of the file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LassoCV, LinearRegression

from sparsecv_mio.batch.estimators import (
    ESTIMATORS,
    ForwardSelectionCV,
    RelaxedLassoCV,
    check_estimator_name,
    run_estimator,
)
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BackendUnavailable, BadInput

RNG = np.random.default_rng(8)
X = RNG.normal(size=(40, 6)) * np.array([1, 10, 0.1, 5, 1, 1]) + 3.0
Y = X[:, 0] - 0.2 * X[:, 1] + 0.3 * RNG.normal(size=40)
DATA = Dataset.from_arrays(X, Y)
PLAN = make_folds("4", DATA)
SPLITS = [(PLAN.train_rows(j), PLAN.scored_rows(j)) for j in range(PLAN.k)]


def test_forward_selection_is_greedy() -> None:
    model = ForwardSelectionCV(SPLITS).fit(X, Y)
    support: list[int] = []
    for _ in range(model.tau_):
        gains = {
            j: LinearRegression().fit(X[:, [*support, j]], Y).score(X[:, [*support, j]], Y)
            for j in range(6) if j not in support
        }  # fmt: skip
        support.append(max(gains, key=lambda j: gains[j]))
    assert sorted(support) == np.flatnonzero(model.coef_).tolist()
    exact = LinearRegression().fit(X[:, support], Y)
    assert np.allclose(model.coef_[support], exact.coef_) and np.isclose(model.intercept_, exact.intercept_)


def test_relaxed_lasso_is_no_worse_than_the_lasso_in_cross_validation() -> None:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    relaxed = RelaxedLassoCV(SPLITS).fit(Z, Y)
    lasso = LassoCV(cv=SPLITS, alphas=relaxed.alphas_).fit(Z, Y)
    rows = np.array([len(test) for _, test in SPLITS])
    errors = (lasso.mse_path_ * rows).sum(axis=1) / rows.sum()
    assert relaxed.cv_error_ <= errors.min() * (1.0 + 1e-6)


COMPILED = [pytest.param(name, marks=pytest.mark.slow) for name in ("mcp", "scad")]  # by skglm, for seconds


@pytest.mark.parametrize("name", [*(name for name in ESTIMATORS if name not in ("sparsecv", "mcp", "scad")), *COMPILED])
def test_every_peer_predicts_in_units_of_the_file(name: str) -> None:
    try:
        fitted = run_estimator(name, DATA, PLAN, {})
    except BackendUnavailable as error:
        pytest.skip(str(error))
    predicted = X @ fitted.coefficients + fitted.intercept
    assert np.mean((Y - predicted) ** 2) < 0.1 * np.var(Y) and fitted.seconds > 0.0


def test_unknown_estimators() -> None:
    with pytest.raises(BadInput, match="estimator 'ridg' is unknown .did you mean 'ridge'"):
        check_estimator_name("ridg")
