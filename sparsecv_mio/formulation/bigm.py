"""Valid bounds on every coefficient from a level set of the objective: the big-M values of the models.

For every b with `f(b) <= ubar` (any support) and the ridge fit b_r on all columns,

    (b_r - b)' M (b_r - b) <= ubar - f(b_r)     =>     |b_j - b_r,j| <= sqrt((ubar - f(b_r)) (M^{-1})_jj)

(theory section 2, the safe ellipsoid with eps = lam; :mod:`sparsecv_mio.problem.level_set`).
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.scaled import ScaledProblem
from sparsecv_mio.problem.level_set import level_set_radius

MARGIN = 1e-6  # widening of the level, in units of yy - f_r: the start itself must stay feasible to solver tolerances


def level_set_interval(
    scaled: ScaledProblem, upper: float, margin: float = MARGIN
) -> tuple[FloatArray, FloatArray]:
    """Bound every scaled coefficient of every u with `phi(u) <= upper`.

    Parameters
    ----------
    scaled : ScaledProblem
        The problem in scaled units.
    upper : float
        phi of the start.
    margin : float, optional
        Added to the level.

    Returns
    -------
    lo, hi : (q,) arrays
        Infinite where the matrix is singular to working precision.
    """
    rho = level_set_radius(max(upper - scaled.floor, 0.0) + margin, scaled.doubt)
    with np.errstate(invalid="ignore"):
        radius = rho * np.sqrt(scaled.inverse) * (1 + 1e-6) + 1e-9
    return scaled.ridge - radius, scaled.ridge + radius


def link_bounds(
    scaled: ScaledProblem, upper: float, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds (lo, hi) of the rows `lo_j z_j <= u_j <= hi_j z_j`.

    Parameters
    ----------
    scaled : ScaledProblem
        The problem in scaled units.
    upper : float
        phi of the start.
    box : pair of (q,) arrays
        The user's bounds in standard coordinates, taken as they are. The interval of the level set is widened to
        contain zero, the value of a column that is not chosen.

    Returns
    -------
    lo, hi : (q,) arrays
        Infinite where nothing is known.
    """
    lo, hi = level_set_interval(scaled, upper)
    lo, hi = np.minimum(lo, 0.0), np.maximum(hi, 0.0)
    return np.maximum(lo, scaled.to_u(box[0])), np.minimum(hi, scaled.to_u(box[1]))


def require_finite(lo: FloatArray, hi: FloatArray, backend: str) -> None:
    """Check that every coefficient has a finite bound, for models that need big-M values.

    Parameters
    ----------
    lo, hi : (q,) arrays
        Bounds of the coefficients.
    backend : str
        Its name, for the message.

    Raises
    ------
    BadInput
        If a bound is infinite.
    """
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput(
            f"gamma is so small that the columns are collinear to rounding and {backend} has no valid big-M; "
            "take a larger gamma or the native backend"
        )
