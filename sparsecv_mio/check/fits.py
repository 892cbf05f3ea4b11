"""Ridge fits of many supports at once, each number with bounds that hold whatever was rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .moments import Design, Moments

SHORT = 48  # binary digits after the point of inverses in exact mode


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
    """Fits of L supports of a columns each: `f(S)` lies in `[lower, upper]`.

    `base - sum of (a part of) slopes` is the dual value of theory section 1 at `beta`; `cost_j` bounds from below how
    much f rises without column j; `beta` and the inverse `V` are off by at most `beta_error`, `V_error` in every entry.
    """

    base: Array
    slopes: Array
    cost: Array
    lower: Array
    upper: Array
    beta: Array
    beta_error: Array
    V: Array
    V_error: Array
    norm: Array


def difference(base: Array, total: Array, kind: Arithmetic) -> Array:
    """Return a number at most `base - total`, where total is a sum of up to 10^6 terms >= 0.

    Parameters
    ----------
    base, total : arrays
    kind : Floats or Fractions
    """
    return base - total - 8 * kind.u * (abs(base) + total)


def grown(terms: Array, kind: Arithmetic) -> Array:
    """Return each of `terms >= 0` enlarged by what sums of as many as their last axis holds may lose."""
    return terms * (1 + (terms.shape[-1] + 16) * kind.u)


def fits(m: Moments, penalty: Penalty, sets: Array, kind: Arithmetic) -> Fits:
    """Fit supports of one size.

    Parameters
    ----------
    m : Moments
    penalty : Penalty
    sets : (L, a) array of columns
    kind : Floats or Fractions

    Notes
    -----
    With `s` the sum of |beta| and `r = error + 2 (a + 6) u`: every slope `c - Q beta` is off by at most `r (1 + s)` and
    `yy - beta'Q beta` by `r (1 + s)^2`, as no entry of Q, c and yy exceeds 1/2.
    """
    a, u, e, big = sets.shape[1], kind.u, m.error, kind.of(np.array([1e30]))[0]
    Q, c, weight = m.Q[sets[:, :, None], sets[:, None, :]], m.c[sets], penalty.values[sets]
    M = Q.copy()
    M[:, range(a), range(a)] = M[:, range(a), range(a)] + weight
    inverse = np.linalg.inv(M.astype(np.float64))
    if not u:
        inverse = np.ldexp(np.rint(np.ldexp(inverse, SHORT)), -SHORT)  # fewer digits make fractions quicker
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2.0
    V, beta = kind.of(inverse), kind.of((inverse @ c.astype(np.float64)[:, :, None])[:, :, 0])
    s = abs(beta).sum(1)
    r = e + 2 * (a + 6) * u
    Qb = kind.product(Q, beta[:, :, None])[:, :, 0]
    g = c - Qb
    off = (r * (1 + s))[:, None]
    slopes = grown((abs(g) + off) ** 2 / (weight * (1 - penalty.error)) * (1 + 8 * u), kind)
    quadratic, room = (beta * Qb).sum(1), r * (1 + s) ** 2
    base = m.yy - quadratic - room
    lower = difference(base, slopes.sum(1), kind)
    ridge = (weight * beta * beta).sum(1)
    upper = m.yy - 2 * (c * beta).sum(1) + quadratic + ridge + room + (penalty.error + (a + 9) * u) * ridge

    top = weight.max(1) if a else 0 * s
    wide = abs(V).sum(2).max(1) * (1 + (a + 4) * u) if a else 0 * s
    R = -kind.product(M, V)
    R[:, range(a), range(a)] = R[:, range(a), range(a)] + 1
    rounding = wide * (a * e + (penalty.error + u) * top + u + (a + 3) * u * (a + top)) + a * (a + 3) * u
    far = (abs(R).sum(2).max(1) * (1 + (a + 4) * u) if a else 0 * s) + rounding
    usable = far * 2 < 1
    norm = np.where(usable, wide / (1 - np.where(usable, far, 0 * far)) * (1 + 4 * u), big)
    V_error = norm * far * (1 + 4 * u)
    rest = abs(g - weight * beta) + off + (penalty.error + 4 * u) * weight * abs(beta)
    beta_error = norm * (rest.max(1) if a else 0 * s) * (1 + 4 * u)
    least = abs(beta) - beta_error[:, None]
    least = np.where(least > 0, least, 0 * least)
    diagonal = V[:, range(a), range(a)] + V_error[:, None]
    cost = least**2 / np.where(diagonal > 0, diagonal, big) * (1 - 8 * u)
    return Fits(base, slopes, cost, lower, upper, beta, beta_error, V, V_error, norm)
