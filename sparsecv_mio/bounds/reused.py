"""GLRU for best subsets: the relaxation's point on all rows, tested in a fold (docs/oracles/glru.md, in the search).

Every r is a point of every dual. With b the relaxation's solution on all rows, its residual restricted to the training
rows of a fold and centred on them again is the residual of b in the fold's own centred moments, and the dual value
there is a certified lower bound of the fold's optimum, for any diagonal w that is valid in the fold. Where what it
fixes leaves one support, neither a relaxation nor a tree of the fold's own is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.fold import OUTWARD, TIE, FoldBounds, Origin
from sparsecv_mio.bounds.form import FoldForm, IntArray
from sparsecv_mio.bounds.relaxation import prior_by_size, relax_form
from sparsecv_mio.kernels import fold_bounds
from sparsecv_mio.kernels.reused_dual import DROPPED, FREE, INSIDE, reused_dual
from sparsecv_mio.problem.problem import FloatArray

ACCURACY = 1e-6  # of the relaxations on all rows
WILDEST = 4.0  # b'Gb over y'y beyond which the dual value is a difference of large numbers


@dataclass(frozen=True, eq=False)
class Points:
    """Solutions of the relaxation on all rows at one gamma, in the units of the problem.

    Attributes
    ----------
    sizes : (T,) int array
        Rising, each in 1..q-1.
    beta : (T, q) array
    diagonal : (q,) array
        Valid on all rows: where a fold starts to look for its own.
    """

    sizes: IntArray
    beta: FloatArray
    diagonal: FloatArray

    def of(self, size: int) -> int:
        """Row of a size, -1 where there is none."""
        at = int(np.searchsorted(self.sizes, size))
        return at if at < len(self.sizes) and int(self.sizes[at]) == size else -1


@dataclass(frozen=True, eq=False)
class Tested:
    """What the points say of one fold.

    Attributes
    ----------
    sizes : (T,) int array
    dual : (T,) array
        Certified lower bounds of f, rounding taken off.
    status : (T, q) int8 array
        INSIDE, DROPPED, FREE.
    decided : (T,) bool array
        The incumbent is the only support within the tolerance of ties.
    """

    sizes: IntArray
    dual: FloatArray
    status: NDArray[np.int8]
    decided: NDArray[np.bool_]

    @property
    def fixed(self) -> int:
        """Columns fixed, over all sizes."""
        return int((self.status != FREE).sum())


def points_of(form: FoldForm | None, taus: Sequence[int]) -> Points | None:
    """Solve the relaxation on all rows; None where the form says nothing or no size is left to choose.

    Examples
    --------
    >>> from sparsecv_mio.bounds.form import fold_form
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> problem = SparseProblem(np.eye(2), np.array([3.0, 0.1]), 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> points_of(fold_form(problem), [0, 1, 2]).beta.round(3).tolist()
    [[1.5, 0.0]]
    """
    if form is None or not form.yy > 0.0 or form.dead.any():
        return None
    sizes = np.unique(np.array([tau for tau in taus if 0 < tau < form.m], dtype=np.int64))
    if not len(sizes):
        return None
    solved = relax_form(form, sizes.tolist(), accuracy=ACCURACY)
    return Points(sizes, np.array([one.beta for one in solved]), form.diagonal)


def reuse(fold: FoldBounds, points: Points | None, taus: Sequence[int], tie: float) -> Tested | None:
    """Test the points in a fold whose incumbents are known.

    Parameters
    ----------
    fold : FoldBounds
        With incumbents; its own diagonal is valid there.
    points : Points or None
    taus : sequence of int
        Sizes to test; those without a point are left out.
    tie : float
        Supports up to `best (1 + tie)` must survive.

    Returns
    -------
    Tested or None
        None where nothing can be said.

    Notes
    -----
    O(q (s + log q)) a size, s the size of the point's support: with the fold's moments at hand the training rows
    themselves are not read. Rounding: docs/theory/bounds.md 7.
    """
    form = fold.form
    if form is None or points is None or form.dead.any() or not form.yy > 0.0 or form.m != points.beta.shape[1]:
        return None
    rows = [at for at in (points.of(int(tau)) for tau in taus) if at >= 0]
    rows = [at for at in rows if np.isfinite(fold.best[points.sizes[at]])]
    if not rows:
        return None
    sizes = points.sizes[rows]
    b = points.beta[rows] / form.scale
    slip = form.rounding * (prior_by_size(form)[sizes] + np.abs(b).sum(axis=1)) ** 2
    room = fold.best[sizes] * (1.0 + tie) + 2.0 * slip
    dual, quad = np.empty(len(rows)), np.empty(len(rows))
    status = np.zeros(b.shape, dtype=np.int8)
    reused_dual(form.M, form.c, form.yy, form.w, b, sizes, dual, quad, status, room)
    status[~((quad <= WILDEST * form.yy) & (room >= 0.0))] = FREE
    held = fold.supports[sizes]
    decided = np.all(status == np.where(held, INSIDE, DROPPED), axis=1)
    return Tested(sizes, np.maximum(dual - slip, 0.0), status, decided)


def exact_numbers(fold: FoldBounds, size: int, dual: float) -> FloatArray | None:
    """A row of `FoldBounds.numbers` for a size whose incumbent is the only support left; None if it is singular."""
    form = fold.form
    assert form is not None
    m = form.m
    status = np.where(fold.supports[size], INSIDE, DROPPED).astype(np.int8)
    lo, hi = np.empty(len(fold.u)), np.empty(len(fold.u))
    work, x, index = np.empty((m, m)), np.empty(m), np.empty(m, dtype=np.int64)
    prior = float(np.sqrt(form.yy) * (1.0 + 2.0 * np.sqrt(np.sort(1.0 / form.w)[-size:].sum())))
    if not fold_bounds.one_support(
        form.M, form.c, status, size, fold.X, fold.u, prior, form.rounding, lo, hi, work, x, index
    ):
        return None
    low, high = fold_bounds.distances(fold.u, lo, hi)
    middle = 0.5 * (low + high)
    low, high = fold_bounds.blurred(low, high, fold.N, form.rounding, prior)
    low, high = max(low, 0.0) * (1.0 - OUTWARD), high * (1.0 + OUTWARD)
    slip = form.rounding * prior * prior
    value = float(fold.best[size])
    floor = max(min(dual, value), value - slip, 0.0)
    return np.array([floor, value * (1.0 + TIE) + slip, low, high, Origin.EXACT, Origin.EXACT, middle, 0.0])
