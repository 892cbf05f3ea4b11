"""Where the margins of sparse fits lie: quadratics made for few columns, not for all.

A quadratic q below F at every fit with at most k columns and F at most U needs curvature that holds over their margins
alone, not over all of the level set. With M its matrix, w a diagonal under it, and any point b, `g = c - (M - W) b`,

    q(b') >= dual + ||b' - b||^2_{M - W},    dual = yy - b'(M - W) b - (sum of the k largest g_j^2 / w_j),

for every b' with at most k columns (the relaxation of trees, its slack kept). So these fits lie in an ellipsoid about b
of which `U - dual` is the squared radius: far less than `U - min q` (docs/theory/glm.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.glm import Ellipsoid, Minorant, Ranges, minorant, minorant_within, symmetric
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.normal_form import NormalForm, normal_form, solve_root

SHARE = 0.6  # of the diagonal of trees that is taken out: with all of it M - W is singular
ROUNDING, LARGEST_DOUBT = 1e-11, 1e-3  # of what is added up, and share of the ellipsoid that rounding may be worth


def sparse_ellipsoid(
    below: Minorant, first: int, size: int, level: float, expired: Callable[[], bool], inside: IntArray
) -> Ellipsoid | None:
    """Return an ellipsoid with every fit of at most so many columns and F at most a level; None if rounding hides it.

    Parameters
    ----------
    below : Minorant
    first : int
        1 with an intercept.
    size : int
    level : float
    expired : callable
    inside : int array
        Columns that every such fit has, by their places; these have no diagonal, so that the others have more.
    """
    moments, chosen = below.moments, size - len(inside)
    inner = eliminated(replace(moments, forced=inside))
    form, others = normal_form(inner.problem), inner.choice.others
    if not (form.curved and form.trusted and 0 < chosen < form.m and form.m == len(others)):
        return None
    part = _partly(form)
    root = solve_root(part, chosen, part.raised(level + below.shift), np.zeros(form.m), expired)
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


def around(
    fits: GlmFits, points: Iterable[FloatArray], size: int, level: float, expired: Callable[[], bool]
) -> Iterator[tuple[Minorant, Ellipsoid | None, Ranges]]:
    """Yield quadratics about some points, ellipsoids of sparse fits by them, and the ranges that all so far leave.

    The first quadratic is below F on its level set; each other one at sparse fits, whose margins have shorter ranges
    by then. Ranges become the next ones where they are: of very many rows there is no second copy.

    Parameters
    ----------
    fits : GlmFits
    points : iterable of (first + p,) arrays
    size : int
        Most columns of a fit of interest.
    level : float
        And its F at most.
    expired : callable
    """
    firsts, ranges = np.flatnonzero(fits.copies), None
    places, problem = fits.places(firsts), fits.whole.only(firsts)
    for point in points:
        if expired():
            break
        if ranges is None:
            below = minorant(problem, point[places], level, expired)
        else:
            below = minorant_within(problem, point[places], level, ranges)
        if below is None:
            continue
        ellipsoid = sparse_ellipsoid(below, problem.first, size, level, expired, fits.inside)
        ranges = below.ranges if ranges is None else ranges.narrowed(below.ranges)
        if ellipsoid is not None:
            ranges = Ranges(ranges.low.copy(), ranges.high.copy()) if ranges is below.ranges else ranges
            for here, Z, sign in problem.blocks():
                there = np.sort(sign * np.array(ellipsoid.predictions(Z)), axis=0)
                Ranges(ranges.low[here], ranges.high[here]).narrowed(Ranges(*there))  # in place
        yield below, ellipsoid, ranges
        del below  # numbers of rows, of which there may be very many
