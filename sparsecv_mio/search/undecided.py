"""Held-out error of a cell whose optimum is not known: what the ridge ball and the training loss leave possible.

Two facts of theory.md, both valid for every optimum of the cell.

* Section 2 with eps = lam, centre the ridge solution b0 on all columns: `||b0 - b||_M^2 = f(b) - f(b0) <= ubar - f(b0)`
  for every b with `f(b) <= ubar`.
* Section 3: `h_N >= v - u`, v a lower bound of the optimum on all rows and u a feasible value without the fold.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.candidates import FoldRows
from sparsecv_mio.units import Interval


class RidgeBall:
    """The ball around the ridge solution of one fold and gamma, ready for every tau. O(q^3 + rows q^2) once."""

    def __init__(self, problem: SparseProblem, rows: FoldRows) -> None:
        self.rows = rows
        self.usable = True
        try:
            factor = cho_factor(problem.M)
        except (np.linalg.LinAlgError, ValueError):
            self.usable = False
            return
        beta = cho_solve(factor, problem.c)
        self.slack = 1e-10 * problem.yy
        self.value = float(problem.yy - problem.c @ beta) - self.slack
        if rows.by_moments:
            self.total = float(rows.yy - 2.0 * rows.c @ beta + beta @ rows.Q @ beta)
            self.reach = np.array([float(eigh(rows.Q, problem.M, eigvals_only=True)[-1])])
            self.residual: FloatArray = np.zeros(0)
        else:
            self.residual = rows.r - rows.V @ beta
            self.total = float(self.residual @ self.residual)
            half = cho_solve(factor, rows.V.T)
            self.reach = np.maximum(np.einsum("ij,ji->i", rows.V, half), 0.0)
            self.norm = float(np.linalg.eigvalsh(rows.V @ half)[-1]) if rows.count <= 2 * problem.q else self.reach.sum()

    def held_out(self, upper: float) -> Interval:
        """Interval of the held-out sum of squares of every b with `f(b) <= upper`."""
        if not self.usable or not np.isfinite(upper):
            return Interval(0.0, np.inf)
        radius = np.sqrt(max(upper - self.value, 0.0) + self.slack)
        norm = float(np.sqrt(max(self.total, 0.0)))
        wide = radius * float(np.sqrt(self.reach[0] if self.rows.by_moments else max(self.norm, 0.0))) * (1 + 1e-9)
        low, high = max(norm - wide, 0.0) ** 2, (norm + wide) ** 2
        if not self.rows.by_moments:
            each = radius * np.sqrt(self.reach) * (1 + 1e-9)
            size = np.abs(self.residual)
            low = max(low, float((np.maximum(size - each, 0.0) ** 2).sum()))
            high = min(high, float(((size + each) ** 2).sum()))
        return Interval(low * (1 - 1e-9), high * (1 + 1e-9))
