"""Penalties `pi(theta)`: smooth ones for gradient steps, proximable ones for proximal steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray


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
    to k: the root of a piecewise linear equation, found exactly from its 2p sorted break points. O(p log p) per row.
    `kernels.perspective.proximal_step` is the same map for one row and weights 1; a test holds the two equal.

    Examples
    --------
    >>> import numpy as np
    >>> float(KSupport(2).value(np.array([3.0, 4.0, 0.0])))
    25.0
    """

    k: int
    weights: FloatArray | None = None
    name: str = "k-support"
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
    """(m, p) `z = clip(a t - b, 0, 1)` with `sum_j z_j = min(k, number of a_j > 0)`, one t per row of a; a, b >= 0.

    The sum is piecewise linear in t: bisection over the sorted break points finds the piece, whose line is then summed
    anew (running sums would carry rounding errors from large entries to small ones).
    """
    z = (a > 0.0).astype(np.float64)
    rows = np.flatnonzero(z.sum(axis=1) > k)
    if rows.size == 0:
        return z
    a = a[rows]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        begin = np.where(a > 0.0, b / a, np.inf)
        end = np.where(a > 0.0, (1.0 + b) / a, np.inf)
    pieces = np.sort(np.concatenate([np.zeros((rows.size, 1)), begin, end], axis=1), axis=1)
    low, high = np.zeros(rows.size, dtype=np.intp), np.full(rows.size, pieces.shape[1] - 1)
    each = np.arange(rows.size)
    while np.any(high - low > 1):  # the sum is below k at break point `low` and reaches it by `high`
        middle = (low + high) // 2
        t = pieces[each, middle]
        finite = np.where(np.isfinite(t), t, 0.0)
        reached = ~np.isfinite(t) | (np.clip(a * finite[:, None] - b, 0.0, 1.0).sum(axis=1) >= k)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    left, right = pieces[each, low][:, None], pieces[each, high][:, None]
    rising = (begin <= left) & (end >= right)
    missing = k - (end <= left).sum(axis=1) + np.where(rising, b, 0.0).sum(axis=1)
    slope = np.where(rising, a, 0.0).sum(axis=1)
    t = np.divide(missing, slope, out=right[:, 0].copy(), where=slope > 0.0)
    z[rows] = np.clip(a * np.clip(t[:, None], left, right) - b, 0.0, 1.0)
    return z
