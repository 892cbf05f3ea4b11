"""Initial supports for a smooth convex loss, by local search on Newton's quadratic and exact refits.

Near a fit, F is close to a weighted least-squares objective. On this quadratic, forward selection and exchanges of
single columns are evaluated for all columns at once (`kernels.local_search`). Each proposed support is then fitted,
and its F decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from sparsecv_mio.arrays import CACHED_NUMBERS, FloatArray, IntArray
from sparsecv_mio.kernels import local_search
from sparsecv_mio.problem.glm import symmetric
from sparsecv_mio.problem.glm_objective import LEAST_CURVATURE
from sparsecv_mio.trees.glm_fits import GlmFits

ROUNDS = 20  # maximum number of quadratics of one search
BETTER = 1e-11  # minimum relative improvement of F by an exchange
MOST_SEEN = 128  # maximum number of columns of a quadratic, in addition to those of the support


class _Fitted(NamedTuple):
    """A support with its fit and its F."""

    support: frozenset[int]
    point: FloatArray
    upper: float


def exchange_columns(
    fits: GlmFits, begin: frozenset[int], size: int, expired: Callable[[], bool]
) -> tuple[frozenset[int], FloatArray, float]:
    """Return a good support of a size with its fit and value, by adding columns to a start and exchanging columns.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    begin : frozenset of int
        Columns of the start: varying columns including the forced ones, at most `size` of them.
    size : int
        Number of columns of the support.
    expired : callable
        Function that returns True when time is over; the support may then be smaller.
    """
    ends, way, (point, _, upper) = fits.exchanged, [begin], fits.fit(begin)
    best = _Fitted(begin, point, upper)
    while (way[-1], size) not in ends:
        if expired():
            return best
        better = _improve_support(fits, best, size) if len(way) <= ROUNDS else None
        if better is None:
            ends[way[-1], size] = best
        else:
            best = better
            way.append(best.support)
    end = ends[way[-1], size]
    ends.update({(support, size): end for support in way})
    return end


def _improve_support(fits: GlmFits, best: _Fitted, size: int) -> _Fitted | None:
    """Return a better support, or one of the full size if the present one is smaller; None if none is found."""
    columns, moments = _quadratic(fits, best)
    chosen = np.flatnonzero(fits.mask(best.support)[columns])
    forced = len(best.support) - len(chosen)
    room = min(size - forced, len(columns))
    scratch = local_search.new_tableau(len(columns), max(room, 1))
    if room <= 0 or not local_search.load(scratch, moments, chosen, len(chosen)):
        return None
    for _ in range(room - len(chosen)):
        added = local_search.best_to_add(scratch)
        if added < 0:
            return None
        local_search.add(scratch, moments, added)
    local_search.exchange(scratch, moments, local_search.MOST_EXCHANGES)
    inside = best.support - set(columns.tolist())
    proposed = inside | set(columns[scratch.members[:room]].tolist())
    if proposed == best.support:
        return None
    level = best.upper * (1.0 - BETTER) if len(proposed) == len(best.support) else np.inf
    fitted = fits.refit(fits.masks([proposed]), best.point, level, sure=False)
    return _Fitted(proposed, fitted.points[0], float(fitted.upper[0])) if fitted.upper[0] < level else None


def _quadratic(fits: GlmFits, best: _Fitted) -> tuple[IntArray, local_search.PenalisedMoments]:
    """Return varying columns that are not forced, and the moments of Newton's quadratic about a fit in these columns.

    If there are many columns, only those of the support and those with the largest gain are used, the gain of adding
    the column or exchanging it for one of the support.
    """
    problem, rows, first, point = fits.problem, fits.rows, fits.problem.first_coefficient, best.point
    margins = problem.signs * (point @ rows.W)
    weight = problem.v * np.maximum(problem.loss.curvatures(margins, problem.y), LEAST_CURVATURE)
    falls = problem.signs * problem.loss.falls(margins, problem.y, problem.v)
    target = weight * (problem.signs * margins) + falls
    inner = np.concatenate([np.arange(first), np.array(fits.forced, dtype=np.int64) + first]).astype(np.int64)
    free = fits.varies.copy()
    free[list(fits.forced)] = False
    columns = np.flatnonzero(free)
    if len(columns) > MOST_SEEN:
        chosen = np.array(sorted(best.support - set(fits.forced)), dtype=np.int64)
        worth = _worth(fits, weight, falls, inner, chosen, point)
        worth[chosen] = np.inf
        worth[~free] = -np.inf
        columns = np.sort(np.argpartition(-worth, MOST_SEEN)[: MOST_SEEN + len(chosen)])
    places = np.concatenate([inner, columns + first])
    H, c, k = np.zeros((len(places), len(places))), np.zeros(len(places)), len(inner)
    step = CACHED_NUMBERS // max(len(places), 1) + 1
    for begin in range(0, len(weight), step):
        here = slice(begin, begin + step)
        W = rows.W[places, here]
        H += symmetric(dsyrk(1.0, W * np.sqrt(weight[here]), trans=0))
        c += W @ target[here]
    yy = float(target @ (target / np.where(weight > 0.0, weight, 1.0)))
    A = H[:k, :k] + np.diag(2.0 * rows.penalty[inner] + np.finfo(float).tiny)
    beside = np.linalg.solve(A, np.column_stack([H[:k, k:], c[:k]]))
    yy -= float(c[:k] @ beside[:, -1])
    H, c = H[k:, k:] - H[k:, :k] @ beside[:, :-1], c[k:] - H[k:, :k] @ beside[:, -1]
    Q = np.ascontiguousarray(0.5 * (H + H.T))
    return columns, local_search.PenalisedMoments(Q, 2.0 * rows.penalty[columns + first], np.ascontiguousarray(c), yy)


def _worth(
    fits: GlmFits, weight: FloatArray, slope: FloatArray, inner: IntArray, chosen: IntArray, point: FloatArray
) -> FloatArray:
    """Return the (p,) gains in Newton's quadratic of each column, added or exchanged for a column of the support."""
    rows, first = fits.rows, fits.problem.first_coefficient
    inside = np.concatenate([inner, chosen + first])
    W = rows.W[first:]
    g = W @ slope
    left = (W * W) @ weight + 2.0 * rows.penalty[first:]
    floor = local_search.FLAT * left
    between = (rows.W[inside] * weight) @ rows.W.T
    M = between[:, inside] + np.diag(2.0 * rows.penalty[inside] + np.finfo(float).tiny)
    V = np.linalg.pinv(M, hermitian=True)
    T = V @ between[:, first:]
    left = left - np.einsum("sj,sj->j", T, between[:, first:])
    worth = np.where(left > floor, g * g / np.where(left > floor, left, 1.0), 0.0)
    k = len(inner)
    T, beta, spread = T[k:], point[inside[k:], None], np.diag(V)[k:, None]
    room = left + T * T / spread
    gains = np.where(room > floor, (g + T * beta / spread) ** 2 / np.where(room > floor, room, 1.0), -np.inf)
    return np.asarray(np.maximum(worth, (gains - beta * beta / spread).max(axis=0, initial=-np.inf)))
