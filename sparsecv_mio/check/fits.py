"""Ridge fits of many supports at once, each number with bounds that hold whatever was rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .moments import Design, Moments

SHORT = 48  # binary digits after the point of inverses in exact mode
LARGE = 2.0**12  # entries of inverses beyond which exact mode improves what floats found


class Penalty(NamedTuple):
    """What multiplies `b_j^2` in scaled units: `values` (q,), off by at most `error` relatively."""

    values: Array
    error: Any

    @staticmethod
    def of(design: Design, gamma: float) -> Penalty:
        """Return `(gamma / 2) scale_j`."""
        half = design.kind.of(np.array([gamma]))[0] / 2
        return Penalty(design.scale * half, design.scale_error + 4 * design.kind.u)


class Parts(NamedTuple):
    """Moments of L supports of a columns, each on some rows: Q (L, a, a), c (L, a), yy (L,), off by `error`."""

    Q: Array
    c: Array
    yy: Array
    weight: Array
    error: Any
    weight_error: Any

    @staticmethod
    def of(m: Moments, penalty: Penalty, sets: Array) -> Parts:
        """Gather the moments of supports on the same rows; `sets` (L, a).

        Parameters
        ----------
        m : Moments
        penalty : Penalty
        sets : (L, a) array
        """
        Q, yy = m.Q[sets[:, :, None], sets[:, None, :]], np.full(len(sets), m.yy)
        return Parts(Q, m.c[sets], yy, penalty.values[sets], m.error, penalty.error)

    @staticmethod
    def of_rows(several: list[Moments], penalty: Penalty, columns: Array) -> Parts:
        """Gather the moments of one support on different rows.

        Parameters
        ----------
        several : list of Moments
        penalty : Penalty
        columns : (a,) array
        """
        Q = np.stack([m.Q[columns[:, None], columns] for m in several])
        c, yy = np.stack([m.c[columns] for m in several]), np.array([m.yy for m in several])
        weight = np.stack([penalty.values[columns]] * len(several))
        return Parts(Q, c, yy, weight, max(m.error for m in several), penalty.error)


class Fits(NamedTuple):
    """Fits of L supports of a columns each: `f(S)` lies in `[lower, upper]`.

    `base - sum of (a part of) slopes` is the dual value of theory section 1 at `beta`; `cost_j` bounds from below how
    much f rises without column j. `V` approximates the inverse: `M V = I - R`, the sums of
    |R| by rows at most `far < 1`, those of the true inverse at most `norm`; `beta` is off by the true inverse times a
    vector of entries at most `rest`. Where nothing is known of the inverse, `norm` is huge and `far` 1/2.
    """

    base: Array
    slopes: Array
    cost: Array
    lower: Array
    upper: Array
    beta: Array
    rest: Array
    V: Array
    norm: Array
    far: Array


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


def _refined(M: Array, V: Array, c: Array, kind: Arithmetic) -> tuple[Array, Array]:
    """Return an inverse, improved by Newton's steps in fractions, and its product with c."""
    for digits in (SHORT, 2 * SHORT):
        V = 2 * V - kind.product(V, kind.product(M, V))
        V = kind.rounded((V + V.transpose(0, 2, 1)) / 2, 2 * digits)
    return V, kind.rounded(kind.product(V, c[:, :, None])[:, :, 0], 2 * SHORT)


def fits(parts: Parts, kind: Arithmetic) -> Fits:
    """Fit supports of one size.

    Notes
    -----
    With `s` the sum of |beta| and `r = error + 2 (a + 6) u`: every slope `c - Q beta` is off by at most `r (1 + s)` and
    `yy - beta'Q beta` by `r (1 + s)^2`, as no entry of Q, c and yy exceeds 1/2.
    """
    Q, c, yy, weight, e, pe = parts
    a, u, big = c.shape[1], kind.u, kind.of(np.array([1e30]))[0]
    M = Q.copy()
    M[:, range(a), range(a)] = M[:, range(a), range(a)] + weight
    inverse = np.linalg.inv(M.astype(np.float64))
    if not u:
        inverse = np.ldexp(np.rint(np.ldexp(inverse, SHORT)), -SHORT)  # fewer digits make fractions quicker
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2.0
    V, beta = kind.of(inverse), kind.of((inverse @ c.astype(np.float64)[:, :, None])[:, :, 0])
    if not u and a and abs(inverse).max() > LARGE:
        V, beta = _refined(M, V, c, kind)
    s = abs(beta).sum(1)
    r = e + 2 * (a + 6) * u
    Qb = kind.product(Q, beta[:, :, None])[:, :, 0]
    g = c - Qb
    off = (r * (1 + s))[:, None]
    slopes = grown((abs(g) + off) ** 2 / (weight * (1 - pe)) * (1 + 8 * u), kind)
    quadratic, room = (beta * Qb).sum(1), r * (1 + s) ** 2
    base = yy - quadratic - room
    lower = difference(base, slopes.sum(1), kind)
    ridge = (weight * beta * beta).sum(1)
    upper = yy - 2 * (c * beta).sum(1) + quadratic + ridge + room + (pe + (a + 9) * u) * ridge

    top = weight.max(1) if a else 0 * s
    wide = abs(V).sum(2).max(1) * (1 + (a + 4) * u) if a else 0 * s
    R = -kind.product(M, V)
    R[:, range(a), range(a)] = R[:, range(a), range(a)] + 1
    rounding = wide * (a * e + (pe + u) * top + u + (a + 3) * u * (a + top)) + a * (a + 3) * u
    far = (abs(R).sum(2).max(1) * (1 + (a + 4) * u) if a else 0 * s) + rounding
    usable = far * 2 < 1
    norm = np.where(usable, wide / (1 - np.where(usable, far, 0 * far)) * (1 + 4 * u), big)
    far = np.where(usable, far, 0 * far + kind.of(np.array([0.5]))[0])
    rest = abs(g - weight * beta) + off + (pe + 4 * u) * weight * abs(beta)
    rest = rest.max(1) * (1 + 4 * u) if a else 0 * s
    least = abs(beta) - (norm * rest * (1 + 4 * u))[:, None]
    least = np.where(least > 0, least, 0 * least)
    diagonal = V[:, range(a), range(a)] + (norm * far * (1 + 8 * u))[:, None]
    cost = least**2 / np.where(diagonal > 0, diagonal, big) * (1 - 8 * u)
    return Fits(*map(kind.finite, (base, slopes, cost, lower, upper, beta, rest, V, norm, far)))
