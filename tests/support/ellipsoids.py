"""Held-out sums of squares over an ellipsoid, by one scalar equation for each end (docs/theory/bounds.md 4)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.units import Interval


def held_out_interval(G: FloatArray, radius: float, X: FloatArray, e: FloatArray) -> Interval:
    """Least and largest `||e - X b||^2` over `b' G b <= radius`.

    Parameters
    ----------
    G : (m, m) array
        Positive definite.
    radius : float
        Square of the size of the ellipsoid.
    X, e : (N, m), (N,) arrays
        Rows, and their residuals at the centre.

    Notes
    -----
    With `K = X G^{-1} X' = P diag(l) P'` and `a = P'e`, weak duality gives for every v

        ||e - X b||^2 <= v radius + sum_i a_i^2 v / (v - l_i)      (v > max l),
        ||e - X b||^2 >= sum_i a_i^2 v / (v + l_i) - v radius      (v >= 0),

    and the best v makes them exact (the first by the S-lemma, although that problem is not convex). O(N^2 (m + N)).
    """
    K = X @ np.linalg.solve(G, X.T)
    spectrum, P = np.linalg.eigh(0.5 * (K + K.T))
    widths, a2 = np.maximum(spectrum, 1e-14 * float(np.trace(K))), (P.T @ e) ** 2
    total, top = float(a2.sum()), float(widths[-1])
    if radius <= 0.0 or top <= 0.0:
        return Interval(total, total)

    def slope_up(v: float) -> float:
        return radius - float(np.sum(a2 * widths / (v - widths) ** 2))

    def slope_down(v: float) -> float:
        return float(np.sum(a2 * widths / (v + widths) ** 2)) - radius

    first, reach = top * (1.0 + 1e-9), float(np.sqrt(total * top / radius)) + 1e-300
    v = first if slope_up(first) >= 0.0 else brentq(slope_up, first, (top + reach) * (1.0 + 1e-9), rtol=1e-12)
    upper, lower = v * radius + float(np.sum(a2 * v / (v - widths))), 0.0
    if slope_down(0.0) > 0.0:
        v = brentq(slope_down, 0.0, reach, rtol=1e-12)
        lower = float(np.sum(a2 * v / (v + widths))) - v * radius
    return Interval(lower, upper)
