"""Penalties of coefficients: values, gradients, proximal steps, and the conjugates that convex duality needs.

:class:`Regularizer` is the ridge, l1 or elastic-net penalty of all oracles, and :class:`KSupport` is the squared
k-support norm. With `q = clip(c, -l1, l1)` the conjugate of `rho(w) = ridge w^2 / 2 + l1 |w|` is

    rho*(c)  = (c - q)^2 / (2 ridge)        (ridge = 0: zero for |c| <= l1, +inf beyond)
    drho*(c) = {(c - q) / ridge}            (ridge = 0: 0 inside, [0, inf] at c = l1, [-inf, 0] at c = -l1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput


class Penalty(ABC):
    """A penalty `pi(theta)`, to be multiplied by lam; the base class of new penalties.

    Smooth penalties (`is_smooth`) implement `gradient`, `hessian_times` and `bound`; `proximable` penalties implement
    `prox`. A penalty may be both.
    """

    name: str = "custom"
    is_smooth: bool = False
    proximable: bool = False

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        """Return `pi(theta)` of one parameter vector (p,)."""

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Return the (..., p) gradients of parameter vectors (..., p)."""
        raise NotImplementedError

    def hessian_times(self, theta: FloatArray, D: FloatArray) -> FloatArray:
        """Return the (k, p) rows of D times the Hessian at one theta (p,)."""
        raise NotImplementedError

    def bound(self) -> float:
        """Return an upper bound on the largest eigenvalue of the Hessian of a smooth penalty."""
        raise NotImplementedError

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        """Return the (..., p) rows `argmin_b 1/2 ||b - v||^2 + weight * pi(b)`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Regularizer(Penalty):
    """The penalty `rho_j(w) = ridge w^2 / 2 + l1 |w|`, and zero for the last column if it is an intercept.

    The penalty `sum theta_j^2` of IACV is `Regularizer(ridge=2.0)`, and `sum |theta_j|` is `Regularizer(0.0, l1=1.0)`.

    Parameters
    ----------
    ridge : float
        Weight of the squares, >= 0: the strong convexity (the paper's lambda).
    l1 : float
        Weight of the absolute values, >= 0 (the paper's kappa).
    intercept : bool
        True if the last column is an unpenalised intercept.

    Raises
    ------
    BadInput
        If a weight is negative or not finite, or both are zero.

    Examples
    --------
    >>> net = Regularizer(ridge=2.0, l1=1.0)
    >>> net.value(np.array([1.0, -2.0])), net.minimizer(np.array([3.0, -0.5])).tolist()
    (8.0, [1.0, 0.0])
    """

    ridge: float
    l1: float = 0.0
    intercept: bool = False
    proximable = True

    def __post_init__(self) -> None:
        for name, weight in (("ridge", self.ridge), ("l1", self.l1)):
            if not (np.isfinite(weight) and weight >= 0.0):
                raise BadInput(f"the {name} weight must be a number >= 0, not {weight!r}")
        if self.ridge == 0.0 and self.l1 == 0.0:
            raise BadInput("the regulariser is zero; give a positive ridge or l1 weight")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the penalty: `ridge`, `l1` or `elastic_net`."""
        return "ridge" if self.l1 == 0.0 else "elastic_net" if self.ridge > 0.0 else "l1"

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        """True if there is no l1 term."""
        return self.l1 == 0.0

    def penalised(self, d: int) -> int:
        """Return the number of penalised columns among d, which come first; d includes the intercept."""
        return d - 1 if self.intercept else d

    def value(self, w: FloatArray) -> float:
        """Return `sum_j rho_j(w_j)` of w (d,)."""
        v = w[: self.penalised(w.shape[0])]
        return float(0.5 * self.ridge * (v @ v) + self.l1 * np.abs(v).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        return self.ridge * (self._column_weights(theta.shape[-1]) * theta)

    def hessian_times(self, theta: FloatArray, D: FloatArray) -> FloatArray:
        return self.ridge * (self._column_weights(D.shape[-1]) * D)

    def bound(self) -> float:
        return self.ridge

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        each = self._column_weights(V.shape[-1])
        if self.l1 > 0.0:
            V = np.copysign(np.maximum(np.abs(V) - weight * self.l1 * each, 0.0), V)
        return np.asarray(V / (1.0 + weight * self.ridge * each)) if self.ridge > 0.0 else V

    def _column_weights(self, p: int) -> FloatArray | float:
        """Return a one for each of p columns, zero for an intercept."""
        return np.append(np.ones(p - 1), 0.0) if self.intercept else 1.0

    def conjugate_ends(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the union of `drho_j*` over `low_j <= c_j <= high_j`, the interval (12) of the paper.

        Parameters
        ----------
        low, high : (d,) arrays
            Bounds on c.

        Returns
        -------
        (d,) arrays
            Smallest and largest w_j; those of an intercept are infinite.
        """
        if self.ridge > 0.0:
            ends = self.minimizer(low), self.minimizer(high)
        else:
            ends = np.where(low > -self.l1, 0.0, -np.inf), np.where(high < self.l1, 0.0, np.inf)
        if self.intercept:
            ends[0][-1], ends[1][-1] = -np.inf, np.inf
        return ends

    def score_range(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) bounds of the domain of `rho_j*`: the interval (26) of the paper for `X_j' alpha / n`."""
        high = np.full(d, np.inf if self.ridge > 0.0 else self.l1)
        if self.intercept:
            high[-1] = 0.0
        return -high, high

    def minimizer(self, c: FloatArray) -> FloatArray:
        """Return a minimiser `w_j` of `rho_j(w) - c_j w`, in `drho_j*(c_j)`, (d,); zero for L1 and for an intercept."""
        if self.ridge == 0.0:
            return np.zeros_like(c)
        w = (c - np.clip(c, -self.l1, self.l1)) / self.ridge
        if self.intercept:
            w[..., -1] = 0.0
        return w

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return the Fenchel-Young residuals `rho_j(w_j) + rho_j*(c_j) - w_j c_j >= 0`, as sums of terms >= 0.

        Parameters
        ----------
        w, c : (..., d) arrays
            Coefficients, and points of the conjugate.

        Returns
        -------
        (..., d) array
            Residuals; +inf if c is outside of the domain of `rho*`; zero for an intercept, whose `c_d = 0` is not
            checked here.

        Notes
        -----
        The residual is `ridge/2 (w - drho*(c))^2 + l1 |w| - q w`, and so at least `ridge/2 (w - drho*(c))^2`, from
        which the ball of :mod:`.regions` follows.
        """
        q = np.clip(c, -self.l1, self.l1)
        miss = np.maximum(self.l1 * np.abs(w) - q * w, 0.0)
        if self.ridge > 0.0:
            miss = miss + 0.5 * self.ridge * np.square(w - (c - q) / self.ridge)
        else:
            miss = np.where(q == c, miss, np.inf)
        if self.intercept:
            miss[..., -1] = 0.0
        return miss


def make_regularizer(name: str, lam: float, l1: float | None = None, intercept: bool = False) -> Regularizer:
    """Return the regulariser with a given name.

    Parameters
    ----------
    name : {"ridge", "elastic_net", "l1"}
        Name; `l2` is another name of `ridge`.
    lam : float
        Weight of the squares for `ridge` and `elastic_net`, of the absolute values for `l1`; positive.
    l1 : float, optional
        Weight of the absolute values for `elastic_net`.
    intercept : bool
        True if the last column is an unpenalised intercept.

    Raises
    ------
    BadInput
        If the name is unknown or a weight is missing, superfluous or not positive.

    Examples
    --------
    >>> make_regularizer("ridge", 0.5)
    Regularizer(ridge=0.5, l1=0.0, intercept=False)
    """
    if not (np.isfinite(lam) and lam > 0.0):
        raise BadInput(f"lam must be a positive number, not {lam!r}")
    if name == "elastic_net":
        if l1 is None or not (np.isfinite(l1) and l1 > 0.0):
            raise BadInput("the elastic net needs a positive l1 weight in addition to lam; give an l1 weight")
        return Regularizer(lam, l1, intercept)
    if l1 is not None:
        raise BadInput(f"the regulariser {name!r} has the single weight lam; leave the l1 weight out")
    if name not in ("ridge", "l2", "l1"):
        raise BadInput(f"regulariser {name!r} is unknown; use ridge, elastic_net or l1")
    return Regularizer(0.0, lam, intercept) if name == "l1" else Regularizer(lam, 0.0, intercept)


@dataclass(frozen=True)
class KSupport(Penalty):
    """Squared k-support norm `Omega_k(theta) = min { sum_j theta_j^2 / z_j : 0 <= z <= 1, sum z <= k }`.

    With squared-error loss and lam it is the perspective relaxation (P) of theory section 1; columns with penalty
    weights w are divided by sqrt(w) beforehand. With s the prox weight, its prox is `b_j = v_j z_j / (z_j + 2 s)`,
    `z_j = clip(|v_j| t - 2 s, 0, 1)`, where t makes the z sum to k.

    Examples
    --------
    >>> import numpy as np
    >>> float(KSupport(2).value(np.array([3.0, 4.0, 0.0])))
    25.0
    """

    k: int
    name = "k-support"
    proximable = True

    def value(self, theta: FloatArray) -> float:
        from sparsecv_mio.kernels.k_support import support_norm

        return float(support_norm(np.abs(theta), theta.shape[0], self.k, np.empty(max(self.k, 1))))

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        from sparsecv_mio.kernels.k_support import prox_scale

        rows = np.atleast_2d(V)
        size, shift = np.abs(rows), 2.0 * weight
        z = (size > 0.0).astype(np.float64)
        for row in np.flatnonzero(z.sum(axis=1) > self.k):
            t = prox_scale(size[row], size.shape[1], self.k, shift)
            z[row] = np.clip(size[row] * t - shift, 0.0, 1.0)
        return np.asarray((rows * z / (z + shift) if shift > 0.0 else rows).reshape(V.shape))


def run_proximal_gradient(
    gradient: Callable[[FloatArray], FloatArray],
    prox: Callable[[FloatArray], FloatArray],
    begin: FloatArray,
    step: float,
    steps: int,
    tolerance: float,
) -> tuple[FloatArray, int]:
    """Minimise `q_i(z_i) + h(z_i)` for every row i by accelerated proximal gradient.

    Each q_i is convex with curvature at most `1 / step`. Momentum is dropped row by row when it points uphill, so rows
    of different conditioning do not slow each other down.

    Parameters
    ----------
    gradient : callable
        Function that returns the (k, p) gradients of q_i at the rows of a (k, p) array.
    prox : callable
        The (k, p) proximal map of `step * h`, row by row.
    begin : (k, p) array
        Starting points.
    step : float
        Step length.
    steps : int
        Maximum number of steps.
    tolerance : float
        Largest move of an entry, relative to `1 + max |z|`, at which to stop.

    Returns
    -------
    (k, p) array, int
        Last points and the number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> z, taken = run_proximal_gradient(lambda z: z - 3.0, lambda z: z, np.zeros((2, 1)), 1.0, 10, 1e-12)
    >>> z.ravel().tolist(), taken
    ([3.0, 3.0], 2)
    """
    z = begin.copy()
    ahead, momentum = z.copy(), np.ones(z.shape[0])
    for taken in range(1, steps + 1):
        new = prox(ahead - step * gradient(ahead))
        moved = float(np.abs(new - ahead).max(initial=0.0))
        uphill = np.einsum("ij,ij->i", ahead - new, new - z) > 0.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        push = np.where(uphill, 0.0, (momentum - 1.0) / following)
        momentum = np.where(uphill, 1.0, following)
        ahead = new + push[:, None] * (new - z)
        z = new
        if moved <= tolerance * (1.0 + float(np.abs(z).max(initial=0.0))):
            return z, taken
    return z, steps
