"""Theorem 2.4 and Corollary 2.7 as the paper prints them. They are false (docs/theory/bounds.md 6): estimates only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.wide import WideFold


def printed_ends(fold: FoldBounds | WideFold, taus: Sequence[int]) -> FloatArray:
    """`x'b_P -+ sqrt((ubar - zeta) x'(X'X + lam I)^{-1} x)` for every held-out row, then Corollary 2.7.

    Parameters
    ----------
    fold : FoldBounds or WideFold
        With its incumbents: ubar is the best of them.
    taus : sequence of int

    Returns
    -------
    (taus, 3) array
        Printed lower and upper end of h_j and its estimate, in squared standard units; h_j need not lie between them.

    Notes
    -----
    The relaxation is the paper's, with the penalty alone inside the perspective.
    """
    if isinstance(fold, WideFold):
        return np.array([_ends(fold.u, *fold.printed(tau)) for tau in taus])
    form, taus = fold.form, fold.choice.sizes(taus)
    if form is None:
        return np.array([(0.0, np.inf, np.nan)] * len(taus))
    X, u = fold.rows
    reach = np.maximum(np.einsum("ij,ji->i", X, np.linalg.solve(form.M, X.T)), 0.0)
    relaxed = {x.tau: x for x in relax_problem(fold.problem, sorted(set(taus)), diagonal=Diagonal.PENALTY)}
    levels = [float(fold.best[min(tau, fold.m)]) if tau else fold.problem.yy for tau in taus]
    points = [relaxed[tau] for tau in taus]
    return np.array(
        [_ends(u, ubar, x.dual, X @ (x.beta / form.scale), reach) for x, ubar in zip(points, levels, strict=True)]
    )


def _ends(u: FloatArray, ubar: float, zeta: float, centre: FloatArray, reach: FloatArray) -> tuple[float, float, float]:
    wide = np.sqrt(max(ubar - zeta, 0.0) * reach)
    lo, hi = centre - wide, centre + wide
    near = np.maximum(np.maximum(lo - u, u - hi), 0.0)
    far = np.maximum(np.abs(u - lo), np.abs(u - hi))
    middle = u - centre
    return float(near @ near), float(far @ far), float(middle @ middle)
