"""One estimator for scikit-learn 1.5 to 1.9: what newer ones have is used where it is there."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from sklearn.base import BaseEstimator

from sparsecv_mio.sklearn import versions


def test_callbacks_are_those_of_scikit_learn_where_it_has_them() -> None:
    newer = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)
    assert hasattr(versions.CallbackSupportMixin, "set_callbacks") == newer


def test_data_are_checked_and_columns_remembered() -> None:
    estimator: Any = BaseEstimator()
    versions.validate_data(estimator, [[1.0, 2.0], [3.0, 4.0]])
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="NaN"):
        versions.validate_data(estimator, [[float("nan"), 1.0]], reset=False)
