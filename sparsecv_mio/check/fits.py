"""Ridge fits of many supports at once: approximate solutions propose, and what they are worth is bounded.

All bounds are in one norm, `|x|^2 = x'M^{-1}x` with `M = Q + diag(weight)` of a support. Let `r = x - M z`, for any z:

* `|x|^2 = x'z + x'M^{-1}r`, which differs from `x'z` by at most `|x||r|`: so `|x| <= sqrt(x'z) + |r|`;
* `|r| <= sum of |r_i||e_i|` for the unit vectors e_i, and `|e_i|^2 <= 1 / weight_i` to begin with;
* with `x = c` and `z = b` the objective of the support is `F - |r|^2`, `F = yy - b'(c + r)`, and the solution differs
  from b by at most `|x||r|` in the direction x;
* leaving column j out raises the objective by `beta_j^2 / |e_j|^2`, beta the solution.
"""

from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .moments import Moments

Penalty = tuple[Array, Any]


class Fits(NamedTuple):
    """Fits of L supports of a columns each, the objectives within `[lower, upper]` (L,).

    `beta` (L, a) is off by a vector `M^{-1}r` with `|r| <= excess` (L,). `norm` (L, a) bounds `|e_j|`, `V` (L, a, a)
    is near the inverse of `M`; `weight` (L, a), and how far numbers are off: see `fits`.
    """

    lower: Array
    upper: Array
    beta: Array
    excess: Array
    norm: Array
    V: Array
    M: Array
    weight: Array
    off: tuple[Any, Any]


def worth(found: Fits, x: Array, z: Array, kind: Arithmetic) -> tuple[Array, Array, Array]:
    """Return `v = z'(x + r)`, by how much it may be off, and a bound of |r|: then `|x|^2 = v + |r|^2`; all (L, K).

    Parameters
    ----------
    found : Fits
    x, z : (L, K, a) arrays
    kind : Floats or Fractions
    """
    (k, j), u, s, r = found.off, kind.u, 1 + abs(z).sum(2), x - kind.product(z, found.M)
    weight, norm = found.weight[:, None], found.norm[:, None]
    wrong = kind.inner(abs(r) + k * s[:, :, None] + j * weight * abs(z), norm)
    return (
        kind.inner(z, x + r),
        k * s**2 + j * kind.inner(weight, z**2),
        kind.above(wrong * (1 + (x.shape[2] + 24) * u)),
    )


def fits(several: list[Moments], penalty: Penalty, sets: Array, kind: Arithmetic) -> Fits:
    """Fit supports `sets` (L, a) on the rows of each of K moments: K L fits.

    Parameters
    ----------
    several : list of Moments
    penalty : (q,) array, number
        What multiplies `b_j^2`, and its relative error.
    sets : (L, a) array
    kind : Floats or Fractions

    Notes
    -----
    No entry of Q, c and yy exceeds 1/2, none of rows 1. So entry i of `x - M z` is off by at most
    `k (1 + s) + j weight_i |z_i|`, s the sum of |z|, and `z'(x + r)` by `k (1 + s)^2 + j z'diag(weight)z`.
    """
    u, a = kind.u, sets.shape[1]
    k, j = max(m.error for m in several) + 2 * (a + 8) * u, penalty[1] + 2 * (a + 8) * u
    M = np.concatenate([m.Q[sets[:, :, None], sets[:, None, :]] for m in several])
    c, yy = np.concatenate([m.c[sets] for m in several]), np.repeat([m.yy for m in several], len(sets))
    weight = np.tile(penalty[0][sets], (len(several), 1))
    diagonal = slice(None), range(a), range(a)
    M[diagonal] = M[diagonal] + weight
    inverse = np.linalg.inv(np.asarray(M, dtype=np.float64))
    right = np.concatenate([kind.of(np.eye(a)) + 0 * M, c[:, :, None]], axis=2)
    Z, R = 0 * right, right
    for _ in range(2):
        Z = Z + kind.of(inverse @ np.asarray(R, dtype=np.float64))
        R = right - kind.product(M, Z)
    V, beta, size, large = Z[:, :, :a], Z[:, :, a], abs(Z[:, :, :a]).sum(1) + 1, abs(R[:, :, :a])

    norm, own = 1 / (weight * (1 - penalty[1])) * (1 + 4 * u), np.maximum(V[diagonal], 0 * c)
    norm, own = kind.root_above(norm), kind.root_above(own)
    for _ in range(3):  # each from the bounds before
        off = size * (k * norm.sum(1) + j * (weight * norm).max(1, initial=0))[:, None]
        rest = kind.above((kind.product(norm[:, None, :], large)[:, 0] + off) * (1 + (2 * a + 24) * u))
        norm = np.minimum(norm, (own + rest) * (1 + 4 * u))
    found = Fits(yy, yy, beta, yy, norm, V, M, weight, (k, j))
    value, room, excess = (each[:, 0] for each in worth(found, c[:, None], beta[:, None], kind))
    lower, upper = -kind.above(value + room + excess**2 * (1 + 8 * u) - yy), kind.above(yy - value + room)
    return found._replace(lower=lower, upper=upper, excess=excess)


def residuals(
    beta: Array, excess: Array, reach: Array, rows: tuple[Array, Array, Any], kind: Arithmetic
) -> tuple[Array, Array]:
    """Return bounds of |y - x'b*| (K, L), b* the solutions.

    Parameters
    ----------
    beta, excess : arrays
        Of L fits, or of L for each row.
    reach : (K, L) array
        Bounds of |x|.
    rows : (K, L, a), (K,) arrays, number
        X, y, and by how much their entries are off.
    kind : Floats or Fractions
    """
    (X, y, off), u, a = rows, kind.u, beta.shape[-1]
    error = (off + (a + 8) * u) * (1 + abs(beta).sum(-1)) + reach * excess * (1 + (a + 16) * u)
    rest = abs(y[:, None] - kind.inner(X, beta))
    return np.maximum(-kind.above(error - rest), 0 * rest), kind.above(error + rest)


def leverages(found: Fits, X: Array, off: Any, kind: Arithmetic) -> tuple[Array, Array]:
    """Return bounds of `x'M^{-1}x` (K, L) of rows whose entries are off by `off`.

    Parameters
    ----------
    found : Fits
    X : (K, L, a) array
    off : number
    kind : Floats or Fractions
    """
    u, x = kind.u, np.moveaxis(X, 0, 1)
    z = kind.of(np.asarray(x, dtype=np.float64) @ np.asarray(found.V, dtype=np.float64))
    (value, room, excess), moved = worth(found, x, z, kind), off * found.norm.sum(1)[:, None]
    most = kind.root_above(np.maximum(value + room + excess**2, 0 * value)) * (1 + 4 * u) + moved * (1 + X.shape[2] * u)
    return -kind.above(room + 2 * most * moved * (1 + 16 * u) - value).T, kind.above(most**2 * (1 + 8 * u)).T
