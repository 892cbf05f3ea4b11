"""Theorem 2.4 and Corollary 2.7 as the paper prints them. They are false (docs/theory/bounds.md 6): estimates only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.units import Estimate


@dataclass(frozen=True)
class PrintedCell:
    """The printed interval of one h_j in squared standard units; it need not contain h_j."""

    tau: int
    lower: Estimate
    upper: Estimate
    estimate: Estimate


def printed_cells(fold: FoldBounds, taus: Sequence[int]) -> list[PrintedCell]:
    """`x'b_P -+ sqrt((ubar - zeta) x'(X'X + lam I)^{-1} x)` for every held-out row, then Corollary 2.7.

    Parameters
    ----------
    fold : FoldBounds
        With its incumbents: ubar is the best of them.
    taus : sequence of int

    Notes
    -----
    The relaxation is the paper's, with the penalty alone inside the perspective.
    """
    form = fold.form
    nothing = PrintedCell(0, Estimate(0.0), Estimate(np.inf), Estimate(np.nan))
    if form is None:
        return [nothing] * len(taus)
    V, r = fold.rows
    M = fold.problem.M[np.ix_(form.columns, form.columns)]
    X, u = V[:, form.columns] - fold.problem.v_mean[form.columns], r - fold.problem.r_mean
    reach = np.maximum(np.einsum("ij,ji->i", X, np.linalg.solve(M, X.T)), 0.0)
    relaxed = {x.tau: x for x in relax_problem(fold.problem, sorted(set(taus)), diagonal=Diagonal.PENALTY)}
    cells = []
    for tau in taus:
        point = relaxed[tau]
        ubar = float(fold.best[min(tau, fold.m)]) if tau else fold.problem.yy
        centre = X @ point.beta[form.columns]
        wide = np.sqrt(max(ubar - point.dual, 0.0) * reach)
        lo, hi = centre - wide, centre + wide
        near = np.maximum(np.maximum(lo - u, u - hi), 0.0)
        far = np.maximum(np.abs(u - lo), np.abs(u - hi))
        middle = u - centre
        cells.append(
            PrintedCell(tau, Estimate(float(near @ near)), Estimate(float(far @ far)), Estimate(float(middle @ middle)))
        )
    return cells
