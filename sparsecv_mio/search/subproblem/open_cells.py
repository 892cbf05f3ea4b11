"""Held-out error of a cell of which only an incumbent is known: ridge ball and relaxations.

Both hold for every optimum of the cell: :mod:`sparsecv_mio.bounds.ridge_ball`, whatever its support, and the
relaxations of :mod:`sparsecv_mio.bounds.fold`, on what screening by the incumbent leaves.

The training-loss bound, section 3, is added by :mod:`sparsecv_mio.search.subproblem.cell_intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.ridge_ball import RidgeBall
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
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
    support: IntArray
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
        ball = (
            RidgeBall.of_moments(problem, rows.Q, rows.c, rows.yy, rows.unit)
            if rows.by_moments
            else RidgeBall.of_rows(problem, rows.V, rows.r, rows.unit)
        )
        if ball is not None:
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
