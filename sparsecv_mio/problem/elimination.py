"""Elimination of forced columns by partial minimisation, which leaves a best-subset problem in the other columns.

Let the objective be `f(b) = yy - 2 c'b + b'M b`, with M the Gram matrix Q plus the penalty. Let F be the forced
columns, R the other columns and S a subset of R. For the support `F + S`, the minimum over the coefficients on F is

    f(F + S) = yy' - c'_S (M'_SS)^{-1} c'_S,     A = M_FF^{-1} M_FR,    M' = M_RR - M_FR' A,
                                                 a = M_FF^{-1} c_F,    c' = c_R - M_FR' a,    yy' = yy - c_F' a.

The minimum of f over supports of at most k columns that contain F is therefore a problem of the same form in the
columns R, with size `k - |F|`. Its Gram matrix is `Q' = Q_RR - M_FR' A`, which is positive semidefinite as a Schur
complement of `Q + diag(penalty on F)`; the penalty on R is unchanged. The eigenvalues of Q' lie between the smallest
and the largest eigenvalue of Q. If M minus a diagonal is positive semidefinite, so is M' minus the part of this
diagonal on R. Let v be a row minus the means. The elimination replaces its features in R by `v_R - v_F'A` and removes
the part `v_F'a` from the prediction. A depends on gamma, so gamma must be set before the elimination.

Adjustment columns are forced columns without a penalty. If F contains only adjustment columns, A is the least-squares
projection, which is the same at every gamma. The other columns are then replaced by their residuals on F, just as
centring replaces a column by its residual on the intercept. In this case `M_FF` is regular if the adjustment columns
and the intercept are linearly independent on the training rows; `trees.without_ridge` checks this before any fit. The
formulas do not need a penalty on F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.forced_columns import ForcedColumns
from sparsecv_mio.data.standard import subtract_means
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import ROUNDING


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """A problem at one gamma from which the forced columns are eliminated.

    Attributes
    ----------
    problem : SparseProblem
        Problem in the columns `choice.others`, without forced columns.
    choice : ForcedColumns
        Forced and remaining columns.
    means : (q,) array
        Training means of all columns.
    centre : (f,) array
        Coefficients a of the forced columns if no other column is included.
    share : (f, r) array
        Matrix A: the regression of each other column on the forced columns.
    inverse : (f, f) array
        Inverse of `M_FF`.
    length : (f,) array
        Square roots of the diagonal of `M_FF`.
    """

    problem: SparseProblem
    choice: ForcedColumns
    means: FloatArray
    centre: FloatArray
    share: FloatArray
    inverse: FloatArray
    length: FloatArray

    def reduce_rows(self, V: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centred rows and their targets in the coordinates of the reduced problem.

        Parameters
        ----------
        V, r : (m, q), (m,) arrays
            Rows minus the training means, multiplied by the square roots of their weights.
        """
        forced = self.choice.forced
        if not len(forced):
            return V, r
        return V[:, self.choice.others] - V[:, forced] @ self.share, r - V[:, forced] @ self.centre

    def rows(self, V: FloatArray, r: FloatArray, root: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return rows in the coordinates of the reduced problem, with its means subtracted.

        Parameters
        ----------
        V, r : (m, q), (m,) arrays
            Rows in standard coordinates, multiplied by the square roots of their weights.
        root : (m,) array, optional
            Square roots of the weights; None if each row counts once.
        """
        if not len(self.choice.forced):
            return V, r
        problem = self.problem
        X, u = self.reduce_rows(*subtract_means(V, r, root, self.means, problem.r_mean))
        return subtract_means(X, u, root, -problem.v_mean, -problem.r_mean)

    def leverage(self, V: FloatArray) -> FloatArray:
        """Return the leverage of each row in the fit of the forced columns alone.

        Parameters
        ----------
        V : (m, q) array
            Rows minus the training means.
        """
        own = V[:, self.choice.forced]
        return np.asarray(np.einsum("ij,jk,ik->i", own, self.inverse, own))

    def solution_l1_norms(self, V: FloatArray) -> FloatArray:
        """Return `|M_FF^{-1} v_F|_1` of each row, in units in which `M_FF` has a unit diagonal.

        Multiplied by the rounding of the moments and the size of a candidate, it bounds the error of a residual
        (docs/theory/bounds.md 7).

        Parameters
        ----------
        V : (m, q) array
            Rows minus the training means.
        """
        return np.asarray(np.abs(V[:, self.choice.forced] @ self.inverse) @ self.length)


def eliminate_forced_columns(problem: SparseProblem) -> ReducedProblem:
    """Return a problem without its forced columns; the problem itself if there are none. O(f q^2).

    Parameters
    ----------
    problem : SparseProblem
        Problem at the gamma of interest.

    Examples
    --------
    >>> whole = SparseProblem(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1.0, 1.0]), 4.0, np.ones(2), 1.0, 9,
    ...                       np.zeros(2), 0.0, forced=np.array([1]))
    >>> part = eliminate_forced_columns(whole).problem
    >>> part.M.tolist(), part.c.tolist(), part.yy
    ([[1.875]], [0.75], 3.5)
    """
    if not len(problem.forced):
        return ReducedProblem(problem, *_empty_elimination(problem.q))
    if problem.weight[problem.forced].any():
        made = _eliminate_without_copies(problem)
    else:  # without a penalty the result is the same at every gamma
        made = problem.kept.get(ELIMINATED) or problem.kept.setdefault(ELIMINATED, _eliminate_without_copies(problem))
    copies = _find_copies(problem.copies, made.choice.others)
    at_gamma = replace(made.problem, lam=problem.lam, copy_of=copies)
    return replace(made, problem=at_gamma)


ELIMINATED = "eliminated"


def _eliminate_without_copies(problem: SparseProblem) -> ReducedProblem:
    """Return `eliminated` without its treatment of duplicate columns, if there are forced columns."""
    forced, choice = problem.forced, problem.choice
    others = choice.others
    own = problem.Q[np.ix_(forced, forced)] + np.diag(problem.penalty[forced])
    cross = problem.Q[np.ix_(forced, others)]
    scale = 1.0 / np.sqrt(np.diag(own))
    factor = cho_factor(_regularise(own * scale[:, None] * scale), lower=True)
    share = scale[:, None] * cho_solve(factor, scale[:, None] * cross)
    centre = scale * cho_solve(factor, scale * problem.c[forced])
    inverse = scale[:, None] * cho_solve(factor, np.diag(scale))
    Q = problem.Q[np.ix_(others, others)] - cross.T @ share
    narrow = problem.select_columns(others)
    explained_not = problem.yy - float(problem.c[forced] @ centre)
    least = ROUNDING * problem.yy  # a sum of squares below rounding does not show a constant target
    reduced = replace(
        narrow,
        Q=0.5 * (Q + Q.T),
        c=problem.c[others] - share.T @ problem.c[forced],
        yy=max(explained_not, least),
        beside=problem.size,
        own_squares=np.diag(problem.Q)[others].copy(),
        stretch=(1.0 + _largest_share(problem, choice, share, centre)) ** 2,
        kept={"spectrum": problem.spectrum()},
    )
    return ReducedProblem(reduced, choice, problem.v_mean, centre, share, inverse, 1.0 / scale)


@lru_cache(maxsize=64)
def _empty_elimination(q: int) -> tuple[ForcedColumns, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the attributes of a problem of q columns without forced columns; they are never written to."""
    choice = ForcedColumns(np.zeros(0, dtype=np.int64), np.arange(q))
    return choice, np.zeros(q), np.zeros(0), np.zeros((0, q)), np.zeros((0, 0)), np.zeros(0)


def _regularise(correlation: FloatArray) -> FloatArray:
    """Return a matrix with unit diagonal that has a Cholesky factor, with a few roundings added to its diagonal."""
    out = correlation.copy()
    out.flat[:: len(out) + 1] = 1.0
    for ulps in (0.0, 16.0, 256.0, 4096.0, 65536.0):
        shifted = out + ulps * len(out) * ROUNDING * np.eye(len(out))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        return shifted
    return out + np.eye(len(out))


def _largest_share(problem: SparseProblem, choice: ForcedColumns, share: FloatArray, centre: FloatArray) -> float:
    """Return the largest part of a column or response that is subtracted, in units of lengths; at least 0."""
    length = np.sqrt(problem.squares + problem.penalty)
    taken = (length[choice.forced] @ np.abs(share)) / length[choice.others]
    target = float(length[choice.forced] @ np.abs(centre)) / np.sqrt(problem.yy) if problem.yy > 0.0 else 0.0
    return max(float(taken.max(initial=0.0)), target)


def _find_copies(copy_of: NDArray[np.intp] | None, keep: IntArray) -> NDArray[np.intp] | None:
    """Return, for each of some columns, the position of the earliest of them that it duplicates, else -1."""
    if copy_of is None or not (copy_of[keep] >= 0).any():
        return None
    root = np.where(copy_of[keep] >= 0, copy_of[keep], keep)
    _, first, of = np.unique(root, return_index=True, return_inverse=True)
    earliest = first[of]
    return np.where(earliest < np.arange(len(keep)), earliest, -1)


def strip_forced_columns(choice: ForcedColumns, supports: Sequence[NDArray[np.integer]]) -> list[IntArray]:
    """Return supports without forced columns, as positions among the others."""
    return [choice.inside(support) for support in supports]
