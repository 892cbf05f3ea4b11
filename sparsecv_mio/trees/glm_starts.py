"""Good supports by a smooth convex loss: local search on the quadratic of Newton's method, fits that decide.

About a fit F is nearly a weighted least squares problem, on which forward selection and exchanges of single columns are
known for all columns at once (`kernels.local_search`). What it proposes is fitted.
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

ROUNDS = 20  # quadratics of one search
BETTER = 1e-11  # of a value, that an exchange must save
MOST_SEEN = 128  # columns of a quadratic, beside those of the support


class _Fitted(NamedTuple):
    """A support with its fit and value."""

    support: frozenset[int]
    point: FloatArray
    upper: float


def exchanged(
    fits: GlmFits, begin: frozenset[int], size: int, expired: Callable[[], bool]
) -> tuple[frozenset[int], FloatArray, float]:
    """Return a good support of a size with its fit and value: a start with more columns, then exchanges.

    Parameters
    ----------
    fits : GlmFits
    begin : frozenset of int
        Varying columns, at most the size, with those that are forced in.
    size : int
    expired : callable
        True ends it; the support may then be smaller.
    """
    ends, way, (point, _, upper) = fits.exchanged, [begin], fits.fit(begin)
    best = _Fitted(begin, point, upper)
    while (way[-1], size) not in ends:
        if expired():
            return best
        better = _improved(fits, best, size) if len(way) <= ROUNDS else None
        if better is None:
            ends[way[-1], size] = best
        else:
            best = better
            way.append(best.support)
    end = ends[way[-1], size]
    ends.update({(support, size): end for support in way})
    return end


def _improved(fits: GlmFits, best: _Fitted, size: int) -> _Fitted | None:
    """Return a better support, or one of the size in place of a smaller one; None if none is found."""
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
    """Return columns that vary and are not forced in, and moments of Newton's quadratic about a fit on them.

    Of many columns those of the support, and those that are worth most to the quadratic, as one more or in the place
    of one of the support.
    """
    problem, rows, first, point = fits.problem, fits.rows, fits.problem.first, best.point
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
    """(p,) what Newton's quadratic about a fit gains by each column, added or in the place of the best one chosen."""
    rows, first = fits.rows, fits.problem.first
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
