"""Losses of rows, and the targets and weights of rows in the form that a loss requires.

A row loss is a smooth convex function `l(m) >= 0` of the margin m with `|l'''| <= l''`.

The margin is `sign z'theta`, for a row z and coefficients theta. With logistic loss, `sign` is -1 or 1 by the class of
the row; otherwise it is 1. The loss l may also depend on the target y of the row. docs/theory/glm.md, section 11,
states the properties that the methods of a loss must have. The module uses plain numpy, in the precision of its
arguments; `kernels/smooth_losses` has the compiled versions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import ROUNDING

FARTHEST_RIGHT = 30.0  # cap on the shift to the right; the curvature ratio there is far above what is needed
OVERFLOWN = 1e300  # lower bound stated for larger losses, whose rounding error overflows
NEWTON_STEPS, HALVINGS, RADII_TRIED = 100, 50, 120  # maximum steps of a fit, halvings of a step, radii tried for a ball
FAR_OFF = 0.5  # share of the objective; for larger squared decrements longer steps are tried
LOGISTIC_CODE, POISSON_CODE, SHIFTED_LOGISTIC_CODE = range(3)  # the losses of `kernels/smooth_losses`
PULL_RTOL = 1e-3  # safety factor on the largest pull of a row
SMALL_RANGE = 1e-3  # range below which `worst_ratio` uses the first terms of its series


class RowLoss(ABC):
    """A row loss; a new loss needs a subclass, and its code with a branch in the functions of `kernels/smooth_losses`.

    Attributes
    ----------
    name : str
        Name in options.
    steepest : float
        Largest absolute slope; inf if it is unbounded.
    """

    name: str
    steepest: float = np.inf

    @abstractmethod
    def find_code(self, y: FloatArray) -> int:
        """Return the code of the loss in the kernels, which depends on the targets (`kernels/smooth_losses`)."""

    def most_pull(self, y: FloatArray) -> float:
        """Return an upper bound on half of `-m l'(m)` over all margins m of rows; inf if there is none.

        No fit has a larger penalty for each unit of row weight.
        """
        return np.inf

    @abstractmethod
    def check(self, y: FloatArray, intercept: bool) -> None:
        """Raise `BadInput` if F has no minimum for rows with targets y and positive weights."""

    @abstractmethod
    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the targets and weights in the form of the loss, from those of the file."""

    def signs(self, y: FloatArray) -> FloatArray:
        """Return (n,) the factors of the rows."""
        return np.ones(len(y))

    @abstractmethod
    def origin(self, y: FloatArray, v: FloatArray) -> float:
        """Return the intercept of the fit without columns."""

    @abstractmethod
    def losses(self, m: Any, y: FloatArray) -> Any:
        """Return `l(m)`."""

    @abstractmethod
    def negative_gradient(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return `-v l'(m)`."""

    @abstractmethod
    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return `v l''(m)`."""

    def gradient_scale(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return the scale of the rounding of `v l'(m)`, by default its size; at least `v l''(m)`."""
        return self.negative_gradient(m, y, v)

    @abstractmethod
    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        """Return bounds on the errors of losses if margins have errors `off` and arithmetic rounds to `eps`."""

    @abstractmethod
    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the largest change of l within `reach` of m; `reach` may be inf."""

    @abstractmethod
    def recession_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds, 0 or infinite, of the moves of a margin along which l never rises."""

    @abstractmethod
    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on l if `z'theta` is between two numbers, up to a relative rounding of 1e-14."""

    @abstractmethod
    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        """Return a lower bound of `2 (l(t) - l(m) - l'(m)(t - m)) / (t - m)^2` over t in [low, high], any m."""


def worst_ratio(t: FloatArray) -> FloatArray:
    """Return a lower bound on the relative curvature `2 (exp(-t) + t - 1) / t^2` over a range t >= 0.

    Examples
    --------
    >>> worst_ratio(np.array([0.0, 1.0])).round(6).tolist()
    [1.0, 0.735759]
    """
    safe = np.maximum(t, SMALL_RANGE)
    return np.where(t < SMALL_RANGE, 1.0 - t / 3.0, 2.0 * (np.expm1(-safe) + safe) / safe**2 * (1.0 - 1e-11))


class LogLoss(RowLoss):
    """Logistic loss, `l(m) = log(1 + exp(-(m + log |y|)))`; the sign of y is the sign of its row.

    Without offsets, targets are -1 and 1. With an offset o, which is added to the predictor, the target is
    `y = sign exp(sign o)`, because the offset adds `sign o = log |y|` to the margin.

    Examples
    --------
    >>> LogLoss().losses(np.zeros(2), np.array([1.0, -3.0])).round(6).tolist()
    [0.693147, 0.287682]
    """

    name = "logistic"
    steepest = 1.0

    def find_code(self, y: FloatArray) -> int:
        return LOGISTIC_CODE if _has_no_shift(y) else SHIFTED_LOGISTIC_CODE

    def most_pull(self, y: FloatArray) -> float:
        # With the shift s, the maximum of `m / (1 + exp(m + s))` is the W with `W exp(W) = exp(-1 - s)`.
        from scipy.special import lambertw  # only near-optimal lists need it

        smallest = float(np.log(np.abs(y)).min(initial=0.0))
        return 0.5 * float(lambertw(np.exp(-1.0 - smallest)).real) * (1.0 + PULL_RTOL)

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.all(np.isfinite(y) & (y != 0.0)):
            raise BadInput("loss logistic: needs labels -1 and +1; map the two values of the target to these labels")
        if intercept and (len(y) == 0 or np.all(y > 0.0) or np.all(y < 0.0)):
            raise BadInput(
                "loss logistic: all rows with a positive weight are of one class, so the intercept has no finite "
                "optimum"
            )

    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        odds = 1.0 if exposure is None else exposure
        return np.where(y > 0.0, odds, -1.0 / odds), np.ones(len(y)) if weights is None else weights

    def signs(self, y: FloatArray) -> FloatArray:
        return np.asarray(np.sign(y))

    def origin(self, y: FloatArray, v: FloatArray) -> float:
        level = float(np.log(v[y > 0].sum()) - np.log(v[y < 0].sum()))
        if _has_no_shift(y) or not np.isfinite(level):
            return level
        signs, size = self.signs(y), np.inf
        for _ in range(NEWTON_STEPS):  # a step of at most 1 lowers the loss, because its third derivative is small
            margins = signs * level
            slope, curvature = self.negative_gradient(margins, y, v) @ signs, self.curvatures(margins, y, v).sum()
            step, before = float(np.clip(slope / curvature, -1.0, 1.0)), size
            size = abs(step)
            if size == 0.0 or (size < SMALL_RANGE and size >= before):
                break
            level += step
        return level

    def _shift(self, m: Any, y: FloatArray) -> Any:
        """Return margins with the shift by the offset, in the precision of m."""
        return m if _has_no_shift(y) else m + np.log(np.abs(y).astype(m.dtype))

    def _shift_rounding(self, m: Any, y: FloatArray, eps: float) -> Any:
        """Return bounds on the rounding errors of `_shift`; 0 without a shift."""
        return 0.0 if _has_no_shift(y) else 2.0 * eps * (np.abs(m) + np.abs(np.log(np.abs(y))) + 1.0)

    def losses(self, m: Any, y: FloatArray) -> Any:
        return np.logaddexp(0.0, -self._shift(m, y))

    def _shares(self, m: Any) -> Any:
        """Return `1 / (1 + exp(m))`."""
        if m.dtype != np.float64:
            return np.exp(-np.logaddexp(m.dtype.type(0.0), m))
        from scipy.special import expit  # squared-error loss does not need this import

        return expit(-m)

    def negative_gradient(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * self._shares(self._shift(m, y))

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        m = self._shift(m, y)
        return v * self._shares(m) * self._shares(-m)  # `1 - share` would lose the digits of a small factor

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        return off + self._shift_rounding(m, y, eps) + 8.0 * eps * self.losses(m, y)

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        m = self._shift(m, y)
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.where(np.isfinite(reach), np.logaddexp(0.0, reach - m) - np.logaddexp(0.0, -m), np.inf)
        return np.maximum(rise, 0.0)

    def recession_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(y)), np.full(len(y), np.inf)

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        least, most = np.where(y > 0.0, low, -high), np.where(y > 0.0, high, -low)
        with np.errstate(over="ignore"):
            lower, upper = self.losses(most, y), self.losses(least, y)
            if _has_no_shift(y):
                return lower, upper
            off_lower, off_upper = (self._shift_rounding(m, y, ROUNDING) for m in (most, least))
            return np.maximum(lower - off_lower, 0.0), upper + off_upper

    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        # The ratio rises and then falls in t, so its minimum is at a bound of the range (docs/theory/glm.md, section
        # 1). If a bound is so near that differences lose digits, `worst_ratio` times the curvature at m is better.
        at, slope, off = self.losses(m, y), -self.negative_gradient(m, y), self._shift_rounding(m, y, ROUNDING)
        curvature = self.curvatures(m, y)
        ends = np.full(m.shape, np.inf)
        for t in (low, high):
            D = t - m
            there = self.losses(t, y)
            noise = 16.0 * ROUNDING * (there + at + np.abs(slope * D) + ROUNDING * (np.abs(m) + np.abs(t)))
            noise += 2.0 * ROUNDING * (np.abs(m) + np.abs(t)) * np.abs(slope)
            noise += 2.0 * (off + self._shift_rounding(t, y, ROUNDING)) * np.minimum(there + at, 1.0)  # l' <= l
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = 2.0 * (there - at - slope * D - noise) / D**2
            ratio = np.maximum(np.where(np.isfinite(ratio), ratio, 0.0), curvature * worst_ratio(np.abs(D)))
            ends = np.minimum(ends, ratio)
        inside = (low <= m) & (m <= high)
        return np.asarray(np.where(inside, np.minimum(ends, curvature), ends) * (1.0 - 1e-11))


def _has_no_shift(y: FloatArray) -> bool:
    """Return True if targets of logistic loss are -1 and 1, so no row has an offset."""
    return not np.count_nonzero(np.abs(y) != 1.0)


LOG_LOSS = LogLoss()


class SquaredError(RowLoss):
    """Squared error `l(t) = (t - y)^2` of a prediction t.

    Searches with squared-error loss use moments of the training rows (`problem.problem`), not this class. Errors of
    rows, baselines and quadratic approximations use this class, as they use every row loss.

    Examples
    --------
    >>> SquaredError().losses(np.zeros(3), np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 4.0]
    """

    name = "squared"

    def find_code(self, y: FloatArray) -> int:
        """Raise `BadInput`, since no kernel fits squared errors by rows."""
        raise BadInput(f"loss {self.name}: not supported here, because its fits use moments instead of row losses")

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.isfinite(y).all():
            raise BadInput("loss squared: needs finite targets")

    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        return y, np.ones(len(y)) if weights is None else weights

    def origin(self, y: FloatArray, v: FloatArray) -> float:
        middle = float(v @ y / v.sum())
        return middle + float(v @ (y - middle) / v.sum())  # a mean is rounded

    def losses(self, m: Any, y: FloatArray) -> Any:
        return (m - y) ** 2

    def negative_gradient(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (2.0 * (y - m))

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * np.full_like(m, 2.0)

    def gradient_scale(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (2.0 * (np.abs(m) + np.abs(y) + 1.0))

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        e = off + eps * (np.abs(m) + np.abs(y))
        return e * (2.0 * np.abs(m - y) + e) + 4.0 * eps * self.losses(m, y)

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        return np.asarray(reach * (2.0 * np.abs(m - y) + reach))

    def recession_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(y)), np.zeros(len(y))

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        nearest = np.clip(y, low, high)
        return (nearest - y) ** 2, np.maximum((low - y) ** 2, (high - y) ** 2)

    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        return np.full(np.shape(m), 2.0)


class PoissonLoss(RowLoss):
    """Poisson loss with log link: the loss of a row is half its deviance, `l(t) = exp(t) - y t - (y - y log y)`.

    The row has the weight w, the exposure e and the rate `y = count / e`; t is its linear predictor without the offset
    `log e`. Up to constants, both the negative log-likelihood `w (e exp(t) - count (t + log e))` and half the deviance
    equal `(w e) l(t)`. Exposures therefore become weights, targets are rates, and no offset is needed. The minimum of l
    is 0, at `t = log y`, and `l'' = l''' = exp(t)`.

    Examples
    --------
    >>> PoissonLoss().losses(np.zeros(3), np.array([0.0, 1.0, 2.0])).round(6).tolist()
    [1.0, 0.0, 0.386294]
    """

    name = "poisson"

    def find_code(self, y: FloatArray) -> int:
        return POISSON_CODE

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.all((y >= 0.0) & np.isfinite(y)):
            raise BadInput("loss poisson: the target must contain counts (numbers of at least 0)")
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

    def negative_gradient(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return -v * (np.where(y > 0.0, y, 1.0) * self._level(m, y)[1])

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        with np.errstate(over="ignore"):
            return v * np.exp(m)

    def gradient_scale(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * (self.curvatures(m, y) + y)

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        level = self._level(m, y)[0]
        e, steep = off + 2.0 * eps * (np.abs(m) + np.abs(level) + 1.0), np.abs(self.negative_gradient(m, y))
        return steep * e + self.curvatures(m, y) * e * e + 10.0 * eps * (steep + y * np.abs(m - level))

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.abs(self.negative_gradient(m, y)) * reach + np.exp(m) * (np.expm1(reach) - reach)
        return np.where(np.isfinite(rise), rise, np.inf)

    def recession_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, 0.0, -np.inf), np.zeros(len(y))

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            nearest, ends = np.clip(np.log(y), low, high), []
            for t in (nearest, low, high):
                off = self.roundings(t, y, 0.0, ROUNDING)
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


ROW_LOSSES = {loss.name: loss for loss in (SquaredError(), LOG_LOSS, PoissonLoss())}


def row_loss(loss: Loss) -> RowLoss:
    """Return the loss of one row for a keyword.

    Parameters
    ----------
    loss : Loss
        Loss of the fits.

    Raises
    ------
    BadInput
        If single rows have no loss.
    """
    if loss not in ROW_LOSSES:
        raise BadInput(
            f"loss {loss}: not supported here, because single rows have no loss; use solve, path, near or fit"
        )
    return ROW_LOSSES[loss]


def encode_row_targets(data: StandardData, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the targets and weights of some rows in the form of their loss.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Rows.
    """
    return encode_dataset_targets(row_loss(data.loss), data.dataset, rows)


def encode_dataset_targets(loss: RowLoss, dataset: Dataset, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the targets and weights of some rows of the data in the form of a loss."""
    return loss.encode_targets(dataset.y[rows], *dataset.weights_and_exposures(rows))
