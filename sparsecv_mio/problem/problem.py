"""The inner problem of one fold: best-subset ridge regression on the moments of its training rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.problem.diagonal import smallest_eigenvalue

EIGEN_LIMIT = 1500  # columns from which on the spectrum is bounded, not computed
LARGEST_PENALTY = 1e290


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """`min f(S), |S| <= tau` with `f(S) = min_b yy - 2 c'b + b' M b` over b supported on S.

    `M = Q + diag(penalty)`, `penalty = lam * weight`, `lam = gamma / 2`. All numbers live in the standard
    coordinates of :class:`sparsecv_mio.data.standard.StandardData`; `f` times `y_unit ** 2` is the user's objective
    `||y - Xb||^2 + (gamma / 2) ||b||^2` (theory section 0).

    Parameters
    ----------
    Q : (q, q) array
        Gram matrix of the training rows, centred on their own means when the intercept is profiled out.
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
        Means taken off the training rows (zero unless the intercept is `fold`); a new row v is predicted by
        `r_mean + (v - v_mean)' b`.
    copy_of : (q,) int array, optional
        Earliest earlier column equal to this one up to sign, under the same weight, else -1; swapping copies changes no
        prediction (theory section 9).
    full_length : float, optional
        Squared length of a typical column over all rows: what is nothing beside it is constant on these rows.
    row_weight : float, optional
        Weight of the training rows together; n by default. `n` says how sums over them round, this what means are of.
    forced : int array, optional
        Columns that every support contains, ascending; see :mod:`sparsecv_mio.problem.elimination`.
    beside : float, optional
        Sum of squares of the response before columns were eliminated: what objectives are rounded beside.
    own_squares : (q,) array, optional
        Diagonal of Q before columns were eliminated: what says whether a column varies.
    stretch : float
        Times the rounding of the entries of M before that, what the entries are rounded by now.
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
    full_length: float = 0.0
    row_weight: float | None = None
    forced: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    beside: float | None = None
    own_squares: FloatArray | None = None
    stretch: float = 1.0
    _gamma_free: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.c.shape[0])

    @property
    def total(self) -> float:
        """Weight of the training rows together."""
        return self.n if self.row_weight is None else self.row_weight

    @property
    def size(self) -> float:
        """What objectives are rounded beside: yy, before any column was eliminated."""
        return self.yy if self.beside is None else self.beside

    @property
    def squares(self) -> FloatArray:
        """(q,) squared lengths of the columns, before any column was eliminated."""
        return np.diag(self.Q) if self.own_squares is None else self.own_squares

    @property
    def shrinkage(self) -> float:
        """Rounding of the entries of M beside its own diagonal, over that of a matrix that nothing was eliminated of.

        `stretch` times the largest ratio of a squared length before and after, penalty included; 1 otherwise.
        """
        if self.own_squares is None:
            return 1.0
        left = np.maximum(np.diag(self.Q), 0.0) + self.penalty
        return self.stretch * float(np.max((self.own_squares + self.penalty) / left, initial=1.0))

    @property
    def rounding(self) -> float:
        """Relative rounding error of moments added up over n rows, about: `(24 + 0.1 sqrt n)` ulps."""
        return float((24.0 + 0.1 * np.sqrt(self.n)) * np.finfo(float).eps)

    @cached_property
    def penalty(self) -> FloatArray:
        """(q,) diagonal `lam * weight`; one so large that it could overflow leaves no coefficient either way."""
        with np.errstate(over="ignore"):
            return np.minimum(self.lam * self.weight, LARGEST_PENALTY)

    @cached_property
    def M(self) -> FloatArray:
        """(q, q) matrix `Q + diag(penalty)`."""
        out = self.Q.copy()
        out.flat[:: self.q + 1] += self.penalty
        return out

    def with_gamma(self, gamma: float) -> SparseProblem:
        """Return the same rows under another gamma; the Gram matrix is shared, not copied."""
        return replace(self, lam=gamma / 2.0)

    def only(self, keep: IntArray) -> SparseProblem:
        """Return the problem on some of its columns, in rising order.

        Examples
        --------
        >>> whole = SparseProblem(np.diag([1.0, 2.0]), np.ones(2), 4.0, np.ones(2), 1.0, 9, np.zeros(2), 0.0)
        >>> whole.only(np.array([1])).Q.tolist()
        [[2.0]]
        """
        copy_of = self.copy_of
        place = np.full(self.q + 1, -1, dtype=np.int64)  # the last for a column that is no copy
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
            forced=forced[forced >= 0],
            own_squares=None if self.own_squares is None else self.own_squares[keep],
            _gamma_free={},
        )

    def spectrum(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of Q: the smallest from below (at least 0), the largest from above.

        O(q^3) the first time, shared by every gamma of the same rows. With fewer rows than columns the smallest is 0
        and the largest is bounded by row sums; with very many columns two factorisations do for the smallest.
        """
        if "spectrum" not in self._gamma_free:
            if self.q == 0:
                ends = (0.0, 0.0)
            elif self.q >= min(self.n, EIGEN_LIMIT):
                least = smallest_eigenvalue(self.Q) if self.q < self.n else 0.0
                ends = (least, float(np.abs(self.Q).sum(axis=1).max()))
            else:
                values = np.linalg.eigvalsh(self.Q)
                error = 1e-14 * self.q * abs(values[-1])
                ends = (max(0.0, float(values[0] - error)), float(values[-1] + error))
            self._gamma_free["spectrum"] = ends
        return self._gamma_free["spectrum"]
