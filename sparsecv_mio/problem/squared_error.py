"""Squared error `l(t) = (t - y)^2` of a prediction t, with the same interface as the other row losses.

Searches with squared-error loss use moments of the training rows (`problem.problem`), not this class. Errors of rows,
baselines and quadratic approximations use this class, as they use every row loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.row_losses import RowLoss


class SquaredError(RowLoss):
    """The squared distance of a predictor from its target.

    Examples
    --------
    >>> SquaredError().losses(np.zeros(3), np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 4.0]
    """

    name = "squared"

    @property
    def code(self) -> int:  # type: ignore[override]
        """No code: raise `BadInput`, since no kernel fits squared errors by rows."""
        raise BadInput(f"loss {self.name}: its fits are by moments, not by the losses of rows")

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.isfinite(y).all():
            raise BadInput("squared loss needs finite targets")

    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        return y, np.ones(len(y)) if weights is None else weights

    def origin(self, y: FloatArray, v: FloatArray) -> float:
        middle = float(v @ y / v.sum())
        return middle + float(v @ (y - middle) / v.sum())  # a mean is rounded

    def losses(self, m: Any, y: FloatArray) -> Any:
        return (m - y) ** 2

    def falls(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (2.0 * (y - m))

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * np.full_like(m, 2.0)

    def sizes(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (2.0 * (np.abs(m) + np.abs(y) + 1.0))

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        e = off + eps * (np.abs(m) + np.abs(y))
        return e * (2.0 * np.abs(m - y) + e) + 4.0 * eps * self.losses(m, y)

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        return np.asarray(reach * (2.0 * np.abs(m - y) + reach))

    def recedes(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(y)), np.zeros(len(y))

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        nearest = np.clip(y, low, high)
        return (nearest - y) ** 2, np.maximum((low - y) ** 2, (high - y) ** 2)

    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        return np.full(np.shape(m), 2.0)
