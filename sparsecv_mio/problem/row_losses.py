"""The interface of a row loss: a smooth convex `l >= 0` of the margin m with `|l'''| <= l''`.

The margin is `sign z'theta`, for a row z and coefficients theta; l may also depend on the target y of the row.
docs/theory/glm.md, section 11, states the properties that each method must have. The module uses plain numpy, in the
precision of its arguments; `kernels/row_losses` has the compiled versions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput

EPS = float(np.finfo(float).eps)
NEWTON_STEPS, HALVINGS, RADII_TRIED = 100, 50, 120  # maximum steps of a fit, halvings of a step, radii tried for a ball
FAR_OFF = 0.5  # share of the objective; for larger squared decrements longer steps are tried
SMALL_RANGE = 1e-3  # range below which `worst_ratio` uses the first terms of its series


class RowLoss(ABC):
    """A row loss; a subclass is enough for fits, branching and verification with a new loss.

    Attributes
    ----------
    name : str
        Name in options.
    code : int
        Code in the kernels (`kernels/row_losses`).
    steepest : float
        Largest absolute slope; inf if it is unbounded.
    most_pull : float
        Upper bound on half of `-t l'(t)` over all predictors t and targets; no fit has a larger penalty for each unit
        of row weight. inf if there is no bound.
    """

    name: str
    code: int
    steepest: float = np.inf
    most_pull: float = np.inf

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
    def falls(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return `-v l'(m)`."""

    @abstractmethod
    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return `v l''(m)`."""

    def sizes(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        """Return the scale of the rounding of `v l'(m)`, by default its size; at least `v l''(m)`."""
        return self.falls(m, y, v)

    @abstractmethod
    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        """Return bounds on the errors of losses if margins have errors `off` and arithmetic rounds to `eps`."""

    @abstractmethod
    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the largest change of l within `reach` of m; `reach` may be inf."""

    @abstractmethod
    def recedes(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
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
    """Logistic loss, `l(m) = log(1 + exp(-m))`; targets are labels -1 and 1, which are the signs of their rows.

    Examples
    --------
    >>> LogLoss().losses(np.zeros(1), np.ones(1)).round(6).tolist()
    [0.693147]
    """

    name = "logistic"
    code = 0
    steepest = 1.0
    most_pull = 0.1393  # half the maximum of `m / (1 + exp(m))`

    def check(self, y: FloatArray, intercept: bool) -> None:
        if not np.all(np.abs(y) == 1.0):
            raise BadInput("loss logistic: needs labels -1 and +1; map the two values of the target to these labels")
        if intercept and (len(y) == 0 or np.all(y == y[0])):
            raise BadInput(
                "loss logistic: all rows with a positive weight are of one class, so the intercept has no finite "
                "optimum"
            )

    def encode_targets(
        self, y: FloatArray, weights: FloatArray | None = None, exposure: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, 1.0, -1.0), np.ones(len(y)) if weights is None else weights

    def signs(self, y: FloatArray) -> FloatArray:
        return y

    def origin(self, y: FloatArray, v: FloatArray) -> float:
        return float(np.log(v[y > 0].sum()) - np.log(v[y < 0].sum()))

    def losses(self, m: Any, y: FloatArray) -> Any:
        return np.logaddexp(0.0, -m)

    def _shares(self, m: Any) -> Any:
        """Return `1 / (1 + exp(m))`."""
        if m.dtype != np.float64:
            return np.exp(-np.logaddexp(m.dtype.type(0.0), m))
        from scipy.special import expit  # squared-error loss does not need this import

        return expit(-m)

    def falls(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        return v * self._shares(m)

    def curvatures(self, m: Any, y: FloatArray, v: Any = 1.0) -> Any:
        shares = self._shares(m)
        return v * shares * (1.0 - shares if m.dtype == np.float64 else self._shares(-m))

    def roundings(self, m: Any, y: FloatArray, off: Any, eps: float) -> Any:
        return off + 8.0 * eps * self.losses(m, y)

    def rises(self, m: FloatArray, y: FloatArray, reach: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.where(np.isfinite(reach), np.logaddexp(0.0, reach - m) - np.logaddexp(0.0, -m), np.inf)
        return np.maximum(rise, 0.0)

    def recedes(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(y)), np.full(len(y), np.inf)

    def bound_losses(self, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        least, most = np.where(y > 0.0, low, -high), np.where(y > 0.0, high, -low)
        with np.errstate(over="ignore"):
            return np.logaddexp(0.0, -most), np.logaddexp(0.0, -least)

    def least_curvature(self, m: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> FloatArray:
        # The ratio rises and then falls in t, so its minimum is at a bound of the range (docs/theory/glm.md, section
        # 1). If a bound is so near that differences lose digits, `worst_ratio` times the curvature at m is better.
        at, slope = np.logaddexp(0.0, -m), -self._shares(m)
        curvature = self._shares(-m) * self._shares(m)
        ends = np.full(m.shape, np.inf)
        for t in (low, high):
            D = t - m
            there = np.logaddexp(0.0, -t)
            noise = 16.0 * EPS * (there + at + np.abs(slope * D) + EPS * (np.abs(m) + np.abs(t)))
            noise += 2.0 * EPS * (np.abs(m) + np.abs(t)) * np.abs(slope)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = 2.0 * (there - at - slope * D - noise) / D**2
            ratio = np.maximum(np.where(np.isfinite(ratio), ratio, 0.0), curvature * worst_ratio(np.abs(D)))
            ends = np.minimum(ends, ratio)
        inside = (low <= m) & (m <= high)
        return np.asarray(np.where(inside, np.minimum(ends, curvature), ends) * (1.0 - 1e-11))


LOG_LOSS = LogLoss()
