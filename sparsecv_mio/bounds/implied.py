"""Lower bounds of the optimum f at some pairs (gamma, tau), and what they say of f at the others.

**Lemma.** `f(gamma, tau) = min { ||y - Xb||^2 + (gamma/2) ||b||^2 : ||b||_0 <= tau }` never rises with tau, and is for
every tau a concave function of gamma that never falls and is at least 0 at gamma = 0.

*Proof.* A larger tau leaves more b to choose from. For every b the objective is affine in gamma with slope
`||b||^2 / 2 >= 0`; a minimum of such functions is concave and never falls. At gamma = 0 it is a sum of squares.

So a lower bound at tau holds at every smaller tau, one at gamma at every larger gamma, and between two gammas the chord
of their bounds is one; the same is true of the chord from 0 at gamma = 0.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray

INWARD = 1e-13  # relative rounding of the few operations of a chord


def implied_lower_bounds(gammas: FloatArray, lower: FloatArray) -> FloatArray:
    """Return for every pair the largest lower bound of f that the lemma makes of those at all pairs.

    Parameters
    ----------
    gammas : (G,) array
        Ascending, positive.
    lower : (G, T) array
        Certified lower bounds of f, at least 0; the columns in the order of rising tau.

    Returns
    -------
    (G, T) array
        At least `lower`.

    Notes
    -----
    O(G T).

    Examples
    --------
    >>> gammas, known = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 2.0], [0.0, 0.0], [6.0, 1.0]])
    >>> implied_lower_bounds(gammas, known).round(6).tolist()
    [[4.0, 2.0], [5.0, 2.0], [6.0, 2.0]]
    """
    best = np.maximum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
    x = np.append(0.0, gammas)
    rising = np.vstack([np.zeros(best.shape[1]), np.maximum.accumulate(best, axis=0)])
    for column in range(best.shape[1]):
        corners = _upper_corners(x, rising[:, column])
        chords = np.interp(gammas, x[corners], rising[corners, column]) * (1.0 - INWARD)
        best[:, column] = np.maximum(np.maximum(best[:, column], rising[1:, column]), chords)
    return np.asarray(best)


def _upper_corners(x: FloatArray, y: FloatArray) -> list[int]:
    """Return the corners of the least concave function above some points, x ascending."""
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return corners
