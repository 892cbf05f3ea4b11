"""What both estimators share: from X and y to a `Dataset`, from a model by names to coefficients, and predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.frame import frame_numbers
from sparsecv_mio.restrictions import RESTRICTIONS, Column, Hierarchy, Limits, Restrictions
from sparsecv_mio.sklearn.versions import CallbackSupportMixin, validate_data
from sparsecv_mio.words import Intercept


class SparseLinearModel(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """A linear model with few features, once `fit` has set `coef_` and `intercept_`."""

    fit_intercept: bool
    force_in: Column | Iterable[Column] | None
    force_out: Column | Iterable[Column] | None
    at_most: Limits | None
    hierarchy: Hierarchy | None
    nonnegative: Column | Iterable[Column] | None
    nonpositive: Column | Iterable[Column] | None

    def predict(self, X: Any) -> FloatArray:
        """Predict the target.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return rows @ self.coef_ + self.intercept_

    @property
    def _intercept(self) -> Intercept:
        return Intercept.FOLD if self.fit_intercept else Intercept.NONE

    @property
    def _restrictions(self) -> Restrictions:
        given = {name: getattr(self, name) for name in RESTRICTIONS if getattr(self, name) is not None}
        return Restrictions(**given)

    def _dataset(self, X: Any, y: Any, groups: Any = None) -> Dataset:
        """Check X and y, and copy them; the columns are called as in X, or x0, x1, ..."""
        target = getattr(y, "name", None)
        if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
            frame_numbers(X)  # names the column and the row of a cell that is no number
        rows, response = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())] or None
        given = target if isinstance(target, str) else "y"
        while given in (names or ()):
            given += "_"
        return Dataset.from_arrays(rows, response, names, given, {} if groups is None else {"groups": groups})


def by_column(coefficients: Mapping[str, float], names: tuple[str, ...]) -> FloatArray:
    """Return the coefficients of a model in the order of all columns."""
    return np.array([coefficients.get(name, 0.0) for name in names])
