"""Ranges of the margins of sparse fits, from quadratics that need to be valid only for fits with few columns.

Let q be a quadratic below F at every fit with at most k columns and F at most U. Its curvature needs to be valid over
the margins of these fits, not over the whole level set of F. With M its matrix, w a diagonal with `M - W` positive
definite, any point b and `g = c - (M - W) b`,

    q(b') >= dual + ||b' - b||^2_{M - W},    dual = yy - b'(M - W) b - (sum of the k largest g_j^2 / w_j),

for every b' with at most k columns. Hence these fits lie in an ellipsoid about b with squared radius `U - dual`, which
is far less than `U - min q` (docs/theory/glm.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.problem.elimination import eliminate_forced_columns
from sparsecv_mio.problem.glm import Ellipsoid, Minorant, Ranges, minorant, minorant_on_ranges, symmetric
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.normal_form import NormalForm, normal_form, solve_root

SHARE = 0.6  # share of the trees' diagonal that is used as w; with all of it, M - W is singular
# rounding of the squared radius, as a share of the terms added up, and maximum relative rounding of the ellipsoid
ROUNDING, LARGEST_DOUBT = 1e-11, 1e-3


def sparse_ellipsoid(
    below: Minorant, first: int, size: int, level: float, expired: Callable[[], bool], inside: IntArray
) -> Ellipsoid | None:
    """Return an ellipsoid that contains every fit of a size with F at most a level; None if rounding is too large.

    Parameters
    ----------
    below : Minorant
        Quadratic below F at these fits.
    first : int
        Number of leading coefficients of the intercept: 1 or 0.
    size : int
        Maximum number of columns of a fit.
    level : float
        Maximum F of a fit.
    expired : callable
        Function that returns True when time is over.
    inside : int array
        Positions of the columns that every such fit has. Their diagonal is 0, which makes that of the others larger.
    """
    moments, chosen = below.moments, size - len(inside)
    inner = eliminate_forced_columns(replace(moments, forced=inside))
    form, others = normal_form(inner.problem), inner.choice.others
    if not (form.curved and form.is_trusted and 0 < chosen < form.m and form.m == len(others)):
        return None
    part = _partly(form)
    root = solve_root(part, chosen, part.raise_cutoff(level + below.shift), np.zeros(form.m), expired)
    b, w = np.zeros(moments.q), np.zeros(moments.q)
    b[others], w[others] = root.b * part.scale, 1.0 / part.scale**2
    b[inside] = inner.centre - inner.share @ b[others]
    product = moments.M @ b - w * b
    slope = moments.c - product
    most = float(np.sort(slope[others] ** 2 / w[others])[::-1][:chosen].sum())
    farthest = below.ellipsoid.size[first:]
    square = level + below.shift - (moments.yy - float(b @ product) - most)
    square += 2.0 * float(np.abs(slope[inside]) @ farthest[inside])
    square += ROUNDING * (moments.yy + most + float(np.abs(b) @ (np.abs(moments.M) @ np.abs(b))))
    K = 0.5 * below.H
    K.flat[first * (len(K) + 1) :: len(K) + 1] -= w
    unit = np.sqrt(np.maximum(np.diag(K), 0.0))
    factor, failed = dpotrf(K / np.where(unit > 0.0, unit, 1.0)[:, None] / np.where(unit > 0.0, unit, 1.0))
    if failed or not np.all(unit > 0.0):
        return None
    inverse = symmetric(dpotri(factor)[0])
    doubt = 40.0 * len(K) ** 2 * float(np.finfo(float).eps) * float(np.trace(inverse))
    if not doubt <= LARGEST_DOUBT:
        return None
    inverse *= (1.0 + 4.0 * doubt) / unit[:, None] / unit
    intercept = [-(below.linear[0] + float(below.H[0, 1:] @ b)) / below.H[0, 0]] if first else []
    centre = np.concatenate([intercept, b])
    return Ellipsoid(centre, inverse, float(np.sqrt(max(square, 0.0))), np.abs(centre))


def _partly(form: NormalForm) -> NormalForm:
    """Return a normal form with a share of the diagonal taken out."""
    G = form.matrix() / SHARE
    G.flat[:: form.m + 1] -= 1.0
    scale, largest = 1.0 / np.sqrt(SHARE), (form.largest + 1.0) / SHARE - 1.0
    return replace(form, G=np.ascontiguousarray(G), c=form.c * scale, scale=form.scale * scale, largest=largest)


def bound_around_points(
    fits: GlmFits, points: Iterable[FloatArray], size: int, level: float, expired: Callable[[], bool]
) -> Iterator[tuple[Minorant, Ellipsoid | None, Ranges]]:
    """Yield quadratics about some points, the ellipsoids of sparse fits that they imply, and ranges of margins.

    The ranges are the intersection of all ranges so far. The first quadratic is below F on its level set; every later
    one is below F at sparse fits only, whose margins have shorter ranges by then. Ranges are updated in place, because
    a second copy for very many rows would be too large.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    points : iterable of (first + p,) arrays
        Points about which quadratics are made.
    size : int
        Maximum number of columns of a fit.
    level : float
        Maximum F of a fit.
    expired : callable
        Function that returns True when time is over.
    """
    firsts, ranges = np.flatnonzero(fits.copies), None
    places, problem = fits.places(firsts), fits.bounding_problem.select_columns(firsts)
    for point in points:
        if expired():
            break
        if ranges is None:
            below = minorant(problem, point[places], level, expired)
        else:
            below = minorant_on_ranges(problem, point[places], level, ranges)
        if below is None:
            continue
        ellipsoid = sparse_ellipsoid(below, problem.first_coefficient, size, level, expired, fits.inside)
        ranges = below.ranges if ranges is None else ranges.intersect(below.ranges)
        if ellipsoid is not None:
            ranges = Ranges(ranges.low.copy(), ranges.high.copy()) if ranges is below.ranges else ranges
            for here, Z, sign in problem.blocks():
                there = np.sort(sign * np.array(ellipsoid.predictions(Z)), axis=0)
                Ranges(ranges.low[here], ranges.high[here]).intersect(Ranges(*there))  # in place
        yield below, ellipsoid, ranges
        del below  # its arrays have one entry for each row, and there may be very many rows
