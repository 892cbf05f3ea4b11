"""Penalties of coefficients: values, gradients, proximal steps, and for convex duality their conjugates.

:class:`Regularizer` covers ridge, l1 and elastic net for all oracles, :class:`KSupport` the squared k-support norm.
With `q = clip(c, -l1, l1)` the conjugate of `rho(w) = ridge w^2 / 2 + l1 |w|` is

    rho*(c)  = (c - q)^2 / (2 ridge)        (ridge = 0: zero for |c| <= l1, +inf beyond)
    drho*(c) = {(c - q) / ridge}            (ridge = 0: 0 inside, [0, inf] at c = l1, [-inf, 0] at c = -l1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput


class Penalty(ABC):
    """`pi(theta)`, to be multiplied by lam: the protocol to implement for a new one.

    `smooth` penalties give `gradient`, `hessian_times` and `bound`; `proximable` ones give `prox`. Both may hold.
    """

    name: str = "custom"
    smooth: bool = False
    proximable: bool = False

    @abstractmethod
    def value(self, theta: FloatArray) -> FloatArray | float:
        """`pi(theta)` of one parameter (p,)."""

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


@dataclass(frozen=True)
class Regularizer(Penalty):
    """`rho_j(w) = ridge w^2 / 2 + l1 |w|`, and zero for the last column when it is an intercept.

    IACV's `sum theta_j^2` is `Regularizer(ridge=2.0)`, its `sum |theta_j|` is `Regularizer(0.0, l1=1.0)`.

    Parameters
    ----------
    ridge : float
        Weight of the squares, >= 0: the strong convexity (the paper's lambda).
    l1 : float
        Weight of the absolute values, >= 0 (the paper's kappa).
    intercept : bool
        The last column is an unpenalised intercept.
    weights : (p,) array, optional
        Of the columns, in both terms; 0 leaves a column free. IACV takes them, GLRU does not.

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
    weights: FloatArray | None = field(default=None, repr=False, compare=False)
    proximable = True

    def __post_init__(self) -> None:
        for name, weight in (("ridge", self.ridge), ("l1", self.l1)):
            if not (np.isfinite(weight) and weight >= 0.0):
                raise BadInput(f"the {name} weight must be a number >= 0, not {weight!r}")
        if self.ridge == 0.0 and self.l1 == 0.0:
            raise BadInput("the regulariser is zero: give a positive ridge or l1 weight")

    @property
    def name(self) -> str:  # type: ignore[override]
        """`ridge`, `l1` or `elastic_net`."""
        return "ridge" if self.l1 == 0.0 else "elastic_net" if self.ridge > 0.0 else "l1"

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether there is no l1 term."""
        return self.l1 == 0.0

    def penalised(self, d: int) -> int:
        """Return the number of penalised columns among d, the intercept's included: they come first."""
        return d - 1 if self.intercept else d

    def value(self, w: FloatArray) -> float:
        """`sum_j rho_j(w_j)` of w (d,)."""
        v = w[: self.penalised(w.shape[0])]
        u = v if self.weights is None else self.weights[: v.shape[0]] * v
        return float(0.5 * self.ridge * (u @ v) + self.l1 * np.abs(u).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        return self.ridge * (self._each(theta.shape[-1]) * theta)

    def hessian_times(self, theta: FloatArray, D: FloatArray) -> FloatArray:
        return self.ridge * (self._each(D.shape[-1]) * D)

    def bound(self) -> float:
        return self.ridge * (1.0 if self.weights is None else float(np.max(self.weights, initial=0.0)))

    def prox(self, V: FloatArray, weight: float) -> FloatArray:
        each = self._each(V.shape[-1])
        if self.l1 > 0.0:
            V = np.copysign(np.maximum(np.abs(V) - weight * self.l1 * each, 0.0), V)
        return np.asarray(V / (1.0 + weight * self.ridge * each)) if self.ridge > 0.0 else V

    def _each(self, p: int) -> FloatArray | float:
        """Weights of p columns, zero for an intercept."""
        if not self.intercept:
            return 1.0 if self.weights is None else self.weights
        each = np.ones(p) if self.weights is None else self.weights.copy()
        each[-1] = 0.0
        return each

    def conjugate_ends(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the union of `drho_j*` over `low_j <= c_j <= high_j`, the interval (12) of the paper.

        Parameters
        ----------
        low, high : (d,) arrays

        Returns
        -------
        (d,) arrays of the smallest and the largest w_j; an intercept's are infinite.
        """
        if self.ridge > 0.0:
            ends = self.minimizer(low), self.minimizer(high)
        else:
            ends = np.where(low > -self.l1, 0.0, -np.inf), np.where(high < self.l1, 0.0, np.inf)
        if self.intercept:
            ends[0][-1], ends[1][-1] = -np.inf, np.inf
        return ends

    def score_range(self, d: int) -> tuple[FloatArray, FloatArray]:
        """(d,) ends of the domain of `rho_j*`: the interval (26) of the paper for `X_j' alpha / n`."""
        high = np.full(d, np.inf if self.ridge > 0.0 else self.l1)
        if self.intercept:
            high[-1] = 0.0
        return -high, high

    def minimizer(self, c: FloatArray) -> FloatArray:
        """(d,) one `w_j` in `drho_j*(c_j)`, the minimiser of `rho_j(w) - c_j w`; zero for L1 and for an intercept."""
        if self.ridge == 0.0:
            return np.zeros_like(c)
        w = (c - np.clip(c, -self.l1, self.l1)) / self.ridge
        if self.intercept:
            w[..., -1] = 0.0
        return w

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Fenchel-Young residuals `rho_j(w_j) + rho_j*(c_j) - w_j c_j >= 0`, sums of terms >= 0.

        Parameters
        ----------
        w, c : (..., d) arrays

        Returns
        -------
        (..., d) array
            +inf where c is outside of the domain of `rho*`; zero for an intercept, whose `c_d = 0` is not checked here.

        Notes
        -----
        It is `ridge/2 (w - drho*(c))^2 + l1 |w| - q w`, and so at least `ridge/2 (w - drho*(c))^2`: the ball of
        :mod:`.optimum_region` follows from that.
        """
        q = np.clip(c, -self.l1, self.l1)
        rest = np.maximum(self.l1 * np.abs(w) - q * w, 0.0)
        if self.ridge > 0.0:
            rest = rest + 0.5 * self.ridge * np.square(w - (c - q) / self.ridge)
        else:
            rest = np.where(q == c, rest, np.inf)
        if self.intercept:
            rest[..., -1] = 0.0
        return rest


def make_regularizer(name: str, lam: float, l1: float | None = None, intercept: bool = False) -> Regularizer:
    """Return the regulariser a word names.

    Parameters
    ----------
    name : {"ridge", "elastic_net", "l1"}
        Which one; `l2` is another word for `ridge`.
    lam : float
        Weight of the squares for `ridge` and `elastic_net`, of the absolute values for `l1`; positive.
    l1 : float, optional
        Weight of the absolute values for `elastic_net`.
    intercept : bool
        The last column is an unpenalised intercept.

    Raises
    ------
    BadInput
        If the word is unknown or a weight is missing, superfluous or not positive.

    Examples
    --------
    >>> make_regularizer("ridge", 0.5)
    Regularizer(ridge=0.5, l1=0.0, intercept=False)
    """
    if not (np.isfinite(lam) and lam > 0.0):
        raise BadInput(f"lam must be a positive number, not {lam!r}")
    if name == "elastic_net":
        if l1 is None or not (np.isfinite(l1) and l1 > 0.0):
            raise BadInput("the elastic net needs a positive l1 weight beside lam: give one")
        return Regularizer(lam, l1, intercept)
    if l1 is not None:
        raise BadInput(f"the regulariser {name!r} has one weight, lam: leave the l1 weight out")
    if name not in ("ridge", "l2", "l1"):
        raise BadInput(f"regulariser {name!r} is unknown: use one of ridge, elastic_net, l1")
    return Regularizer(0.0, lam, intercept) if name == "l1" else Regularizer(lam, 0.0, intercept)


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


def accelerated(
    gradient: Callable[[FloatArray], FloatArray],
    prox: Callable[[FloatArray], FloatArray],
    begin: FloatArray,
    step: float,
    steps: int,
    tolerance: float,
) -> tuple[FloatArray, int]:
    """Minimise `q_i(z_i) + h(z_i)` for every row i, q_i convex with curvature at most `1 / step`.

    Momentum is dropped row by row when it points uphill, so rows of different conditioning do not slow each other.

    Parameters
    ----------
    gradient : callable
        (k, p) gradients of q_i at the rows of a (k, p) array.
    prox : callable
        (k, p) proximal map of `step * h`, row by row.
    begin : (k, p) array
        Starting points.
    step : float
        Step length.
    steps : int
        Most steps taken.
    tolerance : float
        Stop when no entry moves by more than this, relative to `1 + max |z|`.

    Returns
    -------
    (k, p) array, int
        Last points and the number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> z, taken = accelerated(lambda z: z - 3.0, lambda z: z, np.zeros((2, 1)), 1.0, 10, 1e-12)
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
