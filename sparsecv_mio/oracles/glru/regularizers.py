"""Separable regularisers `sum_j rho_j(w_j)`: value, sub-differential of the conjugate, with or without an intercept.

One class covers the paper's list: `rho(w) = ridge w^2 / 2 + l1 |w|` with ridge > 0, l1 = 0 (L2), both > 0 (elastic net)
or ridge = 0, l1 > 0 (L1). With an intercept the last column of X is a column of ones and its `rho` is zero.

With `q = clip(c, -l1, l1)`:

    rho*(c)  = (c - q)^2 / (2 ridge)        (ridge = 0: zero for |c| <= l1, +inf beyond)
    drho*(c) = {(c - q) / ridge}            (ridge = 0: 0 inside, [0, inf] at c = l1, [-inf, 0] at c = -l1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput


@dataclass(frozen=True)
class Regularizer:
    """`rho_j(w) = ridge w^2 / 2 + l1 |w|`, and zero for the last column when it is an intercept.

    Parameters
    ----------
    ridge : float
        Weight of the squares, >= 0: the strong convexity (the paper's lambda).
    l1 : float
        Weight of the absolute values, >= 0 (the paper's kappa).
    intercept : bool
        The last column is an unpenalised intercept.

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

    def __post_init__(self) -> None:
        for name, weight in (("ridge", self.ridge), ("l1", self.l1)):
            if not (np.isfinite(weight) and weight >= 0.0):
                raise BadInput(f"the {name} weight must be a number >= 0, not {weight!r}")
        if self.ridge == 0.0 and self.l1 == 0.0:
            raise BadInput("the regulariser is zero: give a positive ridge or l1 weight")

    def penalised(self, d: int) -> int:
        """Return the number of penalised columns among d, the intercept's included: they come first."""
        return d - 1 if self.intercept else d

    def value(self, w: FloatArray) -> float:
        """`sum_j rho_j(w_j)` of w (d,)."""
        v = w[: self.penalised(w.shape[0])]
        return float(0.5 * self.ridge * (v @ v) + self.l1 * np.abs(v).sum())

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
        :mod:`.region` follows from that.
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
    name : {"l2", "elastic_net", "l1"}
        Which one.
    lam : float
        Weight of the squares for `l2` and `elastic_net`, of the absolute values for `l1`; positive.
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
    >>> make_regularizer("l2", 0.5)
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
    if name == "l2":
        return Regularizer(lam, 0.0, intercept)
    if name == "l1":
        return Regularizer(0.0, lam, intercept)
    raise BadInput(f"regulariser {name!r} is unknown: use one of l2, elastic_net, l1")
