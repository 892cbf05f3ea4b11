"""Bounds on the held-out losses of a fold with squared-error loss, for sizes whose best subset is not proved.

Let f be the training objective of the fold and u that of the best known support. Two bounds hold for every b with `f(b)
<= u`. The ridge ball (:mod:`sparsecv_mio.bounds.closed_form`) holds for any support of b. The relaxations of
:mod:`sparsecv_mio.bounds.fold` hold for the columns that remain after screening with u.
All sizes of a gamma share the preparation of the relaxations. If screening leaves one support for a size, the size is
solved without a tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds import fold as relaxed
from sparsecv_mio.bounds.closed_form import RidgeBall
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.search.problems import fold_fits
from sparsecv_mio.search.problems.fold_fits import FoldData
from sparsecv_mio.search.problems.protocol import Enclosed, Fits, IsExpired
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.thresholds import CUBIC_COLUMNS, FEW_FOLDS, RELAXED_COLUMNS
from sparsecv_mio.trees.subsets import SWAP_ROUNDS
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


def relax_sizes(
    here: fold_fits.FoldData, sizes: Sequence[int], supports: Sequence[IntArray], near: FloatArray | None,
    is_expired: IsExpired,
) -> tuple[FloatArray, list[IntArray | None]]:  # fmt: skip
    """Return the numbers of the relaxations of some sizes of a fold, a row each, and the incumbents.

    Parameters
    ----------
    here : FoldData
        Fold at a gamma.
    sizes : sequence of int
        Sizes to relax.
    supports : sequence of int arrays
        Supports to try as incumbents.
    near : (m,) array or None
        Diagonal of the relaxation of the full data, which saves time.
    is_expired : callable
        Function that returns True once the search has to end.
    """
    rows = _relaxed_rows(here, near, is_expired)
    rows.try_supports(supports)
    rows.search(sizes, swap_rounds=SWAP_ROUNDS if here.held_out.folds.k <= FEW_FOLDS else 0)
    return rows.numbers(sizes), [rows.incumbent(size) for size in sizes]


def _relaxed_rows(
    here: fold_fits.FoldData, near: FloatArray | None, is_expired: IsExpired
) -> relaxed.FoldBounds | WideFold:
    """Return the relaxations of a fold: by its Gram matrix, or by its rows if there are very many columns."""
    data, folds, problem = here.held_out.data, here.held_out.folds, here.problem
    scored = folds.scored_rows(here.fold)
    if is_wide(data):
        return WideFold(WideRows.from_data(data, folds.train_rows(here.fold), scored, 2.0 * problem.lam), is_expired)
    return relaxed.FoldBounds(problem, *(problem.own or data).rows(scored), near, data.root_of(scored))


def narrow_by_relaxations(bounds: SubproblemBounds, fits: Fits, ball: Enclosed, numbers: FloatArray) -> None:
    """Narrow the bounds of one fold by the numbers of its relaxations; a single remaining support is optimal.

    Parameters
    ----------
    bounds : SubproblemBounds
        Bounds from the incumbents; they are changed.
    fits : Fits
        Fits of the incumbents.
    ball : Enclosed
        Bounds by the ridge ball.
    numbers : (T', 8) array
        Numbers of the relaxations, as `relax_sizes` returns them.
    """
    objective_lower, lower, upper, n_open = numbers[:, 0], numbers[:, 2], numbers[:, 3], numbers[:, 7]
    is_solved = (n_open == 0) & fits.is_accurate & np.isfinite(bounds.objective_upper[:, 0])
    lower, upper = np.maximum(lower, ball.lower), np.minimum(upper, ball.upper)
    bounds.objective_lower[:, 0] = np.maximum(objective_lower, ball.objective_lower)
    bounds.lower[:, 0] = np.where(is_solved, np.maximum(fits.held_out_lower, 0.0), lower)
    bounds.upper[:, 0] = np.where(is_solved, fits.held_out_upper, upper)
    bounds.is_solved[:, 0] = bounds.is_final[:, 0] = is_solved
