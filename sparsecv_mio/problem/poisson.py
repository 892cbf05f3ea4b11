"""Poisson loss with log link: the loss of a row is half its deviance, `l(t) = exp(t) - y t - (y - y log y)`.

The row has the weight w, the exposure e and the rate `y = count / e`; t is its linear predictor without the offset `log
e`. Up to constants, both the negative log-likelihood `w (e exp(t) - count (t + log e))` and half the deviance equal `(w
e) l(t)`. Exposures therefore become weights, targets are rates, and no offset is needed. The minimum of l is 0, at `t =
log y`, and `l'' = l''' = exp(t)`. `kernels/poisson` has the compiled version.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.row_losses import EPS, RowLoss

FARTHEST_RIGHT = 30.0  # cap on the shift to the right; the curvature ratio there is far above what is needed
OVERFLOWN = 1e300  # lower bound stated for larger losses, whose rounding error overflows


class PoissonLoss(RowLoss):
    """Half the deviance of counts y divided by their exposures.

    Examples
    --------
    >>> PoissonLoss().losses(np.zeros(3), np.array([0.0, 1.0, 2.0])).round(6).tolist()
    [1.0, 0.0, 0.386294]
    """

    name = "poisson"
    code = 1

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.all((y >= 0.0) & np.isfinite(y)):
            raise BadInput("loss poisson: the target must be counts, numbers of at least 0")
        if intercept and not np.any(y > 0.0):
            raise BadInput(
                "loss poisson: the target is 0 in all rows with a positive weight, so the intercept has no finite "
                "optimum"
            )

    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        v = np.ones(len(y)) if weights is None else weights
        return (y, v) if exposure is None else (y / exposure, v * exposure)

    def origin(self, y: FloatArray, v: FloatArray) -> float:
        return float(np.log(v @ y) - np.log(v.sum()))

    def _level(self, m: Any, y: FloatArray) -> tuple[Any, Any]:
        """`log y` in the precision of m, 0 where y is 0, and `exp(m - log y) - 1`, which is exp(m) there."""
        level = np.log(np.where(y > 0.0, y, 1.0).astype(m.dtype))
        with np.errstate(over="ignore"):
            return level, np.where(y > 0.0, np.expm1(m - level), np.exp(m))

    def losses(self, m: Any, y: FloatArray) -> Any:
        level, grown = self._level(m, y)
        with np.errstate(over="ignore"):
            return np.where(y > 0.0, np.maximum(np.where(y > 0.0, y, 1.0) * (grown - (m - level)), 0.0), grown)

    def falls(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return -v * (np.where(y > 0.0, y, 1.0) * self._level(m, y)[1])

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        with np.errstate(over="ignore"):
            return v * np.exp(m)

    def sizes(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (self.curvatures(m, y) + y)

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        level = self._level(m, y)[0]
        e, steep = off + 2.0 * eps * (np.abs(m) + np.abs(level) + 1.0), np.abs(self.falls(m, y))
        return steep * e + self.curvatures(m, y) * e * e + 10.0 * eps * (steep + y * np.abs(m - level))

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.abs(self.falls(m, y)) * reach + np.exp(m) * (np.expm1(reach) - reach)
        return np.where(np.isfinite(rise), rise, np.inf)

    def recedes(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, 0.0, -np.inf), np.zeros(len(y))

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            nearest, ends = np.clip(np.log(y), low, high), []
            for t in (nearest, low, high):
                off = self.roundings(t, y, 0.0, EPS)
                ends.append((np.nan_to_num(self.losses(t, y), nan=np.inf), np.where(np.isnan(off), np.inf, off)))
            least = np.where(ends[0][0] > OVERFLOWN, OVERFLOWN, np.maximum(ends[0][0] - ends[0][1], 0.0))
            least = np.where(np.isfinite(nearest), least, 0.0)
            most = np.maximum(ends[1][0] + ends[1][1], ends[2][0] + ends[2][1])
        return least, np.where(np.isnan(most), np.inf, most)

    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        # `exp(m) phi(D)` at m + D, `phi(D) = 2 (exp(D) - 1 - D) / D^2`, rises in D; `phi(D) >= 1 + D / 3`.
        D = np.minimum(low - m, FARTHEST_RIGHT)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(np.abs(D) > 1e-3, 2.0 * (np.expm1(D) - D) / D**2, 1.0 + D / 3.0)
            bent = np.exp(m) * ratio * (1.0 - 1e-11)
        return np.where((ratio > 0.0) & (bent < np.inf), bent, 0.0)
