"""Losses of one row: values, derivatives, and the conjugate and smoothness constant for convex duality.

All losses except the Poisson loss have the minimum 0, so the conjugates of these losses are 0 at 0. A row whose dual
variable is 0 therefore adds nothing to the dual value. GLRU removes rows from a problem by setting their dual variables
to 0. All arrays have the same shape and are treated elementwise. The argument of the conjugate is `u`, which is
`-alpha` in the dual problem with dual variables alpha.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput, match_keyword


class SmoothLoss(ABC):
    """A loss `l_y(t)` of a response y and a linear prediction t: the protocol of IACV, also for custom losses.

    Subclasses define the loss and its first two derivatives in t, elementwise with broadcasting. They also state
    `smoothness`, the largest second derivative (infinite unless stated), and `labels` (True if y must be -1 or +1).
    """

    name: str = "custom"
    smoothness: float = np.inf
    labels: bool = False

    @abstractmethod
    def value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Return `l_y(t)`."""

    @abstractmethod
    def derivative(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Return `l_y'(t)`."""

    @abstractmethod
    def curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Return `l_y''(t)`; at a kink of the derivative, one of the one-sided values."""

    def check(self, y: FloatArray) -> None:
        """Check that the loss is defined for every response.

        Raises
        ------
        BadInput
            If a loss requires labels and a value is neither -1 nor +1.
        """
        if self.labels and not np.all(np.abs(y) == 1.0):
            raise BadInput(
                f"loss {self.name!r} needs labels -1 and +1; map the two values of the target to these labels"
            )


class ConjugateLoss(SmoothLoss):
    """A smooth loss with its conjugate: the protocol of GLRU (docs/oracles/glru.md).

    Subclasses also state `attained` (False if the minimum 0 is only approached as t grows).
    """

    attained: bool = True

    @abstractmethod
    def conjugate_ends(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest t with `l_y'(t) = u`: the subdifferential of the conjugate.

        Outside the domain, and where the slope of the conjugate is infinite, both are -inf (to the left) or +inf.
        """

    @abstractmethod
    def dual_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the interval of alpha with `l_y*(-alpha) < inf`: the box (25) of the paper."""

    @abstractmethod
    def ray(self, alpha: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slope at s = 1 of `s -> l_y*(-s alpha)`, and q with second derivative <= q / s on (0, 1]."""

    @abstractmethod
    def residual(self, t: FloatArray, alpha: FloatArray, y: FloatArray) -> FloatArray:
        """Return the Fenchel-Young residual `l_y(t) + l_y*(-alpha) + alpha t >= 0`; 0 iff `alpha = -l_y'(t)`.

        It is computed as a sum of nonnegative terms, so small gaps have full relative accuracy.

        Parameters
        ----------
        t, alpha, y : (k,) arrays
            Predictions, dual variables and responses.

        Returns
        -------
        (k,) array
            The residuals; +inf outside the domain of the conjugate.
        """


def _positive_number(value: float, what: str) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise BadInput(f"{what} must be a positive number, not {value!r}")


class ClippedSquare(ConjugateLoss):
    """A loss with `l_y'(t) = clip(smoothness (t - y), low_y, high_y)`: a square about y, linear or flat farther away.

    Its conjugate is that of the square, `u^2 / (2 smoothness) + u y`, on `[low_y, high_y]`. Subclasses give the clip.
    """

    @abstractmethod
    def slope_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest derivative, infinite on a side where the loss stays quadratic."""

    def value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        slope = self.derivative(t, y)
        return np.asarray(slope * (t - y - 0.5 * slope / self.smoothness))

    def derivative(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(self.smoothness * (t - y), *self.slope_range(y))

    def curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        low, high = self.slope_range(y)
        slope = self.smoothness * (t - y)
        return np.where((slope > low) & (slope < high), self.smoothness, 0.0)

    def conjugate_ends(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        (low, high), t = self.slope_range(y), u / self.smoothness + y
        least, most = np.where(u > low, t, -np.inf), np.where(u < high, t, np.inf)
        return np.where(u > high, np.inf, least), np.where(u < low, -np.inf, most)

    def dual_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.slope_range(y)
        return -high, -low

    def ray(self, alpha: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        move = alpha / self.smoothness
        return alpha * (move - y), alpha * move

    def residual(self, t: FloatArray, alpha: FloatArray, y: FloatArray) -> FloatArray:
        (low, high), slope, straight = self.slope_range(y), self.derivative(t, y), self.smoothness * (t - y)
        off = slope + alpha
        beyond = np.where(slope == straight, 0.0, np.maximum((straight - slope) * off, 0.0))
        return np.where((-alpha >= low) & (-alpha <= high), (0.5 * off * off + beyond) / self.smoothness, np.inf)


@dataclass(frozen=True)
class Squared(ClippedSquare):
    """`l_y(t) = smoothness (t - y)^2 / 2`, `l_y*(u) = u^2 / (2 smoothness) + u y`; y any number.

    Parameters
    ----------
    smoothness : float
        Factor > 0: 1 for half the square (GLRU), 2 for the square (IACV, the objective f of theory section 0).

    Examples
    --------
    >>> Squared(1.0).value(np.array([3.0]), np.array([1.0])).tolist()
    [2.0]
    """

    smoothness: float
    name = "squared"

    def __post_init__(self) -> None:
        _positive_number(self.smoothness, "the smoothness of the squared loss")

    def slope_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)


@dataclass(frozen=True)
class Huber(ClippedSquare):
    """`l_y(t) = ((t - y)^2 - ((|t - y| - width)_+)^2) / 2`; its conjugate is the squared loss's on `|u| <= width`.

    Parameters
    ----------
    width : float
        Distance from y at which the loss becomes linear (the paper's gamma), > 0.

    Examples
    --------
    >>> Huber(1.0).value(np.array([0.5, 3.0]), np.zeros(2)).tolist()
    [0.125, 2.5]
    """

    width: float = 1.0
    smoothness = 1.0
    name = "huber"

    def __post_init__(self) -> None:
        _positive_number(self.width, "the width of the Huber loss")

    def slope_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -self.width), np.full_like(y, self.width)


@dataclass(frozen=True)
class SquaredHinge(ClippedSquare):
    """`l_y(t) = ((1 - y t)_+)^2`; `l_y*(u) = u^2 / 4 + y u` for `y u <= 0`.

    Examples
    --------
    >>> SquaredHinge().value(np.array([-1.0, 2.0]), np.ones(2)).tolist()
    [4.0, 0.0]
    """

    smoothness = 2.0
    labels = True
    name = "squared_hinge"

    def slope_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, -np.inf, 0.0), np.where(y > 0.0, 0.0, np.inf)


@dataclass(frozen=True)
class SmoothedHinge(ClippedSquare):
    """Hinge with a quadratic piece of length `width`: 0 for `y t >= 1`, `(1 - y t)^2 / (2 width)`, then linear.

    The conjugate is `width u^2 / 2 + y u` for `-1 <= y u <= 0`. (Printed in the paper as
    `((width y u + y)^2 - 1) / (2 width)`, which is wrong for y = -1.)

    Parameters
    ----------
    width : float
        Length of the quadratic piece in t (the paper's gamma), > 0; the loss is (1 / width)-smooth.

    Examples
    --------
    >>> SmoothedHinge(0.5).value(np.array([-1.0, 0.75]), np.ones(2)).tolist()
    [1.75, 0.0625]
    """

    width: float = 1.0
    labels = True
    name = "smoothed_hinge"

    def __post_init__(self) -> None:
        _positive_number(self.width, "the width of the smoothed hinge loss")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """`1 / width`."""
        return 1.0 / self.width

    def slope_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)


@dataclass(frozen=True)
class Logistic(ConjugateLoss):
    """`l_y(t) = log(1 + exp(-y t))`; with `q = -y u` in [0, 1]: `l_y*(u) = q log q + (1 - q) log(1 - q)`.

    Examples
    --------
    >>> Logistic().value(np.zeros(1), np.ones(1)).round(6).tolist()
    [0.693147]
    """

    smoothness = 0.25
    labels = True
    attained = False
    name = "logistic"

    def value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -y * t)

    def derivative(self, t: FloatArray, y: FloatArray) -> FloatArray:
        z = y * t
        with np.errstate(over="ignore"):  # with exp = inf the slope is its limit, 0
            np.exp(z, out=z)  # vectorised, unlike scipy's expit
        z += 1.0
        return np.divide(-y, z, out=z)

    def curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        e = np.exp(-np.abs(t))
        return np.asarray(e / (1.0 + e) ** 2)

    def conjugate_ends(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        share = np.clip(-y * u, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            t = y * (np.log1p(-share) - np.log(share))
        return t, t

    def dual_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def ray(self, alpha: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        share = np.clip(y * alpha, 0.0, 1.0)
        complement = np.maximum(1.0 - share, 1e-100)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(share > 0.0, share * (np.log(share) - np.log(complement)), 0.0)
        return slope, share / complement

    def residual(self, t: FloatArray, alpha: FloatArray, y: FloatArray) -> FloatArray:
        # A Bernoulli divergence between the shares y alpha and p = expit(-y t): computed without cancellation.
        share, margin = y * alpha, y * t
        inside = (share >= 0.0) & (share <= 1.0)
        safe = np.where(inside, share, 0.0)
        p = expit(-margin)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            direct = xlogy(safe, safe) + xlog1py(1.0 - safe, -safe) + np.logaddexp(0.0, -margin) + safe * margin
            step = safe - p
            near = np.abs(step) < 1e-3 * p * (1.0 - p)
            # Series of the divergence about p: within this radius the omitted terms are below a relative 2e-7.
            series = 0.5 * step**2 / (p * (1.0 - p)) * (1.0 + step * (2.0 * p - 1.0) / (3.0 * p * (1.0 - p)) + 2e-7)
        return np.where(inside, np.where(near, series, np.maximum(direct, 0.0)), np.inf)


@dataclass(frozen=True)
class Poisson(SmoothLoss):
    """`exp(t) - y t`, y >= 0: the negative log-likelihood without its constant `log y!`; curvature unbounded."""

    name = "poisson"

    def value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(t) - y * t)

    def derivative(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(t) - y)

    def curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(t)

    def check(self, y: FloatArray) -> None:
        if np.any(y < 0.0):
            raise BadInput("loss poisson: the target must be counts, without negative values")


CERTIFIED: dict[str, Callable[..., ConjugateLoss]] = {
    "squared": lambda: Squared(1.0), "huber": Huber, "squared_hinge": SquaredHinge, "smoothed_hinge": SmoothedHinge,
    "logistic": Logistic,
}  # fmt: skip
"""Keywords of the losses that GLRU supports; GLRU needs the conjugate of a loss."""

SMOOTH: dict[str, Callable[[], SmoothLoss]] = {
    "logistic": Logistic, "squared": lambda: Squared(2.0), "poisson": Poisson,
}  # fmt: skip
"""Keywords of the losses that IACV supports; IACV needs two derivatives of a loss."""


def make_loss(name: str, width: float | None = None) -> ConjugateLoss:
    """Return the GLRU loss with the given name.

    Parameters
    ----------
    name : {"squared", "huber", "squared_hinge", "smoothed_hinge", "logistic"}
        Name of the loss; `squared` is half the square.
    width : float, optional
        Parameter of `huber` and `smoothed_hinge`, 1 by default.

    Raises
    ------
    BadInput
        If the name is unknown, or the loss has no width.

    Examples
    --------
    >>> make_loss("huber", 0.5)
    Huber(width=0.5)
    """
    kind = CERTIFIED[match_keyword(name, CERTIFIED, "loss")]
    if width is None:
        return kind()
    if kind is not Huber and kind is not SmoothedHinge:
        raise BadInput(f"loss {name!r} has no width; leave the width out")
    return kind(width)
