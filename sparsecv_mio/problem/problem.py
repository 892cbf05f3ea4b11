"""The best-subset ridge problem of one fold from the moments of its training rows, with and without forced columns.

**Diagonals.** Let Q be the Gram matrix of the columns, c their products with the target, yy the sum of squares of the
target and `M = Q + diag(penalty)`. The problem minimises `f(b) = yy - 2 c'b + b'M b` over b with at most tau nonzero
coefficients. Its perspective relaxation needs a vector w, below called the *diagonal*.

**Theorem** (docs/theory/bounds.md, sections 1 and 2). Every `w >= 0` for which `M - diag(w)` is positive semidefinite
gives a relaxation: minimise `f(b) + sum_j w_j b_j^2 (1 / z_j - 1)` over b and z, with z_j from 0 to 1 and a sum of z_j
of at most tau. The value of the relaxation is a lower bound on the objective of every support of at most tau columns. A
larger w gives a tighter relaxation, but no valid w has the largest possible value in every column at once. The choices
below differ in tightness and cost. In the table, *eigenvalue* is a lower bound on the smallest eigenvalue of Q, and
`own_part` is a function of this module.

========================== ================================================ =======================================
used by                    diagonal w                                       reason
========================== ================================================ =======================================
the bounds of the paper,   the penalty                                      the paper prints it; it is the only
folds solved from rows                                                      choice with fewer rows than columns
trees                      penalty + eigenvalue; for 37 to 400 columns      one spectrum serves all gammas; the
                           the mean of this sum and `own_part`              mean costs one inversion for each
                                                                            problem, and saves nodes
models of solvers          penalty + eigenvalue, in units with `M_jj = 1`   the models are well scaled, and only one
                                                                            number needs a proof
bounds of a fold           `reduced_forms.sharpen`: approximately the       this diagonal is the tightest; it costs
                           largest sum of logarithms of w_j                 some factorisations for each fold and
                                                                            gamma, warm-started from all rows
========================== ================================================ =======================================

**Rounding.** A successful Cholesky factorisation proves the lower bound on the smallest eigenvalue up to rounding
errors (Rump, BIT 46, 2006). For these errors, `smallest_eigenvalue` subtracts four rounding units of the trace of Q for
each column. `own_part` subtracts 1e-12 times the largest eigenvalue of the scaled M, times the number of columns. If no
factorisation proves that `M - diag(w)` is positive semidefinite, w is multiplied by `1 - SHAVED`.

**Elimination of forced columns** by partial minimisation leaves a best-subset problem in the other columns.

Let F be the forced columns, R the other columns and S a subset of R. For the support `F + S`, the minimum of f over all
coefficients on F and S is

    f(F + S) = yy_o - c_oS' (M_oSS)^{-1} c_oS,    A = M_FF^{-1} M_FR,    M_o = M_RR - M_FR' A,
                                                  a = M_FF^{-1} c_F,    c_o = c_R - M_FR' a,    yy_o = yy - c_F' a.

The minimum of f over supports of at most k columns that contain F is therefore a problem of the same form in the
columns R, with size `k - |F|`. Its Gram matrix is `Q_o = Q_RR - M_FR' A`, which is positive semidefinite as a Schur
complement of `Q + diag(penalty on F)`; the penalty on R is unchanged. The eigenvalues of Q_o lie between the smallest
and the largest eigenvalue of Q. If `M - diag(w)` is positive semidefinite, so is M_o minus the part of `diag(w)` on R.
Let v be a row of features minus the means of the columns. The elimination replaces the features `v_R` of the row by
`v_R - v_F'A` and subtracts `v_F'a` from its target. The matrix A depends on gamma, so gamma must be set first.

Adjustment columns are forced columns without a penalty. If F contains only adjustment columns, A is the least-squares
projection, which is the same at every gamma. The other columns are then replaced by their residuals on F, just as
centring replaces a column by its residual on the intercept. In this case `M_FF` is regular if the adjustment columns
and the intercept are linearly independent on the training rows; `trees.without_ridge` checks this before any fit. The
formulas do not need a penalty on F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.standard import ForcedColumns, StandardData, subtract_means
from sparsecv_mio.thresholds import CUBIC_COLUMNS
from sparsecv_mio.units import NO_RIDGE, ROUNDING


def level_set_radius(room: float, off: float = 0.0) -> float:
    """Return the radius of a ball around a nearly exact ridge fit that holds all b with f(b) at most a level.

    With `M = Q + diag(penalty)`, `f(b) = yy - 2 c'b + b'M b` and any centre b0, `g = c - M b0`,

        f(b) = f(b0) - 2 g'(b - b0) + ||b - b0||_M^2      =>      ||b - b0||_M <= off + sqrt(off^2 + f(b) - f(b0)),

    `off = sqrt(g'M^{-1} g)`: the root of the quadratic, as `|g'(b - b0)| <= off ||b - b0||_M`. For the exact fit (off =
    0) it is an identity (docs/theory.md, section 2). Valid for every b, sparse or not.

    Parameters
    ----------
    room : float
        Upper bound on `level - f(b0)`. The caller allows for rounding by lowering `f(b0)` or raising the level.
    off : float
        Upper bound on `sqrt(g'M^{-1} g)`, including the rounding of M and c.

    Examples
    --------
    >>> level_set_radius(4.0), level_set_radius(0.0, 1.5), level_set_radius(-1.0)
    (2.0, 3.0, 0.0)
    """
    return off + math.sqrt(off**2 + max(room, 0.0))


EIGENVALUE_ROUNDING = 1e-12  # share of the largest eigenvalue, for each column
EIGENVALUE_ACCURACY = 1e-3  # relative accuracy of the Lanczos estimate
SHARES = (0.98, 0.9, 0.7)  # fractions of an estimated eigenvalue or diagonal, tried until one is certified


def smallest_eigenvalue(Q: FloatArray) -> float:
    """Return a lower bound on the smallest eigenvalue of Q: Lanczos on the inverse, then a factorisation.

    Parameters
    ----------
    Q : (q, q) array
        Positive semidefinite matrix.

    Returns
    -------
    float
        The bound, at least 0; it is 0 if Q is singular to rounding.

    Notes
    -----
    O(q^3 / 3) twice, a fifth of the time of computing all eigenvalues.

    Examples
    --------
    >>> round(smallest_eigenvalue(np.diag([2.0, 3.0, 5.0])), 9)
    1.96
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    q, rounding = len(Q), 4.0 * len(Q) * float(ROUNDING * np.trace(Q))
    try:
        factor = cho_factor(Q, check_finite=False)
        inverse = LinearOperator((q, q), matvec=lambda x: cho_solve(factor, x, check_finite=False), dtype=float)
        largest = eigsh(inverse, k=1, tol=EIGENVALUE_ACCURACY, v0=np.ones(q), return_eigenvectors=False)
    except (LinAlgError, ArpackError):
        return 0.0
    for share in SHARES:
        A = Q.copy()
        A.flat[:: q + 1] -= share / float(largest[0])
        try:
            cholesky(A, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return max(share / float(largest[0]) - rounding, 0.0)
    return 0.0


def own_part(M: FloatArray) -> FloatArray | None:
    """Return `t / V_jj`, a diagonal from the independent part of each column; None if M is singular to rounding.

    V is the inverse of M and t the smallest eigenvalue of M in the units where every `V_jj = 1`: then `M >= t I`. It is
    larger than penalty + eigenvalue for every column that is not nearly a linear combination of others.

    Parameters
    ----------
    M : (q, q) array
        Matrix.

    Notes
    -----
    O(q^3).

    Examples
    --------
    >>> own_part(np.diag([2.0, 3.0])).round(9).tolist()
    [2.0, 3.0]
    """
    try:
        inverse = np.diag(np.linalg.inv(M))
    except np.linalg.LinAlgError:
        return None
    if not np.all((inverse > 0.0) & np.isfinite(inverse)):
        return None
    own = 1.0 / inverse
    scale = 1.0 / np.sqrt(own)
    values = np.linalg.eigvalsh(M * scale[:, None] * scale)
    t = float(values[0]) - EIGENVALUE_ROUNDING * len(M) * float(values[-1])
    return np.asarray(t * own) if t > 0.0 else None


COPIES_OFF = 1e-11  # maximum distance of duplicates, relative to the root of their penalty
LARGEST_PENALTY = 1e290


def gamma_to_lam(gamma: Any) -> Any:
    """Return `gamma / 2` for a number or an array; for gamma 0, half of the smallest allowed ridge weight.

    Examples
    --------
    >>> gamma_to_lam(0.5), gamma_to_lam(0.0) > 0.0, gamma_to_lam(np.array([0.0, 3.0])).round(9).tolist()
    (0.25, True, [0.0, 1.5])
    """
    return np.maximum(gamma, NO_RIDGE) / 2.0 if isinstance(gamma, np.ndarray) else max(gamma, NO_RIDGE) / 2.0


def capped_penalty(lam: float, weight: FloatArray) -> FloatArray:
    """Return `lam * weight`, capped where it could overflow; such a coefficient is 0 in any case.

    Examples
    --------
    >>> capped_penalty(0.5, np.array([2.0, 1e300])).tolist()
    [1.0, 1e+290]
    """
    with np.errstate(over="ignore"):
        return np.minimum(lam * weight, LARGEST_PENALTY)


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """`min f(S), |S| <= tau` with `f(S) = min_b yy - 2 c'b + b' M b` over b supported on S.

    `M = Q + diag(penalty)`, `penalty = lam * weight`, `lam = gamma / 2`. All numbers live in the standard coordinates
    of :class:`sparsecv_mio.data.standard.StandardData`; `f` times `y_unit ** 2` is the user's objective
    `||y - Xb||^2 + (gamma / 2) ||b||^2` (theory section 0).

    Parameters
    ----------
    Q : (q, q) array
        Gram matrix of the training rows, centred about their means if the intercept is profiled out.
    c : (q,) array
        Cross products of the training columns and the response.
    yy : float
        Sum of squares of the response, `f` of the empty support.
    weight : (q,) array
        Penalty weight of each column.
    lam : float
        Half of the user's gamma.
    n : int
        Number of training rows.
    v_mean, r_mean : (q,) array, float
        Means subtracted from the training rows (zero unless the intercept is `fold`); a new row v is predicted by
        `r_mean + (v - v_mean)' b`.
    copy_of : (q,) int array, optional
        Earliest earlier column that may be equal to this one up to sign, under the same weight, else -1; `copies` has
        those that are.
    copy_off : (q,) array, optional
        Upper bound on the distance, over all rows, of a column from the one that it duplicates up to sign; 0 by
        default.
    copy_length : (q,) array, optional
        Lengths of duplicate columns over all rows; 0 by default.
    own : StandardData, optional
        Coordinates about the means of the training rows, if coordinates about the means of all rows would lose digits.
        The moments and means are in these coordinates, and so must be rows to predict (`about`).
    row_weight : float, optional
        Total weight of the training rows, n by default. Means use `row_weight`; rounding bounds of sums use `n`.
    forced : int array, optional
        Columns that every support contains, ascending; see `eliminate_forced_columns`.
    beside : float, optional
        Sum of squares of the response before columns were eliminated, to which the rounding of objectives is relative.
    own_squares : (q,) array, optional
        Diagonal of Q before columns were eliminated; 0 for a constant column.
    stretch : float
        Factor by which elimination increases the rounding error of the entries of M.
    kept : dict
        Cache shared by all gammas: results for every gamma, and results for one gamma by lam.
    """

    Q: FloatArray
    c: FloatArray
    yy: float
    weight: FloatArray
    lam: float
    n: int
    v_mean: FloatArray
    r_mean: float
    copy_of: NDArray[np.intp] | None = None
    copy_off: FloatArray | None = None
    copy_length: FloatArray | None = None
    own: StandardData | None = None
    row_weight: float | None = None
    forced: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    beside: float | None = None
    own_squares: FloatArray | None = None
    stretch: float = 1.0
    kept: dict[str | float, Any] = field(default_factory=dict, repr=False)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.c.shape[0])

    @property
    def choice(self) -> ForcedColumns:
        """The columns in every support and the others, by which tau becomes a number of columns."""
        return ForcedColumns.from_penalty_weights(self.forced, self.weight)

    @property
    def total(self) -> float:
        """Total weight of the training rows."""
        return self.n if self.row_weight is None else self.row_weight

    @property
    def size(self) -> float:
        """Scale of the rounding of objectives: yy before any column was eliminated."""
        return self.yy if self.beside is None else self.beside

    @property
    def squares(self) -> FloatArray:
        """(q,) squared lengths of the columns before any column was eliminated."""
        return np.diag(self.Q) if self.own_squares is None else self.own_squares

    @property
    def shrinkage(self) -> float:
        """Rounding of the entries of M relative to its diagonal, compared with a matrix without elimination.

        It is `stretch` times the largest ratio of a squared length before and after elimination, penalty included; 1
        without elimination.
        """
        if self.own_squares is None:
            return 1.0
        diagonal = np.maximum(np.diag(self.Q), 0.0) + self.penalty
        return self.stretch * float(np.max((self.own_squares + self.penalty) / diagonal, initial=1.0))

    @property
    def rounding(self) -> float:
        """Relative rounding error of moments summed over n rows, approximately `(24 + 0.1 sqrt n)` ulps."""
        return float((24.0 + 0.1 * np.sqrt(self.n)) * ROUNDING)

    @cached_property
    def penalty(self) -> FloatArray:
        """(q,) diagonal `lam * weight`."""
        return capped_penalty(self.lam, self.weight)

    @cached_property
    def M(self) -> FloatArray:
        """(q, q) matrix `Q + diag(penalty)`."""
        out = self.Q.copy()
        out.flat[:: self.q + 1] += self.penalty
        return out

    @cached_property
    def copies(self) -> NDArray[np.intp] | None:
        """(q,) earliest earlier column that these rows and this gamma cannot distinguish from this one up to sign.

        The value is -1 for other columns; None is returned if there are no duplicates. Swapping duplicates changes no
        prediction (theory section 9). If columns v and w differ by d, replacing one by the other changes residuals by
        `||d|| |b|`. With r the residual of the empty support, `lam weight b^2 <= ||r||^2`, so the change is at most
        `||d|| ||r|| / sqrt(lam weight)`, even if v is nearly a linear combination of others. If both are included, f
        falls by at most the square of this bound. If a held-out row is long relative to the column on these rows, the
        change of its prediction is larger by this ratio: a value of 1e28 makes even a tiny coefficient matter.
        """
        if self.copy_of is None or self.copy_off is None or not (self.copy_of >= 0).any():
            return self.copy_of
        allowed = COPIES_OFF * np.sqrt(self.penalty)
        if self.copy_length is not None:
            length = np.sqrt(np.maximum(self.squares, 0.0) + self.penalty)
            allowed = allowed * length / np.maximum(self.copy_length, length)
        return np.where(self.copy_off <= allowed, self.copy_of, -1)

    def centre_rows(self, data: StandardData, index: slice | IntArray) -> tuple[FloatArray, FloatArray]:
        """Return `(V, r)` of some rows about the training means, multiplied by the roots of their weights.

        Parameters
        ----------
        data : StandardData
            Data in the coordinates of the search.
        index : slice or (m,) int array
            Rows.
        """
        return (self.own or data).about(index, self.v_mean, self.r_mean)

    def with_gamma(self, gamma: float) -> SparseProblem:
        """Return the problem with another gamma; the Gram matrix is shared, not copied."""
        return replace(self, lam=gamma_to_lam(gamma))

    def select_columns(self, keep: IntArray) -> SparseProblem:
        """Return the problem restricted to some columns, in ascending order.

        Examples
        --------
        >>> whole = SparseProblem(np.diag([1.0, 2.0]), np.ones(2), 4.0, np.ones(2), 1.0, 9, np.zeros(2), 0.0)
        >>> whole.select_columns(np.array([1])).Q.tolist()
        [[2.0]]
        """
        copy_of = self.copy_of
        place = np.full(self.q + 1, -1, dtype=np.int64)  # the last entry is for columns that are not duplicates
        place[keep] = np.arange(len(keep))
        if copy_of is not None:
            copy_of = place[copy_of[keep]]
        forced = place[self.forced]
        return replace(
            self,
            Q=np.ascontiguousarray(self.Q[np.ix_(keep, keep)]),
            c=self.c[keep],
            weight=self.weight[keep],
            v_mean=self.v_mean[keep],
            copy_of=copy_of,
            copy_off=None if self.copy_off is None else self.copy_off[keep],
            copy_length=None if self.copy_length is None else self.copy_length[keep],
            own=None if self.own is None else self.own.only(keep),
            forced=forced[forced >= 0],
            own_squares=None if self.own_squares is None else self.own_squares[keep],
            kept={},
        )

    def spectrum(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of Q: a lower bound (at least 0) on the smallest, an upper bound on the largest.

        O(q^3) the first time, shared by every gamma of the same rows. With fewer rows than columns the smallest is 0
        and the largest is bounded by row sums; with very many columns two factorisations bound the smallest.
        """
        if "spectrum" not in self.kept:
            if self.q == 0:
                ends = (0.0, 0.0)
            elif self.q >= min(self.n, CUBIC_COLUMNS):
                least = smallest_eigenvalue(self.Q) if self.q < self.n else 0.0
                ends = (least, float(np.abs(self.Q).sum(axis=1).max()))
            else:
                values = np.linalg.eigvalsh(self.Q)
                error = 1e-14 * self.q * abs(values[-1])
                ends = (max(0.0, float(values[0] - error)), float(values[-1] + error))
            self.kept["spectrum"] = ends
        extremes: tuple[float, float] = self.kept["spectrum"]
        return extremes


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
    """Return the problem without its forced columns, of which there is at least one; duplicates are not merged."""
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
