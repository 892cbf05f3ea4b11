"""Duals of all rows tested in every fold at once, from the rows held out alone (theory section 8).

With b the relaxation's solution on all rows, e its residuals and s, u the sums of the held-out rows of V and e,

    c_T - Q_T b = (c - Q b) - V_N'e_N - s u / n_T,      ||r_T||^2 = ||r||^2 - ||e_N||^2 - u^2 / n_T

are the slope and the length of the residual restricted to the training rows T and centred on them: O(|N| q) a fold.
With eta the leverage of the fold, `(1 - eta) w` is a valid diagonal in the fold wherever w is one on all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.reused import WILDEST, Points
from sparsecv_mio.data.standard import Intercept
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.shared_tree.leave_out import WIDEST_ETA, Rows
from sparsecv_mio.search.shared_tree.tree_root import TreeRoot

ROUNDING = 1e-10  # of y'y: rows taken off the moments of all rows
MARGIN = 1e-9  # of the diagonal


def decide_by_reuse(root: TreeRoot, points: Points) -> tuple[int, int]:
    """Decide the open cells of a gamma whose incumbent is the only support left; O(n q + K q log q) a tau.

    Returns
    -------
    asked, decided : int
        Cells.
    """
    full, g = root.full, root.g
    if root.form.m != root.problem.q or not root.problem.yy > 0.0:
        return 0, 0
    taken = [(t, points.of(int(tau))) for t, tau in enumerate(full.taus) if points.of(int(tau)) >= 0]
    numbers = full.numbers(root.listed)
    masks = np.zeros((len(root.listed), root.problem.q), dtype=np.bool_)
    for a, support in enumerate(root.supports):
        masks[a, support] = True
    counts: list[tuple[int, int]] = []

    def decide(lo: int, hi: int) -> None:
        scores, bars, rows = root.scores(lo, hi), root.bars(lo, hi), full.rows(lo, hi)
        eta = np.minimum(root.eta[lo:hi], 1.0)
        sure = np.zeros(bars.shape, dtype=np.bool_)
        asked = 0
        for t, at in taken:
            ask = ~full.cells.final[g, t, lo:hi] & (scores.which[t] >= 0) & (eta < WIDEST_ETA)
            asked += int(ask.sum())
            if ask.any():
                mask = masks[np.maximum(scores.which[t], 0)]
                only = only_support(root, points, at, rows, eta, bars[t], mask)
                sure[t] = ask & only
        decided = full.settle(g, lo, hi, scores, numbers, root.form, sure, branched=False)
        counts.append((asked, decided))

    full.over_chunks(decide)
    return sum(one for one, _ in counts), sum(two for _, two in counts)


def only_support(
    root: TreeRoot, points: Points, at: int, rows: Rows, eta: FloatArray, bars: FloatArray, mask: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """(K,) whether every other support than `mask` (K, q) is certified to lie above the fold's bar (K,)."""
    problem, size = root.problem, int(points.sizes[at])
    b = points.beta[at]
    # a fold of leverage one has no diagonal: its numbers are no numbers, and compare as false
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quad, dual, d = fold_duals(root, b, size, rows, (1.0 - eta) * (1.0 - MARGIN), points.diagonal)
        gap = bars + ROUNDING * problem.yy - dual
        q = problem.q
        part = np.partition(d, (q - size - 1, q - size), axis=1)
        inner, outer = part[:, q - size, None], part[:, q - size - 1, None]
        fixed = np.where(mask, d - outer > gap[:, None], inner - d > gap[:, None])
        return np.asarray(fixed.all(axis=1) & (gap >= 0.0) & (quad <= WILDEST * problem.yy))


def fold_duals(
    root: TreeRoot, b: FloatArray, size: int, rows: Rows, share: FloatArray, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`b'G b`, D and `d_j` of every fold of some consecutive ones; the diagonal of fold j is `share_j diagonal`.

    Returns
    -------
    quad, dual : (K,) arrays
        The first rounded up to what y'y of all rows makes of it.
    d : (K, q) array
    """
    V, r, starts = rows
    problem, first = root.problem, starts[:-1]
    e = r - V @ b
    slope = problem.c - problem.Q @ b
    squares = float(problem.yy - problem.c @ b - slope @ b)
    held_slope = np.add.reduceat(V * e[:, None], first, axis=0)
    held_squares = np.add.reduceat(e * e, first)
    if root.full.data.intercept is Intercept.FOLD:
        left = problem.n - np.diff(starts)
        total = np.add.reduceat(e, first) / left
        held_slope += np.add.reduceat(V, first, axis=0) * total[:, None]
        held_squares += total * total * left
    w = share[:, None] * diagonal
    g = slope - held_slope
    along = g @ b
    beside = (problem.penalty - w) @ (b * b)
    g += (w - problem.penalty) * b
    d = g * g / w
    top = np.partition(d, problem.q - size, axis=1)[:, problem.q - size :].sum(axis=1)
    dual = squares - held_squares + 2.0 * along - beside - top
    # at least b'G b, which is y'y of the training rows less these
    quad = problem.yy - dual - top
    return quad, dual, d
