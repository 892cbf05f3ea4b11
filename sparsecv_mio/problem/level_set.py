"""The level sets of the ridge objective: balls around the ridge fit on all columns."""

from __future__ import annotations

import math


def level_set_radius(room: float, off: float = 0.0) -> float:
    """Radius of the ball about a nearly exact ridge fit that holds every b with an objective up to a level.

    With `M = Q + diag(penalty)`, `f(b) = yy - 2 c'b + b'M b` and any centre b0, `g = c - M b0`,

        f(b) = f(b0) - 2 g'(b - b0) + ||b - b0||_M^2      =>      ||b - b0||_M <= off + sqrt(off^2 + f(b) - f(b0)),

    `off = sqrt(g'M^{-1} g)`: the root of the quadratic, as `|g'(b - b0)| <= off ||b - b0||_M`. For the exact fit
    (off = 0) it is an identity (docs/theory.md, section 2). Valid for every b, sparse or not.

    Parameters
    ----------
    room : float
        At least `level - f(b0)`. Rounding: the caller lowers `f(b0)`, or raises the level, by that of both.
    off : float
        At least `sqrt(g'M^{-1} g)`, the rounding of M and c included.

    Examples
    --------
    >>> level_set_radius(4.0), level_set_radius(0.0, 1.5), level_set_radius(-1.0)
    (2.0, 3.0, 0.0)
    """
    return off + math.sqrt(off**2 + max(room, 0.0))
