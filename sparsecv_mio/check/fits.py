"""Ridge fits of many supports at once: approximate solutions propose, and what they are worth is bounded.

All bounds are in one norm, `|x|^2 = x'M^{-1}x` with `M = Q + diag(weight)` of a support. Let `r = x - M z`, for any z:

* `|x|^2 = x'z + x'M^{-1}r`, which differs from `x'z` by at most `|x||r|`: so `|x| <= sqrt(x'z) + |r|`;
* `|r| <= sum of |r_i||e_i|` for the unit vectors e_i, and `|e_i|^2 <= 1 / weight_i` to begin with;
* with `x = c` and `z = b` the objective of the support is `F - |r|^2`, `F = yy - b'(c + r)`, and the solution differs
  from b by at most `|x||r|` in the direction x;
* leaving column j out raises the objective by `beta_j^2 / |e_j|^2`, beta the solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .moments import Design, Moments

ROUNDS = 3  # of bounds on |e_j|, each from the one before
ENOUGH = 2.0**-40  # residual of an inverse beyond which the exact mode improves what floats found


class Penalty(NamedTuple):
    """What multiplies `b_j^2` in scaled units: `values` (q,), off by at most `error` relatively."""

    values: Array
    error: Any

    @staticmethod
    def of(design: Design, gamma: float) -> Penalty:
        """Return `(gamma / 2) scale_j`."""
        half = design.kind.of(np.array([gamma]))[0] / 2
        return Penalty(design.scale * half, design.scale_error + 4 * design.kind.u)


class Fits(NamedTuple):
    """Fits of L supports of a columns each, the objectives within `[lower, upper]` (L,).

    `beta` (L, a) is off by a vector `M^{-1}r` with `|r| <= excess` (L,). `norm` (L, a) bounds `|e_j|`, and `rest`
    (L, a) the residuals `|e_j - M V_j|` of the columns of `V` (L, a, a).
    """

    lower: Array
    upper: Array
    beta: Array
    excess: Array
    norm: Array
    rest: Array
    V: Array

    @property
    def solution(self) -> tuple[Array, Array, Array]:
        """Return `beta`, `excess` and `norm`, which bound residuals."""
        return self.beta, self.excess, self.norm


def _residual(M: Array, V: Array, kind: Arithmetic) -> Array:
    R, a = -kind.product(M, V), M.shape[2]
    R[:, range(a), range(a)] = R[:, range(a), range(a)] + 1
    return R


def fits(several: list[Moments], penalty: Penalty, which: tuple[Array, Array], kind: Arithmetic) -> Fits:
    """Fit L supports of a columns, each on the rows of one of several moments.

    Parameters
    ----------
    several : list of Moments
    penalty : Penalty
    which : (L,), (L, a) arrays
        The index of the moments, and the support.
    kind : Floats or Fractions

    Notes
    -----
    No entry of Q, c and yy exceeds 1/2. So `c - M b` is off by at most `k (1 + s) + j weight |b|`, s the sum of |b|,
    and F by `k (1 + s)^2 + j b'diag(weight)b`; an entry of `I - M V` by `k + j weight_i` times its column's sum of |V|.
    """
    (place, sets), u = which, kind.u
    a, on = sets.shape[1], place[:, None, None]
    k, j = max(m.error for m in several) + 2 * (a + 8) * u, penalty.error + 2 * (a + 8) * u
    M = np.stack([m.Q for m in several])[on, sets[:, :, None], sets[:, None, :]]
    c = np.stack([m.c for m in several])[on[:, :, 0], sets]
    yy, weight = np.array([m.yy for m in several])[place], penalty.values[sets]
    diagonal = slice(None), range(a), range(a)
    M[diagonal] = M[diagonal] + weight
    inverse = np.linalg.inv(np.asarray(M, dtype=np.float64))
    V, beta, r = kind.of(inverse), 0 * c, c
    for _ in range(2):
        beta = beta + kind.of(inverse @ np.asarray(r, dtype=np.float64)[:, :, None])[:, :, 0]
        r = c - kind.product(M, beta[:, :, None])[:, :, 0]
    R = _residual(M, V, kind)
    for _ in range(0 if u else 2):
        if a and abs(R).max() > ENOUGH:
            V = V + kind.of(inverse @ np.asarray(R, dtype=np.float64))
            R = _residual(M, V, kind)

    large, size, own = abs(R), abs(V).sum(1), kind.root_above(np.maximum(V[diagonal], 0 * c))
    norm = rest = kind.root_above((1 + 4 * u) / (weight * (1 - penalty.error))) + 0 * c
    for _ in range(ROUNDS):
        off = size * (k * norm.sum(1) + j * (weight * norm).max(1, initial=0))[:, None]
        rest = kind.above((kind.product(norm[:, None, :], large)[:, 0] + off) * (1 + (2 * a + 24) * u))
        norm = np.minimum(norm, (own + rest) * (1 + 4 * u))
    s = abs(beta).sum(1)
    wrong = abs(r) + (k * (1 + s))[:, None] + j * weight * abs(beta)
    excess = kind.above(kind.inner(wrong, norm) * (1 + (a + 24) * u))
    middle = yy - kind.inner(beta, c + r)
    room = k * (1 + s) ** 2 + j * (weight * beta**2).sum(1)
    lower, upper = -kind.above(room + excess**2 * (1 + 8 * u) - middle), kind.above(middle + room)
    lower, upper, beta, excess, norm, rest = map(kind.finite, (lower, upper, beta, excess, norm, rest))
    return Fits(lower, upper, beta, excess, norm, rest, V)


def costs(found: Fits, kind: Arithmetic) -> tuple[Array, Array]:
    """Return (L, a) lower bounds of beta_j^2 / |e_j|^2, what leaving a column out costs, and of beta_j^2."""
    least = np.maximum(abs(found.beta) - found.norm * found.excess[:, None] * (1 + 4 * kind.u), 0 * found.beta)
    return -kind.above(-((least / found.norm) ** 2 * (1 - 8 * kind.u))), least**2 * (1 - 8 * kind.u)


def residuals(
    solution: tuple[Array, Array, Array], X: Array, y: Array, off: Any, kind: Arithmetic
) -> tuple[Array, Array]:
    """Return `y - X beta` (K, L) of rows whose entries are off by `off`, and bounds on the errors.

    Parameters
    ----------
    solution : tuple of arrays
        Of L fits, or of L for each row.
    X : (K, L, a) array
    y : (K,) array
    off : number
    kind : Floats or Fractions
    """
    (beta, excess, norm), u, a = solution, kind.u, X.shape[2]
    reach = kind.inner(abs(X), norm) + off * norm.sum(-1)  # at least |x|
    error = (off + (a + 8) * u) * (1 + abs(beta).sum(-1)) + reach * excess * (1 + (a + 16) * u)
    return kind.finite(y[:, None] - kind.inner(X, beta)), kind.finite(kind.above(error))


def leverages(found: Fits, X: Array, off: Any, kind: Arithmetic) -> tuple[Array, Array]:
    """Return bounds of `x'M^{-1}x` (K, L) of rows whose entries are off by `off`.

    Parameters
    ----------
    found : Fits
    X : (K, L, a) array
    off : number
    kind : Floats or Fractions

    Notes
    -----
    An entry of V is at most `|e_i| (|e_j| + |e_j - M V_j|)`, which bounds the rounding of `x'V x`.
    """
    u, a, size = kind.u, X.shape[2], abs(X)
    near = kind.inner(np.moveaxis(kind.product(np.moveaxis(X, 0, 1), found.V), 1, 0), X)
    rounding = (2 * a + 24) * u * kind.inner(size, found.norm + found.rest) ** 2
    slack = kind.above((kind.inner(size, found.rest) + off * found.norm.sum(1)) * (1 + (a + 8) * u))
    most = (kind.root_above(np.maximum(near + rounding, 0 * near)) + slack) * (1 + 4 * u)
    low = -kind.above(rounding + 2 * most * slack * (1 + 8 * u) - near)
    return kind.finite(low), kind.finite(kind.above(most**2 * (1 + 4 * u)))
