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

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.fold import FIELDS, OUTWARD, FoldBounds
from sparsecv_mio.bounds.relaxation import relax_form
from sparsecv_mio.bounds.unit_diagonal import UnitDiagonal
from sparsecv_mio.kernels.forms import Incumbents
from sparsecv_mio.kernels.reused_dual import Asked, Reused, reused_duals

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


def points_of(form: UnitDiagonal | None, taus: Sequence[int]) -> Points | None:
    """Solve the relaxation on all rows; None where the form says nothing or no size is left to choose.

    Examples
    --------
    >>> from sparsecv_mio.bounds.unit_diagonal import unit_diagonal
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> problem = SparseProblem(np.eye(2), np.array([3.0, 0.1]), 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> points_of(unit_diagonal(problem), [0, 1, 2]).beta.round(3).tolist()
    [[1.5, 0.0]]
    """
    if form is None or not form.yy > 0.0 or form.dead.any():
        return None
    sizes = np.unique(np.array([tau for tau in taus if 0 < tau < form.m], dtype=np.int64))
    if not len(sizes):
        return None
    solved = relax_form(form, sizes.tolist(), accuracy=ACCURACY)
    return Points(sizes, np.array([one.beta for one in solved]), form.diagonal)


def reuse(
    fold: FoldBounds, points: Points | None, taus: Sequence[int] | IntArray, tie: float, exact: bool = False
) -> Reused | None:
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
    exact : bool
        Say what the only support left predicts, too.

    Returns
    -------
    Reused or None
        None where nothing can be said.

    Notes
    -----
    O(q (s + log q)) a size, s the size of the point's support: with the fold's moments at hand the training rows
    themselves are not read. Rounding: docs/theory/bounds.md 7.
    """
    form = fold.form
    if form is None or points is None or form.dead.any() or not form.yy > 0.0 or form.m != points.beta.shape[1]:
        return None
    rows = np.flatnonzero(np.isin(points.sizes, taus))
    if not len(rows):
        return None
    sizes, T = points.sizes[rows], len(rows)
    found = Reused(
        sizes, np.empty(T), np.empty((T, form.m), dtype=np.int8), np.empty(T, dtype=np.bool_), np.empty((T, FIELDS))
    )
    reused_duals(
        form.fold(fold.X, fold.u), form.scale, points.beta[rows],
        Asked(tie, form.rounding, WILDEST, fold.N, exact), Incumbents(fold.best, fold.supports), found,
    )  # fmt: skip
    if exact:
        found.numbers[:, 2] *= 1.0 - OUTWARD
        found.numbers[:, 3] *= 1.0 + OUTWARD
    return found
