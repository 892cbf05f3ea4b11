"""Intervals of held-out losses of one fold with squared-error loss, where only an incumbent is known.

What holds for every b with `f(b) <= u`, u the training objective of the incumbent: the ridge ball
(:mod:`sparsecv_mio.bounds.closed_form`), whatever its support, and the relaxations of :mod:`sparsecv_mio.bounds.fold`
on what screening by the incumbent leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.closed_form import RidgeBall
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.search.problems.fold_fits import FoldData
from sparsecv_mio.thresholds import CUBIC_COLUMNS, RELAXED_COLUMNS
from sparsecv_mio.units import Interval


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


def held_out_intervals(
    here: FoldData, incumbents: Sequence[Incumbent], relax: bool = True
) -> tuple[list[Interval], list[float]]:
    """Bound the held-out sums of squares of some cells of one fold and gamma, and their training objectives from below.

    Parameters
    ----------
    here : FoldData
    incumbents : sequence of Incumbent
        Of each cell.
    relax : bool
        False leaves it at the ridge ball, O(q^3 + rows q^2) in all; True adds relaxations where rows and columns are
        few enough.

    Returns
    -------
    intervals : list of Interval
        Squared standard units.
    floors : list of float
        At most the training objective of every optimum; 0 where nothing is known.
    """
    problem, rows = here.problem, here.held_out
    intervals, floors = [Interval(0.0, np.inf)] * len(incumbents), [0.0] * len(incumbents)
    if problem.q <= CUBIC_COLUMNS:
        ball = (
            RidgeBall.of_moments(problem, rows.Q, rows.c, rows.yy, rows.unit, rows.level, rows.count)
            if rows.by_moments
            else RidgeBall.of_rows(problem, rows.V, rows.r, rows.unit, rows.level)
        )
        if ball is not None:
            intervals = [ball.held_out(incumbent.upper) for incumbent in incumbents]
            floors = [ball.least] * len(incumbents)
    finite = [at for at, incumbent in enumerate(incumbents) if np.isfinite(incumbent.upper)]
    if not relax or not finite or rows.by_moments or problem.q > RELAXED_COLUMNS:
        return intervals, floors
    scored = rows.folds.scored_rows(rows.fold)
    fold = FoldBounds(problem, *(problem.own or rows.data).rows(scored), root=rows.data.root_of(scored))
    for incumbent_of in (incumbents[at] for at in finite):
        fold.improve(incumbent_of.tau, incumbent_of.support, incumbent_of.upper)
    cells = fold.cells([incumbents[at].tau for at in finite])
    slack = 1e-12 * float(fold.u @ fold.u) + 1e-300
    for at, cell in zip(finite, cells, strict=True):
        intervals[at] = intervals[at].tighten(cell.interval, slack + 1e-9 * intervals[at].upper)
        floors[at] = max(floors[at], cell.objective_lower)
    return intervals, floors
