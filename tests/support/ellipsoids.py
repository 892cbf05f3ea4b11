"""Safe ellipsoids and what they say about predictions, one row at a time or a whole fold (docs/theory/bounds.md 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.relaxation import UnitDiagonal, comparison_allowance, relax_form
from sparsecv_mio.units import Interval

SHARES = (1.0, 0.5, 0.1)
OUTWARD = 1e-9  # relative rounding of what is computed from the factor of G, times its condition over 1e6


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """`(b - centre)' G (b - centre) <= radius` for every tau-sparse b with `f(b) <= ubar`, in the units of a form.

    Attributes
    ----------
    centre : (m,) array
    G : (m, m) array
        Positive definite.
    radius : float
        `ubar - D(centre)`, D the dual value of this very centre, plus the rounding allowance.
    """

    centre: FloatArray
    G: FloatArray
    radius: float

    @cached_property
    def _factor(self) -> tuple[FloatArray, bool]:
        factor, lower = cho_factor(self.G)
        return factor, bool(lower)

    @cached_property
    def _slack(self) -> float:
        condition = float(np.linalg.cond(self.G))
        return OUTWARD * max(1.0, condition / 1e6)

    def spread(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of `x'b` for every row of X (N, m): `x'centre -+ sqrt(radius x'G^{-1}x)`."""
        middle = X @ self.centre
        reach = np.maximum(np.einsum("ij,ji->i", X, cho_solve(self._factor, X.T)), 0.0)
        wide = np.sqrt(self.radius * reach) * (1.0 + self._slack) + 1e-14 * np.abs(X) @ np.abs(self.centre)
        return middle - wide, middle + wide

    def rows(self, X: FloatArray, u: FloatArray) -> Interval:
        """Corollary 2.7: `sum (u_i - x_i'b)^2` from the ends of every prediction."""
        lo, hi = self.spread(X)
        near = np.maximum(np.maximum(lo - u, u - hi), 0.0)
        far = np.maximum(np.abs(u - lo), np.abs(u - hi))
        return Interval(float(near @ near) * (1.0 - 1e-12), float(far @ far) * (1.0 + 1e-12))

    def together(self, X: FloatArray, u: FloatArray) -> Interval:
        """Least and largest `||u - X b||^2` over the ellipsoid, by one scalar equation each.

        Notes
        -----
        With `K = X G^{-1} X' = P diag(l) P'` and `a = P'(u - X centre)`, weak duality gives for every v

            ||u - X b||^2 <= v radius + sum_i a_i^2 v / (v - l_i)      (v > max l),
            ||u - X b||^2 >= sum_i a_i^2 v / (v + l_i) - v radius      (v >= 0),

        and the best v makes them exact (the first by the S-lemma, although that problem is not convex). O(N^2 (m + N)).
        """
        K = X @ cho_solve(self._factor, X.T)
        spectrum, P = np.linalg.eigh(0.5 * (K + K.T))
        l = np.maximum(spectrum, 0.0) * (1.0 + self._slack) + 1e-14 * max(float(np.trace(K)), 0.0)  # noqa: E741
        a2 = (P.T @ (u - X @ self.centre)) ** 2
        rho, total = float(self.radius), float(a2.sum())
        if rho <= 0.0 or l[-1] <= 0.0:
            return Interval(total * (1.0 - 1e-9), total * (1.0 + 1e-9))
        top = float(l[-1])

        def slope_up(v: float) -> float:
            return rho - float(np.sum(a2 * l / (v - l) ** 2))

        first = top * (1.0 + 1e-9)
        last = top + float(np.sqrt(total * top / rho)) + 1e-300
        v = first if slope_up(first) >= 0.0 else brentq(slope_up, first, last * (1.0 + 1e-9), rtol=1e-12)
        upper = v * rho + float(np.sum(a2 * v / (v - l)))

        def slope_down(v: float) -> float:
            return float(np.sum(a2 * l / (v + l) ** 2)) - rho

        lower = 0.0
        if slope_down(0.0) > 0.0:
            v = brentq(slope_down, 0.0, float(np.sqrt(total * top / rho)) + 1e-300, rtol=1e-12)
            lower = float(np.sum(a2 * v / (v + l))) - v * rho
        slack = 1e-9 * (upper + total)
        return Interval(max(lower - slack, 0.0), upper + slack)


def safe_ellipsoid(form: UnitDiagonal, tau: int, ubar: float, share: float) -> Ellipsoid:
    """Return the ellipsoid that keeps `share` of the diagonal w outside of the perspective.

    Parameters
    ----------
    form : UnitDiagonal
    tau : int
        0 < tau < m.
    ubar : float
        Every b to be covered has `f(b) <= ubar`.
    share : float
        In (0, 1]. 1 is the ridge fit with its own (larger) gap; near 0 the full perspective value and the flattest G.

    Notes
    -----
    With `w' = (1 - share) w` and `G = M - diag(w')`: theory identity (I), any centre, its own D. O(m^3).
    """
    if share == 1.0:
        centre = np.asarray(np.linalg.solve(form.M, form.c))
        value = float(form.yy - form.c @ centre)
        return Ellipsoid(centre, form.M, max(ubar - value, 0.0) + comparison_allowance(form, tau, centre))
    here = replace(form, w=(1.0 - share) * form.w)
    point = relax_form(here, [tau])[0]
    centre = point.beta / form.scale
    radius = max(ubar - point.dual, 0.0) + comparison_allowance(here, tau, centre)
    return Ellipsoid(centre, form.M - np.diag(here.w), radius)


def ellipsoid_interval(
    form: UnitDiagonal, X: FloatArray, u: FloatArray, tau: int, ubar: float, shares: Sequence[float] = SHARES
) -> Interval:
    """Held-out sum of squares from several ellipsoids, row by row and together, intersected."""
    found = Interval(0.0, np.inf)
    for share in shares:
        body = safe_ellipsoid(form, tau, ubar, share)
        allow = 1e-9 * float(u @ u)
        found = found.tighten(body.rows(X, u), allow).tighten(body.together(X, u), allow)
    return found
