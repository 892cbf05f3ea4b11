"""Valid bounds on every coefficient from a level set, so that no big-M is ever guessed.

For every b with `f(b) <= ubar` (any support) and the ridge fit b_r on all columns,

    (b_r - b)' M (b_r - b) <= ubar - f(b_r)     =>     |b_j - b_r,j| <= sqrt((ubar - f(b_r)) (M^{-1})_jj)

(theory section 2, the safe ellipsoid with eps = lam).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.scaled import ScaledProblem

FloatArray = NDArray[np.float64]
MARGIN = 1e-6  # widening of the level, in units of yy - f_r: the start itself must stay feasible to solver tolerances


def level_set_interval(
    scaled: ScaledProblem, upper: float, margin: float = MARGIN
) -> tuple[FloatArray, FloatArray]:
    """Bound every scaled coefficient of every u with `phi(u) <= upper`.

    Parameters
    ----------
    scaled : ScaledProblem
    upper : float
        A phi, that of the start.
    margin : float, optional
        Widening of the level.

    Returns
    -------
    lo, hi : (q,) arrays
        Infinite where the matrix is singular to working precision.
    """
    level = max(upper - scaled.floor, 0.0) + margin
    # a centre u_0 that solves the ridge equations but for a residual: rho^2 <= level + 2 doubt rho
    rho = scaled.doubt + np.sqrt(scaled.doubt**2 + level)
    with np.errstate(invalid="ignore"):
        radius = rho * np.sqrt(scaled.inverse) * (1 + 1e-6) + 1e-9
    return scaled.ridge - radius, scaled.ridge + radius


def link_bounds(
    scaled: ScaledProblem, upper: float, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return (lo, hi) of the links `lo_j z_j <= u_j <= hi_j z_j`.

    Parameters
    ----------
    scaled : ScaledProblem
    upper : float
        phi of the start.
    box : pair of (q,) arrays
        The user's, standard coordinates. It binds as it is; the interval of the level set is widened to hold zero, the
        value of a column that is not chosen.

    Returns
    -------
    lo, hi : (q,) arrays, infinite where nothing is known.
    """
    lo, hi = level_set_interval(scaled, upper)
    lo, hi = np.minimum(lo, 0.0), np.maximum(hi, 0.0)
    return np.maximum(lo, scaled.to_u(box[0])), np.minimum(hi, scaled.to_u(box[1]))


def require_finite(lo: FloatArray, hi: FloatArray, backend: str) -> None:
    """Raise `BadInput` where a model that cannot do without a big-M has none."""
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput(
            f"gamma is so small that the columns are collinear to rounding and {backend} has no valid big-M; "
            "take a larger gamma or the native backend"
        )
