"""A model scored on rows that it has not seen, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import fitted

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem import objective
from sparsecv_mio.search.answer.outer_models import scored_outside
from sparsecv_mio.search.options import SearchOptions


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_outside_are_scored_by_the_definition(loss: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 1e4, 0.0, 5.0]
    y = (X[:, 0] + rng.normal(size=50) > 0).astype(float)
    data = weighted_rows(Dataset.from_arrays(X, y), rng.choice([0.5, 2.0], size=50), "w")
    train, test = np.arange(40), np.arange(40, 50)
    scored = scored_outside(data.take(train), data.take(test), ["x1", "x3"], 0.1, SearchOptions.of(loss=loss))
    weights = data.row_weights
    assert weights is not None
    if loss == "squared":
        model = objective.fit(X[train], y[train], [1, 3], 0.1, weights=weights[train])
        errors = (y[test] - model.intercept - X[test][:, [1, 3]] @ model.beta) ** 2
    else:
        classes = fitted(X[train], y[train], [1, 3], 0.1, weights=weights[train])
        errors = classes.losses(X[test], y[test])
        chances = 1.0 / (1.0 + np.exp(-classes.predictors(X[test])))
        assert scored.predicted == pytest.approx(chances, rel=1e-9)
    assert scored.error == pytest.approx(float(np.average(errors, weights=weights[test])), rel=1e-9)
    assert scored.lower <= scored.error <= scored.upper <= scored.lower * (1.0 + 1e-9)


def test_columns_far_from_zero_are_scored_by_the_definition() -> None:
    """Without an intercept their fits lose digits, and `verify` allows its own rounding alone."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(18, 5))
    y = (X[:, 0] + rng.logistic(size=18) > 0).astype(float)
    X, y[:2] = X + 1e6, (0.0, 1.0)
    data, test = Dataset.from_arrays(X, y), np.arange(12, 18)
    scored = scored_outside(
        data.take(np.arange(12)),
        data.take(test),
        data.names,
        0.006,
        SearchOptions.of(loss="logistic", intercept="none"),
    )
    model = fitted(X[:12], y[:12], range(5), 0.006, intercept="none")
    error = float(model.losses(X[test], y[test]).mean())
    assert scored.lower <= error <= scored.upper <= scored.lower * (1.0 + 1e-8)
    assert scored.error == pytest.approx(error, rel=1e-9)
