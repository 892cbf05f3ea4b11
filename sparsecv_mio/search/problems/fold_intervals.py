"""Bounds on the held-out losses of a fold with squared-error loss, for sizes whose best subset is not proved.

Let f be the training objective of the fold and u that of the best known support. Two bounds hold for every b with `f(b)
<= u`. The ridge ball (:mod:`sparsecv_mio.bounds.closed_form`) holds for any support of b. The relaxations of
:mod:`sparsecv_mio.bounds.fold` hold for the columns that remain after screening with u.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import RidgeBall
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.search.problems.fold_fits import FoldData
from sparsecv_mio.search.problems.protocol import Enclosed
from sparsecv_mio.thresholds import CUBIC_COLUMNS, RELAXED_COLUMNS
from sparsecv_mio.units import Interval


def enclose_held_out(
    here: FoldData, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], relaxes: bool
) -> Enclosed:
    """Bound the held-out sums of squares of some sizes of a fold, and their training objectives from below.

    Parameters
    ----------
    here : FoldData
        Fold at a gamma.
    sizes : sequence of int
        Sizes to bound.
    objective_upper : (S,) array
        Upper bounds on the objectives of all optima, tied ones included; inf where none is known.
    supports : sequence of int arrays
        Best known supports, in columns of the problem.
    relaxes : bool
        False to use the ridge ball alone, O(q^3 + rows q^2) in all; True to add relaxations if rows and columns are few
        enough.
    """
    problem, rows = here.problem, here.held_out
    intervals, objective_lower = [Interval(0.0, np.inf)] * len(sizes), np.zeros(len(sizes))
    if problem.q <= CUBIC_COLUMNS:
        ball = (
            RidgeBall.from_moments(problem, rows.Q, rows.c, rows.yy, rows.unit, rows.level, rows.count)
            if rows.by_moments
            else RidgeBall.from_rows(problem, rows.V, rows.r, rows.unit, rows.level)
        )
        if ball is not None:
            intervals = [ball.held_out(float(upper)) for upper in objective_upper]
            objective_lower[:] = ball.least
    finite = np.flatnonzero(np.isfinite(objective_upper)).tolist()
    if relaxes and finite and not rows.by_moments and problem.q <= RELAXED_COLUMNS:
        scored = rows.folds.scored_rows(rows.fold)
        fold = FoldBounds(problem, *(problem.own or rows.data).rows(scored), root=rows.data.root_of(scored))
        for at in finite:
            fold.improve(sizes[at], supports[at], float(objective_upper[at]))
        slack = 1e-12 * float(fold.u @ fold.u) + 1e-300
        for at, cell in zip(finite, fold.cells([sizes[at] for at in finite]), strict=True):
            intervals[at] = intervals[at].tighten(cell.interval, slack + 1e-9 * intervals[at].upper)
            objective_lower[at] = max(objective_lower[at], cell.objective_lower)
    lower, upper = (np.array([getattr(interval, name) for interval in intervals]) for name in ("lower", "upper"))
    return Enclosed(lower, upper, objective_lower)
