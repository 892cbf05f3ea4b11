"""`BestSubsetRidge`: the best subset of a size, or of every size of a path."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from repository import INSTANCES
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsecv_mio as sc
from sparsecv_mio.sklearn import BestSubsetRidge


@parametrize_with_checks([BestSubsetRidge(), BestSubsetRidge("log", gamma=0.5, scale="none", fit_intercept=False)])
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Any) -> None:
    check(estimator)


def objective(X: Any, y: Any, gamma: float) -> float:
    """The least of `||y - Xb||^2 + (gamma / 2) ||b||^2`, columns as they are, no intercept."""
    b = np.linalg.solve(X.T @ X + gamma / 2 * np.eye(X.shape[1]), X.T @ y)
    return float(((y - X @ b) ** 2).sum() + gamma / 2 * b @ b)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_best_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 6)), rng.normal(size=12)
    model = BestSubsetRidge(2, gamma=0.3, scale="none", fit_intercept=False).fit(X, y)
    known = {S: objective(X[:, S], y, 0.3) for S in combinations(range(6), 2)}
    assert tuple(model.support_.nonzero()[0]) == min(known, key=lambda S: known[S])
    assert model.objective_ == pytest.approx(min(known.values()), rel=1e-10)
    assert model.lower_ <= model.objective_ <= model.upper_ and model.status_ == "proved"


def test_a_path_holds_the_models_of_its_sizes() -> None:
    data = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")
    path = BestSubsetRidge(gamma=0.01).fit(data.X, data.y)
    assert path.taus_.tolist() == list(range(1, 9)) and path.tau_ == 8
    theirs = sc.best_subsets(data, gammas=0.01)
    for tau in (1, 4, 8):
        one, row = BestSubsetRidge(tau, gamma=0.01).fit(data.X, data.y), theirs.path[tau - 1]
        assert (one.coef_ == path.coef_path_[:, tau - 1]).all() and one.intercept_ == path.intercept_path_[tau - 1]
        assert one.coef_[one.support_].tolist() == list(row.coefficients.values()) and one.objective_ == row.objective
    assert (path.predict(data.X) == data.X @ path.coef_ + path.intercept_).all()


def test_a_grid_search_chooses_its_size() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=60)
    found = GridSearchCV(BestSubsetRidge(gamma=1e-3), {"tau": [1, 2]}, cv=3).fit(X, y)
    assert found.best_params_ == {"tau": 2} and found.best_score_ > 0.99


@pytest.mark.parametrize(
    ("given", "said"),
    [({"tau": 9}, "tau 9 is out of range: use 0 to 3"), ({"tau": 1.5}, "tau: 1.5 is not a whole number"),
     ({"gamma": 0.0}, "gamma 0 is out of range"), ({"gamma": "x"}, "gammas: 'x' is not a finite number")],
)  # fmt: skip
def test_bad_parameters_are_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}[^\n]*$"):
        BestSubsetRidge(**given).fit(np.eye(5)[:, :3], np.arange(5.0))
