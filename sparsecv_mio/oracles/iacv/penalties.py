"""Penalties `pi(theta)`: smooth ones for gradient steps, proximable ones for proximal steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.data.dataset import FloatArray


class Penalty(ABC):
    """`pi(theta)`, to be multiplied by lam: the protocol to implement for a new one.

    `smooth` penalties give `gradient`, `hessian_times` and `bound`; `proximable` ones give `prox`. Both may hold.
    """

    name: str = "custom"
    smooth: bool = False
    proximable: bool = False

    @abstractmethod
    def value(self, theta: FloatArray) -> FloatArray:
        """(...) values for parameters (..., p)."""

    def gradient(self, theta: FloatArray) -> FloatArray:
        """(..., p) gradients of parameters (..., p)."""
        raise NotImplementedError

    def hessian_times(self, theta: FloatArray, D: FloatArray) -> FloatArray:
        """(k, p) rows of D times the Hessian at one theta (p,)."""
        raise NotImplementedError

    def bound(self) -> float:
        """Bound on the largest eigenvalue of the Hessian of a smooth penalty."""
        raise NotImplementedError

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        """(..., p) rows `argmin_b 1/2 ||b - v||^2 + weight * pi(b)`."""
        raise NotImplementedError


def _scaled(weights: FloatArray | None, D: FloatArray) -> FloatArray:
    return D if weights is None else weights * D


@dataclass(frozen=True, eq=False)
class Ridge(Penalty):
    """`sum_j w_j theta_j^2` (the paper's `||theta||_2^2`, no half), w_j = 1 unless given; 0 leaves a column free.

    Examples
    --------
    >>> import numpy as np
    >>> Ridge().prox(np.array([3.0]), 1.0).tolist()
    [1.0]
    """

    weights: FloatArray | None = None
    name: str = "ridge"
    smooth: bool = True
    proximable: bool = True

    def value(self, theta: FloatArray) -> FloatArray:
        return np.asarray(_scaled(self.weights, theta**2).sum(axis=-1))

    def gradient(self, theta: FloatArray) -> FloatArray:
        return 2.0 * _scaled(self.weights, theta)

    def hessian_times(self, theta: FloatArray, D: FloatArray) -> FloatArray:
        return 2.0 * _scaled(self.weights, D)

    def bound(self) -> float:
        return 2.0 if self.weights is None else 2.0 * float(np.max(self.weights, initial=0.0))

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        return np.asarray(V / (1.0 + 2.0 * weight * (1.0 if self.weights is None else self.weights)))


@dataclass(frozen=True, eq=False)
class L1(Penalty):
    """`sum_j w_j |theta_j|`, w_j = 1 unless given.

    Examples
    --------
    >>> import numpy as np
    >>> L1().prox(np.array([3.0, -0.5]), 1.0).tolist()
    [2.0, -0.0]
    """

    weights: FloatArray | None = None
    name: str = "l1"
    smooth: bool = False
    proximable: bool = True

    def value(self, theta: FloatArray) -> FloatArray:
        return np.asarray(_scaled(self.weights, np.abs(theta)).sum(axis=-1))

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        cut = weight if self.weights is None else weight * self.weights
        return np.asarray(np.copysign(np.maximum(np.abs(V) - cut, 0.0), V))


@dataclass(frozen=True, eq=False)
class KSupport(Penalty):
    """Squared k-support norm `Omega_k(theta) = min { sum_j w_j theta_j^2 / z_j : 0 <= z <= 1, sum z <= k }`.

    With the squared loss and lam it is the perspective relaxation (P) of theory section 1. With s the prox weight, its
    prox is `b_j = v_j z_j / (z_j + 2 s w_j)`, `z_j = clip(sqrt(w_j) |v_j| t - 2 s w_j, 0, 1)`, t such that the z add up
    to k: the root of a piecewise linear equation, found exactly by sorting its 2p break points. O(p log p) a row.

    Examples
    --------
    >>> import numpy as np
    >>> float(KSupport(2).value(np.array([3.0, 4.0, 0.0])))
    25.0
    """

    k: int
    weights: FloatArray | None = None
    name: str = "k-support"
    smooth: bool = False
    proximable: bool = True

    def value(self, theta: FloatArray) -> FloatArray:
        size = np.abs(theta) if self.weights is None else np.sqrt(self.weights) * np.abs(theta)
        z = _fill(np.atleast_2d(size), np.zeros(size.shape[-1]), self.k)
        ratio = np.divide(np.atleast_2d(size) ** 2, z, out=np.zeros_like(z), where=z > 0.0)
        return np.asarray(ratio.sum(axis=-1).reshape(size.shape[:-1]))

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        w = np.ones(V.shape[-1]) if self.weights is None else self.weights
        rows = np.atleast_2d(V)
        shift = 2.0 * weight * w
        z = _fill(np.sqrt(w) * np.abs(rows), shift, self.k)
        free = z + shift
        out = np.divide(rows * z, free, out=rows.copy(), where=free > 0.0)  # w_j = 0: the column is not penalised
        return np.asarray(out.reshape(V.shape))


def _fill(a: FloatArray, b: FloatArray, k: int) -> FloatArray:
    """(m, p) `z = clip(a t - b, 0, 1)` with `sum_j z_j = min(k, number of a_j > 0)`, one t per row of a."""
    positive = a > 0.0
    safe = np.where(positive, a, 1.0)
    starts = np.where(positive, b / safe, np.inf)
    ends = np.where(positive, (1.0 + b) / safe, np.inf)
    breaks = np.concatenate([starts, ends], axis=1)
    slopes = np.concatenate([np.where(positive, a, 0.0), np.where(positive, -a, 0.0)], axis=1)
    order = np.argsort(breaks, axis=1, kind="stable")
    breaks = np.take_along_axis(breaks, order, axis=1)
    slope = np.cumsum(np.take_along_axis(slopes, order, axis=1), axis=1)
    gaps = np.diff(np.where(np.isfinite(breaks), breaks, 0.0), axis=1, append=0.0)
    reached = np.cumsum(np.where(np.isfinite(np.roll(breaks, -1, axis=1)), slope * gaps, 0.0)[:, :-1], axis=1)
    full = positive.sum(axis=1) <= k
    z = positive.astype(np.float64)
    rows = np.flatnonzero(~full)
    if rows.size:
        at = (reached[rows] < k).sum(axis=1)  # the sum reaches k in the segment that begins at this break point
        before = np.where(at > 0, np.take_along_axis(reached[rows], np.maximum(at - 1, 0)[:, None], axis=1)[:, 0], 0.0)
        rise = slope[rows, at]
        t = breaks[rows, at] + np.divide(k - before, rise, out=np.zeros_like(rise), where=rise > 0.0)
        z[rows] = np.clip(a[rows] * t[:, None] - b, 0.0, 1.0)
    return z
