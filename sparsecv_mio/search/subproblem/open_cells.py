"""Held-out error of a cell of which only an incumbent is known: ridge ball and relaxations.

Facts of theory.md, valid for every optimum of the cell.

* Section 2 with eps = lam, centre the ridge solution b0 on all columns: `||b0 - b||_M^2 = f(b) - f(b0) <= ubar - f(b0)`
  for every b with `f(b) <= ubar`.
* The relaxations of :mod:`sparsecv_mio.bounds` (docs/theory/bounds.md), on what screening by the incumbent leaves.

The training-loss bound, section 3, is added by :mod:`sparsecv_mio.search.subproblem.cell_intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
from sparsecv_mio.search.subproblem.held_out_fold import HeldOutFold
from sparsecv_mio.units import Interval

BALL_COLUMNS = 1500  # columns beyond which the ridge ball's factorisation costs more than it is worth
RELAXED_COLUMNS = 300  # columns beyond which the relaxations of a fold cost more than a round of its trees


@dataclass(frozen=True, eq=False)
class Incumbent:
    """Best support known of a cell.

    Attributes
    ----------
    tau : int
    support : int array
        Columns of the problem.
    upper : float
        At least f of every optimum of the cell, tied ones included; inf where that is not known.
    """

    tau: int
    support: NDArray[np.int64]
    upper: float


def held_out_intervals(here: FoldProblem, incumbents: Sequence[Incumbent], relax: bool = True) -> list[Interval]:
    """Bound the held-out sums of squares of some cells of one fold and gamma.

    Parameters
    ----------
    here : FoldProblem
    incumbents : sequence of Incumbent
        Of each cell.
    relax : bool
        False leaves it at the ridge ball, O(q^3 + rows q^2) in all; True adds relaxations where rows and columns are
        few enough.

    Returns
    -------
    list of Interval
        Squared standard units.
    """
    problem, rows = here.problem, here.held_out
    found = [Interval(0.0, np.inf)] * len(incumbents)
    if problem.q <= BALL_COLUMNS:
        ball = RidgeBall(problem, rows)
        found = [ball.held_out(one.upper) for one in incumbents]
    known = [at for at, one in enumerate(incumbents) if np.isfinite(one.upper)]
    if not relax or not known or rows.by_moments or problem.q > RELAXED_COLUMNS:
        return found
    fold = FoldBounds(problem, *rows.data.rows(rows.folds.test_rows(rows.fold)))
    for one in (incumbents[at] for at in known):
        if 0 < one.tau <= fold.m and one.upper < fold.best[one.tau]:
            fold.best[one.tau] = one.upper
            fold.supports[one.tau] = False
            fold.supports[one.tau, one.support] = True
    cells = fold.cells([incumbents[at].tau for at in known])
    slack = 1e-12 * float(fold.u @ fold.u) + 1e-300
    for at, cell in zip(known, cells, strict=True):
        found[at] = found[at].tighten(cell.interval, slack + 1e-9 * found[at].upper)
    return found


class RidgeBall:
    """The ball around the ridge solution of one fold and gamma, ready for every tau. O(q^3 + rows q^2) once.

    The centre b0 need not be exact: with `g = c - M b0`, `f(b) = F(b0) - 2 g'(b - b0) + ||b - b0||_M^2`, hence
    `||b - b0||_M <= t + sqrt(t^2 + f(b) - F(b0))`, `t^2 = g'M^{-1} g`. `unit` is the relative rounding of moments.
    """

    def __init__(self, problem: SparseProblem, rows: HeldOutFold) -> None:
        self.rows = rows
        length = np.sqrt(np.diag(problem.M))
        try:
            factor = cholesky(problem.M, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            self.usable = False
            return
        spread = solve_triangular(factor, np.diag(length), lower=True)
        condition = float(np.einsum("ij,ij->", spread, spread))
        self.usable = bool(rows.unit * condition < 0.01)
        if not self.usable:
            return
        beta = cho_solve((factor, True), problem.c)
        load = float(np.sqrt(problem.yy) + length @ np.abs(beta))
        self.value = float(problem.yy - problem.c @ beta - (problem.c - problem.M @ beta) @ beta) - rows.unit * load**2
        g = solve_triangular(factor, problem.c - problem.M @ beta, lower=True)
        self.off = float(np.linalg.norm(g)) + rows.unit * load * np.sqrt(condition)
        self.room = 1.0 + 1e-9 + 8.0 * rows.unit * condition
        if rows.by_moments:
            self._from_moments(problem, beta)
        else:
            self._from_rows(factor, beta)

    def _from_moments(self, problem: SparseProblem, beta: FloatArray) -> None:
        rows = self.rows
        size = float(np.sqrt(rows.yy) + np.sqrt(np.diag(rows.Q)) @ np.abs(beta))
        self.slip = np.array([np.sqrt(rows.unit) * size])
        self.norm = float(np.sqrt(max(rows.yy - 2.0 * rows.c @ beta + beta @ rows.Q @ beta, 0.0)))
        self.reach = self.room * float(eigh(rows.Q, problem.M, eigvals_only=True)[-1])

    def _from_rows(self, factor: FloatArray, beta: FloatArray) -> None:
        rows = self.rows
        self.residual = np.abs(rows.r - rows.V @ beta)
        self.slip = rows.unit * (np.abs(rows.r) + np.abs(rows.V) @ np.abs(beta))
        self.norm = float(np.linalg.norm(self.residual))
        half = solve_triangular(factor, rows.V.T, lower=True)
        self.each = self.room * np.einsum("ij,ij->j", half, half)
        small = rows.count <= 2 * len(beta)
        self.reach = self.room * float(np.linalg.eigvalsh(half.T @ half)[-1]) if small else float(self.each.sum())

    def held_out(self, upper: float) -> Interval:
        """Interval of the held-out sum of squares of every b with `f(b) <= upper`."""
        if not self.usable or not np.isfinite(upper):
            return Interval(0.0, np.inf)
        radius = self.off + float(np.sqrt(self.off**2 + max(upper - self.value, 0.0)))
        wide = radius * float(np.sqrt(max(self.reach, 0.0))) + float(np.linalg.norm(self.slip))
        low, high = max(self.norm - wide, 0.0) ** 2, (self.norm + wide) ** 2
        if not self.rows.by_moments:
            each = radius * np.sqrt(self.each) + self.slip
            low = max(low, float((np.maximum(self.residual - each, 0.0) ** 2).sum()))
            high = min(high, float(((self.residual + each) ** 2).sum()))
        return Interval(low * (1 - 1e-12), high * (1 + 1e-12))
